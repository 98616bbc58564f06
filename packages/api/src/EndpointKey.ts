/** The key by which a caller is known on the node provider's surface: one path segment. */
import * as Schema from "effect/Schema"

/** Letters, digits, `-` and `_`; what node providers hand out. */
export const EndpointKey = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,128}$/u)).annotate({
  identifier: "EndpointKey",
  description: "The caller's endpoint key"
})

/** Path parameters of a keyed route. */
export const KeyedPath = { endpointKey: EndpointKey }
