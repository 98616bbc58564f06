/** The checks of the conformance suite, and their assertions. */
import * as Json from "@trigate/domain/encoding/Encoding"
import { unwrapReason } from "@trigate/domain/errors/GatewayError"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"

/** The failure of a check, with the expected and the actual value. */
export class ConformanceFailure extends Schema.TaggedError<ConformanceFailure>()("ConformanceFailure", {
  expected: Schema.String,
  found: Schema.String
}) {
  override get message() {
    return `Expected ${this.expected}, found ${this.found}`
  }
}

/** A named check. It fails with the expected and the actual value. */
export interface ConformanceCheck {
  readonly name: string
  readonly effect: Effect.Effect<void, ConformanceFailure>
}

type Tagged = { readonly _tag: string }

const show = (value: unknown): string => {
  const text = Json.stringify(value) ?? String(value)
  return text.length > 400 ? `${text.slice(0, 400)}…` : text
}

const fail = (expected: string, found: unknown) =>
  Effect.fail(new ConformanceFailure({ expected, found: Predicate.isString(found) ? found : show(found) }))

const words = (error: Tagged): string => `${error._tag} ${Predicate.isError(error) ? error.message : ""} ${show(error)}`

/** Returns the value of a call that has to succeed. */
export const succeeds = <A, E extends Tagged>(call: Effect.Effect<A, E>): Effect.Effect<A, ConformanceFailure> =>
  call.pipe(Effect.catch((error) => fail("a success", words(error))))

const hasFields = (error: unknown, fields: { readonly [name: string]: unknown }): boolean =>
  Object.entries(fields).every(([name, value]) =>
    Predicate.hasProperty(error, name) && Equal.equals(error[name], value)
  )

/** Checks that a call fails with one of the given error tags; `fields` are the expected fields of the error. */
export const failsWith = <A, E extends Tagged>(
  call: Effect.Effect<A, E>,
  tags: ReadonlyArray<string>,
  fields: { readonly [name: string]: unknown } = {}
): Effect.Effect<void, ConformanceFailure> => {
  const expected = `${tags.join(" or ")} ${show(fields)}`
  return Effect.matchEffect(call, {
    onSuccess: (value) => fail(expected, value),
    onFailure: (failure) => {
      // services and clients return the error as the reason of an `UpstreamError` or a `RequestError`; a decoded error
      // is returned without such a wrapper
      const error: Tagged = unwrapReason(failure)
      return tags.includes(error._tag) && hasFields(error, fields) ? Effect.void : fail(expected, words(error))
    }
  })
}

/** Checks that two values are structurally equal. */
export const equals = (what: string, found: unknown, expected: unknown): Effect.Effect<void, ConformanceFailure> =>
  Equal.equals(found, expected) ? Effect.void : fail(`${what} to be ${show(expected)}`, found)

/** Checks that a value is present, and returns it. */
export const present = <A>(what: string, found: A | null): Effect.Effect<A, ConformanceFailure> =>
  found === null ? fail(what, null) : Effect.succeed(found)

/** Checks a condition on a value. */
export const holds = (what: string, condition: boolean, found: unknown): Effect.Effect<void, ConformanceFailure> =>
  condition ? Effect.void : fail(what, found)
