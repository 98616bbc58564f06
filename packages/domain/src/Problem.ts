/**
 * What every typed error shares: an RFC 9457 problem with a stable type URI, and its tag on the wire.
 *
 * One declaration (`HttpApiError.Problem`) gives the class that Effect code catches by `_tag`, the
 * `application/problem+json` body of the HTTP routes and the `error.data` of the JSON-RPC routes; both bodies decode back
 * into the same class.
 */
import * as Schema from "effect/Schema"

/** The type URI of a tag: `NonceMismatch` is `urn:trigate:problem:nonce-mismatch`. */
export const typeOf = (tag: string): string =>
  `urn:trigate:problem:${tag.replace(/(?<=[a-z0-9])[A-Z]/gu, (letter) => `-${letter}`).toLowerCase()}`

/** The constant members of a problem: its type URI from the tag, its HTTP status and a title shared by all instances. */
export const declare = (tag: string, status: number, title: string) => ({ type: typeOf(tag), status, title })

/** The tag as a member of the body, so that a reader without our classes can switch on `_tag`. */
export const tagged = <const Tag extends string>(tag: Tag) => ({ _tag: Schema.tag(tag) })

/** Seconds after which asking again makes sense; also sent as the `Retry-After` header. */
export const RetryAfter = Schema.Natural.annotate({ description: "Seconds to wait before asking again" })
