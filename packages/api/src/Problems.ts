/** The middleware that every route shares: what a request that does not decode, or a typed error, looks like outside. */
import { InvalidRequest } from "@trigate/domain/RequestError"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"

/** Turns faults of path, query and headers into `InvalidRequest` and adds `Retry-After` where an error knows it. */
export class Problems extends HttpApiMiddleware.Service<Problems>()("@trigate/api/Problems", {
  error: InvalidRequest
}) {}
