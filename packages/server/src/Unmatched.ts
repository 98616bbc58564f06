/** What a request is answered that no route takes: 404 for a WebSocket, 405 with the methods of its path, else 404. */
import { EndpointKey } from "@trigate/api/EndpointKey"
import { GatewayApi } from "@trigate/api/GatewayApi"
import { pathsOf } from "@trigate/api/TokensApi"
import * as HttpApi from "effect/http-api/HttpApi"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Schema from "effect/Schema"
import * as Responses from "./Responses.ts"

// the two pages about the contract are no endpoints of it
const methodsByPath = new Map([["/openapi.json", ["GET"]], ["/docs", ["GET"]]])
HttpApi.reflect(GatewayApi, {
  onGroup: () => {},
  onEndpoint: ({ endpoint }) => {
    for (const path of pathsOf(endpoint)) {
      methodsByPath.set(path, [...methodsByPath.get(path) ?? [], endpoint.method])
    }
  }
})

// a single segment of any name may be a key, but one that nobody posts to is more likely a page that is not there
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

/** The answer; it never quotes the path, which may hold an endpoint key. */
export const response = (request: HttpServerRequest.HttpServerRequest): HttpServerResponse.HttpServerResponse => {
  const methods = methodsOf(request.url.split("?", 1)[0] ?? "")
  if (request.headers["upgrade"]?.toLowerCase() === "websocket") {
    return Responses.plainProblem(404, "Not Found", "This gateway has no WebSocket; its routes are asked over HTTP")
  }
  if (methods === undefined) {
    return Responses.plainProblem(404, "Not Found", "No such route; GET /docs lists what there is")
  }
  const allowed = methods.flatMap((method) => method === "GET" ? ["GET", "HEAD"] : [method]).join(", ")
  return Responses.plainProblem(405, "Method Not Allowed", `This route takes ${allowed}`, { allow: allowed })
}
