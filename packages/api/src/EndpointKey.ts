/**
 * The endpoint key, which identifies a caller on the node routes (routes with URLs like those of a node provider). It
 * is the first segment of the path.
 */
import * as Schema from "effect/Schema"
import * as Examples from "./Examples.ts"

/** Letters, digits, `-` and `_`, as in the endpoint keys of node providers. */
export const EndpointKey = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,128}$/u)).annotate({
  identifier: "EndpointKey",
  description: "The caller's endpoint key",
  examples: [Examples.endpointKey]
})

/** Path parameters of a node route, whose path begins with an endpoint key. */
export const KeyedPath = { endpointKey: EndpointKey }
