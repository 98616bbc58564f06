/** Queries of the venue: markets, accounts, and bars. */
import { walk } from "@trigate/domain/candles/Candle"
import type { CandleStretch, CandleWindow, CandleWindowRequest, WalkOptions } from "@trigate/domain/candles/Candle"
import { wrapReason } from "@trigate/domain/errors/GatewayError"
import type { CallFailure, CommonFailure, UnknownAsset } from "@trigate/domain/errors/GatewayError"
import * as InfoOperations from "@trigate/domain/info/InfoOperations"
import type { Backend, UpstreamResponse } from "@trigate/domain/operations/Operation"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"

/** The backend to which `Info` sends its queries. */
export type InfoBackend = Pick<Backend<InfoOperations.InfoCall, never, UpstreamResponse>, "read">

/** The methods of the service `Info`. Typed methods are derived from the declared operations. */
export interface InfoMethods extends InfoOperations.Methods<CallFailure> {
  /**
   * Relays a query and returns the response unchanged.
   *
   * There is one exception: if the venue responds to a candle query with HTTP 500 `null`, the call fails with
   * `UnknownAsset`.
   */
  readonly relay: (call: InfoOperations.InfoCall) => Effect.Effect<UpstreamResponse, CallFailure | UnknownAsset>
  /**
   * Requests the bars of a time window from the venue in one response. Returns them, and whether they cover the whole
   * window.
   */
  readonly candleSnapshot: (request: CandleWindowRequest) => Effect.Effect<CandleWindow, CallFailure | UnknownAsset>
  /** Streams the bars of a time window of any length, see {@link walk}. */
  readonly candles: (
    request: CandleWindowRequest,
    options?: WalkOptions
  ) => Stream.Stream<CandleStretch, CallFailure | UnknownAsset>
}

/**
 * Serves queries, with a method for each of `infoOperations`.
 *
 * Provided by `Trigate.layer`, `Trading.layer`, `InfoUpstream.layerFetch` or `InfoMemory.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { Info, InfoUpstream } from "@trigate/trading"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { candleSnapshot, l2Book } = yield* Info.Info
 *   const { coverage } = yield* candleSnapshot({ coin: "BTC", interval: "1d", startTime: 0 })
 *   const book = yield* l2Book({ coin: "BTC" })
 *   yield* Console.log(coverage, book?.coin)
 * }).pipe(
 *   Effect.catchTag("UnknownAsset", ({ coin }) => Console.log(`${coin} is not listed`)),
 *   Effect.catchReason("UpstreamError", "UpstreamRateLimited", ({ retryAfter }) => Console.log(`again in ${retryAfter} s`))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, InfoUpstream.layerFetch({ url: "http://localhost:8080" })))
 * ```
 * ```text
 * complete BTC
 * ```
 */
export class Info extends Context.Service<Info, InfoMethods>()("@trigate/trading/Info") {}

const candlesOver = InfoOperations.makeCandlesMethod(InfoOperations.candleSnapshot)

/** Makes the service `Info` over a backend. */
export const make = ({ read }: InfoBackend): Info["Service"] => {
  const send: InfoOperations.Send<CommonFailure> = (call) => read({ ...call, surface: "gateway" })
  const snapshot = candlesOver("Info", send)
  const relayCandles = Effect.fnUntraced(function*(call: InfoOperations.CandleCall) {
    const response = yield* read(call)
    return InfoOperations.candleSnapshot.refusal?.matches(response) === true
      ? yield* InfoOperations.candleSnapshot.refusal.failure(call.request, response)
      : response
  })
  return Info.of({
    ...InfoOperations.makeMethods("Info", send),
    relay: (call) =>
      Effect.mapError<UpstreamResponse, CommonFailure | UnknownAsset, never, CallFailure | UnknownAsset>(
        InfoOperations.isCandleCall(call) ? relayCandles(call) : read(call),
        wrapReason
      ),
    candleSnapshot: snapshot,
    candles: (request, options) => walk(request, snapshot, options)
  })
}
