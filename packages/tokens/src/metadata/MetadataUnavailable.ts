/** Why a metadata document cannot be had. */
import * as Schema from "effect/Schema"

/** A document was refused before anything was sent, or could not be read; `reason` holds no secrets. */
export class MetadataUnavailable extends Schema.TaggedError<MetadataUnavailable>()("MetadataUnavailable", {
  reason: Schema.String
}) {}
