/**
 * The endpoints of the contract whose answers are encoded from values: HttpApiBuilder serves them.
 *
 * All others answer with bytes as they came; they are mounted by `RelayRoutes`, which the types hold to have every one.
 */
import { GatewayApi } from "@trigate/api/GatewayApi"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"

const { exchange, health, node, tokens } = GatewayApi.groups

export class EncodedApi extends HttpApi.make("gateway").add(
  HttpApiGroup.make("exchange").add(exchange.endpoints.inspect),
  HttpApiGroup.make("tokens").add(tokens.endpoints.getTokenData),
  HttpApiGroup.make("node").add(node.endpoints.getTokenData),
  health
) {}
