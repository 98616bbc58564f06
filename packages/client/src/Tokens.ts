/** Calls of the token chain. Addresses are validated before anything is sent. */
import * as Paths from "@trigate/api/Paths"
import { nodeLabels } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Encoding"
import { HistoryUnavailable, InvalidAddress, TokenNotFound, wrapReason } from "@trigate/domain/errors/GatewayError"
import type { CallFailure, WrapReason } from "@trigate/domain/errors/GatewayError"
import * as JsonRpc from "@trigate/domain/evm/EvmProtocol"
import * as Protocol from "@trigate/domain/operations/Operation"
import type { AnyCodec, Operation } from "@trigate/domain/operations/Operation"
import * as TokenData from "@trigate/domain/tokens/TokenData"
import * as TokenOperations from "@trigate/domain/tokens/TokenOperations"
import * as TokenProtocol from "@trigate/domain/unstable/tokens/TokenProtocol"
import * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { Connection } from "./Connection.ts"
import * as EventStream from "./internal/EventStream.ts"
import { sendRequest, served } from "./internal/Served.ts"

interface At {
  /** An address in any form; its checksum is verified. */
  readonly address: string
}

const checkTokenData = TokenProtocol.requestCheck(TokenOperations.getTokenData)
const readTokenData = Protocol.makeReader(served(TokenOperations.getTokenData))

/**
 * Returns the data of a fungible token by the address of its master contract.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Tokens } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const address = "EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz"
 * const program = Tokens.getTokenData({ address }).pipe(
 *   Effect.flatMap(({ decimals, symbol }) => Console.log(symbol, decimals)),
 *   Effect.catchTag("TokenNotFound", ({ contractType }) => Console.log(`a ${contractType}, not a token`))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * TRIG 9
 * ```
 */
export const getTokenData: (
  params: At
) => Effect.Effect<TokenData.TokenData, CallFailure | InvalidAddress | TokenNotFound, Connection> = Effect.fn(
  "GatewayClient.getTokenData"
)(function*(params) {
  const request = yield* checkTokenData(Json.write(params))
  const query = new URLSearchParams({ address: params.address })
  return yield* readTokenData(request, yield* sendRequest(({ chains }) => chains.get(`${Paths.tokenData}?${query}`)))
}, Effect.mapError(wrapReason))

/**
 * Makes a client method that calls the JSON-RPC endpoint. The method first validates the params: if they do not decode,
 * nothing is sent.
 */
const method = <Request extends AnyCodec, Response extends AnyCodec, const Failures extends ReadonlyArray<AnyCodec>>(
  operation: Operation<string, "read", Request, Response, Failures>
) => {
  const check = TokenProtocol.requestCheck(operation)
  const read = TokenProtocol.makeReader(served(operation))
  return Effect.fn(`GatewayClient.${operation.name}`)(function*(params: Request["Encoded"]) {
    const json = Json.write(params)
    const request = yield* check(json)
    const body = JsonRpc.requestText(1, operation.name, json.text)
    const response = yield* sendRequest(({ chains }) => chains.post(Paths.tokenRpc, body))
    return yield* read(request, nodeLabels.tokens, yield* TokenProtocol.readResponse(response))
  }, Effect.mapError(wrapReason))
}

/**
 * Returns the token contract at an address, in the format of the token chain's server. The result has one of four
 * forms, by `contract_type`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Tokens } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const address = "EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz"
 * const program = Effect.flatMap(Tokens.getTokenContract({ address }), (contract) => Console.log(contract.contract_type))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * jetton_master
 * ```
 */
export const getTokenContract: (
  params: { readonly address: string; readonly seqno?: number }
) => Effect.Effect<TokenData.TokenContract, CallFailure | InvalidAddress | TokenNotFound, Connection> = method(
  TokenOperations.getTokenContract
)

/**
 * Converts an address to its user-friendly form.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Tokens } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const address = "0:a56fa58be1381c36c9aeeca74d8a2e66c37df4bfe93f725ea308ac8f8fda5635"
 * const program = Effect.flatMap(Tokens.packAddress({ address }), Console.log)
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz
 * ```
 */
export const packAddress: (params: At) => Effect.Effect<string, CallFailure | InvalidAddress, Connection> = method(
  TokenOperations.packAddress
)

/**
 * Converts an address to its raw form.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Tokens } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const address = "EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz"
 * const program = Effect.flatMap(Tokens.unpackAddress({ address }), Console.log)
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * 0:A56FA58BE1381C36C9AEECA74D8A2E66C37DF4BFE93F725EA308AC8F8FDA5635
 * ```
 */
export const unpackAddress: (params: At) => Effect.Effect<string, CallFailure | InvalidAddress, Connection> = method(
  TokenOperations.unpackAddress
)

/**
 * Returns all forms of an address.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Tokens } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const address = "EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz"
 * const program = Effect.flatMap(Tokens.detectAddress({ address }), ({ raw_form }) => Console.log(raw_form))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * 0:a56fa58be1381c36c9aeeca74d8a2e66c37df4bfe93f725ea308ac8f8fda5635
 * ```
 */
export const detectAddress: (
  params: At
) => Effect.Effect<TokenData.DetectedAddress, CallFailure | InvalidAddress, Connection> = method(
  TokenOperations.detectAddress
)

/**
 * Calls any method of `tokenRpcOperations`. Most results are `unknown`; integers beyond 2^53 are `bigint`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Tokens } from "@trigate/client"
 * import { TokenOperations } from "@trigate/domain"
 * import { Console, Effect } from "effect"
 *
 * const { runGetMethod } = TokenOperations.tokenRpcOperations
 * const address = "EQDXZ2c5LnA12Eum-DlguTmfYkMOvNeFCh4rBD0tgmwjcFI-"
 * const program = Effect.flatMap(
 *   Tokens.call(runGetMethod, { address, method: "seqno", stack: [] }),
 *   (response) => Console.log(typeof response)
 * )
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * object
 * ```
 */
export const call = <
  Request extends AnyCodec,
  Response extends AnyCodec,
  const Failures extends ReadonlyArray<AnyCodec>
>(
  operation: Operation<TokenOperations.TokenRpcOperation["name"], "read", Request, Response, Failures>,
  params: Request["Encoded"]
): Effect.Effect<Response["Type"], CallFailure | InvalidAddress | WrapReason<Failures[number]["Type"]>, Connection> =>
  method<Request, Response, Failures>(operation)(params)

/** The errors of a stream of transactions. */
export type TransactionsFailure = CallFailure | InvalidAddress | HistoryUnavailable

/** The errors of a stream of jetton transfers. */
export type JettonTransfersFailure = TransactionsFailure | TokenNotFound

const formatStart = (after: TokenData.StartPosition | undefined): string | undefined =>
  after === undefined || after === "genesis" ? after : TokenData.formatPosition(after)

/**
 * Streams an account's finalized transactions, oldest first: the transactions after a position, and then each new
 * transaction.
 *
 * The stream ends only with an error, has no gaps, and resumes after a lost connection. To resume it in another
 * process, pass the last received transaction as `after`.
 *
 * @since 0.1.0
 * @category streams
 * @example
 * ```ts
 * import { Connection, Tokens } from "@trigate/client"
 * import { Console, Effect, Stream } from "effect"
 *
 * const address = "EQDXZ2c5LnA12Eum-DlguTmfYkMOvNeFCh4rBD0tgmwjcFI-"
 * // prints the transactions that are finalized within the first second
 * const program = Tokens.transactions({ address }).pipe(
 *   Stream.interruptWhen(Effect.sleep("1 second")),
 *   Stream.runForEach(({ lt }) => Console.log(lt))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const transactions = (
  { address, after }: TokenData.TransactionsRequest
): Stream.Stream<TokenData.AccountTransaction, TransactionsFailure, Connection> =>
  EventStream.open({
    path: Paths.transactions,
    query: { address },
    after: formatStart(after),
    event: "transaction",
    item: TokenData.AccountTransaction,
    failures: [InvalidAddress, HistoryUnavailable]
  })

/**
 * Streams the jetton transfers that an owner receives, oldest first, each exactly once. Includes only transfers to the
 * owner's genuine jetton wallet that were neither aborted nor bounced. Resumes like {@link transactions}.
 *
 * @since 0.1.0
 * @category streams
 * @example
 * ```ts
 * import { Connection, Tokens } from "@trigate/client"
 * import { Console, Effect, Stream } from "effect"
 *
 * const master = "EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz"
 * const owner = "EQDXZ2c5LnA12Eum-DlguTmfYkMOvNeFCh4rBD0tgmwjcFI-"
 * // prints each transfer that is received within the first second
 * const program = Tokens.jettonTransfers({ master, owner }).pipe(
 *   Stream.interruptWhen(Effect.sleep("1 second")),
 *   Stream.runForEach(({ amount }) => Console.log(amount))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const jettonTransfers = (
  { after, master, owner }: TokenData.JettonTransfersRequest
): Stream.Stream<TokenData.JettonTransfer, JettonTransfersFailure, Connection> =>
  EventStream.open({
    path: Paths.jettonTransfers,
    query: { owner, master },
    after: formatStart(after),
    event: "transfer",
    item: TokenData.JettonTransfer,
    failures: [InvalidAddress, HistoryUnavailable, TokenNotFound]
  })
