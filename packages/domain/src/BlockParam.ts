/** The block that a state read is asked for: only `latest` is answered truthfully by nodes of the trading chain. */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as JsonText from "./JsonText.ts"
import type { Operation } from "./Operation.ts"
import { UnsupportedBlock } from "./RequestError.ts"

const MAX_SHOWN = 128

const spelled = (block: unknown): string =>
  (Predicate.isString(block) ? block : JsonText.stringify(block)).slice(0, MAX_SHOWN)

/**
 * Refuses parsed `params` whose block parameter is there and not `latest`.
 *
 * A missing one means `latest`. Nodes answer any other block with the latest state and do not say so, hence the refusal
 * before anything is sent. Methods without a `blockParam` pass.
 */
export const checkBlock = (
  operation: Pick<Operation, "name" | "blockParam">,
  params: unknown
): Effect.Effect<void, UnsupportedBlock> => {
  const block: unknown = operation.blockParam !== undefined && Array.isArray(params)
    ? params[operation.blockParam]
    : undefined
  return block === undefined || block === "latest" ? Effect.void : Effect.fail(
    new UnsupportedBlock({
      method: operation.name,
      block: spelled(block),
      supported: ["latest"],
      detail: `${operation.name} reads the latest block only, not ${spelled(block)}`
    })
  )
}
