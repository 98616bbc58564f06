/** A read whose first address fails and whose second one is sound. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { askedOf, gatewayOver } from "./faultyGateway.ts"
import type { FaultyUpstream } from "./faultyUpstream.ts"
import { faultyUpstream } from "./faultyUpstream.ts"
import { say } from "./reactions.ts"
import type { Route } from "./routes.ts"
import { assertGood } from "./routes.ts"

/** Asserts that the second address answers before any time passes, after one request to it and `asked` to the first. */
export const assertNextAnswers = Effect.fnUntraced(function*(route: Route, first: FaultyUpstream, asked: number) {
  const second = yield* faultyUpstream(say(route.good))
  const { url } = yield* gatewayOver({ [route.kind]: [first, second] })
  assertGood(route, yield* route.ask(url))
  assert.deepStrictEqual(askedOf(first, second), [asked, 1])
})
