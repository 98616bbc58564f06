/**
 * A gateway process as a client's tests use it, and the recording of what the client sends.
 *
 * With `RECORD_WIRES=1` in the environment everything that passes, between client and gateway and between gateway and
 * upstream, is written to `fixtures/<name>.json`; `wires.test.ts` plays it back without the client.
 */
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { forwarder } from "./forwarder.ts"
import type { Role } from "./recording.ts"
import * as Recording from "./recording.ts"

const isRecorded = process.env["RECORD_WIRES"] === "1"

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
  Recording.exists(name)
    ? Effect.void
    : Effect.die(new Error(`fixtures/${name}.json is not there: run this test with RECORD_WIRES=1 once`))

/** Starts a gateway over the upstreams and gives its base URL. */
export const session = Effect.fnUntraced(function*({ client, environment = {}, name, upstreams = {} }: Options) {
  const named = Object.entries(upstreams).flatMap(([role, url]) => Recording.isRole(role) ? [{ role, url }] : [])
  const behind = isRecorded
    ? yield* Effect.forEach(
      named,
      ({ role, url }) => Effect.map(forwarder(url), (between) => ({ role, between, url: between.url }))
    )
    : named.map(({ role, url }) => ({ role, between: undefined, url }))
  const gateway = yield* hostedGateway({
    ...environment,
    ...Object.fromEntries(behind.map(({ role, url }) => [Recording.roles[role], url]))
  })
  if (!isRecorded) {
    yield* mustBeRecorded(name)
    return gateway.url
  }
  const front = yield* forwarder(gateway.url)
  const time = yield* Clock.currentTimeMillis
  yield* Effect.addFinalizer(() =>
    Effect.sync(() =>
      Recording.write(name, {
        client,
        time,
        environment,
        exchanges: front.exchanges,
        upstreams: Object.fromEntries(behind.map(({ between, role }) => [role, between?.exchanges ?? []]))
      })
    )
  )
  return front.url
})
