/** The routes of dead man's switches: who may arm one, with what, and that the switch is the caller's own. */
import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { gateway, get, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { keyFile } from "./keyFile.ts"

let bodies = 0

/** Signs an action under a nonce of its own. */
const signed = (action: SandboxSigner.Unsigned["action"]) =>
  Effect.map(
    Effect.flatMap(
      Clock.currentTimeMillis,
      (now) => Effect.orDie(SandboxSigner.signAction(keys.trader, { nonce: now + bodies++, action }))
    ),
    (body) => JSON.stringify(body)
  )

const cancel = { type: "cancel", cancels: [{ a: 0, o: 1 }] }
const order = {
  type: "order",
  orders: [{ a: 0, b: true, p: "30000", s: "0.01", r: false, t: { limit: { tif: "Gtc" } } }],
  grouping: "na"
}

const arming = (...bodies: ReadonlyArray<string>) => `{"after":60,"actions":[${bodies.join(",")}]}`

const stateIn = ({ json }: { readonly json: unknown }) => JsonParts.at(json, "state")

describe("the routes of dead man's switches", () => {
  it.live("arm, note heartbeats, show and disarm", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const body = arming(yield* signed(cancel), yield* signed({ type: "scheduleCancel" }))
      const armed = yield* post(`${url}/switches/bot`, body)
      assert.deepStrictEqual([armed.status, stateIn(armed)], [200, "armed"])
      assert.deepStrictEqual(
        ["after", "heartbeats", "signer"].map((name) => JsonParts.at(armed.json, name)),
        [60, 0, keys.trader.address]
      )
      const beaten = yield* post(`${url}/switches/bot/heartbeat`, "")
      assert.deepStrictEqual([stateIn(beaten), JsonParts.at(beaten.json, "heartbeats")], ["armed", 1])
      assert.strictEqual(stateIn(yield* get(`${url}/switches/bot`)), "armed")
      assert.strictEqual(stateIn(yield* post(`${url}/switches/other/heartbeat`, "")), "absent")
      assert.strictEqual(stateIn(yield* post(`${url}/switches/bot/disarm`, "")), "absent")
      assert.strictEqual(stateIn(yield* get(`${url}/switches/bot`)), "absent")
    }))

  it.live("refuse what could open a position, a wrong request, and who may not sign", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const one = yield* signed(cancel)
      const refused = yield* post(`${url}/switches/bot`, arming(one, yield* signed(order)))
      assert.strictEqual(refused.status, 400)
      assert.match(String(JsonParts.at(refused.json, "detail")), /^actions.1.*order: only cancels/u)
      for (
        const [name, body] of [
          ["bot", `{"after":4,"actions":[${one}]}`],
          ["bot", `{"after":60,"actions":[]}`],
          ["bot", `{"after":60,"actions":[${one}],"every":1}`],
          ["bot", `{"after":60,"actions":["${"x".repeat(10)}"]}`],
          ["bot", `{"after":60,"actions":[${Array.from({ length: 21 }, () => one).join(",")}]}`],
          ["b%20t", arming(one)]
        ] as const
      ) assert.strictEqual((yield* post(`${url}/switches/${name}`, body)).status, 400, body.slice(0, 40))
      assert.strictEqual(
        (yield* post(`${url}/switches/bot`, arming(one), { origin: "https://evil.example" })).status,
        403
      )
      const { file, keys: [reader = "", other = "", own = "", second = ""] } = yield* keyFile(
        { name: "reader", scope: { classes: ["read"] } },
        { name: "other", scope: { signers: [keys.validator.address] } },
        { name: "own", scope: { signers: [keys.trader.address] } },
        { name: "second" }
      )
      const closed = yield* gateway({ TRIGATE_CALLERS: file })
      const status = (key: string) =>
        Effect.map(
          post(`${closed.url}/switches/bot`, arming(one), { authorization: `Bearer ${key}` }),
          (answer) => answer.status
        )
      assert.deepStrictEqual([yield* status(reader), yield* status(other), yield* status(own)], [403, 403, 200])
      assert.strictEqual(
        stateIn(yield* get(`${closed.url}/switches/bot`, { authorization: `Bearer ${second}` })),
        "absent"
      )
    }))
})
