/**
 * Decoders of the requests to the sandbox. A simulation that ignores an option returns a wrong result without notice, so
 * a member that nothing reads is refused and named.
 */
import { type AnyCodec, decodeFaults } from "@trigate/domain/operations/Operation"
import * as Arr from "effect/Array"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"

/**
 * The paths, such as `orders[0].x`, of the members for which the sandbox refuses a request. If there are none, the
 * request does not have the shape of its type.
 */
export type Unread = ReadonlyArray<string>

/** Decodes a request, or returns why the sandbox refuses it. */
export type StrictDecoder<A> = (value: unknown) => Result.Result<A, Unread>

const joinPath = (path: string, name: string | number): string =>
  typeof name === "number" ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`

const isList = (value: unknown): value is ReadonlyArray<unknown> => Array.isArray(value)

/** Returns whether `decoded` has every member of `sent`. */
const isRead = (sent: unknown, decoded: unknown): boolean => {
  if (isList(sent)) return isList(decoded) && sent.every((each, index) => isRead(each, decoded[index]))
  if (!Predicate.isReadonlyObject(sent)) return true
  for (const name in sent) {
    if (!Predicate.hasProperty(decoded, name) || !isRead(sent[name], decoded[name])) return false
  }
  return true
}

/** Returns the paths of the members of `sent` that are absent from `decoded`. */
const findUnread = (sent: unknown, decoded: unknown, path = ""): Unread => {
  if (isList(sent)) {
    return sent.flatMap((each, index) =>
      findUnread(each, isList(decoded) ? decoded[index] : undefined, joinPath(path, index))
    )
  }
  if (!Predicate.isReadonlyObject(sent)) return []
  return Object.entries(sent).flatMap(([name, value]) =>
    Predicate.hasProperty(decoded, name)
      ? findUnread(value, decoded[name], joinPath(path, name))
      : [joinPath(path, name)]
  )
}

/**
 * Makes a decoder that refuses every member that `schema` does not declare. A decoded object has the members of the
 * encoded one.
 *
 * `declared` is the schema of all requests of the type, if `schema` describes only those that the sandbox plays.
 */
export const make = <S extends AnyCodec>(schema: S, declared: AnyCodec = schema): StrictDecoder<S["Type"]> => {
  const decode = Schema.decodeUnknownResult(schema, { errors: "all" })
  const isDeclared = Schema.is(Schema.toEncoded(declared))
  // a struct without members decodes to the value itself
  const isEmpty = AST.isObjects(schema.ast) && schema.ast.propertySignatures.length === 0
  return (value) => {
    const decoded = decode(value)
    if (Result.isSuccess(decoded)) {
      const members = isEmpty ? {} : decoded.success
      return isRead(value, members) ? Result.succeed(decoded.success) : Result.fail(findUnread(value, members))
    }
    return Result.fail(
      schema === declared || !isDeclared(value)
        ? []
        : Arr.dedupe(decodeFaults(decoded.failure).map(({ path }) => path.reduce<string>(joinPath, "")))
    )
  }
}

/** Like {@link make}, for a schema whose decoded value has another structure than the encoded one. */
export const makeTransformed = <S extends AnyCodec>(schema: S): StrictDecoder<S["Type"]> => {
  const check = make(Schema.toEncoded(schema))
  const decode = Schema.decodeUnknownResult(schema)
  return (value) => Result.flatMap(check(value), () => Result.mapError(decode(value), (): Unread => []))
}

/** Maximum number of members that a refusal names. */
const mostNamed = 5

/** Formats the reason for a refusal: the members, and the request's type. Returns an empty text for a wrong shape. */
export const formatUnread = (unread: Unread, type?: string): string => {
  const named = unread.slice(0, mostNamed).map((path) => JSON.stringify(path)).join(", ")
  const container = type === undefined ? "" : ` of ${JSON.stringify(type)}`
  return named === "" ? "" : `: the sandbox does not support ${named}${container}`
}
