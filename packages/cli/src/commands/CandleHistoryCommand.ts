/**
 * `trigate candles`: exports candle history from a gateway as files, imports files into the gateway's database, and
 * lists series.
 */
import * as CandleImport from "@trigate/archive/CandleFiles"
import * as Candles from "@trigate/client/Candles"
import { barAt, type CandleInterval, type Series } from "@trigate/domain/candles/Candle"
import { CandleFormat } from "@trigate/domain/unstable/candles/CandleText"
import { settings as declared } from "@trigate/server/unstable/settings/Settings"
import * as ActionLogStore from "@trigate/server/unstable/stores/Stores"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as GatewayAccess from "../GatewayAccess.ts"
import * as Output from "../Output.ts"
import * as Target from "../Target.ts"

const { coin, interval } = Output

const momentFlag = (name: string, meaning: string, otherwise: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("time"),
    Flag.filterMap(Output.readMoment, () => Output.expectedMoment),
    Flag.withDescription(`${meaning}: a date, a date and time, milliseconds, or how long ago (default: ${otherwise})`),
    Flag.optional
  )

const formatFlag = Flag.Literals("format", CandleFormat.literals).pipe(
  Flag.withDescription("ndjson, csv or parquet (default: by the extension of the file, otherwise ndjson)"),
  Flag.optional
)

/** Returns the file format that the flag selects. Default: the format of the path's extension, otherwise NDJSON. */
const fileFormat = (flag: Option.Option<CandleFormat>, path: string): CandleFormat =>
  Option.getOrElse(flag, () => CandleFormat.literals.find((format) => path.endsWith(`.${format}`)) ?? "ndjson")

const exported = Command.make("export", {
  coin,
  interval,
  from: momentFlag("from", "Bars that open at this time or later", "the first stored bar"),
  to: momentFlag("to", "Bars that open at this time or earlier", "the last stored bar"),
  format: formatFlag,
  save: Output.saveFlag
}, ({ coin, format, from, interval, save, to }) =>
  Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    const wanted = fileFormat(format, Option.getOrElse(save, () => ""))
    const access = yield* GatewayAccess.connect
    yield* Target.printGateway("candles", access)
    const bytes = GatewayAccess.streamOver(
      access,
      Candles.file({
        coin,
        interval,
        ...(Option.isSome(from) ? { from: Output.toInstant(from.value, now) } : {}),
        ...(Option.isSome(to) ? { to: Output.toInstant(to.value, now) } : {})
      }, wanted)
    )
    const written = yield* Output.withProgress(Effect.fnUntraced(function*(show) {
      let size = 0
      const shown = Stream.tap(bytes, (part) => {
        size += part.length
        return show(`${size} bytes`)
      })
      // a file gets the gateway's exact bytes, and Parquet is binary: only text for standard output is escaped
      const isShown = Option.isNone(save) && wanted !== "parquet"
      yield* Output.saveBytes(save, isShown ? Output.printableBytes(shown) : shown)
      return size
    }))
    if (Option.isSome(save)) {
      yield* Output.printNotes([`trigate: ${written} bytes of ${coin} ${interval} written to ${save.value}`])
    }
  })).pipe(
    Command.withDescription(
      "Export the stored bars of a coin, oldest first, without a limit on their number, and with every number as the venue formats it"
    ),
    Command.withShortDescription("Export stored bars to a file"),
    Command.withExamples([
      { command: "trigate candles export BTC 1m --save btc.parquet", description: "All stored one-minute bars" },
      {
        command: "trigate candles export @107 1h --from 2026-01-01 --to 2026-01-31T23:00 --format csv > january.csv",
        description: "The hourly bars of a month"
      }
    ]),
    GatewayAccess.options
  )

/** The maximum number of refused bars of a file that are reported individually. */
const maxReported = 20

const importFile = Effect.fnUntraced(function*(
  series: Series,
  path: string,
  format: CandleFormat,
  isWithoutGaps: boolean
) {
  const files = yield* FileSystem.FileSystem
  const { stdin } = yield* Stdio.Stdio
  const name = Output.displayName(path)
  const unreadable = () => Output.fault(`${name} cannot be read`)
  let reported = 0
  const onFinding = ({ row, why }: CandleImport.Finding) => {
    reported += 1
    return reported > maxReported ? Effect.void : Output.printNotes([`trigate: ${name}:${row}: ${why}`])
  }
  const report = yield* Output.withProgress(Effect.fnUntraced(function*(show) {
    const progress = (rows: number) => show(`${rows} bars of ${name}`)
    const between = isWithoutGaps ? { known: "between" as const } : {}
    if (format !== "parquet") {
      const bytes = Stream.mapError(path === "-" ? stdin : files.stream(path), unreadable)
      return yield* CandleImport.run(series, CandleImport.textRows(series, format, bytes), {
        onFinding,
        progress,
        ...between
      })
    }
    const bytes = yield* Output.bytes(path)
    const CandleParquet = yield* Effect.promise(() => import("@trigate/archive/unstable/CandleParquet"))
    const withAdvice = ({ message }: { readonly message: string }) => Output.fault(`${name}: ${message}`)
    const { known, rows } = yield* Effect.mapError(CandleParquet.read(series, bytes), withAdvice)
    return yield* CandleImport.run(
      series,
      Stream.mapError(rows, withAdvice),
      { onFinding, progress, ...(known === undefined ? between : { known }) }
    )
  }))
  if (reported > maxReported) {
    yield* Output.printNotes([`trigate: ${name}: ${reported - maxReported} more bars were refused`])
  }
  return { file: path, ...report }
})

/** Declares a hidden flag that only other commands support. If it is used, the command fails with an explanation. */
const refusedFlag = (name: string) =>
  Flag.String(name).pipe(
    Flag.withHidden,
    Flag.filter(() => false, () =>
      `candles import writes to the database of ${declared.databaseUrl.env}, not through a gateway: omit --${name}, and run it ` +
      "where that database is reachable"),
    Flag.optional
  )

const imported = Command.make(
  "import",
  {
    coin,
    interval,
    paths: Argument.String("file").pipe(
      Argument.withDescription("A file of bars in order, or - for standard input"),
      Argument.atLeast(1)
    ),
    format: formatFlag,
    noGaps: Output.booleanFlag(
      "no-gaps",
      "Treat bars that are missing between two bars of a file as times without trades (default: as gaps, unless the Parquet file states otherwise)"
    ),
    ...Target.files,
    gateway: refusedFlag("gateway"),
    admin: refusedFlag("admin"),
    json: Output.booleanFlag("json", "Print JSON instead of a table")
  },
  ({ coin, config, environmentFile, format, interval, json, noGaps, paths }) =>
    Effect.gen(function*() {
      const settings = yield* Target.settings({ config, environmentFile })
      const place = yield* Effect.fromOption(
        ActionLogStore.findDatabase(settings),
        () => Output.fault(`no database for candles is configured: set ${declared.databaseUrl.env}`)
      )
      yield* Target.printStore("candles", place, settings)
      const ArchiveStore = yield* Effect.promise(() => import("@trigate/server/unstable/stores/ArchiveStore"))
      const reports = yield* Effect.forEach(
        paths,
        (path) => importFile({ coin, interval }, path, fileFormat(format, path), noGaps)
      ).pipe(Effect.provide(yield* Layer.build(ArchiveStore.layerDatabase(settings, place))))
      if (json) yield* Output.printJson(reports)
      else {
        yield* Console.log(Output.rows(
          [Output.left("FILE"), ...["BARS", "NEW", "HELD", "DIFFERING", "REFUSED"].map(Output.right)],
          reports.map(({ added, differing, file, held, refused, rows }) => [
            file,
            ...[rows, added, held, differing, refused].map(String)
          ])
        ))
      }
      const left = reports.reduce((sum, { differing, refused }) => sum + differing + refused, 0)
      if (left > 0) {
        return yield* Output.fault(
          `${left} ${
            left === 1 ? "bar was" : "bars were"
          } refused; the archive contains all other bars of the files, and its existing bars did not change`
        )
      }
    }).pipe(Effect.scoped)
).pipe(
  Command.withDescription(
    `Import bars from files into the database of ${declared.databaseUrl.env}, which a gateway may be using. Calls no gateway. ` +
      "Each bar is checked individually. Invalid bars, and bars that differ from stored ones, are reported with their line numbers and not imported"
  ),
  Command.withShortDescription("Import bars from files into the database"),
  Command.withExamples([
    { command: "trigate candles import BTC 1m btc.parquet", description: "A file written by trigate candles export" },
    { command: "trigate candles import BTC 1m 2024.csv 2025.csv --no-gaps", description: "Files from another archive" }
  ])
)

const instant = (millis: number): string => `${DateTime.formatIso(DateTime.makeUnsafe(millis)).slice(0, 16)}Z`

/**
 * Returns the gaps between the known (completely recorded) ranges of a series, with the number of missing bars in each
 * gap.
 */
const listGaps = ({ coin, interval, known }: Candles.CandleSeries) =>
  known.slice(1).flatMap(({ from: next }, index) => {
    const last = known[index]
    if (last === undefined) return []
    const bars = barAt(interval, next) - barAt(interval, last.to) - 1
    return [{ coin, interval, from: last.to + 1, to: next - 1, bars }]
  })

const list = Effect.gen(function*() {
  const access = yield* GatewayAccess.connect
  yield* Target.printGateway("candles", access)
  return yield* GatewayAccess.over(access, Candles.list())
})

const wantedSeries = { coin: coin.pipe(Argument.optional), interval: interval.pipe(Argument.optional) }

/** Returns the stored series of a coin, of an interval, or all. */
const listWanted = (
  { coin, interval }: { readonly coin: Option.Option<string>; readonly interval: Option.Option<CandleInterval> }
) =>
  Effect.map(list, (found) =>
    found.filter((series) =>
      Option.getOrElse(coin, () => series.coin) === series.coin &&
      Option.getOrElse(interval, () => series.interval) === series.interval
    ))

/** Maximum number of rows of a table; the rest is counted below it. */
const maxRows = 40

const firstRows = (
  columns: ReadonlyArray<Output.Column>,
  rows: ReadonlyArray<ReadonlyArray<string>>,
  rest: string
): string => {
  const left = rows.length - maxRows
  const table = Output.rows(columns, rows.slice(0, maxRows))
  return left > 0 ? `${table}\n… and ${left} more: ${rest}` : table
}

const status = Command.make("status", wantedSeries, (wanted) =>
  Effect.gen(function*() {
    const series = yield* listWanted(wanted)
    const now = yield* Clock.currentTimeMillis
    const sum = (all: ReadonlyArray<Candles.CandleSeries>, read: (each: Candles.CandleSeries) => number) =>
      String(all.reduce((total, each) => total + read(each), 0))
    const facts = (all: ReadonlyArray<Candles.CandleSeries>) => [
      sum(all, ({ bars }) => bars),
      instant(Math.min(...all.map(({ known }) => known[0]?.from ?? now))),
      instant(Math.max(...all.map(({ known }) => (known.at(-1)?.to ?? now - 1) + 1))),
      sum(all, (each) => listGaps(each).length),
      sum(all, ({ bytes }) => bytes)
    ]
    const columns = [
      Output.right("BARS"),
      ...["FROM", "TO"].map(Output.left),
      ...["GAPS", "BYTES"].map(Output.right)
    ]
    const byInterval = Map.groupBy(series, ({ interval }) => interval)
    const table = series.length === 0
      ? "No bars are stored yet"
      : series.length <= maxRows
      ? Output.rows(
        [...["COIN", "INTERVAL"].map(Output.left), ...columns],
        series.map((each) => [each.coin, each.interval, ...facts([each])])
      )
      : `${
        Output.rows(
          [Output.left("INTERVAL"), Output.right("COINS"), ...columns],
          [...byInterval].map(([interval, all]) => [interval, String(all.length)].concat(facts(all)))
        )
      }\n${series.length} series; for those of a coin: trigate candles status ${
        series.find(({ coin }) => !/^[@#]/u.test(coin))?.coin ?? series[0]?.coin
      }`
    yield* Output.print({ json: series, table })
  })).pipe(
    Command.withDescription(
      `List the coins and intervals with stored bars; more than ${maxRows} are summed up by interval`
    ),
    Command.withShortDescription("List the stored coins and intervals"),
    Command.withExamples([{ command: "trigate candles status" }, { command: "trigate candles status BTC" }]),
    GatewayAccess.options
  )

const gaps = Command.make("gaps", wantedSeries, (wanted) =>
  Effect.gen(function*() {
    const found = (yield* listWanted(wanted)).flatMap(listGaps)
    yield* Output.print({
      json: found,
      table: found.length === 0 ? "There are no gaps" : firstRows(
        [...["COIN", "INTERVAL", "FROM", "TO"].map(Output.left), Output.right("BARS")],
        found.map((
          { bars, coin, from, interval, to }
        ) => [coin, interval, instant(from), instant(to + 1), String(bars)]),
        "name a coin, or print JSON with --json"
      )
    })
  })).pipe(
    Command.withDescription(
      "List the gaps in the gateway's stored bars: periods that were not recorded, although earlier and later periods were"
    ),
    Command.withShortDescription("List the gaps in the stored bars"),
    Command.withExamples([{ command: "trigate candles gaps BTC 1m" }]),
    GatewayAccess.options
  )

/** `trigate candles`. */
export const command = Command.make("candles").pipe(
  Command.withDescription(
    "Candle history: export a gateway's stored bars, import files into its database, list stored series and gaps"
  ),
  Command.withSubcommands([exported, imported, status, gaps])
)
