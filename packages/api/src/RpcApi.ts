/** `POST /evm` and `POST /l2`: JSON-RPC of the EVM chains; and the streams `GET /ws` and `GET /streams`. */
import {
  callerFailures,
  ChainNotConfigured,
  InvalidRequest,
  Overloaded,
  PayloadTooLarge,
  Unauthorized,
  UpstreamUnavailable
} from "@trigate/domain/errors/GatewayError"
import { evmMethods, longestBatch } from "@trigate/domain/evm/EvmProtocol"
import { layer2Methods } from "@trigate/domain/evm/Layer2Operations"
import type { Operation } from "@trigate/domain/operations/Operation"
import { Params } from "@trigate/domain/unstable/evm/EvmMethods"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as Examples from "./Examples.ts"
import * as Paths from "./Paths.ts"
import { Problems } from "./RouteParts.ts"

const socketErrors = [ChainNotConfigured, UpstreamUnavailable, ...callerFailures] as const

/** The options of a WebSocket route. */
export const socketParts = {
  disableCodecs: true,
  success: HttpApiSchema.Empty(101).annotate({ description: "The connection is now a WebSocket" }),
  error: socketErrors
} as const

/** The response with an event stream. */
export const Events = HttpApiSchema.StreamUint8Array({ contentType: "text/event-stream" })

/** The options of the route of the venue's streams as events. */
export const eventParts = {
  disableCodecs: true,
  query: {
    [Paths.subscribe]: Schema.Array(Schema.String).annotate({
      description: "A subscription in JSON, as `/ws` accepts it; the parameter can be repeated",
      examples: [["{\"type\":\"trades\",\"coin\":\"BTC\"}"]]
    }),
    [Paths.resume]: Schema.optionalKey(Schema.String.annotate({
      description:
        "The id of the last event that the client received, for a client that cannot send the header `Last-Event-ID`"
    }))
  },
  success: Events,
  error: [InvalidRequest, ...socketErrors]
} as const

export class StreamsApi extends HttpApiGroup.make("streams").add(
  HttpApiEndpoint.get("events", Paths.streams, eventParts)
    .annotateMerge(OpenApi.annotations({
      summary: "Streams as Server-Sent Events, which can be resumed",
      description:
        "The data of each event is a frame as `/ws` sends it. The first event is called `resume`. If its data has `recovered: true`, all events " +
        "since `Last-Event-ID` follow; if `recovered: false`, a snapshot follows. Events of accounts have an id `<epoch>:<seq>`. A comment " +
        "every 15 seconds keeps the connection open. If `Last-Event-ID` is unknown or malformed, a snapshot follows."
    })),
  HttpApiEndpoint.get("socket", Paths.socket, socketParts)
    .annotateMerge(OpenApi.annotations({
      summary: "The venue's WebSocket",
      description:
        "Accepts `subscribe`, `unsubscribe`, `ping` and `post` as the venue does. Callers with equal subscriptions share one subscription " +
        "at the venue. A request without a WebSocket upgrade gets a 426."
    }))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Streams",
  description: "Trades, books, bars, orders and fills as they happen, and `post` requests, over one WebSocket"
})) {}

/**
 * The ID of a JSON-RPC call, chosen by the caller. Like all schemas of this module, it is used only for the OpenAPI
 * document, because the gateway handles JSON-RPC as text.
 */
export const RpcId = Schema.Union([Schema.String, Schema.Finite, Schema.Null])

const callSchema = (operation: Operation) =>
  Schema.Struct({
    jsonrpc: Schema.Literal("2.0"),
    id: Schema.optionalKey(RpcId),
    method: Schema.Literal(operation.name),
    params: Schema.optionalKey(Schema.toEncoded(operation.request))
  }).annotate({ description: operation.summary })

// one branch for each method that has its own schema, and one branch for all methods whose params are relayed without
// validation
const callsSchema = (operations: ReadonlyArray<Operation>) => {
  const isTyped = ({ relayedRequest, verbatim }: Operation) => verbatim !== true || relayedRequest !== undefined
  const names = operations.filter((each) => !isTyped(each)).map(({ name }) => name)
  const relayed = Schema.Struct({
    jsonrpc: Schema.Literal("2.0"),
    id: Schema.optionalKey(RpcId),
    method: Schema.Literals(names),
    params: Schema.optionalKey(Params)
  }).annotate({ description: "A read that is relayed unchanged" })
  return Schema.Union([...operations.filter(isTyped).map(callSchema), relayed])
}

const RpcError = Schema.Struct({
  code: Schema.Int,
  message: Schema.String,
  data: Schema.optionalKey(Schema.Unknown)
}).annotate({ identifier: "RpcError" })

const RpcResponse = Schema.Struct({
  jsonrpc: Schema.Literal("2.0"),
  id: RpcId,
  result: Schema.optionalKey(Schema.Unknown),
  error: Schema.optionalKey(RpcError)
}).annotate({ identifier: "RpcAnswer" })

const orBatch = <S extends Schema.Top>(schema: S) =>
  Schema.Union([schema, Schema.Array(schema).check(Schema.isMaxLength(longestBatch))])

/** The errors that a JSON-RPC route returns with their own HTTP status, because they occur before a call is parsed. */
export const rpcErrors = [PayloadTooLarge, Unauthorized, Overloaded, UpstreamUnavailable] as const

/**
 * The options of `/evm`, also with an endpoint key in the path. The payload is one
 * call or a batch.
 */
export const evmParts = {
  disableCodecs: true,
  payload: orBatch(callsSchema(evmMethods)).annotate({ examples: Examples.evmCalls }),
  success: orBatch(RpcResponse),
  error: rpcErrors
} as const

/**
 * The options of `/l2`, also with an endpoint key in the path. The payload is one
 * call or a batch.
 */
export const layer2Parts = {
  disableCodecs: true,
  payload: orBatch(callsSchema(layer2Methods)).annotate({ examples: Examples.layer2Calls }),
  success: orBatch(RpcResponse),
  error: rpcErrors
} as const

const rpcSocket = (chain: string) =>
  OpenApi.annotations({
    summary: `JSON-RPC of ${chain} over a WebSocket`,
    description:
      "Accepts the calls of the POST route, and `eth_subscribe` with `newHeads`, `logs`, `newPendingTransactions` and `syncing`. The " +
      "gateway reads each block and log once, and sends it to all subscribed callers. A request without an upgrade to WebSocket gets 426."
  })

const joinNames = (operations: ReadonlyArray<Operation>): string => operations.map(({ name }) => name).join(", ")

export class EvmApi extends HttpApiGroup.make("evm").add(
  HttpApiEndpoint.post("rpc", Paths.evm, evmParts).annotateMerge(
    OpenApi.annotations({
      summary: "JSON-RPC of HyperEVM",
      description:
        "Accepts single calls and batches. A failed call returns a JSON-RPC error with HTTP 200; `error.data` is the typed error. " +
        "State is read at `latest` only. For any other block, a node returns the latest state without an error, " +
        "so the gateway refuses such calls unless it is configured for archive nodes."
    })
  ),
  HttpApiEndpoint.get("socket", Paths.evm, socketParts).annotateMerge(rpcSocket("HyperEVM"))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "EVM",
  description: `JSON-RPC of HyperEVM: ${joinNames(evmMethods)}`
})) {}

export class Layer2Api extends HttpApiGroup.make("layer2").add(
  HttpApiEndpoint.post("rpc", Paths.layer2, layer2Parts)
    .annotateMerge(
      OpenApi.annotations({
        summary: "JSON-RPC of an EVM layer 2",
        description:
          "Accepts single calls and batches. A receipt is relayed complete, with the fields that chain families such " +
          "as OP Stack add. For a transaction that is unknown or not yet in a block, the receipt is `result: null`."
      })
    ),
  HttpApiEndpoint.get("socket", Paths.layer2, socketParts).annotateMerge(rpcSocket("an EVM layer 2"))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Layer 2",
  description: `JSON-RPC of an EVM layer 2: ${joinNames(layer2Methods)}`
})) {}
