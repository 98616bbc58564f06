/**
 * The base of typed errors: an RFC 9457 problem with a stable type URI, a tag and a group with advice for the caller.
 *
 * One declaration defines the class that Effect code catches by `_tag`, the `application/problem+json` body of the HTTP
 * routes and the `error.data` of the JSON-RPC routes; both bodies decode to that class. `HttpApiError.Problem` also
 * declares such classes, but a browser bundle that used it would include parts of Effect's HTTP server.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as ErrorReporter from "effect/ErrorReporter"
import * as Schema from "effect/Schema"

/** The advice for each group. */
export const errorGroups = {
  "retry-later": "Retry later, after `retryAfter` seconds if present.",
  "fix-request": "Change the request. The same request would be refused again.",
  "fix-setup": "Change a URL, a key or a setting. The request itself may be valid.",
  "outcome-unknown":
    "Find out the outcome of the call before you sign or send anything new. The call may have taken effect."
} as const

/** The group of an error: a retryable error, a wrong request, a wrong configuration, or an unknown outcome. */
export type ErrorGroup = keyof typeof errorGroups

/** An error that declares its group. */
export interface Grouped<Group extends ErrorGroup = ErrorGroup> {
  readonly group: Group
}

/** Returns the edit distance of two texts: the minimum number of insertions, deletions and replacements. */
const distance = (one: string, other: string): number => {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let i = 0; i < one.length; i++) {
    const next = [i + 1]
    for (let j = 0; j < other.length; j++) {
      const replaced = (row[j] ?? 0) + (one[i] === other[j] ? 0 : 1)
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    row = next
  }
  return row[other.length] ?? 0
}

/** Maximum length of a name in characters; no suggestion is made for longer text. */
const longest = 64

/**
 * Returns the known word with the smallest edit distance to `word`; `undefined` if that distance exceeds a third of the
 * length of `word`, or if `word` is longer than 64 characters.
 *
 * Ignores letter case.
 */
export const closestWord = (word: string, known: Iterable<string>): string | undefined => {
  if (word.length > longest) return undefined
  const upper = word.toUpperCase()
  const [first] = [...known]
    .map((candidate) => ({ candidate, far: distance(upper, candidate.toUpperCase()) }))
    .toSorted((a, b) => a.far - b.far)
  return first !== undefined && first.far <= word.length / 3 ? first.candidate : undefined
}

/** Returns the words of a tag, after the first one in lower case. */
const wordsIn = (tag: string, separator: string): string =>
  tag.replace(/(?<=[a-z0-9])[A-Z]/gu, (letter) => separator + letter.toLowerCase())

/** The type URI of a tag: `NonceMismatch` is `urn:trigate:problem:nonce-mismatch`. */
export const problemType = (tag: string): string => `urn:trigate:problem:${wordsIn(tag, "-").toLowerCase()}`

/** Seconds to wait before a retry; also sent as the `Retry-After` header. */
export const RetryAfter = Schema.Natural.annotate({ description: "Seconds to wait before a retry" })

/** The properties that all errors of a class have in common. */
export interface Declaration<Group extends ErrorGroup = ErrorGroup> {
  readonly group: Group
  /** The HTTP status. */
  readonly status: number
  /** Default: the words of the tag, such as `Nonce mismatch`. */
  readonly title?: string
}

// optional in decoding, because a proxy may have changed these members
const optional = <S extends Schema.Constraint>(schema: S) =>
  Schema.optionalKey(schema).pipe(Schema.catchDecoding(() => Effect.succeedNone))
const constant = <const L extends string | number>(value: L) =>
  Schema.tag(value).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(value)),
    Schema.catchDecoding(() => Effect.succeedSome(value))
  )

// the fields are in the order in which they are encoded
const problemFields = <const Tag extends string, const Fields extends Schema.Struct.Fields>(
  tag: Tag,
  { status, title = wordsIn(tag, " ") }: Declaration,
  fields: Fields
) => ({
  detail: optional(Schema.String),
  instance: optional(Schema.String),
  _tag: Schema.tag(tag),
  ...fields,
  type: Schema.tag(problemType(tag)),
  status: constant(status),
  title: constant(title)
})

/** The fields of a problem: `type`, `status` and `title` are constants of the error class; `detail` is the message. */
export type ProblemFields<Tag extends string, Fields extends Schema.Struct.Fields> = ReturnType<
  typeof problemFields<Tag, Fields>
>

/** The class of a problem. */
export interface ProblemClass<Self, Tag extends string, Group extends ErrorGroup, Fields extends Schema.Struct.Fields>
  extends
    Schema.Class<Self, Schema.Struct<ProblemFields<Tag, Fields>>, Cause.YieldableError & { readonly group: Group }>
{}

/** Declares an error class by its tag, its common properties, and the fields of each error. */
export function Problem<Self>(): <
  const Tag extends string,
  const Group extends ErrorGroup,
  const Fields extends Schema.Struct.Fields
>(tag: Tag, declaration: Declaration<Group>, fields: Fields) => ProblemClass<Self, Tag, Group, Fields>
// this signature is less exact than the one above, because the class refers to itself
export function Problem() {
  return (tag: string, declaration: Declaration, fields: Schema.Struct.Fields): object => {
    const title = declaration.title ?? wordsIn(tag, " ")
    return class extends Schema.Error<{ readonly detail?: string }>(tag)(problemFields(tag, declaration, fields), {
      description: title,
      httpApiStatus: declaration.status,
      "~httpApiEncoding": { _tag: "Json", contentType: "application/problem+json" }
    }) {
      override get message(): string {
        return this.detail ?? title
      }
      get group(): ErrorGroup {
        return declaration.group
      }
      override get [ErrorReporter.ignore](): boolean {
        return declaration.status < 500
      }
    }
  }
}
