/** The error of a metadata document that cannot be fetched. */
import * as Schema from "effect/Schema"

/** A document was refused before anything was sent, or could not be read; `reason` contains no secrets. */
export class MetadataUnavailable extends Schema.TaggedError<MetadataUnavailable>()("MetadataUnavailable", {
  reason: Schema.String
}) {}
