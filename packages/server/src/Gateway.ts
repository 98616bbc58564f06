/**
 * The gateway's routes over the five chain services, for the bundled server and for anyone's own.
 *
 * `layerRoutes` adds them to an `HttpRouter`; `Observe.make` is what the bundled server puts around it.
 */
import { GatewayApi } from "@trigate/api/GatewayApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as Layer from "effect/Layer"
import * as DocsPage from "./DocsPage.ts"
import * as EvmHandlers from "./EvmHandlers.ts"
import * as ExchangeHandlers from "./ExchangeHandlers.ts"
import * as HealthHandlers from "./HealthHandlers.ts"
import * as InfoHandlers from "./InfoHandlers.ts"
import * as Layer2Handlers from "./Layer2Handlers.ts"
import * as NodeHandlers from "./NodeHandlers.ts"
import * as ProblemsMiddleware from "./ProblemsMiddleware.ts"
import * as TokensHandlers from "./TokensHandlers.ts"

const handlers = Layer.mergeAll(
  ExchangeHandlers.layer,
  InfoHandlers.layer,
  EvmHandlers.layer,
  TokensHandlers.layer,
  Layer2Handlers.layer,
  NodeHandlers.layer,
  HealthHandlers.layer
)

/** All routes of the contract, its OpenAPI document and its reference page. */
export const layerRoutes = Layer.merge(
  HttpApiBuilder.layer(GatewayApi, { openapiPath: "/openapi.json" }),
  DocsPage.layer
).pipe(
  Layer.provide(handlers),
  Layer.provide(ProblemsMiddleware.layer)
)
