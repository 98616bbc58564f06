/** The venue: `POST /info`, `POST /exchange`, `GET /actions/{id}` and `GET /candles`. */
import {
  actionCatalog,
  CSignerActionDocumented,
  EvmUserModifyDocumented,
  exchangeFailures,
  isActionType,
  SignedAction,
  TokenDelegateDocumented
} from "@trigate/domain/actions/Action"
import { ActionAccepted, ActionId, ActionRecord, Cloid } from "@trigate/domain/actions/ActionOutcome"
import { SwitchName, SwitchRequest, SwitchState } from "@trigate/domain/actions/Policy"
import { CandleInterval, CandleSeries, CandleWindowRequest, coinsPerPage } from "@trigate/domain/candles/Candle"
import { Address, Millis } from "@trigate/domain/encoding/Encoding"
import {
  ActionNotFound,
  ArchiveNotConfigured,
  ArchiveUnavailable,
  callerFailures,
  InvalidRequest,
  servedFailures,
  UnknownAsset,
  UpstreamUnavailable
} from "@trigate/domain/errors/GatewayError"
import { infoOperations, passthroughQuery, type QueryOperation } from "@trigate/domain/info/InfoOperations"
import { actionSchemas } from "@trigate/domain/unstable/actions/ActionSchemas"
import { CandleFormat, contentTypes } from "@trigate/domain/unstable/candles/CandleText"
import { Inspection } from "@trigate/domain/unstable/Inspection"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as Examples from "./Examples.ts"
import { actionSigner } from "./Examples.ts"
import * as Paths from "./Paths.ts"
import { Problems } from "./RouteParts.ts"

/** The request for the next nonces of a signer. */
export const NonceRequest = Schema.Struct({
  signer: Address,
  count: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1000 }))).annotateKey({
    description: "The number of nonces; 1 if absent"
  })
}).annotate({ identifier: "NonceRequest", examples: [{ signer: actionSigner, count: 2 }] })
export type NonceRequest = typeof NonceRequest.Type

/** The next nonces of a signer, in ascending order. No other request gets them. */
export const Nonces = Schema.Struct({ signer: Address, nonces: Schema.Array(Millis) }).annotate({
  identifier: "Nonces"
})
export type Nonces = typeof Nonces.Type

const typed: ReadonlyArray<QueryOperation> = Object.values(infoOperations)

/** The errors of a query of the venue. */
export const infoErrors = [...infoOperations.candleSnapshot.failures, ...servedFailures] as const

/** Returns the schema of a typed query's body. */
const body = ({ name, request, summary }: QueryOperation) => {
  const { ast } = Schema.toEncoded(request)
  const members = SchemaAST.isObjects(ast) ? ast.propertySignatures : []
  const fields = Object.fromEntries(members.map((member) => [String(member.name), Schema.make(member.type)]))
  return Schema.Struct({ type: Schema.Literal(name), ...fields }).annotate({ description: summary })
}

/** The body of a query. Its member `type` selects the schema. */
export const InfoRequest = Schema.Union([
  ...typed.map(body),
  passthroughQuery.request.annotate({ description: "A query of another type, with any members" })
]).annotate({
  identifier: "InfoRequest",
  examples: typed.map(({ example, name }) => ({ type: name, ...Predicate.isObject(example) ? example : {} }))
})

export class InfoApi extends HttpApiGroup.make("info").add(
  HttpApiEndpoint.post("query", Paths.info, {
    disableCodecs: true,
    payload: InfoRequest,
    success: [...typed.map(({ response }) => Schema.toEncoded(response)), passthroughQuery.response],
    error: infoErrors
  }).annotateMerge(OpenApi.annotations({
    summary: "Query the venue",
    description:
      "Served by the venue's API; for `spotMeta`, a node is the fallback. The upstream's response is relayed unchanged, with one " +
      "exception: for an unknown coin of `candleSnapshot`, the upstream's HTTP 500 `null` becomes UnknownAsset. " +
      "If the type of a query is not in this schema, the other members are not validated. A refusal also has `code` " +
      "(the HTTP status) and `msg` (the detail), as the venue's SDKs read them."
  }))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Info",
  description: "Queries of the venue. Typed queries are validated; queries of any other type are relayed unchanged"
})) {}

const catalogActions = Object.entries<Schema.Codec<unknown, unknown>>(actionSchemas).map(([type, schema]) =>
  schema.annotate({
    identifier: `${type.slice(0, 1).toUpperCase()}${type.slice(1)}Action`,
    ...(isActionType(type) ? { description: actionCatalog[type].summary } : {})
  })
)

/** A signed action of any type of the catalog, with the examples of the reference. */
export const SignedBody = Schema.Struct({
  ...SignedAction.fields,
  action: Schema.Union([
    ...catalogActions,
    TokenDelegateDocumented,
    CSignerActionDocumented,
    EvmUserModifyDocumented
  ])
}).annotate({ identifier: "SignedAction", examples: [...Examples.signedActions] })

/** The request that arms a switch, with an example for the reference. */
export const ArmSwitch = SwitchRequest.annotate({
  identifier: "SwitchRequest",
  examples: [{
    after: 10,
    actions: [Examples.signedActions[2]]
  }]
})

/** The path parameters of a dead man's switch. */
export const BySwitch = { name: SwitchName }

/** The errors of a call that changes a dead man's switch, or reads it. */
const switchErrors = [InvalidRequest, UpstreamUnavailable, ...callerFailures] as const

/** The venue's rejection, relayed unchanged: HTTP 200 with the reason as text in `response`. */
export const ActionRefused = Schema.Struct({ status: Schema.Literal("err"), response: Schema.String })
  .annotate({ identifier: "ActionRefused" })

/** The errors that the gateway returns instead of the venue's response. */
export const exchangeErrors = [...exchangeFailures, ...servedFailures] as const

export class ExchangeApi extends HttpApiGroup.make("exchange").add(
  HttpApiEndpoint.post("submit", Paths.exchange, {
    disableCodecs: true,
    payload: SignedBody,
    success: [ActionAccepted, ActionRefused],
    error: exchangeErrors
  }).annotateMerge(OpenApi.annotations({
    summary: "Relay a signed action",
    description:
      "The body is checked, then sent unchanged to the venue's API, at most once. The venue's response is returned " +
      "unchanged: HTTP 200 does not mean success, check `status`. After OutcomeUnknown resend exactly the same bytes; never " +
      "sign again with a new nonce. The response contains the signer in the header `x-trigate-signer`. If you send the expected " +
      "signer in the header `x-trigate-expected-signer`, the action is refused if another key signed it. A refusal also " +
      "has the members that the venue's SDKs read: `code` (the HTTP status) and `msg` (the detail). If the same request " +
      "would be refused again, it also has `error` (the detail)."
  })),
  HttpApiEndpoint.post("inspect", Paths.inspect, {
    disableCodecs: true,
    payload: SignedBody,
    success: Inspection,
    error: [InvalidRequest, UpstreamUnavailable, ...callerFailures]
  }).annotateMerge(OpenApi.annotations({
    summary: "Explain a signed body without sending it",
    description:
      "Nothing is sent to the venue. The response contains the form of the action, its signing scheme, the bytes and hashes, the typed " +
      "data to sign, the signer, whether the nonce is in the window, and warnings. Send the expected signer in the " +
      "header or query parameter `x-trigate-expected-signer`: if another key signed, the response describes the likely " +
      "mistake. For a multi-sig the expected signer is the leader that the body names."
  })),
  HttpApiEndpoint.post("nonces", Paths.nonces, {
    disableCodecs: true,
    payload: NonceRequest,
    success: Nonces,
    error: [InvalidRequest, UpstreamUnavailable, ...callerFailures]
  }).annotateMerge(OpenApi.annotations({
    summary: "Issue the next nonces of a signer",
    description:
      "Programs that sign with one key get different nonces, close to the current time in milliseconds. With Redis, all replicas issue " +
      "from one sequence. Requires the class `sign`, and the signer if the key names signers."
  })),
  HttpApiEndpoint.post("armSwitch", Paths.armSwitch, {
    disableCodecs: true,
    params: BySwitch,
    payload: ArmSwitch,
    success: SwitchState,
    error: switchErrors
  }).annotateMerge(OpenApi.annotations({
    summary: "Leave signed actions that are sent when heartbeats stop",
    description:
      "A dead man's switch: if no heartbeat arrives for `after` seconds, the gateway sends the actions in order, each at most " +
      "once. The bodies are sent unchanged. A switch of the same name is replaced. With Redis or a database, switches " +
      "survive the process, and exactly one replica sends. Requires the class `sign`."
  })),
  HttpApiEndpoint.post("beatSwitch", Paths.beatSwitch, {
    params: BySwitch,
    success: SwitchState,
    error: switchErrors
  }).annotateMerge(OpenApi.annotations({
    summary: "Note a heartbeat of a dead man's switch",
    description: "The response has the state `armed`, or the reason why the switch is not armed: then arm it again."
  })),
  HttpApiEndpoint.get("switch", Paths.armSwitch, {
    params: BySwitch,
    success: SwitchState,
    error: switchErrors
  }).annotateMerge(OpenApi.annotations({
    summary: "The state of a dead man's switch",
    description: "Not a heartbeat. After the switch has fired, the outcome of each action for a day."
  })),
  HttpApiEndpoint.post("disarmSwitch", Paths.disarmSwitch, {
    params: BySwitch,
    success: SwitchState,
    error: switchErrors
  }).annotateMerge(OpenApi.annotations({
    summary: "Remove a dead man's switch",
    description: "The actions are not sent. A switch that is firing is not stopped."
  }))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Exchange",
  description: "Signed actions of the venue: orders, transfers, staking, vaults and all other types of the catalog"
})) {}

const digits = (most: number, what: string) =>
  Schema.String.check(Schema.isPattern(new RegExp(`^[0-9]{1,${most}}$`, "u"), { expected: what }))

const toNumber = SchemaTransformation.transform({ decode: Number, encode: String })

/** The `wait` parameter: the maximum number of seconds for which the request waits for an outcome. */
const Wait = digits(2, "seconds, 0 to 30").annotate({
  description:
    "Maximum number of seconds to wait for the outcome, at most 30. If there is no outcome by then, the response contains the current state",
  examples: ["0"]
}).pipe(Schema.decodeTo(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 30 })), toNumber))

/** Query parameters of the routes that return one action by its ID. */
export const ById = { wait: Schema.optionalKey(Wait) }

/** Query parameters of the routes that find an action by its signer and nonce, or by a client order ID. */
export const ByIdentity = {
  ...ById,
  // the OpenAPI document shows the encoded form of a parameter, so the description is attached to that form
  signer: Schema.optionalKey(
    Schema.String.annotate({ description: "The address that signed, in 0x hex", examples: [Examples.actionSigner] })
      .pipe(Schema.decodeTo(Address))
  ),
  nonce: Schema.optionalKey(
    digits(16, "milliseconds").annotate({
      description: "The nonce; requires `signer`",
      examples: [Examples.actionNonce]
    })
      .pipe(Schema.decodeTo(Millis, toNumber))
  ),
  cloid: Schema.optionalKey(
    Schema.String.annotate({ description: "The client order id of one of the action's orders, in 0x hex" })
      .pipe(Schema.decodeTo(Cloid))
  )
}

/** Path parameters of the routes that return one action by its ID. */
export const ActionPath = { id: ActionId.annotate({ examples: [Examples.actionId] }) }

const actionErrors = [ActionNotFound, UpstreamUnavailable, ...callerFailures] as const

/** The options of the route of an action's outcome by its ID, except the parameters of its path. */
export const outcomeParts = { disableCodecs: true, query: ById, success: ActionRecord, error: actionErrors } as const

/** The options of the route of an action's outcome by its signer and nonce, or by a cloid. */
export const findOutcomeParts = { ...outcomeParts, query: ByIdentity } as const

export class ActionsApi extends HttpApiGroup.make("actions").add(
  HttpApiEndpoint.get("outcome", Paths.actionOutcome, { params: ActionPath, ...outcomeParts }).annotateMerge(
    OpenApi.annotations({
      summary: "Outcome of a signed action",
      description:
        "This request sends no action to the venue. If relaying the action failed with OutcomeUnknown, the gateway " +
        "determines the outcome later: it queries the action's orders by their cloids, and uses the action's " +
        "`expiresAfter`. The response contains the outcome and ids, never the signed body."
    })
  ),
  HttpApiEndpoint.get("find", Paths.actionOutcomes, findOutcomeParts).annotateMerge(OpenApi.annotations({
    summary: "Outcome of a signed action, by signer and nonce, or by cloid",
    description:
      "Send `signer` and `nonce`, or `cloid` and `signer`. Without `signer`, the action can be another account's. If " +
      "several actions have the cloid, the error is InvalidRequest."
  }))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Actions",
  description: "Outcomes of signed actions that this gateway relayed"
})) {}

/**
 * Makes the schema of a time parameter in a query. The schema has no identifier, because a named schema would lose its
 * example in the OpenAPI document.
 */
const time = (description: string, example: number) =>
  Schema.String.check(Schema.isPattern(/^[0-9]{1,16}$/u, { expected: "milliseconds since the Unix epoch" })).annotate({
    description,
    examples: [String(example)]
  }).pipe(
    Schema.decodeTo(Schema.Natural, toNumber),
    Schema.optionalKey
  )

/** Query parameters that limit the bars of a series by open time. */
const bounds = {
  from: time(
    "First open time, in milliseconds. Default: the open time of the first stored bar",
    Examples.candleFile.from
  ),
  to: time("Last open time, in milliseconds. Default: the open time of the last stored bar", Examples.candleFile.to)
}

/** The errors of a request for candle history. */
export const candleErrors = [ArchiveNotConfigured, ArchiveUnavailable, UpstreamUnavailable, ...callerFailures] as const

export class CandlesApi extends HttpApiGroup.make("candles").add(
  HttpApiEndpoint.get("list", Paths.candles, {
    query: {
      after: CandleWindowRequest.fields.coin.annotate({
        description: "The last coin of the previous page. If absent, the first page is returned",
        examples: [Examples.candleFile.coin]
      }).pipe(Schema.optionalKey)
    },
    success: Schema.Array(CandleSeries),
    error: candleErrors
  }).annotateMerge(OpenApi.annotations({
    summary: "List the stored candle history",
    description:
      `Each coin and interval with its complete periods, ordered by coin. A page has ${coinsPerPage} coins; request the next ` +
      "page with `after`. A page of fewer coins is the last."
  })),
  HttpApiEndpoint.get("file", Paths.candleFile, {
    params: {
      coin: CandleWindowRequest.fields.coin.annotate({ examples: [Examples.candleFile.coin] }),
      interval: Schema.Literals(CandleInterval.literals).annotate({ examples: [Examples.candleFile.interval] })
    },
    query: {
      ...bounds,
      format: Schema.optionalKey(
        Schema.Literals(CandleFormat.literals).annotate({ description: "Default: ndjson", examples: ["csv"] })
      )
    },
    success: HttpApiSchema.StreamUint8Array({ contentType: Object.values(contentTypes) }),
    error: [...candleErrors, UnknownAsset]
  }).annotateMerge(OpenApi.annotations({
    summary: "The bars of a coin and interval as a file, for a period of any length",
    description:
      "The file contains closed bars only, oldest first, with every number as the venue formatted it. In the path, " +
      "write a slash in a coin's name as `%2F`. To resume after a truncated response, drop an incomplete last line, " +
      "and request `from` = open time of the last bar plus 1. A parquet file can be read only after the whole file " +
      "is downloaded; its metadata entry `trigate:known` lists the periods that are completely recorded. In the " +
      "caller's quota, a file counts as one request for every 10 000 bars, and as a concurrent request until its transfer " +
      "ends. A caller can download 4 files at a time, and all callers together 8."
  }))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Candles",
  description: "The candle history of the coins that `TRIGATE_ARCHIVE` selects"
})) {}
