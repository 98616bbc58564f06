/** The middleware of every group: maps typed errors, and requests that do not decode, to responses. */
import { InvalidRequest } from "@trigate/domain/errors/RequestError"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"

/** Maps errors in path, query and headers to `InvalidRequest`, and adds `Retry-After` to errors with a known delay. */
export class Problems extends HttpApiMiddleware.Service<Problems>()("@trigate/api/Problems", {
  error: InvalidRequest
}) {}
