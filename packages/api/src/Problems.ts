/** The middleware of all route groups: converts typed errors, and requests that cannot be decoded, to responses. */
import { InvalidRequest } from "@trigate/domain/errors/GatewayError"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"

/**
 * Converts errors in path, query and headers to `InvalidRequest`. Adds the header `Retry-After` to errors with a known
 * retry delay.
 */
export class Problems extends HttpApiMiddleware.Service<Problems>()("@trigate/api/Problems", {
  error: InvalidRequest
}) {}
