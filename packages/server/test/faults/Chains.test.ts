import { assert, describe, it } from "@effect/vitest"
import type { FaultyUpstream, Reaction } from "@trigate/testing/FaultyUpstream"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import { get } from "@trigate/testing/Gateway"
import { reset, say, silence } from "@trigate/testing/Reactions"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { askedOf, gatewayOver } from "./faultyGateway.ts"
import type { Route } from "./routes.ts"
import { assertFailure, assertGood, jsonRpcReads, result } from "./routes.ts"
import { probeDeadline } from "./time.ts"

/** How long a call waits at most until its addresses have said which chain they are on, in milliseconds. */
const longestWaitForChains = 200

/** An upstream on a chain. */
const on = Effect.fnUntraced(function*(chain: string, react: Reaction) {
  const upstream = yield* faultyUpstream(react)
  upstream.reactToProbe = say({ body: result(`"${chain}"`) })
  return upstream
})

/** A gateway that has asked every address which chain it is on. */
const knowing = Effect.fnUntraced(function*(route: Route, upstreams: ReadonlyArray<FaultyUpstream>) {
  const started = yield* gatewayOver({ [route.kind]: upstreams })
  for (const upstream of upstreams) yield* upstream.until(() => upstream.probes.length > 0)
  return started
})

for (const route of jsonRpcReads) {
  describe(`${route.name}: an address on another chain`, () => {
    it.effect("is never asked, also when the right one fails: of two, the preferred one is right", () =>
      Effect.gen(function*() {
        const first = yield* on("0x3e7", say(route.good))
        const second = yield* on("0x1", say({ body: result(`"0xbad"`) }))
        const { url } = yield* knowing(route, [first, second])
        assertGood(route, yield* route.ask(url))
        first.react = reset
        assertFailure("json-rpc", yield* route.ask(url), "UpstreamUnavailable")
        assert.deepStrictEqual(askedOf(second), [0])
      }))

    it.effect("is never asked, also when it is the preferred one: of three, two are right", () =>
      Effect.gen(function*() {
        const first = yield* on("0x1", say({ body: result(`"0xbad"`) }))
        const second = yield* on("0x3e7", say(route.good))
        const third = yield* on("0x3e7", say(route.good))
        const { url } = yield* knowing(route, [first, second, third])
        for (let round = 0; round < 3; round++) assertGood(route, yield* route.ask(url))
        assert.deepStrictEqual(askedOf(first, second, third), [0, 3, 0])
        second.react = reset
        assertGood(route, yield* route.ask(url))
        assert.deepStrictEqual(askedOf(first, third), [0, 1])
      }))

    it.effect("is told by its number, not by how that is written", () =>
      Effect.gen(function*() {
        const first = yield* on("0x03E7", reset)
        const second = yield* on("0x3e7", say(route.good))
        const { url } = yield* knowing(route, [first, second])
        assertGood(route, yield* route.ask(url))
        assert.deepStrictEqual(askedOf(first, second), [1, 1])
      }))

    it.effect("keeps nobody waiting while it cannot be told", () =>
      Effect.gen(function*() {
        const first = yield* faultyUpstream(say(route.good))
        const second = yield* faultyUpstream(say(route.good))
        first.reactToProbe = silence
        second.reactToProbe = silence
        const { url } = yield* gatewayOver({ [route.kind]: [first, second] })
        yield* first.until(() => first.probes.length > 0)
        const call = yield* Effect.forkChild(route.ask(url), { startImmediately: true })
        // the wait begins when the gateway has read the call, which nothing tells: time passes by as much as it takes, and by far
        // less than a probe may
        for (
          let passed = 0;
          call.pollUnsafe() === undefined && passed < probeDeadline / 2;
          passed += longestWaitForChains
        ) {
          yield* get(`${url}/health/live`)
          yield* TestClock.adjust(longestWaitForChains)
        }
        assertGood(route, yield* Fiber.join(call))
        assert.deepStrictEqual(askedOf(first, second), [1, 0])
        // a gateway that closes waits for its probes
        yield* TestClock.adjust(probeDeadline)
      }))

    it.effect("is not looked for where there is only one address", () =>
      Effect.gen(function*() {
        const only = yield* faultyUpstream(say(route.good))
        const { url } = yield* gatewayOver({ [route.kind]: [only] })
        assertGood(route, yield* route.ask(url))
        assert.strictEqual(only.probes.length, 0)
        assert.strictEqual(only.connections(), 1)
      }))
  })
}
