/** `trigate` alone: the state of the local gateway, and three next steps. */
import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { gateway } from "@trigate/testing/Gateway"
import { recordingUpstream, refusingUrl } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import { run } from "./run.ts"

const home = (url: string, columns?: number) =>
  run([], { environment: { TRIGATE_GATEWAY_URL: url }, ...(columns === undefined ? {} : { columns }) })

describe("trigate without a word", () => {
  it.live("names the sandbox that runs, and what to try in it", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      assert.deepStrictEqual(yield* home(url, 80), {
        code: 0,
        stdout: `The gateway at ${url}: ready, a sandbox (nothing here is real)
Console: ${url}/  API: ${url}/docs

Next:
  trigate watch book BTC
      the live order book
  trigate positions 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266
      the sandbox's trader: balances, positions, orders
  TRIGATE_PRIVATE_KEY=${keys.trader.privateKey} trigate order buy 0.01 BTC
      a paper order; everyone has this key

All commands: trigate --help
`,
        stderr: ""
      })
      const environment = { TRIGATE_GATEWAY_URL: url, TRIGATE_PRIVATE_KEY: keys.trader.privateKey }
      for (const line of [`positions ${keys.trader.address}`, "order buy 0.01 BTC"]) {
        assert.strictEqual((yield* run(line.split(" "), { environment })).code, 0, line)
      }
    }))

  it.live("has other steps for a gateway to the real chains, and for none", () =>
    Effect.gen(function*() {
      const api = yield* recordingUpstream(() => ({ body: "{}" }))
      const { url } = yield* gateway({ TRIGATE_NETWORK: "testnet", TRIGATE_TRADING_API_URL: api.url })
      const live = yield* home(url)
      assert.include(live.stdout, `The gateway at ${url}: ready, in front of testnet\n`)
      assert.include(live.stdout, "\n  trigate watch mids ")
      const nowhere = yield* refusingUrl
      const none = yield* home(nowhere)
      assert.strictEqual(none.code, 0)
      assert.include(none.stdout, `No gateway responds at ${nowhere} (no program listens on the port)`)
      assert.include(none.stdout, "\n  trigate sandbox ")
    }))

  it.live("fits a narrow terminal", () =>
    Effect.gen(function*() {
      const { stdout } = yield* home(yield* refusingUrl, 60)
      const steps = stdout.slice(stdout.indexOf("Next:"))
      assert.strictEqual(
        steps,
        `Next:
  trigate sandbox
      start a venue in memory: paper orders, no account, no money
  trigate serve --help
      list every setting of a gateway to the real chains
  trigate status --gateway URL
      query a gateway on another machine

All commands: trigate --help
`
      )
    }))
})
