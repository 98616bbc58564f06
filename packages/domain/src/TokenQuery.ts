/** Reads the query of a REST call of the token chain as the named params that it stands for. */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as JsonText from "./JsonText.ts"
import type { InvalidAddress, InvalidRequest } from "./RequestError.ts"
import type { TokenRpcOperation } from "./TokenOperations.ts"
import { readParams } from "./TokenOperations.ts"

/** The members of a query in their order, decoded. */
export type Query = ReadonlyArray<readonly [name: string, value: string]>

type Params = { readonly [name: string]: unknown }

/** Every value is a text, those of a name that comes more than once a list of texts. */
const textsOf = (query: Query): Params => {
  const params = new Map<string, string | ReadonlyArray<string>>()
  for (const [name, value] of query) {
    const before = params.get(name)
    params.set(name, before === undefined ? value : [...Predicate.isString(before) ? [before] : before, value])
  }
  return Object.fromEntries(params)
}

const jsonOf = (text: string): unknown => Result.getOrElse(JsonText.parse(text), () => text)

const listOf = (text: string): unknown => [text]

/** The params with the texts at fault read in another way. */
const reread = (params: Params, { errors }: InvalidRequest, way: (text: string) => unknown): Params => {
  const faulty = new Set(errors.map(({ path: [, name] }) => name))
  return Object.fromEntries(
    Object.entries(params).map(([name, value]) => [
      name,
      Predicate.isString(value) && faulty.has(name) ? way(value) : value
    ])
  )
}

/**
 * Reads a query against a method; a value is a text, and a number, a boolean or a list only where the method takes no text.
 *
 * As strict as the JSON-RPC route: unknown members and wrong values are refused, addresses are checked.
 */
export const read = (
  operation: TokenRpcOperation,
  query: Query
): Effect.Effect<Params, InvalidRequest | InvalidAddress> => {
  const check = readParams<TokenRpcOperation["request"]>(operation)
  const taken = (params: Params) => Effect.as(check(JsonText.stringify(params)), params)
  const texts = textsOf(query)
  return Effect.catchTag(taken(texts), "InvalidRequest", (error) => {
    const typed = reread(texts, error, jsonOf)
    return taken(typed).pipe(
      Effect.catchTag("InvalidRequest", (again) => taken(reread(typed, again, listOf))),
      // the faults of the texts are those that the caller can recognise
      Effect.catchTag("InvalidRequest", () => Effect.fail(error))
    )
  })
}
