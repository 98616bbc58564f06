/** Reads what a caller sent: text against a schema, every fault told with its path. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { inWords } from "./FaultWords.ts"
import * as Json from "./Json.ts"
import type { AnyCodec } from "./Operation.ts"
import type { RequestFault } from "./RequestError.ts"
import { InvalidRequest } from "./RequestError.ts"

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const segment = (key: PropertyKey | { readonly key: PropertyKey }): string | number => {
  const plain = typeof key === "object" ? key.key : key
  return typeof plain === "number" ? plain : String(plain)
}

const at = (path: ReadonlyArray<string | number>): string => path.length === 0 ? "the request" : path.join(".")

// a body of a thousand faults is not explained better by a thousand lines, nor a long key by its whole length
const MAX_FAULTS = 16
const MAX_MESSAGE = 240
const MAX_SEGMENT = 64

const cut = (segment: string | number): string | number =>
  typeof segment === "number" ? segment : segment.slice(0, MAX_SEGMENT)

/** The error that tells all faults of a request, the first one in its `detail`. */
export const invalidRequest = (faults: ReadonlyArray<RequestFault>): InvalidRequest => {
  const errors = faults.slice(0, MAX_FAULTS).map(({ message, path }) => ({
    path: path.map(cut),
    message: message.slice(0, MAX_MESSAGE)
  }))
  const first = errors[0]
  return new InvalidRequest({
    errors,
    ...(first === undefined ? {} : { detail: `${at(first.path)}: ${first.message}` })
  })
}

/** The faults of a value that did not decode, each with its path below `prefix`. */
export const faultsOf = (
  error: Schema.SchemaError,
  prefix: ReadonlyArray<string | number> = []
): ReadonlyArray<RequestFault> =>
  format(error.issue).issues.map((issue) => ({
    path: [...prefix, ...(issue.path ?? []).map(segment)],
    message: inWords(issue.message)
  }))

/** Decodes a parsed value; `prefix` is where it stands in the request. */
export const decodeValue = <S extends AnyCodec>(schema: S, prefix: ReadonlyArray<string | number> = []) => {
  const decode = Schema.decodeUnknownResult(schema, { errors: "all" })
  return (value: unknown): Effect.Effect<S["Type"], InvalidRequest> =>
    Result.match(decode(value), {
      onFailure: (error) => Effect.fail(invalidRequest(faultsOf(error, prefix))),
      onSuccess: Effect.succeed
    })
}

/** Writes a request as its wire form; fails with `InvalidRequest` for values outside of the types' ranges. */
export const encodeRequest = <S extends AnyCodec>(schema: S, prefix: ReadonlyArray<string | number> = []) => {
  const encode = Schema.encodeEffect(schema, { errors: "all" })
  return (request: S["Type"]): Effect.Effect<Json.Json, InvalidRequest> =>
    Effect.mapBoth(encode(request), {
      onFailure: (error) => invalidRequest(faultsOf(error, prefix)),
      onSuccess: Json.write
    })
}

/** Parses a request strictly: JSON, no duplicate keys, bounded nesting and number of values. */
export const parseRequest = (text: string, bytes?: Uint8Array): Effect.Effect<Json.Json, InvalidRequest> =>
  Result.match(Json.parseStrict(text), {
    onFailure: (refusal) => Effect.fail(invalidRequest([refusal])),
    onSuccess: (value) => Effect.succeed(Json.parsed(text, value, bytes))
  })
