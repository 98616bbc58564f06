/** Why candle history cannot be given: nothing keeps it, or what keeps it cannot be used. */
import * as Schema from "effect/Schema"
import { Problem } from "./Problem.ts"

/** This gateway keeps no candle history. `setting` is the variable that has it recorded. */
export class ArchiveNotConfigured extends Problem<ArchiveNotConfigured>()(
  "ArchiveNotConfigured",
  { group: "fix-setup", status: 501, title: "Archive not configured" },
  { setting: Schema.String }
) {}

/**
 * The candle archive cannot be used.
 *
 * - `away`: the database cannot be reached or written at the moment;
 * - `newer`: a later version of this program has changed the database; this one neither reads nor writes it;
 * - `damaged`: it holds what this program cannot have written.
 */
export class ArchiveUnavailable extends Problem<ArchiveUnavailable>()(
  "ArchiveUnavailable",
  { group: "retry-later", status: 503, title: "Archive unavailable" },
  { reason: Schema.Literals(["away", "newer", "damaged"]) }
) {}
