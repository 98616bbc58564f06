/**
 * The parts that all route groups share: the middleware that converts errors, and the endpoint key, which identifies a
 * caller on the node routes (routes with URLs like those of a node provider) and is the first segment of their paths.
 */
import { InvalidRequest } from "@trigate/domain/errors/GatewayError"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as Schema from "effect/Schema"
import * as Examples from "./Examples.ts"

/**
 * Converts errors in path, query and headers to `InvalidRequest`. Adds the header `Retry-After` to errors with a known
 * retry delay.
 */
export class Problems extends HttpApiMiddleware.Service<Problems>()("@trigate/api/Problems", {
  error: InvalidRequest
}) {}

/** Letters, digits, `-` and `_`, as in the endpoint keys of node providers. */
export const EndpointKey = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,128}$/u)).annotate({
  identifier: "EndpointKey",
  description: "The caller's endpoint key",
  examples: [Examples.endpointKey]
})

/** Path parameters of a node route, whose path begins with an endpoint key. */
export const KeyedPath = { endpointKey: EndpointKey }
