/** Where a gateway keeps candle history, by its settings: beside the action log, and without a database in memory. */
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleArchiveMemory from "@trigate/archive/CandleArchiveMemory"
import * as CandleArchiveSql from "@trigate/archive/CandleArchiveSql"
import type { Settings } from "@trigate/domain/Settings"
import * as CandleHistory from "@trigate/trading/CandleHistory"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as ActionLogStore from "./ActionLogStore.ts"

/** The archive in the database of the settings. */
export const layerDatabase = ({ network }: Settings, place: ActionLogStore.Place): Layer.Layer<CandleArchive> =>
  CandleArchiveSql.layer({ network }).pipe(Layer.provide(ActionLogStore.layerDatabase(place, "create")))

const archiveOf = (settings: Settings) =>
  Option.match(ActionLogStore.databaseOf(settings), {
    onNone: () => CandleArchiveMemory.layer({ maxBytes: 256 * 1024 * 1024 }),
    onSome: (place) => layerDatabase(settings, place)
  })

/** The archive of the settings. Its client is its own: a long write must not hold up the claim of an action. */
export const layer = (settings: Settings): Layer.Layer<never> =>
  Layer.effect(CandleHistory.Archive, CandleArchive).pipe(Layer.provide(archiveOf(settings)))
