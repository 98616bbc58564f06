/**
 * Determines a token's name, symbol and decimals: from the contract itself, otherwise from its metadata document
 * (TEP-64).
 */
import { DEFAULT_DECIMALS } from "@trigate/domain/tokens/TokenData"
import type { TokenContent, TokenData } from "@trigate/domain/tokens/TokenData"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import type { MetadataFetch } from "./MetadataFetch.ts"

/** The members of the token's data that the metadata determines. */
export type Described = Pick<TokenData, "name" | "symbol" | "decimals" | "metadata">

interface Attributes {
  readonly name: string | undefined
  readonly symbol: string | undefined
  readonly decimals: number | undefined
  /** Whether the metadata contains a value for the decimals that is not a number from 0 to 255. */
  readonly isWrong: boolean
}

const text = (value: unknown): string | undefined =>
  Predicate.isString(value) && value.trim() !== "" ? value : undefined

/** Parses the decimals of a token: text in on-chain metadata, text or a number in documents. */
const parseDecimals = (value: unknown): number | undefined => {
  const digits = Predicate.isNumber(value) ? String(value) : value
  return Predicate.isString(digits) && /^[0-9]{1,3}$/u.test(digits) && Number(digits) <= 255
    ? Number(digits)
    : undefined
}

const readAttributes = (source: { readonly [attribute: string]: unknown }): Attributes => ({
  name: text(source["name"]),
  symbol: text(source["symbol"]),
  decimals: parseDecimals(source["decimals"]),
  isWrong: source["decimals"] !== undefined && source["decimals"] !== null &&
    parseDecimals(source["decimals"]) === undefined
})

const isRecord = (value: unknown): value is { readonly [attribute: string]: unknown } =>
  Predicate.isObject(value) && !Array.isArray(value)

const nothing = readAttributes({})

const described = (own: Attributes, document: Option.Option<Attributes>): Described => {
  const other = Option.getOrElse(document, () => nothing)
  const name = own.name ?? other.name
  const symbol = own.symbol ?? other.symbol
  const isOffchain = own.name === undefined || own.symbol === undefined ||
    (own.decimals === undefined && other.decimals !== undefined)
  return {
    ...(name === undefined ? {} : { name }),
    ...(symbol === undefined ? {} : { symbol }),
    decimals: own.decimals ?? other.decimals ?? DEFAULT_DECIMALS,
    metadata: name === undefined || symbol === undefined || Option.isNone(document) ||
        (own.decimals === undefined && other.decimals === undefined && (own.isWrong || other.isWrong))
      ? "unresolved"
      : isOffchain
      ? "offchain"
      : "onchain"
  }
}

/**
 * Describes a token by its content. A value on chain overrides the value in the document.
 *
 * Fetches the document only if a value is missing and the contract refers to a document.
 */
export const describe = (
  content: TokenContent | null | undefined,
  { fetch }: MetadataFetch["Service"]
): Effect.Effect<Described> => {
  const data = (content?.type === "onchain" ? content.data : undefined) ?? {}
  const uri = (content?.type === "offchain" ? content.data : text(data["uri"])) ?? undefined
  const own = readAttributes(data)
  const isComplete = own.name !== undefined && own.symbol !== undefined && own.decimals !== undefined
  return isComplete || uri === undefined
    ? Effect.succeed(described(own, Option.some(nothing)))
    : Effect.map(
      fetch(uri),
      (document) => described(own, Option.map(Option.filter(document, isRecord), readAttributes))
    )
}
