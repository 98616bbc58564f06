/** `GET /api/v2/getTokenData` and `POST /api/v2/jsonRPC`: the token chain. */
import { Unauthorized } from "@trigate/domain/CallerError"
import { commonFailures } from "@trigate/domain/GatewayError"
import { PayloadTooLarge } from "@trigate/domain/RequestError"
import { TokenData } from "@trigate/domain/TokenData"
import {
  getTokenData,
  tokenRestPosts,
  tokenRestReads,
  tokenRpcOperations,
  tokenSendOperations
} from "@trigate/domain/TokenOperations"
import { OutcomeUnknown } from "@trigate/domain/UpstreamError"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { KeyedPath } from "./EndpointKey.ts"
import { Problems } from "./Problems.ts"

const tokenErrors = [...getTokenData.failures, ...commonFailures] as const

const Id = Schema.Union([Schema.String, Schema.Finite, Schema.Null])

const methods = [...Object.values(tokenRpcOperations), ...Object.values(tokenSendOperations)].map(({ name }) => name)

/** A call of the token chain's JSON-RPC: `params` is a named object. */
export const TokenRpcCall = Schema.Struct({
  jsonrpc: Schema.Literal("2.0"),
  id: Schema.optionalKey(Id),
  method: Schema.Literals(methods),
  params: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
}).annotate({ identifier: "TokenRpcCall" })

/** The token chain's own envelope: `ok`, then `result`, or the text of the failure in `error` and its `code`. */
export const TokenRpcAnswer = Schema.Struct({
  ok: Schema.Boolean,
  result: Schema.optionalKey(Schema.Unknown),
  error: Schema.optionalKey(Schema.String),
  code: Schema.optionalKey(Schema.Int),
  data: Schema.optionalKey(Schema.Unknown),
  jsonrpc: Schema.Literal("2.0"),
  id: Schema.optionalKey(Id)
}).annotate({ identifier: "TokenRpcAnswer" })

const tokenDataDocs = OpenApi.annotations({
  summary: "A fungible token by the address of its master contract",
  description:
    "`totalSupply` has all its digits. `burnable` is derived from the token standard. `metadata` says where name and " +
    "symbol come from. Other kinds of contract are TokenNotFound with the kind that was found."
})

const tokenRpcDocs = OpenApi.annotations({
  summary: "JSON-RPC of the token chain",
  description: `The chain's own envelope, always HTTP 200; addresses are checked before a request is spent. Methods: ${
    methods.join(", ")
  }.`
})

const tokenDataParts = { query: { address: Schema.String }, success: TokenData }
const tokenRpcParts = { payload: TokenRpcCall, success: TokenRpcAnswer }

const restReads = tokenRestReads.map(({ name }) => name)
const restPosts = tokenRestPosts.map(({ name }) => name)

/** The paths of an endpoint: one for each method where it stands for many. */
export const pathsOf = (endpoint: { readonly path: string; readonly method: string }): ReadonlyArray<string> => {
  const { method, path } = endpoint
  return path.endsWith("/:method")
    ? (method === "GET" ? restReads : restPosts).map((name) => path.replace(/:method$/u, name))
    : [path]
}

const restErrors = [...tokenErrors, OutcomeUnknown] as const

const restReadParts = { success: Schema.Unknown, error: tokenErrors }
const restReadDocs = OpenApi.annotations({
  summary: "A read method of the token chain over REST",
  description: "The query names the params of the JSON-RPC method; the server's own answer comes back as it is."
})
const restPostParts = {
  payload: Schema.Record(Schema.String, Schema.Unknown),
  success: Schema.Unknown,
  error: restErrors
}
const restPostDocs = OpenApi.annotations({
  summary: "A method of the token chain over REST whose params are a body",
  description: "Methods that send are sent at most once; the server's own answer comes back as it is."
})

/** The endpoints of the token chain behind an endpoint key. */
export const keyedTokenEndpoints = [
  HttpApiEndpoint.get("getTokenData", "/:endpointKey/api/v2/getTokenData", {
    disableCodecs: true,
    params: KeyedPath,
    ...tokenDataParts,
    error: tokenErrors
  }).annotateMerge(tokenDataDocs),
  HttpApiEndpoint.post("tokenRpc", "/:endpointKey/api/v2/jsonRPC", {
    disableCodecs: true,
    params: KeyedPath,
    ...tokenRpcParts,
    error: [PayloadTooLarge, Unauthorized]
  }).annotateMerge(tokenRpcDocs),
  HttpApiEndpoint.get("tokenRest", "/:endpointKey/api/v2/:method", {
    disableCodecs: true,
    params: { ...KeyedPath, method: Schema.Literals(restReads) },
    ...restReadParts
  }).annotateMerge(restReadDocs),
  HttpApiEndpoint.post("tokenRestPost", "/:endpointKey/api/v2/:method", {
    disableCodecs: true,
    params: { ...KeyedPath, method: Schema.Literals(restPosts) },
    ...restPostParts
  }).annotateMerge(restPostDocs)
] as const

export class TokensApi extends HttpApiGroup.make("tokens").add(
  HttpApiEndpoint.get("getTokenData", "/api/v2/getTokenData", {
    disableCodecs: true,
    ...tokenDataParts,
    error: tokenErrors
  }).annotateMerge(tokenDataDocs),
  HttpApiEndpoint.post("rpc", "/api/v2/jsonRPC", {
    disableCodecs: true,
    ...tokenRpcParts,
    error: [PayloadTooLarge, Unauthorized]
  }).annotateMerge(tokenRpcDocs),
  HttpApiEndpoint.get("rest", "/api/v2/:method", {
    disableCodecs: true,
    params: { method: Schema.Literals(restReads) },
    ...restReadParts
  }).annotateMerge(restReadDocs),
  HttpApiEndpoint.post("restPost", "/api/v2/:method", {
    disableCodecs: true,
    params: { method: Schema.Literals(restPosts) },
    ...restPostParts
  }).annotateMerge(restPostDocs)
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Tokens",
  description: "The token chain: token data, its read methods, and the sending of messages"
})) {}
