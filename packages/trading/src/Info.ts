/** Queries of the venue: markets, accounts, and bars. */
import * as Candle from "@trigate/domain/candles/Candle"
import {
  type CandleStretch,
  type CandleWindow,
  type CandleWindowRequest,
  walk,
  type WalkOptions
} from "@trigate/domain/candles/Candle"
import * as Json from "@trigate/domain/encoding/Encoding"
import {
  type CallFailure,
  type CommonFailure,
  type UnknownAsset,
  wrapReason
} from "@trigate/domain/errors/GatewayError"
import * as InfoOperations from "@trigate/domain/info/InfoOperations"
import { isCandleCall } from "@trigate/domain/info/InfoOperations"
import * as Operation from "@trigate/domain/operations/Operation"
import type { Backend, UpstreamResponse } from "@trigate/domain/operations/Operation"
import * as MemoryResponses from "@trigate/domain/unstable/operations/MemoryResponses"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
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
 * Provided by `Trigate.layer`, `Trading.layer`, `InfoUpstream.layerFetch` or `Info.layerMemory`.
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

/**
 * The state that a test sets.
 *
 * Provided by `Info.layerMemory`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { infoOperations } from "@trigate/domain/info/InfoOperations"
 * import { Info } from "@trigate/trading"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { respond } = yield* Info.InfoState
 *   yield* respond(infoOperations.allMids, () => Effect.succeed({ BTC: "68000.0" }))
 *   const { allMids } = yield* Info.Info
 *   yield* Console.log(yield* allMids())
 * })
 *
 * await Effect.runPromise(Effect.provide(program, Info.layerMemory()))
 * ```
 * ```text
 * { BTC: '68000.0' }
 * ```
 */
export class InfoState extends Context.Service<InfoState, {
  /** Bars by coin. A coin's list contains the bars of all intervals in any order. A coin without a list is unknown. */
  readonly candles: Ref.Ref<ReadonlyMap<string, ReadonlyArray<Candle.Candle>>>
  /**
   * Sets the response to any query of `infoOperations` except bars: `respond(allMids, () => Effect.succeed({ BTC:
   * "68000.0" }))`.
   *
   * If the effect fails, the response is HTTP 500 `null`, as from the venue. Until a response is set for a query, the
   * query returns HTTP 422.
   */
  readonly respond: MemoryResponses.SetResponse
}>()("@trigate/trading/Info/InfoState") {}

const encodeCandles = Schema.encodeEffect(Schema.Array(Candle.Candle))

const toResponse = (json: Json.Json): Operation.UpstreamResponse => Operation.json("trading-api", 200, json.text)

/** The venue's response to an unknown coin: HTTP 500 `null`. */
const unknownCoin = Operation.json("trading-api", 500, "null")

const unanswered = (type: string): Operation.UpstreamResponse =>
  Operation.plain(
    "trading-api",
    422,
    `Failed to deserialize the JSON body into the target type: no response to ${type} was set with InfoState.respond`
  )

const sliceWindow = (
  candles: ReadonlyArray<Candle.Candle>,
  request: Candle.CandleWindowRequest,
  now: number
): ReadonlyArray<Candle.Candle> => {
  const end = request.endTime ?? now
  return candles
    .filter(({ i, t }) => i === request.interval && t <= now)
    .toSorted((a, b) => a.t - b.t)
    .slice(-Candle.retainedBars)
    .filter(({ T, t }) => T >= request.startTime && t <= end)
}

const makeMemory = Effect.gen(function*() {
  const candles = yield* Ref.make<ReadonlyMap<string, ReadonlyArray<Candle.Candle>>>(new Map())
  const { respond, send } = yield* MemoryResponses.make
  const info = make({
    read: Effect.fnUntraced(function*(call) {
      const { body, operation, surface } = call
      if (Operation.sourcesOn(operation, surface).length === 0) return yield* Operation.unavailableOnNode(operation)
      if (!isCandleCall(call)) {
        return yield* Effect.match(send(operation, body.valueOrUndefined), {
          onFailure: (why) => why === "unset" ? unanswered(operation.name) : unknownCoin,
          onSuccess: toResponse
        })
      }
      const bars = (yield* Ref.get(candles)).get(call.request.coin)
      if (bars === undefined) return unknownCoin
      const now = yield* Clock.currentTimeMillis
      return toResponse(Json.write(yield* Effect.orDie(encodeCandles(sliceWindow(bars, call.request, now)))))
    })
  })
  return Context.make(Info, info).pipe(Context.add(InfoState, { respond, candles }))
})

/**
 * Provides `Info` and its state. Each call returns a new layerMemory with separate state.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (): Layer.Layer<Info | InfoState> => Layer.effectContext(makeMemory)
