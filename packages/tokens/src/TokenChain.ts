/**
 * The service of the token chain: its tokens with their metadata, its address forms, and relayed JSON-RPC calls.
 *
 * Both families of servers (Python and C++) return `{ok, result}`, where `result` is one of four contract types. Python
 * servers encode integers as JSON numbers, C++ servers as decimal strings. The documented shape is flat, without
 * `result`: `totalSupply` is a member of the root. An upstream that is itself a Trigate gateway also returns that
 * shape.
 */
import * as Json from "@trigate/domain/encoding/Encoding"
import * as GatewayError from "@trigate/domain/errors/GatewayError"
import { decodeJson, malformed, sourcesOn, unavailableOnNode } from "@trigate/domain/operations/Operation"
import type { Surface, UpstreamResponse } from "@trigate/domain/operations/Operation"
import * as TokenData from "@trigate/domain/tokens/TokenData"
import { getTokenData, tokenRpcOperations } from "@trigate/domain/tokens/TokenOperations"
import type { TokenRpcOperation, TokenSendOperation } from "@trigate/domain/tokens/TokenOperations"
import * as TokenRpc from "@trigate/domain/unstable/tokens/TokenProtocol"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Transactions from "./transactions/Transactions.ts"

/** A decoded response: the documented flat resource, or a master contract whose metadata is not resolved yet. */
export type Reading =
  | { readonly _tag: "Token"; readonly token: TokenData.TokenData }
  | {
    readonly _tag: "Master"
    readonly master: Pick<TokenData.TokenData, "totalSupply" | "mintable" | "burnable" | "address">
    readonly content: TokenData.TokenContent | null | undefined
  }

const { burnable, decimals, metadata, mintable, name, symbol } = TokenData.TokenData.fields

/** The documented flat resource. It does not state the origin of its metadata; its `address` can have any form. */
const Flat = Schema.Struct({
  name,
  symbol,
  decimals,
  totalSupply: TokenData.TvmInteger,
  mintable,
  burnable: Schema.optionalKey(burnable),
  address: Schema.optionalKey(Schema.String),
  metadata: Schema.optionalKey(metadata)
})

const decodeFlat = decodeJson(Flat)
const readContract = TokenRpc.makeReader({ ...getTokenData, response: TokenData.TokenContract })

const isFlat = ({ valueOrUndefined: body }: Json.Json): boolean =>
  Predicate.hasProperty(body, "totalSupply") && !Predicate.hasProperty(body, "ok")

const formatSupply = (upstream: string, supply: bigint): Effect.Effect<string, GatewayError.UpstreamMalformed> =>
  supply < 0n ? Effect.fail(malformed(upstream, "Expected a total supply of at least 0")) : Effect.succeed(`${supply}`)

/** Returns the requested address in the canonical form. Fails if the response is for a different address. */
const parseAddress = (
  upstream: string,
  requested: TokenData.Parsed,
  returned: unknown
): Effect.Effect<TokenData.TonAddress, GatewayError.UpstreamMalformed> => {
  const other = Predicate.isString(returned) ? Result.getOrElse(TokenData.parse(returned), () => undefined) : requested
  return other !== undefined && TokenData.formatRaw(other) === TokenData.formatRaw(requested)
    ? Effect.succeed(TokenData.canonical(requested))
    : Effect.fail(malformed(upstream, "The response is for another address"))
}

const readFlat = Effect.fnUntraced(function*(
  upstream: string,
  json: Json.Json,
  requested: TokenData.Parsed
): Effect.fn.Return<Reading, GatewayError.UpstreamMalformed> {
  const { address, metadata, totalSupply, ...rest } = yield* decodeFlat(upstream, json)
  const isNamed = rest.name !== undefined && rest.symbol !== undefined
  return {
    _tag: "Token",
    token: {
      burnable: true,
      ...rest,
      totalSupply: yield* formatSupply(upstream, totalSupply),
      address: yield* parseAddress(upstream, requested, address),
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
export const readDialect = Effect.fnUntraced(function*(
  address: TokenData.TonAddress,
  response: UpstreamResponse
): Effect.fn.Return<Reading, GatewayError.CommonFailure | GatewayError.InvalidAddress | GatewayError.TokenNotFound> {
  const { json, status, upstream } = response
  const requested = yield* Effect.fromResult(TokenData.parse(address))
  if (status === 200 && isFlat(json)) return yield* readFlat(upstream, json, requested)
  const envelope = yield* TokenRpc.readResponse(response)
  const contract = yield* readContract({ address }, upstream, envelope)
  if (contract.contract_type !== "jetton_master") {
    return yield* new GatewayError.TokenNotFound({
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
      address: yield* parseAddress(upstream, requested, contract["address"])
    },
    content: contract.jetton_content
  }
})

/**
 * Fetches metadata documents.
 *
 * The URI is from a contract that anyone can deploy, so a layer that sends requests must treat it as hostile. If a
 * document cannot be fetched, the result is `None`, and the call that needs it does not fail.
 *
 * Provided by `MetadataFetchUndici.layer`, `TokenChain.layerNone` or `TokenChain.layerMemory`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { TokenChain } from "@trigate/tokens"
 * import { Console, Effect } from "effect"
 *
 * const documents = new Map([["https://example.com/token.json", { symbol: "TEST" }]])
 *
 * const program = TokenChain.MetadataFetch.use(({ fetch }) => fetch("https://example.com/token.json")).pipe(
 *   Effect.flatMap(Console.log)
 * )
 *
 * await Effect.runPromise(Effect.provide(program, TokenChain.layerMemory(documents)))
 * ```
 */
export class MetadataFetch extends Context.Service<MetadataFetch, {
  /** Returns the parsed JSON document at `uri`. */
  readonly fetch: (uri: string) => Effect.Effect<Option.Option<unknown>>
}>()("@trigate/tokens/TokenChain/MetadataFetch") {}

/**
 * Provides a `MetadataFetch` that fetches nothing: for programs that must not send external requests, and for tests.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNone: Layer.Layer<MetadataFetch> = Layer.succeed(
  MetadataFetch,
  MetadataFetch.of({ fetch: () => Effect.succeedNone })
)

/**
 * Provides a `MetadataFetch` that returns the given documents by their URI.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (documents: ReadonlyMap<string, unknown>): Layer.Layer<MetadataFetch> =>
  Layer.succeed(
    MetadataFetch,
    MetadataFetch.of({
      fetch: (uri) => Effect.sync(() => documents.has(uri) ? Option.some(documents.get(uri)) : Option.none())
    })
  )

/** The members of the token's data that the metadata determines. */
export type Described = Pick<TokenData.TokenData, "name" | "symbol" | "decimals" | "metadata">

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
    decimals: own.decimals ?? other.decimals ?? TokenData.DEFAULT_DECIMALS,
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
  content: TokenData.TokenContent | null | undefined,
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

/** A JSON-RPC call to relay. `surface`: whether the gateway's own routes or its node routes received the call. */
export interface RelayCall {
  readonly operation: TokenRpcOperation | TokenSendOperation
  readonly params: Json.Json
  readonly surface: Surface
}

/** A REST call to relay: a GET with a query, or a POST with a body. */
export type RestCall =
  | { readonly operation: TokenRpcOperation; readonly asked: TokenRpc.Query | Json.Json; readonly surface: Surface }
  | { readonly operation: TokenSendOperation; readonly asked: Json.Json; readonly surface: Surface }

/** An address in any form, validated before anything is sent. */
export interface AddressRequest {
  readonly address: string
}

/** The result of a call about an address; `E` is a further error of the call. */
type Reply<A, E = never> = Effect.Effect<A, GatewayError.CallFailure | GatewayError.InvalidAddress | E>

/**
 * The token chain: its tokens, addresses and transactions, and relayed calls.
 *
 * Provided by `Trigate.layer`, `Tokens.layer`, `TokenChainUpstream.layerFetch` or `TokenChainMemory.layer`.
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
  readonly relay: (call: RelayCall) => Reply<TokenRpc.TokenRpcResponse, GatewayError.OutcomeUnknown>
  /**
   * Relays a REST call. Returns the response unchanged, with any status. Validation and errors are the same as for
   * `relay`.
   */
  readonly rest: (call: RestCall) => Reply<UpstreamResponse, GatewayError.OutcomeUnknown>
  /** Returns a fungible token by its master contract, with metadata from the layer's `MetadataFetch`. */
  readonly getTokenData: (request: AddressRequest) => Reply<TokenData.TokenData, GatewayError.TokenNotFound>
  /**
   * Returns the token contract (one of four kinds) at an address, in the format of the token chain's server. `seqno`
   * selects a block.
   */
  readonly getTokenContract: (
    request: AddressRequest & { readonly seqno?: number }
  ) => Reply<TokenData.TokenContract, GatewayError.TokenNotFound>
  /**
   * Converts an address to its friendly form; the server chooses base64 or base64url. `TonAddress.format` is the local
   * equivalent.
   */
  readonly packAddress: (request: AddressRequest) => Reply<string>
  /** Converts an address to its raw form; the server chooses the letter case. */
  readonly unpackAddress: (request: AddressRequest) => Reply<string>
  /** Returns all forms of an address. */
  readonly detectAddress: (request: AddressRequest) => Reply<TokenData.DetectedAddress>
  /**
   * Streams an account's finalized transactions, oldest first: those after a position, and then each new one.
   *
   * The stream ends only with an error, and has no gaps, because each transaction names its predecessor. To resume,
   * pass the last received transaction as `after`. All readers of an account share the requests to the node. The stream
   * continues after outages of the node. Fails with `HistoryUnavailable` if the node's history does not reach back to
   * `after`.
   */
  readonly transactions: (
    request: TokenData.TransactionsRequest
  ) => Stream.Stream<TokenData.AccountTransaction, GatewayError.WrapReason<Transactions.TransactionsFailure>>
  /**
   * Returns the position (logical time and hash) of an account's latest transaction. The logical time is 0 if the
   * account has no transactions.
   */
  readonly latestPosition: (
    request: AddressRequest
  ) => Effect.Effect<TokenData.Position, GatewayError.WrapReason<Transactions.TransactionsFailure>>
  /** Returns the raw address of an owner's jetton wallet, as derived by the master contract. */
  readonly jettonWallet: (
    request: TokenData.JettonWalletRequest
  ) => Effect.Effect<string, GatewayError.WrapReason<Transactions.JettonTransfersFailure>>
  /**
   * Streams the jetton transfers that an owner receives, oldest first, each once.
   *
   * Transfers are read from the owner's jetton wallet, as derived by the master contract. So notifications from other
   * wallets are ignored, and transfers without a notification are included. Aborted and bounced transfers are excluded.
   */
  readonly jettonTransfers: (
    request: TokenData.JettonTransfersRequest
  ) => Stream.Stream<TokenData.JettonTransfer, GatewayError.WrapReason<Transactions.JettonTransfersFailure>>
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
  backend: TokenRpc.TokenBackend,
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
    const checked = yield* TokenRpc.check(operation, params)
    return yield* TokenRpc.readResponse(yield* backend.read({ form: "rpc", operation, params: checked }))
  })

  const relay = Effect.fnUntraced(function*({ operation, params, surface }: RelayCall) {
    if (sourcesOn(operation, surface).length === 0) return yield* unavailableOnNode(operation)
    if (operation.class === "read") return yield* read(operation, params)
    const checked = yield* TokenRpc.check(operation, params)
    return yield* TokenRpc.readOnce(operation, yield* backend.once({ form: "rpc", operation, params: checked }))
  }, Effect.mapError(GatewayError.wrapReason))

  const restRead = Effect.fnUntraced(function*(operation: TokenRpcOperation, request: TokenRpc.Query | Json.Json) {
    if (!(request instanceof Json.Json)) {
      return yield* backend.read({ form: "query", operation, ...yield* TokenRpc.paramsOfQuery(operation, request) })
    }
    return yield* backend.read({ form: "body", operation, params: yield* TokenRpc.check(operation, request) })
  })

  const restOnce = Effect.fnUntraced(function*(operation: TokenSendOperation, params: Json.Json) {
    const checked = yield* TokenRpc.check(operation, params)
    const response = yield* backend.once({ form: "body", operation, params: checked })
    return yield* Effect.as(TokenRpc.readOnce(operation, response), response)
  })

  const rest = Effect.fnUntraced(function*(call: RestCall) {
    if (sourcesOn(call.operation, call.surface).length === 0) return yield* unavailableOnNode(call.operation)
    return yield* isSending(call) ? restOnce(call.operation, call.asked) : restRead(call.operation, call.asked)
  }, Effect.mapError(GatewayError.wrapReason))

  const checked = ({ address }: AddressRequest) => Effect.fromResult(TokenData.check(address))

  const send = (operation: TokenRpcOperation, request: object) => read(operation, Json.write(request))

  const fetchTokenData = Effect.fn("TokenChain.getTokenData")(function*(request: AddressRequest) {
    const address = yield* checked(request)
    const response = yield* backend.read({
      form: "query",
      operation: getTokenData,
      params: Json.write({ address }),
      query: [["address", address]]
    })
    const reading = yield* readDialect(address, response)
    return reading._tag === "Token"
      ? reading.token
      : { ...yield* describe(reading.content, metadata), ...reading.master }
  }, Effect.mapError(GatewayError.wrapReason))

  const getTokenContract = Effect.fn("TokenChain.getTokenContract")(function*(
    request: AddressRequest & { readonly seqno?: number }
  ) {
    const checkedRequest = { ...request, address: yield* checked(request) }
    return yield* readers.getTokenContract(
      checkedRequest,
      UPSTREAM,
      yield* send(tokenRpcOperations.getTokenData, checkedRequest)
    )
  }, Effect.mapError(GatewayError.wrapReason))

  const packAddress = Effect.fn("TokenChain.packAddress")(function*(request: AddressRequest) {
    const checkedRequest = { address: yield* checked(request) }
    return yield* readers.packAddress(
      checkedRequest,
      UPSTREAM,
      yield* send(tokenRpcOperations.packAddress, checkedRequest)
    )
  }, Effect.mapError(GatewayError.wrapReason))

  const unpackAddress = Effect.fn("TokenChain.unpackAddress")(function*(request: AddressRequest) {
    const checkedRequest = { address: yield* checked(request) }
    return yield* readers.unpackAddress(
      checkedRequest,
      UPSTREAM,
      yield* send(tokenRpcOperations.unpackAddress, checkedRequest)
    )
  }, Effect.mapError(GatewayError.wrapReason))

  const detectAddress = Effect.fn("TokenChain.detectAddress")(function*(request: AddressRequest) {
    const checkedRequest = { address: yield* checked(request) }
    return yield* readers.detectAddress(
      checkedRequest,
      UPSTREAM,
      yield* send(tokenRpcOperations.detectAddress, checkedRequest)
    )
  }, Effect.mapError(GatewayError.wrapReason))

  return TokenChain.of({
    relay,
    rest,
    getTokenData: fetchTokenData,
    getTokenContract,
    packAddress,
    unpackAddress,
    detectAddress,
    latestPosition: (request) => Effect.mapError(latestPosition(request), GatewayError.wrapReason),
    transactions: (request) => Stream.mapError(transactions(request), GatewayError.wrapReason),
    jettonWallet: (request) => Effect.mapError(jettonWallet(request), GatewayError.wrapReason),
    jettonTransfers: (request) => Stream.mapError(jettonTransfers(request), GatewayError.wrapReason)
  })
})
