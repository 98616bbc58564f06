/** `trigate info candles`: the bars of a window of any length. */
import type { CandleWindowRequest } from "@trigate/domain/Candle"
import { CandleInterval } from "@trigate/domain/Candle"
import * as CandleWalk from "@trigate/trading/CandleWalk"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Format } from "./CandlePrinter.ts"
import * as CandlePrinter from "./CandlePrinter.ts"
import * as CandleWalkText from "./CandleWalkText.ts"
import * as GatewayAccess from "./GatewayAccess.ts"
import * as Moment from "./Moment.ts"
import * as Progress from "./Progress.ts"
import { UsageFault } from "./UsageFault.ts"

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

// a full answer holds 5000; smaller ones let the bar move
const barsPerStretch = 1000

const walk = Effect.fnUntraced(function*(request: CandleWindowRequest, format: Format) {
  const total = CandleWalkText.expectedBars(request, yield* Clock.currentTimeMillis)
  const print = CandlePrinter.make(format)
  const connection = yield* GatewayAccess.connect
  const fetch = (window: CandleWindowRequest) =>
    GatewayAccess.over(connection, ({ info }) => info.candleSnapshot(window))
  const found = yield* Progress.during(Effect.fnUntraced(function*(show) {
    yield* show(Progress.bar(0, total))
    return yield* CandleWalk.walk(request, fetch, { barsPerStretch }).pipe(
      Stream.runFoldEffect(
        (): CandleWalkText.Found => ({ bars: 0, stretches: [] }),
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
  yield* Console.error(`trigate: ${CandleWalkText.remarks(found, request).join("; ")}`)
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
  out: Flag.Literals("out", CandlePrinter.formats).pipe(
    Flag.optional,
    Flag.withDescription("Print a file format instead of a table")
  )
}, ({ coin, from, interval, out, to }) =>
  Effect.gen(function*() {
    const format = yield* formatOf(out, yield* GatewayAccess.Json)
    const now = yield* Clock.currentTimeMillis
    const request = { coin, interval, startTime: Moment.resolve(from, now), endTime: Moment.resolve(to, now) }
    if (request.startTime > request.endTime) {
      return yield* new UsageFault({
        message: `--from (${CandleWalkText.instant(request.startTime)}) lies after --to (${
          CandleWalkText.instant(request.endTime)
        })`
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
