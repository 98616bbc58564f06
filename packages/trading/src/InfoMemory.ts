/** `Info` in memory: spot metadata and bars that a test sets, answered as the venue answers them. */
import type { Candle, CandleWindowRequest } from "@trigate/domain/Candle"
import { Candle as CandleSchema } from "@trigate/domain/Candle"
import { retainedBars } from "@trigate/domain/CandleWindow"
import * as Json from "@trigate/domain/Json"
import { sourcesOn, unavailableOnNode } from "@trigate/domain/Operation"
import { SpotMeta } from "@trigate/domain/SpotMeta"
import * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Info from "./Info.ts"

/** What a test sets. */
export class InfoState extends Context.Service<InfoState, {
  /** Pairs and tokens; none until they are set. */
  readonly spotMeta: Ref.Ref<SpotMeta>
  /** Bars of each coin, all intervals together, in any order; a coin that is not there is unknown. */
  readonly candles: Ref.Ref<ReadonlyMap<string, ReadonlyArray<Candle>>>
}>()("@trigate/trading/InfoMemory/InfoState") {}

const state = Effect.gen(function*() {
  return InfoState.of({
    spotMeta: yield* Ref.make<SpotMeta>({ universe: [], tokens: [] }),
    candles: yield* Ref.make<ReadonlyMap<string, ReadonlyArray<Candle>>>(new Map())
  })
})

const encodeMeta = Schema.encodeEffect(SpotMeta)
const encodeCandles = Schema.encodeEffect(Schema.Array(CandleSchema))

const answered = (wire: unknown): UpstreamResponse.UpstreamResponse =>
  UpstreamResponse.json("trading-api", 200, Json.stringify(wire))

/** HTTP 500 `null`: what the venue says of a coin that it does not know. */
const unknownCoin = UpstreamResponse.json("trading-api", 500, "null")

const unknownType = UpstreamResponse.plain(
  "trading-api",
  422,
  "Failed to deserialize the JSON body into the target type"
)

const windowOf = (candles: ReadonlyArray<Candle>, request: CandleWindowRequest, now: number): ReadonlyArray<Candle> => {
  const end = request.endTime ?? now
  return candles
    .filter(({ i, t }) => i === request.interval && t <= now)
    .toSorted((a, b) => a.t - b.t)
    .slice(-retainedBars)
    .filter(({ T, t }) => T >= request.startTime && t <= end)
}

const make = Effect.gen(function*() {
  const { candles, spotMeta } = yield* InfoState
  return Info.make({
    read: Effect.fnUntraced(function*(call) {
      if (sourcesOn(call.operation, call.surface).length === 0) return yield* unavailableOnNode(call.operation)
      if (call.request === undefined) {
        return answered(yield* Effect.orDie(Effect.flatMap(Ref.get(spotMeta), encodeMeta)))
      }
      if (!("coin" in call.request)) return unknownType
      const bars = (yield* Ref.get(candles)).get(call.request.coin)
      if (bars === undefined) return unknownCoin
      const now = yield* Clock.currentTimeMillis
      return answered(yield* Effect.orDie(encodeCandles(windowOf(bars, call.request, now))))
    })
  })
})

/** The service and its state; a function, so that two chains in one program share no state. */
export const layer = (): Layer.Layer<Info.Info | InfoState> =>
  Layer.effect(Info.Info, make).pipe(Layer.provideMerge(Layer.effect(InfoState, state)))
