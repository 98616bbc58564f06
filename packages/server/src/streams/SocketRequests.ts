/**
 * Serves the requests that callers send as messages of a socket, with the limits, quotas and metrics of HTTP requests.
 *
 * The venue's responses are forwarded unchanged. If the gateway refuses an action, or if the action's outcome is
 * unknown, the response has the status `err`, for which client libraries throw. The libraries could not match an
 * `error` frame to its request, because such a frame has no ID.
 */
import type { Quotas } from "@trigate/callers/Quotas"
import { type Caller, CurrentCaller } from "@trigate/domain/Caller"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { unwrapReason } from "@trigate/domain/errors/GatewayError"
import type { GatewayError, Overloaded, QuotaExceeded } from "@trigate/domain/errors/GatewayError"
import * as JsonRpc from "@trigate/domain/evm/EvmProtocol"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import { operationNeed, parseRequest, permitted } from "@trigate/domain/operations/Operation"
import type { Surface, UpstreamResponse } from "@trigate/domain/operations/Operation"
import type { Exchange } from "@trigate/trading/Exchange"
import type { Info } from "@trigate/trading/Info"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { FeedChain } from "../Chains.ts"
import { type Load, overloaded } from "../process/Load.ts"
import * as RequestRecord from "../requests/Request.ts"
import type { Route } from "../routes/Rpc.ts"
import { idIn } from "./Session.ts"

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
export interface PostServices {
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

const isJsonResponse = ({ json, status }: UpstreamResponse): boolean => status === 200 && json.value._tag === "Success"

/** Relays a signed action, which is sent at most once. */
export const action = (services: PostServices, { payload, requestId }: Post): Effect.Effect<Reply> =>
  Effect.match(services.exchange.relay({ body: Encoding.encode(payload), surface: "gateway", requestId }), {
    onFailure: (failure): Reply => {
      const error = unwrapReason(failure)
      return { response: refusedAction(error), operation: "exchange", status: error.status, error: error._tag }
    },
    onSuccess: ({ response, operation }): Reply => ({
      response: isJsonResponse(response)
        ? `{"type":"action","payload":${response.text}}`
        : refused(response.status, response.text),
      operation,
      status: response.status,
      error: undefined
    })
  })

/** Relays a query. For a coin that the venue does not know, the response data is `null`. */
export const info = (services: PostServices, { payload }: Post): Effect.Effect<Reply> => {
  let operation = "info"
  return Effect.gen(function*() {
    const call = yield* InfoProtocol.parseCall(yield* parseRequest(payload), "gateway", services.anyInfo)
    operation = call.operation.name
    const type = InfoProtocol.queryType(call)
    yield* permitted(operationNeed(call.operation, type))
    const response = yield* services.info.relay(call)
    const isNothing = response.status === 500 && response.text.trim() === "null"
    return {
      type,
      status: response.status,
      response: response.status === 422 && !response.isProblem
        ? undefined
        : isJsonResponse(response) || isNothing
        ? `{"type":"info","payload":{"type":${Encoding.stringify(type)},"data":${isNothing ? "null" : response.text}}}`
        : refused(response.status, response.text)
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
  const value = Encoding.of(payload).valueOrUndefined
  const type = typeof value === "object" && value !== null && "type" in value ? value.type : ""
  return `{"type":"info","payload":{"type":${Encoding.stringify(type)},"data":null}}`
}

/** The services that are built from the current settings. */
export interface Services extends PostServices {
  readonly load: Load["Service"]
  readonly quotas: Quotas["Service"]
  /** The JSON-RPC route of each chain. */
  readonly rpc: { readonly [chain in FeedChain]: Pick<Route, "reply"> }
}

/** The chain of a JSON-RPC socket, and the surface that received its handshake. */
export interface RpcRoute {
  readonly chain: FeedChain
  readonly surface: Surface
}

/** Returns whether a caller has a quota of requests. */
const hasQuota = ({ quota }: Caller): boolean =>
  quota.requestsPerSecond !== undefined || quota.concurrentCalls !== undefined

/** Fails with `Overloaded` while the gateway is busy. */
const unlessBusy = <A, E>({ isBusy }: Load["Service"], run: Effect.Effect<A, E>): Effect.Effect<A, E | Overloaded> =>
  isBusy ? overloaded : run

/** Makes the functions that serve the requests of sockets. `services` returns `undefined` before the first settings are applied. */
export const make = (
  context: Context.Context<never>,
  now: () => Encoding.MonotonicTime,
  services: () => Services | undefined
) => {
  let posts = 0
  const countRequest = RequestRecord.makeCount(context)

  /** Serves a request of a caller with the current services, and counts it as a request of `route`. */
  const served = <A>(
    route: string,
    caller: Caller,
    serve: (
      current: Services,
      record: RequestRecord.RequestRecord
    ) => Effect.Effect<{ readonly response: A; readonly status: number }>
  ): Effect.Effect<A> =>
    Effect.suspend(() => {
      const current = services()
      if (current === undefined) return Effect.never
      const record = RequestRecord.make(current.load, `ws-${(posts++).toString(36)}`)
      record.route = route
      record.caller = caller
      const start = now()
      return serve(current, record).pipe(
        Effect.provideService(CurrentCaller, caller),
        Effect.map(({ response, status }) => {
          countRequest(record, status, Encoding.millisBetween(start, now()))
          return response
        })
      )
    })

  /** Returns the response to a `post` message; `undefined` for a query that the venue cannot decode. */
  const post = (kind: "action" | "info", payload: string, caller: Caller): Effect.Effect<string | undefined> =>
    served("streams.post", caller, (current, record) => {
      const perform = kind === "action" ? action : info
      const refused = (error: Overloaded | QuotaExceeded): Reply => ({
        response: kind === "action" ? refusedAction(error) : refusedInfo(error),
        operation: kind === "action" ? "exchange" : "info",
        status: error.status,
        error: error._tag
      })
      const counted = Effect.acquireUseRelease(
        hasQuota(caller) ? current.quotas.count(caller, 1) : Effect.succeed({ end: () => {} }),
        () => perform(current, { payload, requestId: record.id ?? "" }),
        ({ end }) => Effect.sync(end)
      )
      return unlessBusy(current.load, counted).pipe(
        Effect.catch((error) => Effect.succeed(refused(error))),
        Effect.map((reply) => {
          record.error = reply.error
          record.operations.push({ operation: reply.operation, outcome: reply.error ?? "ok" })
          return reply
        })
      )
    })

  /** Returns the response to a JSON-RPC message. Counts the message as a request. */
  const reply = ({ chain, surface }: RpcRoute) => (text: string, caller: Caller): Effect.Effect<string | undefined> =>
    served(`${chain === "trading" ? "evm" : chain}.socket`, caller, ({ load, quotas, rpc }, record) => {
      const ends: Array<() => void> = []
      const count = (calls: number) => Effect.map(quotas.count(caller, calls), ({ end }) => void ends.push(end))
      record.admitted = {
        caller,
        provide: (effect) => Effect.provideService(effect, CurrentCaller, caller),
        countMore: count,
        end: () => {}
      }
      const counted = Effect.andThen(
        hasQuota(caller) ? count(1) : Effect.void,
        Effect.suspend(() => rpc[chain].reply(text, { record, surface }))
      )
      return unlessBusy(load, counted).pipe(
        Effect.catch((error) => {
          record.error = error._tag
          return Effect.succeed(JsonRpc.errorText(idIn(text), JsonRpc.errorObject(error)))
        }),
        Effect.ensuring(Effect.sync(() => {
          for (const end of ends) end()
        })),
        Effect.map((response) => ({ response, status: 200 }))
      )
    })

  return { post, reply }
}
