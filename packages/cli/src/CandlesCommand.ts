/** `trigate info candles`: the bars of a window of any length. */
import type { Candle, CandleWindowRequest } from "@trigate/domain/Candle"
import { CandleInterval } from "@trigate/domain/Candle"
import * as CandleWindow from "@trigate/domain/CandleWindow"
import * as CandleWalk from "@trigate/trading/CandleWalk"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as CandleText from "./CandleText.ts"
import * as GatewayAccess from "./GatewayAccess.ts"
import * as Moment from "./Moment.ts"
import * as Progress from "./Progress.ts"
import { UsageFault } from "./UsageFault.ts"

const formats = ["csv", "json", "ndjson"] as const

type Format = (typeof formats)[number] | "table"

const moment = (name: string, fallback: string, meaning: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("time"),
    Flag.withDefault(fallback),
    Flag.filterMap(Moment.parse, () => Moment.expected),
    Flag.withDescription(`${meaning}: a date, a date and time, milliseconds, or how long ago (default: ${fallback})`)
  )

const formatOf = (out: Option.Option<Format>, json: boolean): Effect.Effect<Format, UsageFault> =>
  Option.match(out, {
    onNone: () => Effect.succeed(json ? "json" : "table"),
    onSome: (format) =>
      json && format !== "json"
        ? Effect.fail(new UsageFault({ message: `--json and --out ${format} contradict each other; leave one out` }))
        : Effect.succeed(format)
  })

/** Bars that a walk can find at most. */
const expectedBars = ({ endTime, interval, startTime }: CandleWindowRequest, now: number): number => {
  const first = Math.max(CandleWindow.barAt(interval, startTime), CandleWindow.oldestRetainedBar(interval, now))
  return Math.max(0, CandleWindow.barAt(interval, Math.min(endTime ?? now, now)) - first + 1)
}

const instant = (millis: number): string => DateTime.formatIso(DateTime.makeUnsafe(millis))

interface Found {
  readonly bars: number
  readonly stretches: ReadonlyArray<CandleWindow.CandleStretch>
}

/** What a reader of the bars has to know and cannot see in them. */
const remarks = (
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

/** Prints bars: those of CSV and lines of JSON as they come, the others when all are there. */
const printer = (format: Format) => {
  const lines = (texts: ReadonlyArray<string>) => texts.length === 0 ? Effect.void : Console.log(texts.join("\n"))
  const nothing = () => Effect.void
  switch (format) {
    case "csv":
      return {
        begin: Console.log(CandleText.csvHeader),
        stretch: (candles: ReadonlyArray<Candle>) => lines(candles.map(CandleText.csv)),
        end: nothing
      }
    case "ndjson":
      return {
        begin: Effect.void,
        stretch: (candles: ReadonlyArray<Candle>) => lines(candles.map(CandleText.json)),
        end: nothing
      }
    case "json":
      return {
        begin: Effect.void,
        stretch: nothing,
        end: (all: ReadonlyArray<Candle>) => Console.log(`[${all.map(CandleText.json).join(",\n ")}]`)
      }
    case "table":
      return {
        begin: Effect.void,
        stretch: nothing,
        end: (all: ReadonlyArray<Candle>) => Console.log(CandleText.table(all))
      }
  }
}

// a full answer holds 5000; smaller ones let the bar move
const barsPerStretch = 1000

const walk = Effect.fnUntraced(function*(request: CandleWindowRequest, format: Format) {
  const total = expectedBars(request, yield* Clock.currentTimeMillis)
  const print = printer(format)
  const connection = yield* GatewayAccess.connect
  const fetch = (window: CandleWindowRequest) =>
    GatewayAccess.over(connection, ({ info }) => info.candleSnapshot(window))
  const found = yield* Progress.during(Effect.fnUntraced(function*(show) {
    yield* show(Progress.bar(0, total))
    return yield* CandleWalk.walk(request, fetch, { barsPerStretch }).pipe(
      Stream.runFoldEffect(
        (): Found => ({ bars: 0, stretches: [] }),
        Effect.fnUntraced(function*(found, stretch) {
          if (found.stretches.length === 0) yield* print.begin
          const bars = found.bars + stretch.candles.length
          yield* show("")
          yield* print.stretch(stretch.candles)
          yield* show(Progress.bar(bars, total))
          return { bars, stretches: [...found.stretches, stretch] }
        })
      )
    )
  }))
  yield* print.end(found.stretches.flatMap(({ candles }) => candles))
  yield* Console.error(`trigate: ${remarks(found, request).join("; ")}`)
})

/** The command. */
export const command = Command.make("candles", {
  coin: Argument.String("coin").pipe(
    Argument.withDescription("BTC (a perpetual, letter case counts), PURR/USDC or @107 (spot), dex:COIN (a builder's)")
  ),
  interval: Argument.Literals("interval", CandleInterval.literals).pipe(
    Argument.withDescription(`Length of a bar: ${CandleInterval.literals.join(" ")} (1M is a month)`)
  ),
  from: moment("from", "24h", "First instant"),
  to: moment("to", "now", "Last instant"),
  out: Flag.Literals("out", formats).pipe(Flag.optional, Flag.withDescription("Print a file format instead of a table"))
}, ({ coin, from, interval, out, to }) =>
  Effect.gen(function*() {
    const format = yield* formatOf(out, yield* GatewayAccess.Json)
    const now = yield* Clock.currentTimeMillis
    const request = { coin, interval, startTime: Moment.resolve(from, now), endTime: Moment.resolve(to, now) }
    if (request.startTime > request.endTime) {
      return yield* new UsageFault({
        message: `--from (${instant(request.startTime)}) lies after --to (${instant(request.endTime)})`
      })
    }
    return yield* walk(request, format)
  })).pipe(
    Command.withDescription(
      "Print open, high, low, close and volume of a coin; says on standard error what the window lacks"
    ),
    Command.withShortDescription("Print the bars of a coin"),
    Command.withExamples([
      { command: "trigate info candles BTC 1h", description: "The last 24 hours, as a table" },
      {
        command: "trigate info candles PURR/USDC 1m --from 2d --to 1d --out csv > purr.csv",
        description: "The day before yesterday's minutes, as a file"
      },
      { command: "trigate info candles BTC 1d --from 2026-01-01 --to 2026-01-31 --out ndjson", description: "A month" }
    ])
  )
