/** `trigate status`: what it prints of gateways in several states, and its exit code. */
import { assert, describe, it } from "@effect/vitest"
import { catalogDate } from "@trigate/domain/actions/Action"
import { gateway, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { recordingUpstream, refusingUrl, type Reply } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import { run } from "./run.ts"

const chain = (mode: string, upstreams: { readonly [name: string]: number }) => ({ mode, upstreams })

const readiness = {
  status: "ready",
  sandbox: false,
  network: "mainnet",
  chains: {
    trading: chain("live", { "trading-api": 2, "trading-node": 1 }),
    tokens: chain("not-configured", { "token-chain": 0 }),
    layer2: chain("live", { layer2: 1 })
  },
  degraded: ["actionLog", "eventLog"],
  actionLog: { backing: "Postgres", state: "away", used: { familiar: 0, strangers: 0 }, room: "enough" },
  redis: "up",
  eventLog: {
    backing: "Redis",
    state: "up",
    role: "reader",
    position: "0k3v9s2m1xq:42",
    accounts: { waiting: 0, subscribing: 1, refilling: 0, live: 2 },
    unrecorded: 0
  }
}

const metrics = `# TYPE trigate_build_info gauge
trigate_build_info{version="1.2.3",node="v24.21.0"} 1
trigate_upstream_rate_limit_available{upstream="trading-api",share="actions"} 900
trigate_upstream_rate_limit_available{upstream="trading-api",share="common"} 840.5
trigate_upstream_ejected{upstream="trading-api",address="0"} 1
trigate_upstream_ejected{upstream="trading-api",address="1"} 0
`

/** A gateway that answers these to every request of the command. */
const scripted = (ready: Reply, metered: Reply) =>
  Effect.map(recordingUpstream(({ path }) => path === "/metrics" ? metered : ready), ({ url }) => url)

const json = (value: unknown, status = 200): Reply => ({ status, body: JSON.stringify(value) })

const text: Reply = { type: "text/plain", body: metrics }

const status = (url: string, ...more: ReadonlyArray<string>) => run(["status", "--gateway", url, ...more])

describe("trigate status", () => {
  it.live("prints a sandbox, as a table and as JSON", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      assert.deepStrictEqual(yield* status(url), {
        code: 0,
        stdout: `gateway     ${url}
status      ready
network     mainnet (sandbox: nothing here is real)
trading     sandbox
tokens      sandbox
layer2      sandbox
action log  memory, up, free capacity: enough
event log   memory, up, writer, 0 of 0 accounts complete
`,
        stderr: ""
      })
      const { stdout } = yield* status(url, "--json")
      const sandbox = (...upstreams: ReadonlyArray<string>) => ({
        mode: "sandbox",
        upstreams: Object.fromEntries(upstreams.map((name) => [name, { addresses: 0, ejected: 0 }]))
      })
      const printed: unknown = JSON.parse(stdout)
      assert.deepStrictEqual<unknown>(printed, {
        gateway: url,
        status: "ready",
        network: "mainnet",
        sandbox: true,
        catalog: catalogDate,
        degraded: [],
        actionLog: { backing: "memory", state: "up", used: { familiar: 0, strangers: 0 }, room: "enough" },
        eventLog: {
          backing: "memory",
          state: "up",
          role: "writer",
          position: JsonParts.at(printed, "eventLog", "position"),
          accounts: { waiting: 0, subscribing: 0, refilling: 0, live: 0 },
          unrecorded: 0
        },
        chains: {
          trading: sandbox("trading-api", "trading-node"),
          tokens: sandbox("token-chain"),
          layer2: sandbox("layer2")
        }
      })
    }))

  it.live("prints the addresses of each chain, and what is left of their rate limits", () =>
    Effect.gen(function*() {
      const api = yield* recordingUpstream(() => ({ body: "{}" }))
      const { url } = yield* gateway({
        TRIGATE_NETWORK: "testnet",
        TRIGATE_TRADING_API_URL: api.url,
        TRIGATE_LAYER2_URL: `${yield* refusingUrl},http://127.0.0.1:9`,
        TRIGATE_LAYER2_RPS: "25"
      })
      yield* post(`${url}/info`, `{"type":"userRole","user":"0x${"1".repeat(40)}"}`)
      const { code, stderr, stdout } = yield* status(url)
      assert.deepStrictEqual({ code, stderr }, { code: 0, stderr: "" })
      assert.include(
        stdout,
        `network     testnet
trading     trading-api: 1 address, 1080 weight left
tokens      not configured
layer2      layer2: 2 addresses, 25 request units left
`
      )
    }))

  it.live("prints the version, ejected addresses and the stores of a gateway", () =>
    Effect.gen(function*() {
      const url = yield* scripted(json(readiness), text)
      assert.deepStrictEqual(yield* status(url), {
        code: 0,
        stdout: `gateway     ${url}
version     1.2.3
status      ready
degraded    actionLog, eventLog
network     mainnet
trading     trading-api: 2 addresses, 1 ejected, 840 weight left; trading-node: 1 address
tokens      not configured
layer2      layer2: 1 address
action log  Postgres, away, free capacity: enough
event log   Redis, up, reader, 2 of 3 accounts complete
redis       up
`,
        stderr: ""
      })
    }))

  it.live("names the admin listener where the callers' one leaves the chains out, and needs no metrics", () =>
    Effect.gen(function*() {
      const url = yield* scripted(json({ status: "ready", sandbox: false, network: "mainnet" }), json({}, 404))
      assert.deepStrictEqual(yield* status(url), {
        code: 0,
        stdout: `gateway  ${url}
status   ready
network  mainnet
chains   available on the admin listener: set --gateway to its URL
`,
        stderr: ""
      })
    }))

  it.live.each(
    [
      ["draining", (url: string) => `The gateway at ${url} is shutting down and accepts no new requests`],
      ["full", (url: string) => `The action log of the gateway at ${url} is full, so it refuses signed actions`]
    ] as const
  )("prints a gateway that is %s, and fails", ([state, line]) =>
    Effect.gen(function*() {
      const url = yield* scripted(json({ ...readiness, status: state }, 503), text)
      const { code, stderr, stdout } = yield* status(url)
      assert.deepStrictEqual({ code, stderr }, { code: 5, stderr: `trigate: ${line(url)}\n` })
      assert.include(stdout, `status      ${state}\n`)
    }))

  it.live("fails where no gateway answers, or something else does", () =>
    Effect.gen(function*() {
      const nowhere = yield* refusingUrl
      assert.deepStrictEqual(yield* status(nowhere), {
        code: 5,
        stdout: "",
        stderr:
          `trigate: No gateway responds at ${nowhere} (no program listens on the port); start one with trigate serve, ` +
          "or name another with --gateway\n"
      })
      const url = yield* scripted({ type: "text/html", body: "<h1>Welcome</h1>" }, { body: "" })
      assert.deepStrictEqual(yield* status(url), {
        code: 5,
        stdout: "",
        stderr: `trigate: ${url} is not a Trigate gateway (Not a JSON document); name another with --gateway\n`
      })
    }))
})
