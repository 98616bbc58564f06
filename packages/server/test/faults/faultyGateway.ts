/** A live gateway over upstreams that misbehave, with deadlines so short that no test waits for long. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Environment } from "../gateway.ts"
import { gateway } from "../gateway.ts"
import type { FaultyUpstream } from "./faultyUpstream.ts"
import type { Kind } from "./routes.ts"

/** The endpoint key in every address of an upstream: nobody outside may see it. */
export const secretKey = "upstream-secret-31c9d2"

/** The whole-call deadline of these gateways, in milliseconds. */
export const deadline = 800

/** How much later than its deadline a call may end on a busy machine, in milliseconds. */
export const slack = 3_000

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

/** Starts a gateway over some upstreams. */
export const gatewayOver = (upstreams: Upstreams, environment: Environment = {}) =>
  gateway({
    ...environmentOf(upstreams),
    TRIGATE_READ_DEADLINE: `${deadline}ms`,
    TRIGATE_ONCE_DEADLINE: `${deadline}ms`,
    // the gateway's own budget must not end a test before the upstream's fault does
    TRIGATE_TRADING_API_WEIGHT: "1000000",
    ...environment
  })

/** The requests that each of some upstreams saw. */
export const askedOf = (...upstreams: ReadonlyArray<FaultyUpstream>): ReadonlyArray<number> =>
  upstreams.map(({ asked }) => asked.length)

/** What an effect gave, and after how many milliseconds. */
export const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const start = performance.now()
    return Effect.map(effect, (value) => ({ value, milliseconds: performance.now() - start }))
  })

/** Asserts that something ended about when the deadline did. */
export const assertAtDeadline = (milliseconds: number): void => {
  assert.isAtLeast(milliseconds, deadline - 5)
  assert.isBelow(milliseconds, deadline + slack)
}

/** Asserts that something ended, at the latest, when the deadline did. */
export const assertWithinDeadline = (milliseconds: number): void => {
  assert.isBelow(milliseconds, deadline + slack)
}
