/** The answer to a request that no route takes: 404, or 405 with the allowed methods where only the method is wrong. */
import { EndpointKey } from "@trigate/api/EndpointKey"
import { GatewayApi } from "@trigate/api/GatewayApi"
import { pathsOf } from "@trigate/api/TokensApi"
import * as HttpApi from "effect/http-api/HttpApi"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Schema from "effect/Schema"
import * as HttpBody from "./HttpBody.ts"

// these two routes are not part of the contract
const methodsByPath = new Map([["/openapi.json", ["GET"]], ["/docs", ["GET"]]])
HttpApi.reflect(GatewayApi, {
  onGroup: () => {},
  onEndpoint: ({ endpoint }) => {
    for (const path of pathsOf(endpoint)) {
      methodsByPath.set(path, [...methodsByPath.get(path) ?? [], endpoint.method])
    }
  }
})

// a path of one segment, which may be a key, is left out: a GET of it is more likely a page that does not exist
const keyed = [...methodsByPath].filter(([path]) => /^\/:[^/]+\/./u.test(path)).map(([path, methods]) => ({
  rest: path.slice(path.indexOf("/", 1)),
  methods
}))

const isKey = Schema.is(EndpointKey)

const methodsOf = (path: string): ReadonlyArray<string> | undefined => {
  const end = path.indexOf("/", 1)
  return methodsByPath.get(path) ??
    (isKey(path.slice(1, end)) ? keyed.find(({ rest }) => rest === path.slice(end))?.methods : undefined)
}

/**
 * Makes the answers of a gateway whose routes have a prefix, which is `/` where they have none.
 *
 * An answer never quotes the path, which may hold an endpoint key.
 */
export const make = (prefix: string) => {
  const before = prefix.replace(/\/+$/u, "")
  const notFound = (path: string) =>
    HttpBody.plainProblem(404, "Not Found", `No such route; GET ${before}/docs lists what there is`, { path })
  const noWebSocket = HttpBody.plainProblem(
    404,
    "Not Found",
    "This gateway has no WebSocket; its routes are asked over HTTP"
  )
  return ({ headers, url }: HttpServerRequest.HttpServerRequest): HttpServerResponse.HttpServerResponse => {
    if (headers["upgrade"]?.toLowerCase() === "websocket") return noWebSocket
    const path = url.split("?", 1)[0] ?? ""
    const methods = path.startsWith(`${before}/`) ? methodsOf(path.slice(before.length)) : undefined
    if (methods === undefined) return notFound(path)
    const allowed = methods.flatMap((method) => method === "GET" ? ["GET", "HEAD"] : [method]).join(", ")
    return HttpBody.plainProblem(405, "Method Not Allowed", `This route takes ${allowed}`, {
      headers: { allow: allowed },
      path
    })
  }
}
