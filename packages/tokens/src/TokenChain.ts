/** The token chain: its tokens, its address forms, and its relayed JSON-RPC. */
import type { CommonFailure } from "@trigate/domain/GatewayError"
import * as JsonText from "@trigate/domain/JsonText"
import { sourcesOn, unavailableOnNode } from "@trigate/domain/Operation"
import type { Surface } from "@trigate/domain/Operation"
import type { InvalidAddress } from "@trigate/domain/RequestError"
import type { TokenNotFound } from "@trigate/domain/ResourceError"
import type { DetectedAddress, TokenContract, TokenData } from "@trigate/domain/TokenData"
import { readParams, tokenRpcOperations } from "@trigate/domain/TokenOperations"
import type { TokenRpcOperation, TokenSendOperation } from "@trigate/domain/TokenOperations"
import * as TokenQuery from "@trigate/domain/TokenQuery"
import type { Query } from "@trigate/domain/TokenQuery"
import * as TokenRpc from "@trigate/domain/TokenRpc"
import * as TonAddress from "@trigate/domain/TonAddress"
import type { OutcomeUnknown } from "@trigate/domain/UpstreamError"
import type * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Dialect from "./Dialect.ts"
import * as Metadata from "./Metadata.ts"
import type { MetadataFetch } from "./MetadataFetch.ts"
import * as SentMessage from "./SentMessage.ts"

/** A call to relay: `params` is raw JSON text and goes out as it is; `surface` is the one of ours that was asked. */
export interface RelayCall {
  readonly operation: TokenRpcOperation | TokenSendOperation
  readonly params: string
  readonly surface: Surface
}

/** A REST call to relay: a query means GET, a body POST. */
export type RestCall =
  | { readonly operation: TokenRpcOperation; readonly asked: Query | string; readonly surface: Surface }
  | { readonly operation: TokenSendOperation; readonly asked: string; readonly surface: Surface }

/** A REST read that was checked: `params` is what its query or its body names. */
export interface CheckedRest {
  readonly operation: TokenRpcOperation
  readonly asked: Query | string
  readonly params: unknown
}

/** Sends calls to a token chain and gives its answers as they came: the one thing in which the layers differ. */
export interface Transport {
  /** `GET /api/v2/getTokenData`; the address is checked. */
  readonly getTokenData: (
    address: TonAddress.TonAddress
  ) => Effect.Effect<UpstreamResponse.UpstreamResponse, CommonFailure>
  /** `POST /api/v2/jsonRPC`; `params` is the raw text of a named object, checked. */
  readonly call: (
    call: { readonly operation: TokenRpcOperation; readonly params: string }
  ) => Effect.Effect<UpstreamResponse.UpstreamResponse, CommonFailure>
  /** The same for a call that is sent at most once. */
  readonly once: (
    call: { readonly operation: TokenSendOperation; readonly params: string }
  ) => Effect.Effect<UpstreamResponse.UpstreamResponse, CommonFailure | OutcomeUnknown>
  /** `/api/v2/{method}`, by GET with a query and by POST with a body. */
  readonly rest: (call: CheckedRest) => Effect.Effect<UpstreamResponse.UpstreamResponse, CommonFailure>
  /** The same for a call that is sent at most once. */
  readonly restOnce: (
    call: { readonly operation: TokenSendOperation; readonly asked: string; readonly params: unknown }
  ) => Effect.Effect<UpstreamResponse.UpstreamResponse, CommonFailure | OutcomeUnknown>
}

/** An address in any form; it is checked before anything is sent. */
export interface AddressRequest {
  readonly address: string
}

/** The token chain. */
export class TokenChain extends Context.Service<TokenChain, {
  /**
   * Relays a JSON-RPC call; params that do not decode are refused before anything is sent.
   *
   * A failure that the chain answered is an answer here: `TokenRpc.readerOf` reads it into a typed error. A message is sent
   * at most once; `OutcomeUnknown` means that it may have been taken.
   */
  readonly relay: (
    call: RelayCall
  ) => Effect.Effect<TokenRpc.TokenRpcAnswer, CommonFailure | InvalidAddress | OutcomeUnknown>
  /** Relays a REST call; the answer comes as it is, whatever its status. Checks and outcomes are those of `relay`. */
  readonly rest: (
    call: RestCall
  ) => Effect.Effect<UpstreamResponse.UpstreamResponse, CommonFailure | InvalidAddress | OutcomeUnknown>
  /** A fungible token by its master contract, metadata resolved as far as the layer's `MetadataFetch` reaches. */
  readonly getTokenData: (
    request: AddressRequest
  ) => Effect.Effect<TokenData, CommonFailure | InvalidAddress | TokenNotFound>
  /** What the contract at an address is, of any of the four kinds, as the chain itself answers; `seqno` is a block. */
  readonly getTokenContract: (
    request: AddressRequest & { readonly seqno?: number }
  ) => Effect.Effect<TokenContract, CommonFailure | InvalidAddress | TokenNotFound>
  /** The friendly form of an address; base64 or base64url, as the server likes (`TonAddress.format` does it here). */
  readonly packAddress: (request: AddressRequest) => Effect.Effect<string, CommonFailure | InvalidAddress>
  /** The raw form of an address; hex digits in either case, as the server likes. */
  readonly unpackAddress: (request: AddressRequest) => Effect.Effect<string, CommonFailure | InvalidAddress>
  /** All forms of an address. */
  readonly detectAddress: (request: AddressRequest) => Effect.Effect<DetectedAddress, CommonFailure | InvalidAddress>
}>()("@trigate/tokens/TokenChain") {}

const UPSTREAM = "token-chain"
const readers = {
  getTokenContract: TokenRpc.readerOf(tokenRpcOperations.getTokenData),
  packAddress: TokenRpc.readerOf(tokenRpcOperations.packAddress),
  unpackAddress: TokenRpc.readerOf(tokenRpcOperations.unpackAddress),
  detectAddress: TokenRpc.readerOf(tokenRpcOperations.detectAddress)
}

// servers of the older family refuse any array, an empty one too
const named = (params: string): string => params.trimStart().startsWith("[") ? "{}" : params

/** The service over a transport; live, memory and sandbox layers hand in theirs. */
export const make = (transport: Transport, metadata: MetadataFetch["Service"]): TokenChain["Service"] => {
  const read = Effect.fnUntraced(function*(operation: TokenRpcOperation, params: string) {
    const answer = yield* transport.call({ operation, params: named(params) })
    return yield* TokenRpc.readAnswer(answer.upstream, answer.status, answer.text, answer.retryAfter)
  })

  const relay = Effect.fnUntraced(function*({ operation, params, surface }: RelayCall) {
    if (sourcesOn(operation, surface).length === 0) return yield* unavailableOnNode(operation)
    yield* readParams<RelayCall["operation"]["request"]>(operation)(params)
    return yield* operation.class === "once"
      ? SentMessage.read(operation, yield* transport.once({ operation, params }))
      : read(operation, params)
  })

  const parsed = (body: string): unknown => Result.getOrElse(JsonText.parse(body), () => undefined)

  const restRead = Effect.fnUntraced(function*(operation: TokenRpcOperation, asked: Query | string) {
    if (!Predicate.isString(asked)) {
      return yield* transport.rest({ operation, asked, params: yield* TokenQuery.read(operation, asked) })
    }
    yield* readParams<TokenRpcOperation["request"]>(operation)(asked)
    return yield* transport.rest({ operation, asked, params: parsed(asked) })
  })

  const restOnce = Effect.fnUntraced(function*(operation: TokenSendOperation, asked: string) {
    yield* readParams<TokenSendOperation["request"]>(operation)(asked)
    const answer = yield* transport.restOnce({ operation, asked, params: parsed(asked) })
    return yield* Effect.as(SentMessage.read(operation, answer), answer)
  })

  const isSending = (call: RestCall): call is Extract<RestCall, { readonly operation: TokenSendOperation }> =>
    call.operation.class === "once"

  const rest = Effect.fnUntraced(function*(call: RestCall) {
    if (sourcesOn(call.operation, call.surface).length === 0) return yield* unavailableOnNode(call.operation)
    return yield* isSending(call) ? restOnce(call.operation, call.asked) : restRead(call.operation, call.asked)
  })

  const checked = ({ address }: AddressRequest) => Effect.fromResult(TonAddress.check(address))

  const ask = Effect.fnUntraced(function*(operation: TokenRpcOperation, request: object) {
    const params = JsonText.stringify(request)
    yield* readParams<TokenRpcOperation["request"]>(operation)(params)
    return yield* read(operation, params)
  })

  const getTokenData = Effect.fn("TokenChain.getTokenData")(function*(request: AddressRequest) {
    const address = yield* checked(request)
    const reading = yield* Dialect.read(address, yield* transport.getTokenData(address))
    return reading._tag === "Token"
      ? reading.token
      : { ...yield* Metadata.describe(reading.content, metadata), ...reading.master }
  })

  const getTokenContract = Effect.fn("TokenChain.getTokenContract")(function*(
    request: AddressRequest & { readonly seqno?: number }
  ) {
    const asked = { ...request, address: yield* checked(request) }
    return yield* readers.getTokenContract(asked, UPSTREAM, yield* ask(tokenRpcOperations.getTokenData, asked))
  })

  const packAddress = Effect.fn("TokenChain.packAddress")(function*(request: AddressRequest) {
    const asked = { address: yield* checked(request) }
    return yield* readers.packAddress(asked, UPSTREAM, yield* ask(tokenRpcOperations.packAddress, asked))
  })

  const unpackAddress = Effect.fn("TokenChain.unpackAddress")(function*(request: AddressRequest) {
    const asked = { address: yield* checked(request) }
    return yield* readers.unpackAddress(asked, UPSTREAM, yield* ask(tokenRpcOperations.unpackAddress, asked))
  })

  const detectAddress = Effect.fn("TokenChain.detectAddress")(function*(request: AddressRequest) {
    const asked = { address: yield* checked(request) }
    return yield* readers.detectAddress(asked, UPSTREAM, yield* ask(tokenRpcOperations.detectAddress, asked))
  })

  return TokenChain.of({ relay, rest, getTokenData, getTokenContract, packAddress, unpackAddress, detectAddress })
}
