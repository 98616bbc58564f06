/** What a walk over a window of bars can find, and what it found, in the words of a person. */
import type { CandleWindowRequest } from "@trigate/domain/Candle"
import * as CandleWindow from "@trigate/domain/CandleWindow"
import * as DateTime from "effect/DateTime"

/** An instant as people read it. */
export const instant = (millis: number): string => DateTime.formatIso(DateTime.makeUnsafe(millis))

/** Bars that a walk can find at most. */
export const expectedBars = ({ endTime, interval, startTime }: CandleWindowRequest, now: number): number => {
  const first = Math.max(CandleWindow.barAt(interval, startTime), CandleWindow.oldestRetainedBar(interval, now))
  return Math.max(0, CandleWindow.barAt(interval, Math.min(endTime ?? now, now)) - first + 1)
}

/** The stretches of a walk, and how many bars they hold. */
export interface Found {
  readonly bars: number
  readonly stretches: ReadonlyArray<CandleWindow.CandleStretch>
}

/** What a reader of the bars has to know and cannot see in them. */
export const remarks = (
  { bars, stretches }: Found,
  { coin, interval, startTime }: CandleWindowRequest
): ReadonlyArray<string> => {
  const first = stretches.flatMap(({ candles }) => candles)[0]
  const cut = stretches.some(({ coverage }) => coverage !== "complete")
  const forming = stretches.at(-1)?.forming
  return [
    `${bars} bars of ${coin} ${interval}`,
    ...(cut
      ? [
        first === undefined
          ? "aged out: the venue keeps the newest 5000 bars, and this window lies before them"
          : `truncated: nothing from ${instant(startTime)} to ${instant(first.t)}; the venue keeps the newest 5000 bars`
      ]
      : []),
    ...(forming === undefined ? [] : [`the bar of ${instant(forming.t)} is still forming`])
  ]
}
