/**
 * Responds to requests that match no route: 404, or 405 with the allowed HTTP methods if only the method is wrong. Also
 * determines the canonical form of a path.
 */
import { GatewayApi } from "@trigate/api/GatewayApi"
import { EndpointKey } from "@trigate/api/unstable/RouteParts"
import { endpointPaths } from "@trigate/api/unstable/TokensApi"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerError, RouteNotFound } from "effect/http/HttpServerError"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Request from "../requests/Request.ts"

/** The HTTP methods of each path. */
export interface Methods {
  readonly [path: string]: ReadonlyArray<string>
}

/** Returns the HTTP methods of each path of an API definition. */
export const methodsByPath = <Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<"gateway", Groups>
): Methods => {
  const methods: Record<string, ReadonlyArray<string>> = {}
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint }) => {
      for (const path of endpointPaths(endpoint)) methods[path] = [...methods[path] ?? [], endpoint.method]
    }
  })
  return methods
}

/** The HTTP methods of the API reference's paths, which are not part of the API definition. */
export const ofDocs: Methods = { "/openapi.json": ["GET"], "/docs": ["GET"] }

const declared: ReadonlySet<string> = new Set(Object.keys(methodsByPath(GatewayApi)))

/**
 * Returns whether the API definition declares a path, which must not include an endpoint key. This server might not
 * serve every declared path.
 */
export const isDeclared = (path: string): boolean => declared.has(path)

const isKey = Schema.is(EndpointKey)

/** Makes a function that returns the HTTP methods of a request's path, which may begin with an endpoint key. */
const lookup = (methods: Methods) => {
  const byPath = new Map(Object.entries(methods))
  // excludes paths of one segment: a GET of such a path more likely requests a missing page than a route behind a key
  const keyed = [...byPath].filter(([path]) => /^\/:[^/]+\/./u.test(path)).map(([path, methods]) => ({
    rest: path.slice(path.indexOf("/", 1)),
    methods
  }))
  return (path: string): ReadonlyArray<string> | undefined => {
    const end = path.indexOf("/", 1)
    return byPath.get(path) ??
      (isKey(path.slice(1, end)) && !isDeclared(path)
        ? keyed.find(({ rest }) => rest === path.slice(end))?.methods
        : undefined)
  }
}

const tokenApi = "the token chain's API v2, at /api/v2, and GET /api/v2/streams/transactions"

/** Other APIs of the chains, by their paths behind an optional endpoint key, and what this gateway offers instead. */
const otherApis: ReadonlyArray<readonly [path: RegExp, sentence: string]> = [
  [
    /^\/explorer(?:\/|$)/iu,
    "The venue's explorer is not offered. This gateway relays POST /info and POST /exchange; query blocks and transactions at the venue"
  ],
  [/^(?:\/api)?\/v3(?:\/|$)/iu, `The token chain's API v3 is not offered. This gateway offers ${tokenApi}`],
  [/^(?:\/api)?\/v4(?:\/|$)/iu, `The token chain's API v4 is not offered. This gateway offers ${tokenApi}`],
  [
    /^\/v2\/(?:accounts|blockchain|events|gasless|jettons|liteserver|nfts|rates|sse|staking|traces|wallet)(?:\/|$)/iu,
    `The REST API of tonapi is not offered. This gateway offers ${tokenApi}`
  ]
]

/**
 * Returns the sentence about a path of another API that this gateway does not offer; `undefined` for any other path.
 * Such a path begins with a word, which is not an endpoint key, or has the API's path after a key.
 */
export const otherApi = (path: string): string | undefined => {
  const afterKey = path.slice(Math.max(0, path.indexOf("/", 1)))
  return otherApis.find(([pattern]) => pattern.test(path) || pattern.test(afterKey))?.[1]
}

/** Makes the response to a request for an API that this gateway does not offer. */
export const notOffered = (sentence: string, path = ""): HttpServerResponse.HttpServerResponse =>
  Request.plainProblem(404, "Not Found", sentence, { path })

/** A request that matches no route. */
interface Unanswered {
  readonly url: string
  readonly headers: { readonly [name: string]: unknown }
}

/** The routes that exist on the server. */
export interface Options {
  /** Whether the routes of the API reference exist. */
  readonly docs: boolean
  /** The HTTP methods by path, for the paths of the API definition that this server serves. */
  readonly methods: Methods
  /** The prefix of all paths; empty if there is none. */
  readonly prefix: string
}

/** Makes the responses for requests without a route. They never quote the path, which may contain an endpoint key. */
export const make = ({ docs, methods, prefix }: Options) => {
  const methodsAt = lookup({ ...methods, ...(docs ? ofDocs : {}) })
  const detail = docs ? `Unknown route; GET ${prefix}/docs lists the routes` : "No such route"
  const notFound = ({ url }: { readonly url: string }) =>
    Request.plainProblem(404, "Not Found", detail, {
      path: url.split("?", 1)[0] ?? ""
    })
  const noWebSocket = Request.plainProblem(
    404,
    "Not Found",
    "WebSockets of this gateway are at /ws, /evm and /l2, with or without an endpoint key before them"
  )
  return {
    /** The 404 response. */
    notFound,
    /** Returns the response to a request without a route. */
    answer: (request: Unanswered): HttpServerResponse.HttpServerResponse => {
      const { headers, url } = request
      if (String(headers["upgrade"]).toLowerCase() === "websocket") return noWebSocket
      const path = url.split("?", 1)[0] ?? ""
      const methods = path.startsWith(`${prefix}/`) ? methodsAt(path.slice(prefix.length)) : undefined
      if (methods === undefined) {
        const sentence = path.startsWith(`${prefix}/`) ? otherApi(path.slice(prefix.length)) : undefined
        return sentence === undefined ? notFound(request) : notOffered(sentence, path)
      }
      const allowed = methods.flatMap((method) => method === "GET" ? ["GET", "HEAD"] : [method]).join(", ")
      return Request.plainProblem(405, "Method Not Allowed", `This route accepts ${allowed}`, {
        headers: { allow: allowed },
        path
      })
    }
  }
}

/** Returns a pattern for the request targets of a route: its segments, then an optional query. */
const targetPattern = (path: string): RegExp =>
  new RegExp(`^${path.replace(/[.*+^$(){}|[\]\\]/gu, "\\$&").replace(/:[^/]+/gu, "[^/?#;]+")}(?:\\?|$)`, "u")

/**
 * Returns whether the first segment of a request's path is not an endpoint key, although the router would interpret the
 * segment as a key. Such a request is for a page or for a route without a key.
 */
const lacksKey = ({ headers, url }: HttpServerRequest): boolean => {
  const path = url.split("?", 1)[0] ?? ""
  if (isDeclared(path)) return true
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
export const requireCanonical = <E, R>(handled: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) => {
  let spelling: RegExp | undefined
  return Effect.withFiber<HttpServerResponse.HttpServerResponse, E | HttpServerError, R>((fiber) => {
    const request = Context.getUnsafe(fiber.context, HttpServerRequest)
    const { route } = Context.getUnsafe(fiber.context, HttpRouter.RouteContext)
    spelling ??= targetPattern(route.path)
    const isKeyed = route.method === "GET" && route.path.includes("/:endpointKey")
    return spelling.test(Option.isNone(route.prefix) ? request.url : Request.sentTarget(request)) &&
        !(isKeyed && lacksKey(request))
      ? handled
      : Effect.fail(new HttpServerError({ reason: new RouteNotFound({ request }) }))
  })
}
