/** `trigate info candles`: the bars of a time window of any length, as a table or as a file. */
import * as Info from "@trigate/client/Info"
import type { Candle, CandleStretch, CandleWindowRequest } from "@trigate/domain/candles/Candle"
import { barAt, CandleInterval, oldestRetainedBar, walk } from "@trigate/domain/candles/Candle"
import * as CandleText from "@trigate/domain/candles/CandleText"
import { printable } from "@trigate/domain/encoding/TerminalEscape"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as GatewayAccess from "../GatewayAccess.ts"
import * as Input from "../Input.ts"
import * as Output from "../Output.ts"

const instant = (millis: number): string => DateTime.formatIso(DateTime.makeUnsafe(millis))

const table = (candles: ReadonlyArray<Candle>): string => {
  const bars = rows(candles)
  return candles.length < fewest ? bars : `${bars}\n\n${line(candles)}`
}

const marks = "▁▂▃▄▅▆▇█"
const widest = 72

/** Minimum number of bars for a chart; fewer are easier to read as numbers. */
const fewest = 8

/**
 * Draws the closing prices as one line of characters, scaled from the lowest to the highest price. Several bars can
 * share a character.
 */
const line = (candles: ReadonlyArray<Candle>): string => {
  const perMark = Math.ceil(candles.length / widest)
  const closes = candles.filter((_, at) => at % perMark === perMark - 1 || at === candles.length - 1).map(({ c }) => c)
  const [low = "", ...others] = closes.toSorted((one, other) => Number(one) - Number(other))
  const high = others.at(-1) ?? low
  const range = Number(high) - Number(low)
  const sparkMark = (close: string) =>
    marks[range === 0 ? 0 : Math.round((Number(close) - Number(low)) / range * (marks.length - 1))] ?? ""
  return `${closes.map(sparkMark).join("")}  closes from ${low} to ${high}`
}

const rows = (candles: ReadonlyArray<Candle>): string =>
  Output.rows(
    [Output.left("OPEN TIME"), ...["OPEN", "HIGH", "LOW", "CLOSE", "VOLUME", "TRADES"].map(Output.right)],
    candles.map(({ c, h, l, n, o, t, v }) => [instant(t), o, h, l, c, v, String(n)])
  )

const fileFormats = ["csv", "json", "ndjson"] as const

type Format = (typeof fileFormats)[number] | "table"

/** The printer of an output format. It prints each bar as a line when it arrives, or all bars at the end. */
type Printer =
  | { readonly header?: string; readonly line: (candle: Candle) => string }
  | { readonly all: (candles: ReadonlyArray<Candle>) => string }

const printers: { readonly [F in Format]: Printer } = {
  csv: { header: CandleText.csvHeadings, line: CandleText.csv },
  ndjson: { line: CandleText.ndjson },
  json: { all: (candles) => `[${candles.map(CandleText.ndjson).join(",\n ")}]` },
  table: { all: table }
}

/** Returns the maximum number of bars that the venue can return for a time window. */
const expectedBars = ({ endTime, interval, startTime }: CandleWindowRequest, now: number): number => {
  const first = Math.max(barAt(interval, startTime), oldestRetainedBar(interval, now))
  return Math.max(0, barAt(interval, Math.min(endTime ?? now, now)) - first + 1)
}

interface Found {
  readonly bars: number
  readonly stretches: ReadonlyArray<CandleStretch>
}

const allBars = ({ stretches }: Found): ReadonlyArray<Candle> => stretches.flatMap(({ candles }) => candles)

/**
 * Returns remarks about the bars of a time window: which bars are missing, and whether the last bar is still forming.
 */
const remarks = (found: Found, { coin, interval, startTime }: CandleWindowRequest): ReadonlyArray<string> => {
  const [first] = allBars(found)
  const isCut = found.stretches.some(({ coverage }) => coverage !== "complete")
  const forming = found.stretches.at(-1)?.forming
  const missing = first === undefined
    ? "aged out: the venue retains the newest 5000 bars, and this window is older"
    : `truncated: no bars from ${instant(startTime)} to ${instant(first.t)}; the venue retains the newest 5000 bars`
  return [
    `${found.bars} bars of ${coin} ${interval}`,
    ...(isCut ? [missing] : []),
    ...(forming === undefined ? [] : [`the bar of ${instant(forming.t)} is still forming`])
  ]
}

const outputFormat = (out: Option.Option<Format>, json: boolean): Effect.Effect<Format, Input.UsageFault> =>
  Option.match(out, {
    onNone: () => Effect.succeed(json ? "json" : "table"),
    onSome: (format) =>
      json && format !== "json"
        ? Effect.fail(Input.fault(`--json and --out ${format} contradict each other; omit one`))
        : Effect.succeed(format)
  })

/**
 * The number of bars that one request queries. A response could contain 5000 bars; smaller requests make the progress
 * visible.
 */
const barsPerStretch = 1000

const printWindow = Effect.fnUntraced(function*(request: CandleWindowRequest, format: Format) {
  const total = expectedBars(request, yield* Clock.currentTimeMillis)
  const printer = printers[format]
  const access = yield* GatewayAccess.connect
  const fetch = (window: CandleWindowRequest) => GatewayAccess.over(access, Info.candleSnapshot(window))
  const printStretch = (candles: ReadonlyArray<Candle>, isFirst: boolean) => {
    if ("all" in printer) return Effect.void
    const header = isFirst && printer.header !== undefined ? [printer.header] : []
    const lines = [...header, ...candles.map(printer.line)]
    return lines.length === 0 ? Effect.void : Output.printText(lines.join("\n"))
  }
  const found = yield* Output.withProgress(Effect.fnUntraced(function*(show) {
    yield* show(Output.bar(0, total))
    return yield* walk(request, fetch, { barsPerStretch }).pipe(
      Stream.runFoldEffect(
        (): Found => ({ bars: 0, stretches: [] }),
        Effect.fnUntraced(function*(found, stretch) {
          const bars = found.bars + stretch.candles.length
          yield* show("")
          yield* printStretch(stretch.candles, found.stretches.length === 0)
          yield* show(Output.bar(bars, total))
          return { bars, stretches: [...found.stretches, stretch] }
        })
      )
    )
  }))
  if ("all" in printer) yield* Output.printText(printer.all(allBars(found)))
  yield* Console.error(`trigate: ${printable(remarks(found, request).join("; "))}`)
})

const momentFlag = (name: string, fallback: string, meaning: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("time"),
    Flag.withDefault(fallback),
    Flag.filterMap(Input.readMoment, () => Input.expectedMoment),
    Flag.withDescription(`${meaning}: a date, a date and time, milliseconds, or how long ago (default: ${fallback})`)
  )

/** `trigate info candles`. */
export const command = Command.make("candles", {
  coin: Argument.String("coin").pipe(
    Argument.withDescription("BTC (a perpetual, case-sensitive), PURR/USDC or @107 (spot), dex:COIN (a builder's)")
  ),
  interval: Argument.Literals("interval", CandleInterval.literals).pipe(
    Argument.withDescription(`Length of a bar: ${CandleInterval.literals.join(" ")} (1M is a month)`)
  ),
  from: momentFlag("from", "24h", "First instant"),
  to: momentFlag("to", "now", "Last instant"),
  out: Flag.Literals("out", fileFormats).pipe(
    Flag.optional,
    Flag.withDescription("Print the bars in this file format instead of as a table")
  )
}, ({ coin, from, interval, out, to }) =>
  Effect.gen(function*() {
    const format = yield* outputFormat(out, yield* Output.AsJson)
    const now = yield* Clock.currentTimeMillis
    const request = { coin, interval, startTime: Input.toInstant(from, now), endTime: Input.toInstant(to, now) }
    if (request.startTime > request.endTime) {
      return yield* Input.fault(
        `--from (${instant(request.startTime)}) is after --to (${instant(request.endTime)})`
      )
    }
    return yield* printWindow(request, format)
  })).pipe(
    Command.withDescription(
      "Print open, high, low, close and volume of a coin. Missing bars of the window are reported on standard error"
    ),
    Command.withShortDescription("Print the bars of a coin"),
    Command.withExamples([
      { command: "trigate info candles BTC 1h", description: "The last 24 hours, as a table" },
      {
        command: "trigate info candles PURR/USDC 1m --from 2d --to 1d --out csv > purr.csv",
        description: "The one-minute bars from 48 to 24 hours ago, as a file"
      },
      { command: "trigate info candles BTC 1d --from 2026-01-01 --to 2026-01-31 --out ndjson", description: "A month" }
    ])
  )
