/**
 * Queries the bars of a window of any length. Splits the window into stretches, each of which fits into one response of
 * the venue.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { CandleWindowRequest } from "./Candle.ts"
import * as CandleWindow from "./CandleWindow.ts"

/** Options of {@link walk}. */
export interface Options {
  /** Maximum number of bars in one stretch, from 1 to 5000. Default: 5000. Smaller stretches cost more requests. */
  readonly barsPerStretch?: number
}

interface Position {
  /** The start of the next stretch, in milliseconds. */
  readonly from: number
  /** The end of the walk, in milliseconds. */
  readonly end: number
  /** Open time of the last emitted bar, in milliseconds. */
  readonly last: number
  /**
   * Whether a gateway stores bars that the venue no longer has. If it does, no stretch is longer than `barsPerStretch`.
   */
  readonly isHeld: boolean
}

const bounded = (bars: number): number => Math.min(CandleWindow.retainedBars, Math.max(1, Math.floor(bars)))

/**
 * Streams the stretches of a window, oldest first. Each stretch that the consumer pulls costs one request.
 *
 * Adjacent stretches meet at the boundary of a bar. A bar that is received twice is emitted once. The venue retains only
 * the newest 5000 bars. The first stretch therefore covers all older bars of the window in one request: the venue
 * returns the bars that it still has. Further requests for expired bars would only use up the rate limit.
 *
 * Without an `endTime`, or with one in the future, the walk ends at the bar that was forming when the walk began. A
 * `truncated` stretch lacks its oldest bars. Only the first stretch can be truncated, or a later stretch whose bars
 * expired during a slow walk. If a gateway stores more bars than the venue retains, the walk starts at the beginning of
 * the window.
 */
export const walk = <E, R>(
  request: CandleWindowRequest,
  fetch: (request: CandleWindowRequest) => Effect.Effect<CandleWindow.CandleWindow, E, R>,
  options: Options = {}
): Stream.Stream<CandleWindow.CandleStretch, E, R> => {
  const { coin, interval, startTime } = request
  const bars = bounded(options.barsPerStretch ?? CandleWindow.retainedBars)
  const begin = Effect.map(Clock.currentTimeMillis, (now): Position => ({
    from: startTime,
    end: Math.min(request.endTime ?? now, now),
    last: Number.NEGATIVE_INFINITY,
    isHeld: false
  }))
  const step = Effect.fnUntraced(function*(at: Position) {
    const now = yield* Clock.currentTimeMillis
    const first = CandleWindow.barAt(interval, at.from)
    if (CandleWindow.openTime(interval, first) > at.end) return [[], Option.none<Position>()] as const
    const oldest = at.from === startTime && !at.isHeld
      ? Math.max(first, CandleWindow.oldestRetainedBar(interval, now))
      : first
    const close = CandleWindow.closeTime(interval, oldest + bars - 1)
    const endTime = Math.min(close, at.end)
    const window = yield* fetch({ coin, interval, startTime: at.from, endTime })
    const { sources } = window
    if (sources?.isCut === true && oldest > first) {
      // the gateway stores older bars than the venue, so the walk repeats the request for a shorter window, or skips
      // the gap at the start of the window
      const [gap] = sources.gaps
      if (gap === undefined || gap.from > at.from) return [[], Option.some<Position>({ ...at, isHeld: true })] as const
      const unknown: CandleWindow.CandleStretch = {
        startTime: at.from,
        endTime: gap.to,
        candles: [],
        coverage: "agedOut",
        forming: undefined,
        sources: { stored: 0, asked: 0, isCut: false, gaps: [gap], corrected: [] }
      }
      return [[unknown], Option.some<Position>({ ...at, from: gap.to + 1, isHeld: true })] as const
    }
    const fresh = window.candles.filter(({ t }) => t > at.last)
    const stretch: CandleWindow.CandleStretch = { ...window, startTime: at.from, endTime, candles: fresh }
    return [
      [stretch],
      Option.some<Position>({ ...at, from: close + 1, last: fresh.at(-1)?.t ?? at.last })
    ] as const
  })
  return Stream.unwrap(Effect.map(begin, (start) => Stream.paginate(start, step)))
}
