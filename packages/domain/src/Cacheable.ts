/** Whether an answer, as JSON text, is one that may be kept and given again. */
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as JsonText from "./JsonText.ts"
import type { AnyCodec } from "./Operation.ts"

/** An answer that decodes as the operation's own response does: never an error, half an answer or `null`. */
export const decodes = (schema: AnyCodec): (request: unknown, answer: string) => boolean => {
  const decode = Schema.decodeUnknownOption(schema)
  return (_request, answer) => {
    const parsed = JsonText.parse(answer)
    return Result.isSuccess(parsed) && Option.isSome(decode(parsed.success))
  }
}

/** A document that no dialect of the token chain reads as a failure. */
export const isSuccess = (_request: unknown, answer: string): boolean => {
  const value = Result.getOrElse(JsonText.parse(answer), () => undefined)
  if (!Predicate.isObject(value) || Array.isArray(value) || Predicate.hasProperty(value, "error")) return false
  return Predicate.hasProperty(value, "ok") ? value.ok === true : true
}
