/**
 * The bars that the streams of series send.
 *
 * A stream sends the forming bar again and again. A bar is final once a frame of the next one has been received; a bar
 * is queried instead if the next one is not received.
 */
import type { Candle } from "@trigate/domain/candles/Candle"
import type { Series } from "@trigate/domain/candles/CandleWindow"
import { barAt, belongsTo } from "@trigate/domain/candles/CandleWindow"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

/** Returns the bars of a series as they form. */
export type Listen = (series: Series) => Stream.Stream<Candle, { readonly message: string }>

/** The received bars of followed series. */
export interface LiveBars {
  /** Follows a series until the scope ends, up to the maximum number of series. After a failure it subscribes again. */
  readonly follow: (series: Series) => Effect.Effect<void, never, Scope.Scope>
  /** Returns whether the stream of a series is open and has sent a bar. */
  readonly isLive: (series: Series) => boolean
  /** Removes and returns the final bars of a series up to a bar number, oldest first. */
  readonly takeFinal: (series: Series, last: number) => ReadonlyArray<Candle>
}

/** Maximum number of pending bars of a series. Dropped bars are queried later. */
const mostPending = 100

/** The pause before a failed stream is opened again. */
const pause = "1 minute"

const seriesKey = ({ coin, interval }: Series): string => `${interval} ${coin}`

/** Makes the bars of streams; without `listen` no series is live. */
export const make = (listen: Listen | undefined, maxSeries: number): LiveBars => {
  const followed = new Set<string>()
  /** The pending bars of each live series, by bar number. */
  const live = new Map<string, Map<number, Candle>>()

  const receive = (series: Series, bar: Candle): void => {
    if (!belongsTo(series, bar)) return
    const key = seriesKey(series)
    const bars = live.get(key) ?? new Map<number, Candle>()
    live.set(key, bars)
    bars.set(barAt(series.interval, bar.t), bar)
    if (bars.size > mostPending) bars.delete(Math.min(...bars.keys()))
  }

  return {
    follow: (series) => {
      const key = seriesKey(series)
      if (listen === undefined || followed.has(key) || followed.size >= maxSeries) return Effect.void
      followed.add(key)
      const listening = Effect.suspend(() =>
        Stream.runForEach(listen(series), (bar) => Effect.sync(() => receive(series, bar)))
      ).pipe(
        Effect.catch(({ message }) =>
          Effect.logDebug(`The recorder has no stream of ${series.coin} ${series.interval}: ${message}`)
        ),
        Effect.ensuring(Effect.sync(() => live.delete(key))),
        Effect.andThen(Effect.sleep(pause))
      )
      return Effect.asVoid(Effect.forkScoped(Effect.forever(listening)))
    },
    isLive: (series) => live.has(seriesKey(series)),
    takeFinal: (series, last) => {
      const bars = live.get(seriesKey(series))
      if (bars === undefined) return []
      const final = [...bars].filter(([number]) => number <= last && bars.has(number + 1)).toSorted(([a], [b]) => a - b)
      for (const [number] of final) bars.delete(number)
      return final.map(([, bar]) => bar)
    }
  }
}
