/** The service of the token chain: its tokens, its address forms, and relayed JSON-RPC calls. */
import * as Json from "@trigate/domain/encoding/Json"
import { type CallFailure, type WrapReason, wrapReason } from "@trigate/domain/errors/GatewayError"
import type { InvalidAddress } from "@trigate/domain/errors/RequestError"
import type { TokenNotFound } from "@trigate/domain/errors/ResourceError"
import type { OutcomeUnknown } from "@trigate/domain/errors/UpstreamError"
import type { Surface } from "@trigate/domain/operations/Operation"
import { sourcesOn, unavailableOnNode } from "@trigate/domain/operations/Operation"
import type { UpstreamResponse } from "@trigate/domain/operations/UpstreamResponse"
import type {
  AccountTransaction,
  JettonTransfer,
  JettonTransfersRequest,
  JettonWalletRequest,
  Position,
  TransactionsRequest
} from "@trigate/domain/tokens/AccountTransaction"
import type { DetectedAddress, TokenContract, TokenData } from "@trigate/domain/tokens/TokenData"
import type { TokenRpcOperation, TokenSendOperation } from "@trigate/domain/tokens/TokenOperations"
import { getTokenData, tokenRpcOperations } from "@trigate/domain/tokens/TokenOperations"
import type { Query } from "@trigate/domain/tokens/TokenProtocol"
import * as TokenProtocol from "@trigate/domain/tokens/TokenProtocol"
import * as TokenRpc from "@trigate/domain/tokens/TokenRpc"
import * as TonAddress from "@trigate/domain/tokens/TonAddress"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Dialect from "./Dialect.ts"
import * as Metadata from "./metadata/Metadata.ts"
import type { MetadataFetch } from "./metadata/MetadataFetch.ts"
import type { JettonTransfersFailure, TransactionsFailure } from "./transactions/Transactions.ts"
import * as Transactions from "./transactions/Transactions.ts"

/** A JSON-RPC call to relay. `surface`: whether the gateway's own routes or its node routes received the call. */
export interface RelayCall {
  readonly operation: TokenRpcOperation | TokenSendOperation
  readonly params: Json.Json
  readonly surface: Surface
}

/** A REST call to relay: a GET with a query, or a POST with a body. */
export type RestCall =
  | { readonly operation: TokenRpcOperation; readonly asked: Query | Json.Json; readonly surface: Surface }
  | { readonly operation: TokenSendOperation; readonly asked: Json.Json; readonly surface: Surface }

/** An address in any form, validated before anything is sent. */
export interface AddressRequest {
  readonly address: string
}

/**
 * The token chain: its tokens, addresses and transactions, and relayed calls.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { TokenChain, TokenChainUpstream } from "@trigate/tokens"
 * import { Console, Effect } from "effect"
 *
 * const address = "EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz"
 *
 * const program = TokenChain.TokenChain.use(({ getTokenData }) => getTokenData({ address })).pipe(
 *   Effect.flatMap(({ symbol }) => Console.log(symbol)),
 *   Effect.catchTag("TokenNotFound", ({ contractType }) => Console.log(`a ${contractType}, not a token`))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, TokenChainUpstream.layerFetch({ url: "http://localhost:8080" })))
 * ```
 * ```text
 * TRIG
 * ```
 */
export class TokenChain extends Context.Service<TokenChain, {
  /**
   * Relays a JSON-RPC call. Refuses invalid params before anything is sent.
   *
   * A failure that the chain reports is returned as a response; `TokenRpc.makeReader` converts this response to a typed
   * error. A message is sent at most once; `OutcomeUnknown` means that it may have been accepted.
   */
  readonly relay: (
    call: RelayCall
  ) => Effect.Effect<TokenRpc.TokenRpcAnswer, CallFailure | InvalidAddress | OutcomeUnknown>
  /**
   * Relays a REST call. Returns the response unchanged, with any status. Validation and errors are the same as for
   * `relay`.
   */
  readonly rest: (
    call: RestCall
  ) => Effect.Effect<UpstreamResponse, CallFailure | InvalidAddress | OutcomeUnknown>
  /** Returns a fungible token by its master contract, with metadata from the layer's `MetadataFetch`. */
  readonly getTokenData: (
    request: AddressRequest
  ) => Effect.Effect<TokenData, CallFailure | InvalidAddress | TokenNotFound>
  /**
   * Returns the token contract (one of four kinds) at an address, in the format of the token chain's server. `seqno`
   * selects a block.
   */
  readonly getTokenContract: (
    request: AddressRequest & { readonly seqno?: number }
  ) => Effect.Effect<TokenContract, CallFailure | InvalidAddress | TokenNotFound>
  /**
   * Converts an address to its friendly form; the server chooses base64 or base64url. `TonAddress.format` is the local
   * equivalent.
   */
  readonly packAddress: (request: AddressRequest) => Effect.Effect<string, CallFailure | InvalidAddress>
  /** Converts an address to its raw form; the server chooses the letter case. */
  readonly unpackAddress: (request: AddressRequest) => Effect.Effect<string, CallFailure | InvalidAddress>
  /** Returns all forms of an address. */
  readonly detectAddress: (request: AddressRequest) => Effect.Effect<DetectedAddress, CallFailure | InvalidAddress>
  /**
   * Streams an account's finalized transactions, oldest first: those after a position, and then each new one.
   *
   * The stream ends only with an error, and has no gaps, because each transaction names its predecessor. To resume,
   * pass the last received transaction as `after`. All readers of an account share the requests to the node. The stream
   * continues after outages of the node. Fails with `HistoryUnavailable` if the node's history does not reach back to
   * `after`.
   */
  readonly transactions: (
    request: TransactionsRequest
  ) => Stream.Stream<AccountTransaction, WrapReason<TransactionsFailure>>
  /**
   * Returns the position (logical time and hash) of an account's latest transaction. The logical time is 0 if the
   * account has no transactions.
   */
  readonly latestPosition: (request: AddressRequest) => Effect.Effect<Position, WrapReason<TransactionsFailure>>
  /** Returns the raw address of an owner's jetton wallet, as derived by the master contract. */
  readonly jettonWallet: (request: JettonWalletRequest) => Effect.Effect<string, WrapReason<JettonTransfersFailure>>
  /**
   * Streams the jetton transfers that an owner receives, oldest first, each once.
   *
   * Transfers are read from the owner's jetton wallet, as derived by the master contract. So notifications from other
   * wallets are ignored, and transfers without a notification are included. Aborted and bounced transfers are excluded.
   */
  readonly jettonTransfers: (
    request: JettonTransfersRequest
  ) => Stream.Stream<JettonTransfer, WrapReason<JettonTransfersFailure>>
}>()("@trigate/tokens/TokenChain") {}

const UPSTREAM = "token-chain"
const readers = {
  getTokenContract: TokenRpc.makeReader(tokenRpcOperations.getTokenData),
  packAddress: TokenRpc.makeReader(tokenRpcOperations.packAddress),
  unpackAddress: TokenRpc.makeReader(tokenRpcOperations.unpackAddress),
  detectAddress: TokenRpc.makeReader(tokenRpcOperations.detectAddress)
}

const isSending = <Call extends { readonly operation: TokenRpcOperation | TokenSendOperation }>(
  call: Call
): call is Extract<Call, { readonly operation: TokenSendOperation }> & { readonly operation: TokenSendOperation } =>
  call.operation.class === "once"

/**
 * Makes the service `TokenChain` over a backend. The streams of the service end when the scope closes, except those of
 * a `SharedTransactions` in the context.
 */
export const make = Effect.fnUntraced(function*(
  backend: TokenProtocol.TokenBackend,
  metadata: MetadataFetch["Service"],
  streams: Transactions.Options = Transactions.defaults
): Effect.fn.Return<TokenChain["Service"], never, Scope.Scope> {
  const { jettonTransfers, jettonWallet, latestPosition, transactions } = yield* Option.match(
    yield* Effect.serviceOption(Transactions.SharedTransactions),
    {
      onNone: () => Transactions.make(backend, streams),
      onSome: (shared) => Effect.succeed(shared.use(backend, streams))
    }
  )

  const read = Effect.fnUntraced(function*(operation: TokenRpcOperation, params: Json.Json) {
    const checked = yield* TokenProtocol.check(operation, params)
    return yield* TokenRpc.readAnswer(yield* backend.read({ form: "rpc", operation, params: checked }))
  })

  const relay = Effect.fnUntraced(function*({ operation, params, surface }: RelayCall) {
    if (sourcesOn(operation, surface).length === 0) return yield* unavailableOnNode(operation)
    if (operation.class === "read") return yield* read(operation, params)
    const checked = yield* TokenProtocol.check(operation, params)
    return yield* TokenProtocol.readOnce(operation, yield* backend.once({ form: "rpc", operation, params: checked }))
  }, Effect.mapError(wrapReason))

  const restRead = Effect.fnUntraced(function*(operation: TokenRpcOperation, asked: Query | Json.Json) {
    if (!(asked instanceof Json.Json)) {
      return yield* backend.read({ form: "query", operation, ...yield* TokenProtocol.paramsOfQuery(operation, asked) })
    }
    return yield* backend.read({ form: "body", operation, params: yield* TokenProtocol.check(operation, asked) })
  })

  const restOnce = Effect.fnUntraced(function*(operation: TokenSendOperation, params: Json.Json) {
    const checked = yield* TokenProtocol.check(operation, params)
    const response = yield* backend.once({ form: "body", operation, params: checked })
    return yield* Effect.as(TokenProtocol.readOnce(operation, response), response)
  })

  const rest = Effect.fnUntraced(function*(call: RestCall) {
    if (sourcesOn(call.operation, call.surface).length === 0) return yield* unavailableOnNode(call.operation)
    return yield* isSending(call) ? restOnce(call.operation, call.asked) : restRead(call.operation, call.asked)
  }, Effect.mapError(wrapReason))

  const checked = ({ address }: AddressRequest) => Effect.fromResult(TonAddress.check(address))

  const ask = (operation: TokenRpcOperation, request: object) => read(operation, Json.write(request))

  const fetchTokenData = Effect.fn("TokenChain.getTokenData")(function*(request: AddressRequest) {
    const address = yield* checked(request)
    const response = yield* backend.read({
      form: "query",
      operation: getTokenData,
      params: Json.write({ address }),
      query: [["address", address]]
    })
    const reading = yield* Dialect.read(address, response)
    return reading._tag === "Token"
      ? reading.token
      : { ...yield* Metadata.describe(reading.content, metadata), ...reading.master }
  }, Effect.mapError(wrapReason))

  const getTokenContract = Effect.fn("TokenChain.getTokenContract")(function*(
    request: AddressRequest & { readonly seqno?: number }
  ) {
    const asked = { ...request, address: yield* checked(request) }
    return yield* readers.getTokenContract(asked, UPSTREAM, yield* ask(tokenRpcOperations.getTokenData, asked))
  }, Effect.mapError(wrapReason))

  const packAddress = Effect.fn("TokenChain.packAddress")(function*(request: AddressRequest) {
    const asked = { address: yield* checked(request) }
    return yield* readers.packAddress(asked, UPSTREAM, yield* ask(tokenRpcOperations.packAddress, asked))
  }, Effect.mapError(wrapReason))

  const unpackAddress = Effect.fn("TokenChain.unpackAddress")(function*(request: AddressRequest) {
    const asked = { address: yield* checked(request) }
    return yield* readers.unpackAddress(asked, UPSTREAM, yield* ask(tokenRpcOperations.unpackAddress, asked))
  }, Effect.mapError(wrapReason))

  const detectAddress = Effect.fn("TokenChain.detectAddress")(function*(request: AddressRequest) {
    const asked = { address: yield* checked(request) }
    return yield* readers.detectAddress(asked, UPSTREAM, yield* ask(tokenRpcOperations.detectAddress, asked))
  }, Effect.mapError(wrapReason))

  return TokenChain.of({
    relay,
    rest,
    getTokenData: fetchTokenData,
    getTokenContract,
    packAddress,
    unpackAddress,
    detectAddress,
    latestPosition: (request) => Effect.mapError(latestPosition(request), wrapReason),
    transactions: (request) => Stream.mapError(transactions(request), wrapReason),
    jettonWallet: (request) => Effect.mapError(jettonWallet(request), wrapReason),
    jettonTransfers: (request) => Stream.mapError(jettonTransfers(request), wrapReason)
  })
})
