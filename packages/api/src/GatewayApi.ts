/** The complete HTTP contract of the gateway. The server, the client and the OpenAPI document are derived from it. */
import * as HttpApi from "effect/http-api/HttpApi"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Predicate from "effect/Predicate"
import { AdminApi } from "./AdminApi.ts"
import { HealthApi } from "./HealthApi.ts"
import { NodeApi } from "./NodeApi.ts"
import { EvmApi, Layer2Api, StreamsApi } from "./RpcApi.ts"
import { SandboxApi } from "./SandboxApi.ts"
import { TokensApi } from "./TokensApi.ts"
import { ActionsApi, CandlesApi, ExchangeApi, InfoApi } from "./TradingApi.ts"

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
