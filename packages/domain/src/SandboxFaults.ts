/** Faults that a sandbox's venue causes on purpose. Its settings, its controls and the contract of a gateway read this declaration. */
import * as Schema from "effect/Schema"

/** A share of all cases: 0 for none, 1 for each. */
export const Share = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })).annotate({
  identifier: "Share",
  description: "From 0 for none to 1 for each"
})

/** The longest latency, in milliseconds. */
export const longestLatency = 60_000

/** The faults. Which cases a share hits follows from the seed and their order. */
export const SandboxFaults = Schema.Struct({
  latency: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: longestLatency })).annotateKey({
    description: "Milliseconds after which an action or a query reaches the venue"
  }),
  lostReplies: Share.annotateKey({
    description: "Share of actions that the venue executes, and whose replies are lost: `OutcomeUnknown`"
  }),
  rateLimited: Share.annotateKey({ description: "Share of actions and queries that the venue refuses with HTTP 429" }),
  rejectedLegs: Share.annotateKey({
    description: "Share of orders that the venue rejects for lack of margin, each leg on its own"
  }),
  droppedSockets: Share.annotateKey({
    description: "Share of the WebSockets of callers that are cut each second, without a close frame"
  })
}).annotate({ identifier: "SandboxFaults" })
export type SandboxFaults = typeof SandboxFaults.Type

/** No fault. */
export const none: SandboxFaults = {
  latency: 0,
  lostReplies: 0,
  rateLimited: 0,
  rejectedLegs: 0,
  droppedSockets: 0
}
