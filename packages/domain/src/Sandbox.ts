/** The account with which programs trade in a sandbox, and the faults that its venue can inject. */
import * as Schema from "effect/Schema"
import type { Address } from "./encoding/Encoding.ts"

/** A key pair from the public test mnemonic ("test test … junk"). The address is in lower case. */
export interface TestKey {
  readonly address: Address
  readonly privateKey: `0x${string}`
}

/** An account that starts with perpetual and spot balances, and with staked HYPE that it can delegate. */
export const trader = {
  address: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
  privateKey: "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
} as const satisfies TestKey

/** A probability from 0 to 1. */
export const Share = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })).annotate({
  identifier: "Share",
  description: "From 0 (never) to 1 (always)"
})

/** The maximum latency that a sandbox can inject, in milliseconds. */
export const longestLatency = 60_000

/** The injected faults. The sandbox's seed and the sequence of requests determine which requests a fault affects. */
export const SandboxFaults = Schema.Struct({
  latency: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: longestLatency })).annotateKey({
    description: "Latency in milliseconds before an action or a query reaches the venue"
  }),
  lostReplies: Share.annotateKey({
    description: "Fraction of actions that the venue executes without responding; they fail with `OutcomeUnknown`"
  }),
  lostRequests: Share.annotateKey({
    description: "Fraction of actions that do not reach the venue; they fail with `OutcomeUnknown` too"
  }),
  rateLimited: Share.annotateKey({
    description: "Fraction of actions and queries that the venue refuses with HTTP 429"
  }),
  rejectedLegs: Share.annotateKey({
    description:
      "Fraction of orders that the venue rejects for insufficient margin; each order of a batch is decided separately"
  }),
  droppedSockets: Share.annotateKey({
    description: "Fraction of callers' open WebSockets that are closed each second without a close frame"
  })
}).annotate({ identifier: "SandboxFaults" })
export type SandboxFaults = typeof SandboxFaults.Type

/** No faults. */
export const none: SandboxFaults = {
  latency: 0,
  lostReplies: 0,
  lostRequests: 0,
  rateLimited: 0,
  rejectedLegs: 0,
  droppedSockets: 0
}
