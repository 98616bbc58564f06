/** The token chain: `GET /api/v2/getTokenData`, `POST /api/v2/jsonRPC` and `GET /api/v2/streams/…`. */
import { HistoryUnavailable, OutcomeUnknown, servedFailures } from "@trigate/domain/errors/GatewayError"
import { TokenData } from "@trigate/domain/tokens/TokenData"
import * as TokenOperations from "@trigate/domain/tokens/TokenOperations"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as Examples from "./Examples.ts"
import * as Paths from "./Paths.ts"
import { KeyedPath, Problems } from "./RouteParts.ts"
import { Events, rpcErrors, RpcId } from "./RpcApi.ts"

const tokenErrors = [...TokenOperations.getTokenData.failures, ...servedFailures] as const

const methods = [
  ...Object.values(TokenOperations.tokenRpcOperations),
  ...Object.values(TokenOperations.tokenSendOperations)
].map(({ name }) => name)

/** A call of the token chain's JSON-RPC: `params` is a named object. */
export const TokenRpcCall = Schema.Struct({
  jsonrpc: Schema.Literal("2.0"),
  id: Schema.optionalKey(RpcId),
  method: Schema.Literals(methods),
  params: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
}).annotate({ identifier: "TokenRpcCall", examples: Examples.tokenCalls })

/**
 * The token chain's response envelope. A success has `ok: true` and `result`. A failure has `ok: false`, the message
 * `error`, and the number `code`.
 */
export const TokenRpcResponse = Schema.Struct({
  ok: Schema.Boolean,
  result: Schema.optionalKey(Schema.Unknown),
  error: Schema.optionalKey(Schema.String),
  code: Schema.optionalKey(Schema.Int),
  data: Schema.optionalKey(Schema.Unknown),
  jsonrpc: Schema.Literal("2.0"),
  id: Schema.optionalKey(RpcId)
}).annotate({ identifier: "TokenRpcAnswer" })

const tokenDataDocs = OpenApi.annotations({
  summary: "A fungible token by the address of its master contract",
  description:
    "`totalSupply` is exact. `burnable` is derived from the token standard. `metadata` states where name and " +
    "symbol come from. If the contract is not a jetton master, the request fails with TokenNotFound, which names the kind of the contract. " +
    "A POST request to the same path returns the response of the token chain's server, in its `{ok, result}` envelope."
})

const tokenRpcDocs = OpenApi.annotations({
  summary: "JSON-RPC of the token chain",
  description:
    `Responds in the chain's own envelope, always with HTTP 200. A call with an invalid address is refused and not sent. Methods: ${
      methods.join(", ")
    }.`
})

const tokenDataParts = {
  disableCodecs: true,
  query: { address: Schema.String.annotate({ examples: [Examples.tokenAddress] }) },
  success: TokenData,
  error: tokenErrors
} as const

const tokenRpcParts = {
  disableCodecs: true,
  payload: TokenRpcCall,
  success: TokenRpcResponse,
  error: rpcErrors
} as const

const restReads = TokenOperations.tokenRestReads.map(({ name }) => name)
const restPosts = TokenOperations.tokenRestPosts.map(({ name }) => name)

/** Returns the paths of an endpoint. An endpoint whose path ends in `/:method` has one path for each method. */
export const endpointPaths = (endpoint: { readonly path: string; readonly method: string }): ReadonlyArray<string> => {
  const { method, path } = endpoint
  return path.endsWith("/:method")
    ? (method === "GET" ? restReads : restPosts).map((name) => path.replace(/:method$/u, name))
    : [path]
}

const readPath = { method: Schema.Literals(restReads).annotate({ examples: [Examples.tokenRead] }) }
const restReadParts = { disableCodecs: true, success: Schema.Unknown, error: tokenErrors } as const
const restReadDocs = OpenApi.annotations({
  summary: "A read method of the token chain over REST",
  description:
    "The query contains the params of the JSON-RPC method. The response of the token chain's server is returned " +
    "unchanged. An error response contains `ok`, `error` and `code` in addition to the members of problem details " +
    "(RFC 9457)."
})

const postPath = { method: Schema.Literals(restPosts).annotate({ examples: [Examples.tokenPost.method] }) }
const restPostParts = {
  disableCodecs: true,
  payload: Schema.Record(Schema.String, Schema.Unknown).annotate({ examples: [Examples.tokenPost.params] }),
  success: Schema.Unknown,
  error: [...tokenErrors, OutcomeUnknown]
} as const
const restPostDocs = OpenApi.annotations({
  summary: "A method of the token chain over REST with its params in the body",
  description:
    "A method that sends a message is called at most once. The response of the token chain's server is returned " +
    "unchanged. An error response contains `ok`, `error` and `code` in addition to the members of problem details " +
    "(RFC 9457)."
})

const eventErrors = [HistoryUnavailable, ...tokenErrors] as const

/** A stream of Server-Sent Events. */
const afterQuery = Schema.optionalKey(
  Schema.String.annotate({
    description:
      "`genesis`, or the id of the last event received, for a client that cannot send the header `Last-Event-ID`",
    examples: ["genesis"]
  })
)

const transactionsParts = {
  disableCodecs: true,
  query: { address: Schema.String.annotate({ examples: [Examples.tokenAddress] }), after: afterQuery },
  success: Events,
  error: eventErrors
} as const
const eventDocs =
  "The id of an event is a position, `<lt>:<hash>`: the stream is resumed with the header `Last-Event-ID`, which an EventSource sends when it reconnects. " +
  "The first event, `start`, contains the position at which the stream begins. The stream continues after outages of the node. If the node's history " +
  "does not reach back to the position, the stream ends with an event `problem`. A comment every 15 seconds keeps the connection open."
const transactionsDocs = OpenApi.annotations({
  summary: "Finalized transactions of an account, oldest first and without gaps, as Server-Sent Events",
  description: `The data of each event \`transaction\` is an AccountTransaction. ${eventDocs}`
})

const jettonTransfersParts = {
  disableCodecs: true,
  query: {
    owner: Schema.String.annotate({ examples: [Examples.tokenAddress] }),
    master: Schema.String.annotate({ examples: [Examples.tokenAddress] }),
    after: afterQuery
  },
  success: Events,
  error: eventErrors
} as const
const jettonTransfersDocs = OpenApi.annotations({
  summary: "Jetton transfers that an owner receives, as Server-Sent Events; each transfer is sent once",
  description:
    "The data of each event `transfer` is a JettonTransfer. Only transfers that the owner's genuine jetton wallet received are sent. Aborted and bounced transfers " +
    `are omitted. ${eventDocs}`
})

/** The node routes of the token chain, whose paths begin with an endpoint key. */
export const keyedTokenEndpoints = [
  HttpApiEndpoint.get("getTokenData", `/:endpointKey${Paths.tokenData}`, { params: KeyedPath, ...tokenDataParts })
    .annotateMerge(tokenDataDocs),
  HttpApiEndpoint.post("tokenRpc", `/:endpointKey${Paths.tokenRpc}`, { params: KeyedPath, ...tokenRpcParts })
    .annotateMerge(tokenRpcDocs),
  HttpApiEndpoint.get("tokenRest", "/:endpointKey/api/v2/:method", {
    params: { ...KeyedPath, ...readPath },
    ...restReadParts
  }).annotateMerge(restReadDocs),
  HttpApiEndpoint.post("tokenRestPost", "/:endpointKey/api/v2/:method", {
    params: { ...KeyedPath, ...postPath },
    ...restPostParts
  }).annotateMerge(restPostDocs),
  HttpApiEndpoint.get("transactions", `/:endpointKey${Paths.transactions}`, {
    params: KeyedPath,
    ...transactionsParts
  }).annotateMerge(transactionsDocs),
  HttpApiEndpoint.get("jettonTransfers", `/:endpointKey${Paths.jettonTransfers}`, {
    params: KeyedPath,
    ...jettonTransfersParts
  }).annotateMerge(jettonTransfersDocs)
] as const

export class TokensApi extends HttpApiGroup.make("tokens").add(
  HttpApiEndpoint.get("getTokenData", Paths.tokenData, tokenDataParts).annotateMerge(tokenDataDocs),
  HttpApiEndpoint.post("rpc", Paths.tokenRpc, tokenRpcParts).annotateMerge(tokenRpcDocs),
  HttpApiEndpoint.get("rest", "/api/v2/:method", { params: readPath, ...restReadParts }).annotateMerge(restReadDocs),
  HttpApiEndpoint.post("restPost", "/api/v2/:method", { params: postPath, ...restPostParts }).annotateMerge(
    restPostDocs
  ),
  HttpApiEndpoint.get("transactions", Paths.transactions, transactionsParts).annotateMerge(transactionsDocs),
  HttpApiEndpoint.get("jettonTransfers", Paths.jettonTransfers, jettonTransfersParts).annotateMerge(jettonTransfersDocs)
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Tokens",
  description: "The token chain: token data, read methods, and methods that send messages"
})) {}
