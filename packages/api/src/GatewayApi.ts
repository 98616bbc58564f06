/** The complete HTTP contract of the gateway. The server, the client and the OpenAPI document are derived from it. */
import { SpotMeta } from "@trigate/domain/info/Market"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Predicate from "effect/Predicate"
import { AdminApi } from "./AdminApi.ts"
import { HealthApi } from "./HealthApi.ts"
import * as Paths from "./Paths.ts"
import { KeyedPath, Problems } from "./RouteParts.ts"
import { eventParts, EvmApi, evmParts, Layer2Api, layer2Parts, socketParts, StreamsApi } from "./RpcApi.ts"
import { SandboxApi } from "./SandboxApi.ts"
import { keyedTokenEndpoints, TokensApi } from "./TokensApi.ts"
import * as TradingApi from "./TradingApi.ts"
import { ActionsApi, CandlesApi, ExchangeApi, InfoApi } from "./TradingApi.ts"

const summary = (text: string) => OpenApi.annotations({ summary: text })

/**
 * The node routes, with URLs like those of a node provider. A path consists of the caller's endpoint key and the path
 * of one of the gateway's own routes. The path that contains only the endpoint key serves JSON-RPC of the layer 2.
 *
 * Operations that only the venue's API serves fail with `UnavailableOnNode`, and nothing is sent.
 */
export class NodeApi extends HttpApiGroup.make("node").add(
  HttpApiEndpoint.post("exchange", `/:endpointKey${Paths.exchange}`, {
    disableCodecs: true,
    params: KeyedPath,
    payload: TradingApi.SignedBody,
    error: TradingApi.exchangeErrors
  }).annotateMerge(summary("Always fails with UnavailableOnNode, because nodes do not serve signed actions")),
  HttpApiEndpoint.get("outcome", `/:endpointKey${Paths.actionOutcome}`, {
    ...TradingApi.outcomeParts,
    params: { ...KeyedPath, ...TradingApi.ActionPath }
  }).annotateMerge(summary("Outcome of a signed action")),
  HttpApiEndpoint.get("findOutcome", `/:endpointKey${Paths.actionOutcomes}`, {
    params: KeyedPath,
    ...TradingApi.findOutcomeParts
  })
    .annotateMerge(summary("Outcome of a signed action, by signer and nonce, or by cloid")),
  HttpApiEndpoint.post("info", `/:endpointKey${Paths.info}`, {
    disableCodecs: true,
    params: KeyedPath,
    payload: TradingApi.InfoRequest,
    success: SpotMeta,
    error: TradingApi.infoErrors
  }).annotateMerge(
    summary(
      "Query the venue's node: spotMeta and the node's other queries; candleSnapshot fails with UnavailableOnNode"
    )
  ),
  HttpApiEndpoint.post("evm", `/:endpointKey${Paths.evm}`, { params: KeyedPath, ...evmParts })
    .annotateMerge(summary("JSON-RPC of HyperEVM")),
  ...keyedTokenEndpoints,
  HttpApiEndpoint.post("layer2", `/:endpointKey${Paths.layer2}`, { params: KeyedPath, ...layer2Parts })
    .annotateMerge(summary("JSON-RPC of the layer 2")),
  HttpApiEndpoint.get("socket", `/:endpointKey${Paths.socket}`, { params: KeyedPath, ...socketParts })
    .annotateMerge(summary("The venue's WebSocket, signed actions included")),
  HttpApiEndpoint.get("events", `/:endpointKey${Paths.streams}`, { params: KeyedPath, ...eventParts }).annotateMerge(
    summary(
      "Streams as Server-Sent Events. The endpoint key is in the path, because an EventSource cannot send headers"
    )
  ),
  HttpApiEndpoint.get("evmSocket", `/:endpointKey${Paths.evm}`, { params: KeyedPath, ...socketParts })
    .annotateMerge(summary("JSON-RPC of HyperEVM over a WebSocket")),
  HttpApiEndpoint.get("layer2Socket", `/:endpointKey${Paths.layer2}`, { params: KeyedPath, ...socketParts })
    .annotateMerge(summary("JSON-RPC of the layer 2 over a WebSocket")),
  HttpApiEndpoint.get("rootSocket", "/:endpointKey", { params: KeyedPath, ...socketParts })
    .annotateMerge(summary("JSON-RPC of the layer 2 over a WebSocket, at the path that node providers use")),
  HttpApiEndpoint.post("root", "/:endpointKey", { params: KeyedPath, ...layer2Parts })
    .annotateMerge(summary("JSON-RPC of the layer 2, at the path that node providers use"))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Node surface",
  description: "Routes whose URLs have the form that node providers use: the path begins with the caller's endpoint key"
})) {}

const isBigInt = (schema: unknown): boolean => Predicate.hasProperty(schema, "pattern") && schema.pattern === "^-?\\d+$"

/** Removes the maximum of an integer, and a minimum that is not 0. */
const unbounded = (schema: unknown): unknown =>
  Predicate.hasProperty(schema, "minimum")
    ? { type: "integer", ...(schema.minimum === 0 ? { minimum: 0 } : {}) }
    : schema

/**
 * Describes each 64-bit integer as a JSON integer without a maximum. The gateway writes all its digits; the schema of a
 * `bigint` describes it as text.
 */
const describeIntegers = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(describeIntegers)
  if (!Predicate.isObject(value)) return value
  const members = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, describeIntegers(member)]))
  const { anyOf, ...rest } = members
  if (!Array.isArray(anyOf) || !anyOf.some(isBigInt)) return members
  const integers = anyOf.filter((schema) => !isBigInt(schema)).map(unbounded)
  const [integer] = integers
  return integers.length === 1 && Predicate.isObject(integer) ? { ...integer, ...rest } : { anyOf: integers, ...rest }
}

/** The contract without the routes for health, administration and control of a sandbox. */
export class ChainsApi extends HttpApi.make("gateway")
  .add(ExchangeApi, ActionsApi, InfoApi, CandlesApi, EvmApi, TokensApi, Layer2Api, StreamsApi, NodeApi)
  .annotateMerge(OpenApi.annotations({
    title: "Trigate",
    version: "0.1.0",
    description: "One typed gateway for Hyperliquid, TON and an EVM layer 2.",
    transform: (spec) => Object.fromEntries(Object.entries(spec).map(([name, part]) => [name, describeIntegers(part)]))
  }))
{}

export class GatewayApi extends ChainsApi.add(HealthApi, AdminApi, SandboxApi) {}
