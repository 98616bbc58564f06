/** The complete HTTP contract of the gateway. The server, the client and the OpenAPI document are derived from it. */
import * as HttpApi from "effect/http-api/HttpApi"
import * as OpenApi from "effect/http-api/OpenApi"
import { AdminApi } from "./AdminApi.ts"
import { HealthApi } from "./HealthApi.ts"
import { NodeApi } from "./NodeApi.ts"
import { EvmApi, Layer2Api, StreamsApi } from "./RpcApi.ts"
import { SandboxApi } from "./SandboxApi.ts"
import { TokensApi } from "./TokensApi.ts"
import { ActionsApi, CandlesApi, ExchangeApi, InfoApi } from "./TradingApi.ts"

/** The contract without the routes for health, administration and control of a sandbox. */
export class ChainsApi extends HttpApi.make("gateway")
  .add(ExchangeApi, ActionsApi, InfoApi, CandlesApi, EvmApi, TokensApi, Layer2Api, StreamsApi, NodeApi)
  .annotateMerge(OpenApi.annotations({
    title: "Trigate",
    version: "0.1.0",
    description: "One typed gateway for a trading chain, a token chain and an EVM layer 2."
  }))
{}

export class GatewayApi extends ChainsApi.add(HealthApi, AdminApi, SandboxApi) {}
