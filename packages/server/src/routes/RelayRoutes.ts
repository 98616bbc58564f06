/** The relaying routes except JSON-RPC: `POST /exchange`, `POST /info` and the token chain's REST API. */
import { ActionPath, ById, ByIdentity } from "@trigate/api/ActionsApi"
import { Address } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import type { InvalidRequest } from "@trigate/domain/errors/RequestError"
import { UnsupportedMethod } from "@trigate/domain/errors/RequestError"
import * as InfoProtocol from "@trigate/domain/info/InfoProtocol"
import {
  decodeValue,
  invalidRequest,
  operationNeed,
  parseRequest,
  permitted
} from "@trigate/domain/operations/Operation"
import type { Surface } from "@trigate/domain/operations/Operation"
import { signerHeader } from "@trigate/domain/operations/UpstreamResponse"
import { tokenRestPosts, tokenRestReads } from "@trigate/domain/tokens/TokenOperations"
import type { TokenRpcOperation, TokenSendOperation } from "@trigate/domain/tokens/TokenOperations"
import { TokenChain } from "@trigate/tokens/TokenChain"
import type { RestCall } from "@trigate/tokens/TokenChain"
import { Exchange } from "@trigate/trading/Exchange"
import { Info } from "@trigate/trading/Info"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Schema from "effect/Schema"
import { header } from "../requests/IncomingRequest.ts"
import type { IncomingRequest } from "../requests/IncomingRequest.ts"
import * as RequestBody from "../requests/RequestBody.ts"
import { isQueryName } from "../requests/RequestCaller.ts"
import { CurrentRequestRecord, foreignRefusal } from "../requests/RequestRecord.ts"
import * as ResponseBody from "../requests/ResponseBody.ts"

const expectedSignerHeader = "x-trigate-expected-signer"

const decodeAddress = Schema.decodeUnknownEffect(Address)

const namedIn = (request: IncomingRequest): string | undefined =>
  header(request, expectedSignerHeader) ??
    new URLSearchParams(/\?(.*)$/u.exec(request.url)?.[1]).get(expectedSignerHeader) ?? undefined

/**
 * Returns the expected signer from the header or query parameter `x-trigate-expected-signer`.
 *
 * A value that is not an address is refused rather than ignored.
 */
export const expectedSigner = (request: IncomingRequest): Effect.Effect<Address | undefined, InvalidRequest> => {
  const named = namedIn(request)
  return named === undefined ? Effect.undefined : Effect.mapError(
    decodeAddress(named),
    () => invalidRequest([{ path: [expectedSignerHeader], message: "Expected a 20-byte address in 0x hex" }])
  )
}

/** The handler of `/exchange`. */
export const exchange = Effect.map(
  Exchange,
  ({ relay }) =>
    Effect.fnUntraced(function*(request: IncomingRequest, surface: Surface) {
      const record = yield* CurrentRequestRecord
      const refusal = foreignRefusal(record)
      if (refusal !== undefined) return yield* refusal
      const body = yield* RequestBody.bytes(request, RequestBody.signedLimit)
      const expected = yield* expectedSigner(request)
      const { answer, operation, signer, warnings } = yield* relay({
        body,
        surface,
        ...(expected === undefined ? {} : { expectedSigner: expected }),
        ...(record.id === undefined ? {} : { requestId: record.id })
      })
      return ResponseBody.relayedIn(record, operation, answer, {
        ...(signer === undefined ? {} : { [signerHeader]: signer }),
        ...(warnings.length === 0 ? {} : { "x-trigate-warning": warnings.join("; ") })
      })
    })
)

const decodeById = decodeValue(Schema.Struct({ ...ActionPath, ...ById }))
const decodeByIdentity = decodeValue(Schema.Struct(ByIdentity))

const incomplete = invalidRequest([{
  path: [],
  message: "Expected the path /actions/{id}, the query parameters signer and nonce, or the query parameter cloid"
}])

/** Returns the path without its query, and the query parameters without the caller's key. */
const urlParts = ({ url }: IncomingRequest) => {
  const end = url.indexOf("?")
  const query = [...new URLSearchParams(end < 0 ? "" : url.slice(end))].filter(([name]) => !isQueryName(name))
  return { path: end < 0 ? url : url.slice(0, end), query }
}

const parseReference = Effect.fnUntraced(function*(request: IncomingRequest) {
  const { path, query } = urlParts(request)
  const last = path.slice(path.lastIndexOf("/") + 1)
  const members = Object.fromEntries(query)
  if (last !== "actions") {
    const { id, wait = 0 } = yield* decodeById({ ...members, id: last })
    return { reference: { id }, wait }
  }
  const { cloid, nonce, signer, wait = 0 } = yield* decodeByIdentity(members)
  if (cloid !== undefined && nonce === undefined) {
    return { reference: { cloid, ...(signer === undefined ? {} : { signer }) }, wait }
  }
  return signer === undefined || nonce === undefined ? yield* incomplete : { reference: { signer, nonce }, wait }
})

/** The handler of `/actions`. */
export const outcome = Effect.map(
  Exchange,
  (exchange) =>
    Effect.fnUntraced(function*(request: IncomingRequest) {
      yield* permitted({ chain: "trading", class: "read" })
      const { reference, wait } = yield* parseReference(request)
      const record = yield* exchange.outcome(reference, { wait: Duration.seconds(wait) })
      return HttpServerResponse.text(Json.stringify(record), { contentType: "application/json" })
    })
)

/** The preference (RFC 7240) for the oldest bars of a time window instead of the newest, for forward pagination. */
const oldestBars = "candles=oldest"

const prefersOldest = (request: IncomingRequest): boolean =>
  header(request, "prefer")?.split(",").some((preference) => preference.trim() === oldestBars) === true

/** Matches the body of a query without parameters. */
const bareQuery = /^\{"type":"[A-Za-z]{1,64}"\}$/u

/** Maximum number of cached queries without parameters; the venue has about forty types. */
const MAX_BARE = 64

/** The handler of `/info`; `relaysAnyType` means that undocumented query types are relayed too. */
export const info = (relaysAnyType: boolean) =>
  Effect.map(Info, ({ relay }) => {
    /**
     * The cached queries without parameters: by surface (the gateway's own routes or the node routes), then by the text
     * of the body.
     */
    const bare = { gateway: new Map<string, InfoProtocol.InfoCall>(), node: new Map<string, InfoProtocol.InfoCall>() }

    /** Decodes the query in a body; a query without parameters is decoded once and cached. */
    const callIn = Effect.fnUntraced(function*(body: Uint8Array, surface: Surface) {
      const text = yield* RequestBody.decodeText(body)
      const known = bare[surface].get(text)
      if (known !== undefined) return known
      const json = yield* parseRequest(text, body)
      const call = yield* InfoProtocol.parseCall(json, surface, relaysAnyType)
      if (bareQuery.test(text) && bare[surface].size < MAX_BARE) {
        // caches the text instead of the received bytes, which are a view of a larger socket buffer
        bare[surface].set(text, { ...call, body: Json.parsed(text, json.valueOrUndefined) })
      }
      return call
    })

    return Effect.fnUntraced(function*(request: IncomingRequest, surface: Surface) {
      const body = yield* RequestBody.bytes(request)
      const call = yield* callIn(body, surface)
      yield* permitted(operationNeed(call.operation, InfoProtocol.queryType(call)))
      const oldest = prefersOldest(request) ? InfoProtocol.forOldest(call) : undefined
      const response = yield* relay(oldest ?? call)
      const relayed = ResponseBody.relayedIn(yield* CurrentRequestRecord, call.operation.name, response)
      return oldest === undefined
        ? relayed
        : HttpServerResponse.setHeaders(relayed, { "preference-applied": oldestBars })
    })
  })

const tokenReads: ReadonlyMap<string, TokenRpcOperation> = new Map(tokenRestReads.map((each) => [each.name, each]))
const tokenPosts: ReadonlyMap<string, TokenRpcOperation | TokenSendOperation> = new Map(
  tokenRestPosts.map((each) => [each.name, each])
)

// the last segment of the path is the name of the token chain's method; each method has its own route
const parseTokenCall = Effect.fnUntraced(function*(request: IncomingRequest, surface: Surface) {
  const { path, query: asked } = urlParts(request)
  const name = path.slice(path.lastIndexOf("/") + 1)
  if (request.method === "POST") {
    const operation = tokenPosts.get(name)
    const asked = yield* RequestBody.json(request)
    if (operation?.class === "once") {
      const refusal = foreignRefusal(yield* CurrentRequestRecord)
      return refusal === undefined ? { operation, asked, surface } : yield* refusal
    }
    if (operation !== undefined) return { operation, asked, surface }
  } else {
    const operation = tokenReads.get(name)
    if (operation !== undefined) return { operation, asked, surface }
  }
  return yield* new UnsupportedMethod({ method: name.slice(0, 128), detail: "No such method" })
})

/** The handler of the token chain's methods over REST. */
export const tokenRest = Effect.map(
  TokenChain,
  ({ rest }) =>
    Effect.fnUntraced(function*(request: IncomingRequest, surface: Surface) {
      const call: RestCall = yield* parseTokenCall(request, surface)
      yield* permitted(operationNeed(call.operation))
      return yield* ResponseBody.relayed(call.operation.name, yield* rest(call))
    })
)
