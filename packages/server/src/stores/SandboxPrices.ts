/** Reads the recorded prices that a sandbox replays: bars from files and from the candle archive. */
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleFiles from "@trigate/archive/CandleFiles"
import type { Candle } from "@trigate/domain/candles/Candle"
import * as MarketFeed from "@trigate/sandbox/unstable/venue/MarketFeed"
import * as PricePaths from "@trigate/sandbox/unstable/venue/TradingControls"
import * as SocketTransport from "@trigate/upstream/streams/SocketTransport"
import * as HttpTransportUndici from "@trigate/upstream/transport/HttpTransportUndici"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import type { PriceSource } from "../settings/SandboxSettings.ts"
import { type Settings, settings as declared } from "../settings/Settings.ts"
import { SettingsError } from "../settings/SettingsSources.ts"
import * as ActionLogStore from "./Stores.ts"

/** Maximum number of bars of a coin that the sandbox replays. It is 138 days of one-minute bars, about 40 MiB. */
export const maxBars = 200_000

const { env } = declared.sandboxPrices

const fault = (message: string): SettingsError => new SettingsError({ setting: env, message: `${env}: ${message}` })

const parseBar = (file: string) => ({ bar, row }: CandleFiles.Row) =>
  Effect.mapError(Effect.fromResult(bar), (why) => fault(`row ${row} of ${file}: ${why}`))

/** Reads the bars of a file, in the order of the file. */
const barsOfFile = Effect.fnUntraced(function*({ coin, file, interval }: PriceSource & { readonly file: string }) {
  const files = yield* FileSystem.FileSystem
  const unreadable = () => fault(`${file} cannot be read`)
  const series = { coin, interval }
  const rows = file.endsWith(".parquet")
    ? Stream.unwrap(Effect.gen(function*() {
      const CandleParquet = yield* Effect.promise(() => import("@trigate/archive/unstable/CandleParquet"))
      const bytes = yield* Effect.mapError(files.readFile(file), unreadable)
      const { rows } = yield* CandleParquet.read(series, bytes)
      return rows
    })).pipe(Stream.mapError((error) => error._tag === "SettingsError" ? error : fault(`${file}: ${error.message}`)))
    : CandleFiles.textRows(
      series,
      file.endsWith(".csv") ? "csv" : "ndjson",
      Stream.mapError(files.stream(file), unreadable)
    )
  return yield* rows.pipe(Stream.mapEffect(parseBar(file)), Stream.take(maxBars + 1), Stream.runCollect)
})

/** Reads the newest bars of a series from the configured archive. */
const barsOfArchive = Effect.fnUntraced(function*(settings: Settings, { coin, interval }: PriceSource) {
  const place = ActionLogStore.findDatabase(settings)
  if (Option.isNone(place)) {
    return yield* fault(
      `${coin}:${interval} has no file, and ${declared.databaseUrl.env} does not name a database with a candle archive`
    )
  }
  const { layerDatabase } = yield* Effect.promise(() => import("./ArchiveStore.ts"))
  const read = Effect.gen(function*() {
    const archive = yield* CandleArchive
    const series = { coin, interval }
    const ranges = (yield* CandleFiles.known(archive, series)) ?? []
    const last = ranges.at(-1)
    if (last === undefined) return []
    const from = Math.max(last.from, last.to - maxBars + 1)
    const pages = yield* Stream.runCollect(CandleFiles.bars(archive, series, [{ from, to: last.to }]))
    return pages.flat()
  })
  return yield* Effect.scoped(Effect.flatMap(
    Layer.build(layerDatabase(settings, place.value)),
    (archive) => Effect.provideContext(read, archive)
  )).pipe(Effect.mapError(() => fault(`the candle archive of ${coin}:${interval} cannot be read`)))
})

const loadPoints = Effect.fnUntraced(function*(settings: Settings, source: PriceSource) {
  const { coin, file, interval } = source
  const bars: ReadonlyArray<Candle> = file === undefined
    ? yield* barsOfArchive(settings, source)
    : yield* barsOfFile({ ...source, file })
  const name = file ?? `the candle archive of ${coin}:${interval}`
  if (bars.length === 0) return yield* fault(`${name} has no bars`)
  if (bars.length > maxBars) return yield* fault(`${name} has more than ${maxBars} bars, the maximum for a coin`)
  const unordered = bars.find(({ t }, index) => t <= (bars[index - 1]?.t ?? -1))
  if (unordered !== undefined) {
    return yield* fault(`the bars of ${name} are not in order: see the bar that opens at ${unordered.t}`)
  }
  return [coin, PricePaths.pricePoints(bars)] as const
})

/** Reads the configured prices. Fails with `SettingsError` if a file or an archive does not contain bars. */
export const read = (settings: Settings) =>
  Effect.map(
    Effect.forEach(settings.sandboxPrices, (source) => loadPoints(settings, source)),
    (all): ReadonlyMap<string, ReadonlyArray<PricePaths.PricePoint>> => new Map(all)
  )

/** Opens the feed from the venue at a base URL. */
export const open = (url: Redacted.Redacted) =>
  Effect.gen(function*() {
    const transports = yield* Layer.build(
      Layer.merge(HttpTransportUndici.layer({ connections: 4 }), SocketTransport.layerWebSocket)
    )
    return MarketFeed.make(yield* Effect.provideContext(MarketFeed.makeSource(url), transports))
  })
