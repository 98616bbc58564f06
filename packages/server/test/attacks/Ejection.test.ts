/** A caller who makes an address answer with faults does not take it from others. */
import { assert, describe, it } from "@effect/vitest"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import { get } from "@trigate/testing/Gateway"
import { reset, say, silence } from "@trigate/testing/Reactions"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { gatewayOver, isAsked } from "../faults/faultyGateway.ts"
import { hashOf, layer2, receiptQuestion } from "../faults/routes.ts"
import { deadline } from "../faults/time.ts"
import { posting, socketTo } from "./socket.ts"

const attacker = "127.0.0.2"
const honest = "127.0.0.3"

const long = Buffer.alloc(17 * 1024 * 1024, 0x20)

const logs = (what: string, number: number): string =>
  `{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x${number.toString(16)}","address":"${
    what === "fault" ? "0x01" : what === "long" ? "0x02" : "0x03"
  }${"0".repeat(38)}"}]}`

/** The whole answer to a question that is asked from an address. */
const asked = (url: string, from: string, body: string) =>
  Effect.scoped(Effect.gen(function*() {
    const { closed, send } = yield* socketTo(url, from)
    yield* send(posting("/l2", { "content-length": body.length, connection: "close" }) + body)
    return yield* closed
  }))

describe("a caller whose queries end in faults, too long answers and time-outs", () => {
  it.effect("ejects nobody: the only address stays, and another caller has each answer for one request", () =>
    Effect.gen(function*() {
      const only = yield* faultyUpstream((socket, one) => {
        if (!one.body.includes("eth_getLogs")) say(layer2.good)(socket, one)
        else if (one.body.includes("0x01")) say({ status: 500, body: `{"error":"internal"}` })(socket, one)
        else if (one.body.includes("0x02")) say({ body: long })(socket, one)
        else silence(socket, one)
      })
      // an address that is probed would be ejected at once
      only.reactToProbe = reset
      const { url } = yield* gatewayOver({ layer2: [only] })

      const isServed = Effect.gen(function*() {
        for (let index = 0; index < 10; index++) {
          const answer = yield* asked(url, honest, receiptQuestion(hashOf(index)))
          assert.isTrue(answer.endsWith(`\r\n\r\n${layer2.expected}`), answer)
        }
      })
      for (const [what, tag] of [["fault", "UpstreamUnavailable"], ["long", "UpstreamMalformed"]] as const) {
        for (let index = 0; index < 6; index++) {
          assert.include(yield* asked(url, attacker, logs(what, index)), `"_tag":"${tag}"`)
        }
        yield* isServed
      }

      // ten queries that nobody answers in time
      const before = only.requests.length
      const slow = yield* Effect.forkChild(Effect.forEach(
        Array.from({ length: 10 }),
        (_, index) => asked(url, attacker, logs("slow", index)),
        { concurrency: "unbounded" }
      ))
      yield* isAsked(only, before + 10)
      yield* TestClock.adjust(deadline)
      for (const answer of yield* Fiber.join(slow)) assert.include(answer, `"_tag":"UpstreamTimeout"`)

      yield* isServed
      const questions = only.requests.filter(({ body }) => !body.includes("eth_getLogs"))
      assert.strictEqual(questions.length, 30)
      assert.strictEqual(only.probes.length, 0)
      const { text } = yield* get(`${url}/metrics`)
      assert.match(text, /^trigate_upstream_ejected\{upstream="layer2",address="0"\} 0$/mu)
    }))
})
