/** Errors of candle history: the gateway does not record candles, or its candle archive is unavailable. */
import * as Schema from "effect/Schema"
import { Problem } from "./Problem.ts"

/** This gateway does not record candle history. `setting` is the variable that enables recording. */
export class ArchiveNotConfigured extends Problem<ArchiveNotConfigured>()(
  "ArchiveNotConfigured",
  { group: "fix-setup", status: 501, title: "Archive not configured" },
  { setting: Schema.String }
) {}

/**
 * The candle archive is unavailable.
 *
 * - `away`: the database currently cannot be reached or written;
 * - `newer`: a later version of this program has changed the database; this version neither reads nor writes it;
 * - `damaged`: the database contains data that this program cannot have written.
 */
export class ArchiveUnavailable extends Problem<ArchiveUnavailable>()(
  "ArchiveUnavailable",
  { group: "retry-later", status: 503, title: "Archive unavailable" },
  { reason: Schema.Literals(["away", "newer", "damaged"]) }
) {}
