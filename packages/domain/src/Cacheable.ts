/** Whether an answer may be cached and given to other callers. */
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Json } from "./Json.ts"
import type { AnyCodec } from "./Operation.ts"

/** An answer that decodes as the operation's own response does: never an error, half an answer or `null`. */
export const decodes = (schema: AnyCodec): (request: unknown, answer: Json) => boolean => {
  const decode = Schema.decodeUnknownOption(schema)
  return (_request, answer) => Result.isSuccess(answer.value) && Option.isSome(decode(answer.value.success))
}

/** A document that no dialect of the token chain reads as a failure. */
export const isSuccess = (_request: unknown, answer: Json): boolean => {
  const value = answer.valueOrUndefined
  if (!Predicate.isObject(value) || Array.isArray(value) || Predicate.hasProperty(value, "error")) return false
  return Predicate.hasProperty(value, "ok") ? value.ok === true : true
}
