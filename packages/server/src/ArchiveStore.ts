/** Where a gateway keeps candle history, by its settings: beside the action log, and without a database in memory. */
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleArchiveMemory from "@trigate/archive/CandleArchiveMemory"
import * as CandleArchiveSql from "@trigate/archive/CandleArchiveSql"
import type { Settings } from "@trigate/domain/Settings"
import * as CandleHistory from "@trigate/trading/CandleHistory"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as ActionLogStore from "./ActionLogStore.ts"

const archiveOf = (settings: Settings) =>
  Option.match(ActionLogStore.databaseOf(settings), {
    onNone: () => CandleArchiveMemory.layer({ maxBytes: 256 * 1024 * 1024 }),
    onSome: (place) =>
      CandleArchiveSql.layer({ network: settings.network }).pipe(
        Layer.provide(ActionLogStore.layerDatabase(place, "create"))
      )
  })

/** The archive of the settings. Its client is its own: a long write must not hold up the claim of an action. */
export const layer = (settings: Settings): Layer.Layer<never> =>
  Layer.effect(CandleHistory.Archive, CandleArchive).pipe(Layer.provide(archiveOf(settings)))
