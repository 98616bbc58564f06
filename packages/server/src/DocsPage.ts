/** `GET /docs`: the API reference, complete in one page so that it works without the internet. */
import { GatewayApi } from "@trigate/api/GatewayApi"
import * as Effect from "effect/Effect"
import * as HttpApiScalar from "effect/http-api/HttpApiScalar"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Scope from "effect/Scope"

// no font and no proxy is fetched
const page = HttpRouter.toHttpEffect(
  HttpApiScalar.layer(GatewayApi, { path: "/docs", scalar: { withDefaultFonts: false, theme: "default" } })
)

/** The page; made when it is first asked for, since its script is three megabytes. */
export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const scope = yield* Effect.scope
  const handler = yield* Effect.cached(Scope.provide(page, scope))
  yield* router.add("GET", "/docs", Effect.flatten(handler))
}))
