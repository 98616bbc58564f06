/** A read whose first address fails and whose second one is sound. */
import { assert } from "@effect/vitest"
import type { FaultyUpstream } from "@trigate/testing/FaultyUpstream"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import { say } from "@trigate/testing/Reactions"
import * as Effect from "effect/Effect"
import { askedOf, gatewayOver } from "./faultyGateway.ts"
import type { Route } from "./routes.ts"
import { assertGood } from "./routes.ts"

/** Asserts that the second address answers before any time passes, after one request to it and `asked` to the first. */
export const assertNextAnswers = Effect.fnUntraced(function*(route: Route, first: FaultyUpstream, asked: number) {
  const second = yield* faultyUpstream(say(route.good))
  const { url } = yield* gatewayOver({ [route.kind]: [first, second] })
  assertGood(route, yield* route.ask(url))
  assert.deepStrictEqual(askedOf(first, second), [asked, 1])
})
