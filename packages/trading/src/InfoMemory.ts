/** `Info` in memory: a test sets the bars and the responses to other queries. */
import * as Candle from "@trigate/domain/candles/Candle"
import * as Json from "@trigate/domain/encoding/Encoding"
import { isCandleCall } from "@trigate/domain/info/InfoOperations"
import * as Operation from "@trigate/domain/operations/Operation"
import * as MemoryAnswers from "@trigate/domain/unstable/operations/MemoryAnswers"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Info from "./Info.ts"

/**
 * The state that a test sets.
 *
 * Provided by `InfoMemory.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { infoOperations } from "@trigate/domain/info/InfoOperations"
 * import { Info, InfoMemory } from "@trigate/trading"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { answer } = yield* InfoMemory.InfoState
 *   yield* answer(infoOperations.allMids, () => Effect.succeed({ BTC: "68000.0" }))
 *   const { allMids } = yield* Info.Info
 *   yield* Console.log(yield* allMids())
 * })
 *
 * await Effect.runPromise(Effect.provide(program, InfoMemory.layer()))
 * ```
 * ```text
 * { BTC: '68000.0' }
 * ```
 */
export class InfoState extends Context.Service<InfoState, {
  /** Bars by coin. A coin's list contains the bars of all intervals in any order. A coin without a list is unknown. */
  readonly candles: Ref.Ref<ReadonlyMap<string, ReadonlyArray<Candle.Candle>>>
  /**
   * Sets the response to any query of `infoOperations` except bars: `answer(allMids, () => Effect.succeed({ BTC:
   * "68000.0" }))`.
   *
   * If the effect fails, the response is HTTP 500 `null`, as from the venue. Until a response is set for a query, the
   * query returns HTTP 422.
   */
  readonly answer: MemoryAnswers.SetAnswer
}>()("@trigate/trading/InfoMemory/InfoState") {}

const encodeCandles = Schema.encodeEffect(Schema.Array(Candle.Candle))

const answered = (json: Json.Json): Operation.UpstreamResponse => Operation.json("trading-api", 200, json.text)

/** The venue's response to an unknown coin: HTTP 500 `null`. */
const unknownCoin = Operation.json("trading-api", 500, "null")

const unanswered = (type: string): Operation.UpstreamResponse =>
  Operation.plain(
    "trading-api",
    422,
    `Failed to deserialize the JSON body into the target type: no response to ${type} was set with InfoState.answer`
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

const make = Effect.gen(function*() {
  const candles = yield* Ref.make<ReadonlyMap<string, ReadonlyArray<Candle.Candle>>>(new Map())
  const { answer, ask } = yield* MemoryAnswers.make
  const info = Info.make({
    read: Effect.fnUntraced(function*(call) {
      const { body, operation, surface } = call
      if (Operation.sourcesOn(operation, surface).length === 0) return yield* Operation.unavailableOnNode(operation)
      if (!isCandleCall(call)) {
        return yield* Effect.match(ask(operation, body.valueOrUndefined), {
          onFailure: (why) => why === "unset" ? unanswered(operation.name) : unknownCoin,
          onSuccess: answered
        })
      }
      const bars = (yield* Ref.get(candles)).get(call.request.coin)
      if (bars === undefined) return unknownCoin
      const now = yield* Clock.currentTimeMillis
      return answered(Json.write(yield* Effect.orDie(encodeCandles(sliceWindow(bars, call.request, now)))))
    })
  })
  return Context.make(Info.Info, info).pipe(Context.add(InfoState, { answer, candles }))
})

/**
 * Provides `Info` and its state. Each call returns a new layer with separate state.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (): Layer.Layer<Info.Info | InfoState> => Layer.effectContext(make)
