/** The error of a metadata document that cannot be fetched. */
import * as Schema from "effect/Schema"

/**
 * A metadata document is unavailable: its URI is not permitted, or the host did not return a valid document. `reason`
 * contains no secrets.
 */
export class MetadataUnavailable extends Schema.TaggedError<MetadataUnavailable>()("MetadataUnavailable", {
  reason: Schema.String
}) {}
