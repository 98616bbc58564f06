/**
 * A gateway process as a client's tests use it, and the recording of what the client sends.
 *
 * With `RECORD_WIRES=1` in the environment everything that passes, between client and gateway and between gateway and
 * upstream, is written to `fixtures/<name>.json`; `wires.test.ts` plays it back without the client.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { gatewayProcess } from "../../packages/server/test/process.ts"
import type { Exchange } from "./forwarder.ts"
import { forwarder } from "./forwarder.ts"

/** The upstreams of a gateway, by the setting that names them. */
export const roles = {
  api: "TRIGATE_TRADING_API_URL",
  node: "TRIGATE_TRADING_NODE_URL",
  tokens: "TRIGATE_TOKEN_CHAIN_URL",
  layer2: "TRIGATE_LAYER2_URL"
} as const

export type Role = keyof typeof roles

/** What passed while a client did something, in the order of the requests. */
export interface Recording {
  /** Client and version. */
  readonly client: string
  /** When it began, in milliseconds: signed actions are valid for some time only. */
  readonly time: number
  /** Settings of the gateway besides its upstreams. */
  readonly environment: { readonly [name: string]: string }
  /** Between client and gateway. */
  readonly exchanges: ReadonlyArray<Exchange>
  /** Between gateway and upstreams; none at all is the sandbox. */
  readonly upstreams: { readonly [R in Role]?: ReadonlyArray<Exchange> }
}

/** Where the recordings are. */
export const recordings = new URL("fixtures/", import.meta.url)

const isRecorded = process.env["RECORD_WIRES"] === "1"

const isRole = (name: string): name is Role => name in roles

/** What a session is about. */
export interface Options {
  /** Name of the recording: client and what it does, as `viem/batches`. */
  readonly name: string
  /** Client and version. */
  readonly client: string
  /** Base URLs of the upstreams; the sandbox answers when there are none. */
  readonly upstreams?: { readonly [R in Role]?: string }
  readonly environment?: { readonly [name: string]: string }
}

/** A client whose recording was never made, or was named otherwise, would be played back by nothing. */
const mustBeRecorded = (name: string) =>
  Fs.existsSync(new URL(`${name}.json`, recordings))
    ? Effect.void
    : Effect.die(new Error(`fixtures/${name}.json is not there: run this test with RECORD_WIRES=1 once`))

const write = (name: string, recording: Recording) =>
  Effect.sync(() => {
    const file = new URL(`${name}.json`, recordings)
    Fs.mkdirSync(new URL(".", file), { recursive: true })
    Fs.writeFileSync(file, `${JSON.stringify(recording, undefined, 2)}\n`)
  })

/** Starts a gateway over the upstreams and gives its base URL. */
export const session = Effect.fnUntraced(function*({ client, environment = {}, name, upstreams = {} }: Options) {
  const named = Object.entries(upstreams).flatMap(([role, url]) => isRole(role) ? [{ role, url }] : [])
  const behind = isRecorded
    ? yield* Effect.forEach(
      named,
      ({ role, url }) => Effect.map(forwarder(url), (between) => ({ role, between, url: between.url }))
    )
    : named.map(({ role, url }) => ({ role, between: undefined, url }))
  const gateway = yield* gatewayProcess({
    ...environment,
    ...Object.fromEntries(behind.map(({ role, url }) => [roles[role], url]))
  })
  if (!isRecorded) {
    yield* mustBeRecorded(name)
    return gateway.url
  }
  const front = yield* forwarder(gateway.url)
  const time = yield* Clock.currentTimeMillis
  yield* Effect.addFinalizer(() =>
    write(name, {
      client,
      time,
      environment,
      exchanges: front.exchanges,
      upstreams: Object.fromEntries(behind.map(({ between, role }) => [role, between?.exchanges ?? []]))
    })
  )
  return front.url
})
