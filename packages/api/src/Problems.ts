/** The middleware of every group: what a caller sees of a typed error, and of a request that does not decode. */
import { InvalidRequest } from "@trigate/domain/errors/RequestError"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"

/** Maps faults of path, query and headers to `InvalidRequest`, and adds `Retry-After` to errors with a known delay. */
export class Problems extends HttpApiMiddleware.Service<Problems>()("@trigate/api/Problems", {
  error: InvalidRequest
}) {}
