/** The block that a state read is asked for: nodes of the trading chain know the newest state only. */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as JsonText from "./JsonText.ts"
import type { Operation } from "./Operation.ts"
import { UnsupportedBlock } from "./RequestError.ts"

const MAX_SHOWN = 128

const spelled = (block: unknown): string =>
  (Predicate.isString(block) ? block : JsonText.stringify(block)).slice(0, MAX_SHOWN)

/**
 * Refuses parsed `params` whose block parameter is there and is not one that the method supports.
 *
 * A missing one means `latest`. Nodes answer any other block with the latest state and do not say so, hence the refusal
 * before anything is sent. Methods without a `blockParam` pass.
 */
export const checkBlock = (
  operation: Pick<Operation, "name" | "blockParam">,
  params: unknown
): Effect.Effect<void, UnsupportedBlock> => {
  const { blockParam, name } = operation
  const block: unknown = blockParam !== undefined && Array.isArray(params) ? params[blockParam.position] : undefined
  return blockParam === undefined || block === undefined || blockParam.supported.some((tag) => tag === block)
    ? Effect.void
    : Effect.fail(
      new UnsupportedBlock({
        method: name,
        block: spelled(block),
        supported: blockParam.supported,
        detail: `${name} reads the ${blockParam.supported.join(" or ")} block only, not ${spelled(block)}`
      })
    )
}
