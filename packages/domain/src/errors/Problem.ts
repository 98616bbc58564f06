/**
 * The base of typed errors: an RFC 9457 problem with a stable type URI, a tag and a group.
 *
 * One declaration defines the class that Effect code catches by `_tag`, the `application/problem+json` body of the HTTP
 * routes and the `error.data` of the JSON-RPC routes; both bodies decode to that class. `HttpApiError.Problem` also
 * declares such classes, but a browser bundle that used it would include parts of Effect's HTTP server.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as ErrorReporter from "effect/ErrorReporter"
import * as Schema from "effect/Schema"
import type { ErrorGroup } from "./ErrorGroup.ts"

/** The type URI of a tag: `NonceMismatch` is `urn:trigate:problem:nonce-mismatch`. */
export const problemType = (tag: string): string =>
  `urn:trigate:problem:${tag.replace(/(?<=[a-z0-9])[A-Z]/gu, (letter) => `-${letter}`).toLowerCase()}`

/** Seconds to wait before a retry; also sent as the `Retry-After` header. */
export const RetryAfter = Schema.Natural.annotate({ description: "Seconds to wait before a retry" })

/** The properties that all errors of a class have in common. */
export interface Declaration<Group extends ErrorGroup = ErrorGroup> {
  readonly group: Group
  /** The HTTP status. */
  readonly status: number
  readonly title: string
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
  { status, title }: Declaration,
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
    return class extends Schema.Error<{ readonly detail?: string }>(tag)(problemFields(tag, declaration, fields), {
      description: declaration.title,
      httpApiStatus: declaration.status,
      "~httpApiEncoding": { _tag: "Json", contentType: "application/problem+json" }
    }) {
      override get message(): string {
        return this.detail ?? declaration.title
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
