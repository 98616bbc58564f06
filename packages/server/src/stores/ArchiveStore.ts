/** Selects where candle history is stored: in the action log's database if one is configured, otherwise in memory. */
import * as CandleArchive from "@trigate/archive/CandleArchive"
import * as CandleArchiveSql from "@trigate/archive/CandleArchiveSql"
import * as CandleRecording from "@trigate/trading/candles/CandleRecording"
import type { Info } from "@trigate/trading/Info"
import * as Streams from "@trigate/trading/streams/Streams"
import type { RateLimiter } from "@trigate/upstream/limits/RateLimiter"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { Settings } from "../settings/Settings.ts"
import * as ActionLogStore from "./Stores.ts"

/**
 * The candle archive in the configured database.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerDatabase = (
  { network }: Settings,
  place: ActionLogStore.DatabaseLocation
): Layer.Layer<CandleArchive.CandleArchive> =>
  CandleArchiveSql.layer({ network }).pipe(Layer.provide(ActionLogStore.layerDatabase(place, "create")))

/**
 * Elects the replica that records candles. If the replicas share a Postgres database, one replica records at a time.
 * Otherwise, this process always records.
 */
const electionLayer = (settings: Settings): Layer.Layer<never> => {
  const place = ActionLogStore.findDatabase(settings).valueOrUndefined
  return place?.kind !== "Postgres" ? Layer.empty : Layer.unwrap(Effect.map(
    Effect.promise(() => import("./RecorderElection.ts")),
    ({ layer }) => Layer.provide(layer({ network: settings.network }), ActionLogStore.layerDatabase(place, "existing"))
  ))
}

/**
 * The configured candle recorder. The recorder receives bars from the venue's streams instead of requesting each bar.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerRecorder = (
  settings: Settings,
  streams: Streams.SharedStreams
): Layer.Layer<never, never, CandleArchive.CandleArchive | Info | RateLimiter> =>
  Layer.provide(
    CandleRecording.layer({
      wishes: settings.archive,
      weight: settings.tradingApiWeight,
      // callers can use the other half of the subscriptions
      maxLive: Math.floor(settings.streamSubscriptions / 2),
      candles: Streams.make(streams).candle
    }),
    electionLayer(settings)
  )

/** Maximum bytes of candles in memory, if no database stores them. */
export const mostBars = 256 * 1024 * 1024

/**
 * The configured archive. Its database client is separate from the action log's, so that a long write of bars does not
 * delay an action.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (settings: Settings): Layer.Layer<CandleArchive.CandleArchive> =>
  Option.match(ActionLogStore.findDatabase(settings), {
    onNone: () => CandleArchive.layer({ maxBytes: mostBars }),
    onSome: (place) => layerDatabase(settings, place)
  })
