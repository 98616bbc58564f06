/** The canonical form of a request's path. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerError, RouteNotFound } from "effect/http/HttpServerError"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as Option from "effect/Option"
import * as NotFoundRoutes from "../routes/NotFoundRoutes.ts"
import { sentTarget } from "./IncomingRequest.ts"

/** Returns a pattern for the request targets of a route: its segments, then an optional query. */
const targetPattern = (path: string): RegExp =>
  new RegExp(`^${path.replace(/[.*+^$(){}|[\]\\]/gu, "\\$&").replace(/:[^/]+/gu, "[^/?#;]+")}(?:\\?|$)`, "u")

/**
 * Returns whether the first segment of a request's path is not an endpoint key, although the router would interpret the
 * segment as a key. Such a request is for a page or for a route without a key.
 */
const lacksKey = ({ headers, url }: HttpServerRequest): boolean => {
  const path = url.split("?", 1)[0] ?? ""
  if (NotFoundRoutes.isDeclared(path)) return true
  // a GET of a one-segment path probably requests a missing page, unless the request opens a WebSocket
  return path.indexOf("/", 1) < 0 && headers["upgrade"]?.toLowerCase() !== "websocket"
}

/**
 * Serves a path only in its canonical form; any other form gets a 404.
 *
 * The router itself also accepts other letter cases, doubled and trailing slashes, percent-encoded letters, and text
 * after a semicolon. Without this check, `/METRICS` would bypass a proxy's rule for `/metrics`. On a listener without
 * admin routes, `/admin/actions` would be routed as `/actions` with the endpoint key `admin`.
 */
export const requireCanonical = <E, R>(handled: Effect.Effect<HttpServerResponse, E, R>) => {
  let spelling: RegExp | undefined
  return Effect.withFiber<HttpServerResponse, E | HttpServerError, R>((fiber) => {
    const request = Context.getUnsafe(fiber.context, HttpServerRequest)
    const { route } = Context.getUnsafe(fiber.context, HttpRouter.RouteContext)
    spelling ??= targetPattern(route.path)
    const isKeyed = route.method === "GET" && route.path.includes("/:endpointKey")
    return spelling.test(Option.isNone(route.prefix) ? request.url : sentTarget(request)) &&
        !(isKeyed && lacksKey(request))
      ? handled
      : Effect.fail(new HttpServerError({ reason: new RouteNotFound({ request }) }))
  })
}
