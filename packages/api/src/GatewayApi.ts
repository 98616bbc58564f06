/** The whole contract: the server, the client and the OpenAPI document are derived from it. */
import * as HttpApi from "effect/http-api/HttpApi"
import * as OpenApi from "effect/http-api/OpenApi"
import { EvmApi } from "./EvmApi.ts"
import { ExchangeApi } from "./ExchangeApi.ts"
import { HealthApi } from "./HealthApi.ts"
import { InfoApi } from "./InfoApi.ts"
import { Layer2Api } from "./Layer2Api.ts"
import { NodeApi } from "./NodeApi.ts"
import { TokensApi } from "./TokensApi.ts"

export class GatewayApi extends HttpApi.make("gateway")
  .add(ExchangeApi, InfoApi, EvmApi, TokensApi, Layer2Api, NodeApi, HealthApi)
  .annotateMerge(OpenApi.annotations({
    title: "Trigate",
    version: "0.1.0",
    description: "One typed gateway for a trading chain, a token chain and an EVM layer 2."
  }))
{}
