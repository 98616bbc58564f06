/**
 * The WebSocket method `post`: queries and signed actions, served like `POST /info` and `POST /exchange`.
 *
 * The venue's responses are forwarded unchanged. If the gateway refuses an action, or if the action's outcome is
 * unknown, the response has the status `err`, for which client libraries throw. The libraries could not match an
 * `error` frame to its request, because such a frame has no ID.
 */
import * as Json from "@trigate/domain/encoding/Json"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import { type GatewayError, unwrapReason } from "@trigate/domain/errors/GatewayError"
import * as InfoProtocol from "@trigate/domain/info/InfoProtocol"
import { operationNeed, parseRequest, permitted } from "@trigate/domain/operations/Operation"
import type { UpstreamResponse } from "@trigate/domain/operations/UpstreamResponse"
import type { Exchange } from "@trigate/trading/Exchange"
import type { Info } from "@trigate/trading/Info"
import * as Effect from "effect/Effect"

/** The response to a posted request, and its label in metrics. */
export interface Reply {
  /**
   * The field `response` of the frame to send; `undefined` if the venue cannot decode the query. For such a query, the
   * venue sends an error frame instead.
   */
  readonly response: string | undefined
  readonly operation: string
  /** The HTTP status that `POST /exchange` or `POST /info` would return. */
  readonly status: number
  /** The tag of the gateway's error; `undefined` if the gateway relayed a response. */
  readonly error: string | undefined
}

/** The services that serve `post` messages. */
export interface Services {
  readonly exchange: Exchange["Service"]
  readonly info: Info["Service"]
  /** Whether queries of any type are relayed. */
  readonly anyInfo: boolean
}

/** A `post` message, and its caller. */
export interface Post {
  /** The JSON of the message's field `payload`. */
  readonly payload: string
  /** The ID of the request, for the audit log. */
  readonly requestId: string
}

const refused = (status: number, text: string): string =>
  `{"type":"error","payload":${JSON.stringify(`${status} ${text}`)}}`

/** Encodes the error of an action in the form of the venue's refusals. */
export const refusedAction = ({ _tag, message }: GatewayError): string =>
  `{"type":"action","payload":{"status":"err","response":${JSON.stringify(`${_tag}: ${message}`)}}}`

/** Formats the error of a query: HTTP status, tag and message. */
export const refusedInfo = ({ _tag, message, status }: GatewayError): string => refused(status, `${_tag}: ${message}`)

const isJsonAnswer = ({ json, status }: UpstreamResponse): boolean => status === 200 && json.value._tag === "Success"

/** Relays a signed action, which is sent at most once. */
export const action = (services: Services, { payload, requestId }: Post): Effect.Effect<Reply> =>
  Effect.match(services.exchange.relay({ body: Utf8.encode(payload), surface: "gateway", requestId }), {
    onFailure: (failure): Reply => {
      const error = unwrapReason(failure)
      return { response: refusedAction(error), operation: "exchange", status: error.status, error: error._tag }
    },
    onSuccess: ({ answer, operation }): Reply => ({
      response: isJsonAnswer(answer)
        ? `{"type":"action","payload":${answer.text}}`
        : refused(answer.status, answer.text),
      operation,
      status: answer.status,
      error: undefined
    })
  })

/** Relays a query. For a coin that the venue does not know, the response data is `null`. */
export const info = (services: Services, { payload }: Post): Effect.Effect<Reply> => {
  let operation = "info"
  return Effect.gen(function*() {
    const call = yield* InfoProtocol.parseCall(yield* parseRequest(payload), "gateway", services.anyInfo)
    operation = call.operation.name
    const type = InfoProtocol.queryType(call)
    yield* permitted(operationNeed(call.operation, type))
    const answer = yield* services.info.relay(call)
    const isNothing = answer.status === 500 && answer.text.trim() === "null"
    return {
      type,
      status: answer.status,
      response: answer.status === 422 && !answer.isProblem
        ? undefined
        : isJsonAnswer(answer) || isNothing
        ? `{"type":"info","payload":{"type":${Json.stringify(type)},"data":${isNothing ? "null" : answer.text}}}`
        : refused(answer.status, answer.text)
    }
  }).pipe(Effect.match({
    onFailure: (failure): Reply => {
      const error = unwrapReason(failure)
      const response = error._tag === "UnknownAsset" ? unknownCoin(payload) : refusedInfo(error)
      return { response, operation, status: error.status, error: error._tag }
    },
    onSuccess: ({ response, status }): Reply => ({ response, operation, status, error: undefined })
  }))
}

const unknownCoin = (payload: string): string => {
  const value = Json.of(payload).valueOrUndefined
  const type = typeof value === "object" && value !== null && "type" in value ? value.type : ""
  return `{"type":"info","payload":{"type":${Json.stringify(type)},"data":null}}`
}
