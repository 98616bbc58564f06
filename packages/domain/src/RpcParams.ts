/** Reads the params of JSON-RPC calls against the operations that they belong to. */
import type * as Effect from "effect/Effect"
import { decodeValue } from "./Decode.ts"
import type { Operation } from "./Operation.ts"
import type { InvalidRequest } from "./RequestError.ts"

/** Decodes parsed params; the faults stand below `params`. */
export type Reader = (operation: Operation, params: unknown) => Effect.Effect<unknown, InvalidRequest>

/** A reader that builds the decoder of each operation when it is first needed. */
export const reader = (): Reader => {
  const decoders = new WeakMap<Operation, (params: unknown) => Effect.Effect<unknown, InvalidRequest>>()
  return (operation, params) => {
    const decode = decoders.get(operation) ?? decodeValue(operation.request, ["params"])
    decoders.set(operation, decode)
    return decode(params)
  }
}
