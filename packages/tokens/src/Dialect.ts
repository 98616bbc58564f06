/**
 * Decodes an upstream's response to `GET /api/v2/getTokenData`, in every known shape.
 *
 * Both families of servers (Python and C++) return `{ok, result}`, where `result` is one of four contract types. Python
 * servers encode integers as JSON numbers, C++ servers as decimal strings. The documented shape is flat, without
 * `result`: `totalSupply` is a member of the root. An upstream that is itself a Trigate gateway also returns that
 * shape.
 */
import type { Json } from "@trigate/domain/encoding/Json"
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import type { InvalidAddress } from "@trigate/domain/errors/RequestError"
import { TokenNotFound } from "@trigate/domain/errors/ResourceError"
import type { UpstreamMalformed } from "@trigate/domain/errors/UpstreamError"
import { decodeJson, malformed } from "@trigate/domain/operations/Protocol"
import type * as UpstreamResponse from "@trigate/domain/operations/UpstreamResponse"
import { TokenContract, TokenData, TvmInteger } from "@trigate/domain/tokens/TokenData"
import type { TokenContent } from "@trigate/domain/tokens/TokenData"
import { getTokenData } from "@trigate/domain/tokens/TokenOperations"
import * as TokenRpc from "@trigate/domain/tokens/TokenRpc"
import * as TonAddress from "@trigate/domain/tokens/TonAddress"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

/** A decoded response: the documented flat resource, or a master contract whose metadata is not resolved yet. */
export type Reading =
  | { readonly _tag: "Token"; readonly token: TokenData }
  | {
    readonly _tag: "Master"
    readonly master: Pick<TokenData, "totalSupply" | "mintable" | "burnable" | "address">
    readonly content: TokenContent | null | undefined
  }

const { burnable, decimals, metadata, mintable, name, symbol } = TokenData.fields

/** The documented flat resource. It does not state the origin of its metadata; its `address` can have any form. */
const Flat = Schema.Struct({
  name,
  symbol,
  decimals,
  totalSupply: TvmInteger,
  mintable,
  burnable: Schema.optionalKey(burnable),
  address: Schema.optionalKey(Schema.String),
  metadata: Schema.optionalKey(metadata)
})

const decodeFlat = decodeJson(Flat)
const readContract = TokenRpc.makeReader({ ...getTokenData, response: TokenContract })

const isFlat = ({ valueOrUndefined: body }: Json): boolean =>
  Predicate.hasProperty(body, "totalSupply") && !Predicate.hasProperty(body, "ok")

const formatSupply = (upstream: string, supply: bigint): Effect.Effect<string, UpstreamMalformed> =>
  supply < 0n ? Effect.fail(malformed(upstream, "Expected a total supply of at least 0")) : Effect.succeed(`${supply}`)

/** Returns the requested address in the canonical form. Fails if the response is for a different address. */
const parseAddress = (
  upstream: string,
  asked: TonAddress.Parsed,
  answered: unknown
): Effect.Effect<TonAddress.TonAddress, UpstreamMalformed> => {
  const other = Predicate.isString(answered) ? Result.getOrElse(TonAddress.parse(answered), () => undefined) : asked
  return other !== undefined && TonAddress.formatRaw(other) === TonAddress.formatRaw(asked)
    ? Effect.succeed(TonAddress.canonical(asked))
    : Effect.fail(malformed(upstream, "The response is for another address"))
}

const readFlat = Effect.fnUntraced(function*(
  upstream: string,
  json: Json,
  asked: TonAddress.Parsed
): Effect.fn.Return<Reading, UpstreamMalformed> {
  const { address, metadata, totalSupply, ...rest } = yield* decodeFlat(upstream, json)
  const isNamed = rest.name !== undefined && rest.symbol !== undefined
  return {
    _tag: "Token",
    token: {
      burnable: true,
      ...rest,
      totalSupply: yield* formatSupply(upstream, totalSupply),
      address: yield* parseAddress(upstream, asked, address),
      // the response does not state the origin of the names, which is possibly not the contract
      metadata: metadata ?? (isNamed ? "offchain" : "unresolved")
    }
  }
})

/**
 * Decodes the response to a call for `address`.
 *
 * If the contract is not the master contract of a fungible token, fails with `TokenNotFound`, which contains the
 * contract's type. The upstream's failures become the corresponding typed errors.
 */
export const read = Effect.fnUntraced(function*(
  address: TonAddress.TonAddress,
  answer: UpstreamResponse.UpstreamResponse
): Effect.fn.Return<Reading, CommonFailure | InvalidAddress | TokenNotFound> {
  const { json, status, upstream } = answer
  const asked = yield* Effect.fromResult(TonAddress.parse(address))
  if (status === 200 && isFlat(json)) return yield* readFlat(upstream, json, asked)
  const envelope = yield* TokenRpc.readAnswer(answer)
  const contract = yield* readContract({ address }, upstream, envelope)
  if (contract.contract_type !== "jetton_master") {
    return yield* new TokenNotFound({
      address,
      contractType: contract.contract_type,
      detail: `The contract is a ${contract.contract_type}, not the master contract of a fungible token`
    })
  }
  return {
    _tag: "Master",
    master: {
      totalSupply: yield* formatSupply(upstream, contract.total_supply),
      mintable: contract.mintable,
      // TEP-74 requires every wallet of a jetton to accept a burn; no server reports it
      burnable: true,
      address: yield* parseAddress(upstream, asked, contract["address"])
    },
    content: contract.jetton_content
  }
})
