/**
 * The bars that are received from the streams of series (coin and interval).
 *
 * A stream sends the current bar repeatedly. A bar is final as soon as the stream has sent the bar with the next
 * number. If the stream skips that number, the bar does not become final, and the recorder requests it from the venue.
 */
import type { Candle, Series } from "@trigate/domain/candles/Candle"
import { barAt, belongsTo, seriesKey } from "@trigate/domain/candles/Candle"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

/** Returns the stream of a series' bars. The stream also sends the current bar, each time that it changes. */
export type Listen = (series: Series) => Stream.Stream<Candle, { readonly message: string }>

/** The bars received for followed series. */
export interface LiveBars {
  /**
   * Follows a series until the scope ends. Does nothing if the maximum number of series is already followed. After a
   * failure, subscribes again.
   */
  readonly follow: (series: Series) => Effect.Effect<void, never, Scope.Scope>
  /** Returns whether the stream of a series is open and has sent at least one bar. */
  readonly isLive: (series: Series) => boolean
  /** Removes and returns the final bars of a series up to the bar number `last`, oldest first. */
  readonly takeFinal: (series: Series, last: number) => ReadonlyArray<Candle>
}

/** Maximum number of pending bars of a series. Beyond this number, bars are dropped and requested later. */
const mostPending = 100

/** The pause before a failed stream is opened again. */
const pause = "1 minute"

/** Makes the `LiveBars`. If `listen` is `undefined`, no series is live. */
export const make = (listen: Listen | undefined, maxSeries: number): LiveBars => {
  const followed = new Set<string>()
  /** The pending bars of each live series (one whose stream has sent a bar), by bar number. */
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
