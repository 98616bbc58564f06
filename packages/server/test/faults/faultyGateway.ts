/**
 * A live gateway over upstreams that misbehave.
 *
 * Its time is the `TestClock` of the test. A call that has to end without a time-out cannot run into one on any machine,
 * since no time passes; a test that is about a deadline waits for what has to happen before, and then passes the deadline.
 */
import type { FaultyUpstream } from "@trigate/testing/FaultyUpstream"
import type { Environment } from "@trigate/testing/Gateway"
import { gateway } from "@trigate/testing/Gateway"
import * as Effect from "effect/Effect"
import type { Kind } from "./routes.ts"
import { deadline, deadlinesOnTestClock, withoutJitter } from "./time.ts"

/** The endpoint key in every address of an upstream: nobody outside may see it. */
export const secretKey = "upstream-secret-31c9d2"

/** The upstreams of each kind, in order of preference; a text is an address without a server of ours behind it. */
export type Upstreams = { readonly [K in Kind]?: ReadonlyArray<FaultyUpstream | string> }

const settings: { readonly [K in Kind]: string } = {
  api: "TRIGATE_TRADING_API_URL",
  node: "TRIGATE_TRADING_NODE_URL",
  tokens: "TRIGATE_TOKEN_CHAIN_URL",
  layer2: "TRIGATE_LAYER2_URL"
}

/** The address of an upstream as the gateway is told it. */
export const addressOf = (upstream: FaultyUpstream | string): string =>
  `${typeof upstream === "string" ? upstream : upstream.url}/${secretKey}`

const environmentOf = (upstreams: Upstreams): Environment => {
  const environment: { [name: string]: string } = {}
  for (const kind of ["api", "node", "tokens", "layer2"] as const) {
    const list = upstreams[kind]
    if (list !== undefined) environment[settings[kind]] = list.map(addressOf).join(",")
  }
  return environment
}

/** Starts a gateway over some upstreams; it lives in the time of the test's `TestClock`. */
export const gatewayOver = Effect.fnUntraced(function*(upstreams: Upstreams, environment: Environment = {}) {
  yield* deadlinesOnTestClock
  return yield* withoutJitter(gateway({
    ...environmentOf(upstreams),
    TRIGATE_READ_DEADLINE: `${deadline}ms`,
    TRIGATE_ONCE_DEADLINE: `${deadline}ms`,
    // the gateway's own rate limit must not end a test before the upstream's fault does
    TRIGATE_TRADING_API_WEIGHT: "1000000",
    ...environment
  }))
})

/** The requests that each of some upstreams saw. */
export const askedOf = (...upstreams: ReadonlyArray<FaultyUpstream>): ReadonlyArray<number> =>
  upstreams.map(({ requests: asked }) => asked.length)

/** Ends when so many requests came to an upstream. */
export const isAsked = (upstream: FaultyUpstream, times = 1): Effect.Effect<void> =>
  upstream.until(() => upstream.requests.length >= times)
