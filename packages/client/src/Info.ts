/** Queries of the venue. */
import { type CandleStretch, type CandleWindowRequest, walk, type WalkOptions } from "@trigate/domain/candles/Candle"
import * as Json from "@trigate/domain/encoding/Encoding"
import { type CallFailure, UnknownAsset, wrapReason } from "@trigate/domain/errors/GatewayError"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import { candleSnapshot as declaredSnapshot, passthroughQuery } from "@trigate/domain/info/InfoOperations"
import * as Market from "@trigate/domain/info/Market"
import * as Protocol from "@trigate/domain/operations/Operation"
import * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { Connection } from "./Connection.ts"
import * as InfoQueries from "./internal/InfoQueries.ts"
import { send, served } from "./internal/Served.ts"

export * from "./internal/InfoQueries.ts"

/**
 * Returns the bars of a coin in a window, at most the newest 5000, and whether bars of the window are missing.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Info.candleSnapshot({ coin: "BTC", interval: "1h", startTime: 0 }).pipe(
 *   Effect.flatMap(({ candles, coverage }) => Console.log(candles.length > 0, coverage)),
 *   Effect.catchTag("UnknownAsset", ({ coin }) => Console.log(`${coin} is not listed`))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * true truncated
 * ```
 */
export const candleSnapshot = InfoProtocol.makeCandlesMethod(served(declaredSnapshot))("GatewayClient", send)

/**
 * Streams the bars of a window of any length, including bars that only the gateway still stores; see
 * {@link walk}.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Console, Effect, Stream } from "effect"
 *
 * const program = Info.candles({ coin: "BTC", interval: "1d", startTime: Date.UTC(2026, 0, 1) }).pipe(
 *   Stream.take(1),
 *   Stream.runForEach(({ candles }) => Console.log(candles.length > 0))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * true
 * ```
 */
export const candles = (
  request: CandleWindowRequest,
  options?: WalkOptions
): Stream.Stream<CandleStretch, CallFailure | UnknownAsset, Connection> => walk(request, candleSnapshot, options)

/** A query of any type, with the venue's member names. */
export interface RawQuery {
  readonly type: string
  readonly [member: string]: unknown
}

const readRaw = Protocol.makeReader(served({ ...passthroughQuery, failures: [UnknownAsset] }))

/**
 * Returns the venue's response to a query of any type, as parsed JSON; integers beyond 2^53 are `bigint`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.flatMap(Info.raw({ type: "exchangeStatus" }), (response) => Console.log(typeof response))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * object
 * ```
 */
export const raw: (request: RawQuery) => Effect.Effect<unknown, CallFailure | UnknownAsset, Connection> = Effect.fn(
  "GatewayClient.info"
)(function*(request) {
  const response = yield* send({ operation: passthroughQuery, request, body: Json.write(request) })
  return yield* readRaw(request, response)
}, Effect.mapError(wrapReason))

/**
 * Finds the asset for an order by its coin name: `BTC`, `PURR/USDC`, `@107`, `HYPE/USDC`, `dex:COIN`, or `#50`.
 *
 * Fails with `UnknownAsset`, which suggests the most similar coin. The gateway caches the asset lists that this call
 * requests.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Info } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.flatMap(Info.asset("BTC"), ({ id, szDecimals }) => Console.log(id, szDecimals))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * 0 5
 * ```
 */
export const asset: (
  coin: string
) => Effect.Effect<Market.Asset, CallFailure | UnknownAsset, Connection> = Effect.fn("GatewayClient.asset")((coin) => {
  // the whole module would be in each bundle that contains this call
  const { meta, outcomeMeta, perpDexs, spotMeta } = InfoQueries
  return Market.findAsset({ meta, outcomeMeta, perpDexs, spotMeta }, coin)
})
