/** Makes a client method from an endpoint of the contract and a declared operation, one maker for each protocol. */
import * as Answer from "@trigate/domain/Answer"
import { faultsOf, invalidRequest } from "@trigate/domain/Decode"
import { readOutcome, resendAdvice } from "@trigate/domain/ExchangeOperations"
import * as JsonRpc from "@trigate/domain/JsonRpc"
import * as JsonText from "@trigate/domain/JsonText"
import type { AnyCodec, MethodClass, Operation } from "@trigate/domain/Operation"
import * as Relayed from "@trigate/domain/Relayed"
import type { InvalidRequest } from "@trigate/domain/RequestError"
import { SignedAction } from "@trigate/domain/SignedAction"
import * as TokenRpc from "@trigate/domain/TokenRpc"
import { OutcomeUnknown, UpstreamUnavailable } from "@trigate/domain/UpstreamError"
import * as Effect from "effect/Effect"
import type * as HttpClientError from "effect/http/HttpClientError"
import * as Schema from "effect/Schema"
import * as Transport from "./Transport.ts"

/** The endpoint of the contract that a method calls. */
export interface Endpoint {
  readonly path: string
}

const encoder = <S extends AnyCodec>(schema: S) => {
  const encode = Schema.encodeEffect(schema)
  return (request: S["Type"]): Effect.Effect<S["Encoded"], InvalidRequest> =>
    Effect.mapError(encode(request), (error) => invalidRequest(faultsOf(error)))
}

// the gateway is an upstream of this program like any other
const unreachable = (error: HttpClientError.HttpClientError): UpstreamUnavailable =>
  new UpstreamUnavailable({
    upstream: Transport.label,
    attempts: 1,
    detail: `The gateway could not be reached (${error.reason._tag})`
  })

/** A query whose request is the body. */
export const plain = <
  Request extends AnyCodec,
  Response extends AnyCodec,
  const Failures extends ReadonlyArray<AnyCodec>
>(
  transport: Transport.Transport,
  endpoint: Endpoint,
  operation: Operation<string, MethodClass, Request, Response, Failures>
) => {
  const encode = encoder(operation.request)
  const read = Answer.readerOf(operation)
  return Effect.fn(`GatewayClient.${operation.name}`)(function*(request: Request["Type"]) {
    const body = JsonText.stringify(yield* encode(request))
    const answer = yield* Effect.mapError(transport.post(endpoint.path, body), unreachable)
    return yield* read(request, answer)
  })
}

/** A query whose request is the query string. */
export const query = <
  Request extends AnyCodec,
  Response extends AnyCodec,
  const Failures extends ReadonlyArray<AnyCodec>
>(
  transport: Transport.Transport,
  endpoint: Endpoint,
  operation: Operation<string, MethodClass, Request, Response, Failures>
) => {
  const encode = encoder(operation.request)
  const read = Answer.readerOf(operation)
  return Effect.fn(`GatewayClient.${operation.name}`)(function*(request: Request["Type"]) {
    const encoded = yield* encode(request)
    const params = new URLSearchParams(
      Object.entries(encoded ?? {}).map(([name, value]) => [name, String(value)])
    )
    const answer = yield* Effect.mapError(transport.get(`${endpoint.path}?${params}`), unreachable)
    return yield* read(request, answer)
  })
}

const statusOr = <A, E>(answer: Relayed.Relayed, read: Effect.Effect<A, E>) =>
  answer.status === 200 ? read : Effect.mapError(read, () => Answer.failureOfStatus(answer))

/** Methods of a JSON-RPC endpoint. */
export const jsonRpc = (transport: Transport.Transport, endpoint: Endpoint) => {
  let lastId = 0
  return <Request extends AnyCodec, Response extends AnyCodec, const Failures extends ReadonlyArray<AnyCodec>>(
    operation: Operation<string, MethodClass, Request, Response, Failures>
  ) => {
    const encode = encoder(operation.request)
    const read = JsonRpc.readerOf(operation)
    return Effect.fn(`GatewayClient.${operation.name}`)(function*(request: Request["Type"]) {
      const params = JsonText.stringify(yield* encode(request))
      lastId += 1
      const id = lastId
      const body = JsonRpc.requestText(id, operation.name, params)
      const answer = yield* Effect.mapError(transport.post(endpoint.path, body), unreachable)
      return yield* read(
        Transport.label,
        yield* statusOr(answer, JsonRpc.readAnswer(Transport.label, Relayed.text(answer), id))
      )
    })
  }
}

/** Methods of the token chain's JSON-RPC endpoint. */
export const tokenRpc =
  (transport: Transport.Transport, endpoint: Endpoint) =>
  <Request extends AnyCodec, Response extends AnyCodec, const Failures extends ReadonlyArray<AnyCodec>>(
    operation: Operation<string, MethodClass, Request, Response, Failures>
  ) => {
    const encode = encoder(operation.request)
    const read = TokenRpc.readerOf(operation)
    return Effect.fn(`GatewayClient.${operation.name}`)(function*(request: Request["Type"]) {
      const params = JsonText.stringify(yield* encode(request))
      const body = JsonRpc.requestText(1, operation.name, params)
      const answer = yield* Effect.mapError(transport.post(endpoint.path, body), unreachable)
      return yield* read(
        request,
        Transport.label,
        yield* TokenRpc.readAnswer(Transport.label, answer.status, Relayed.text(answer), answer.retryAfter)
      )
    })
  }

/**
 * Sends a signed action, once: a call that broke on its way fails with `OutcomeUnknown`, never with a plain failure.
 */
export const submit = (transport: Transport.Transport, endpoint: Endpoint) => {
  const encode = encoder(SignedAction)
  return Effect.fn("GatewayClient.submit")(function*(signed: SignedAction) {
    const body = JsonText.stringify(yield* encode(signed))
    const answer = yield* Effect.mapError(transport.post(endpoint.path, body), (error) =>
      new OutcomeUnknown({
        upstream: Transport.label,
        nonce: signed.nonce,
        advice: resendAdvice,
        detail: `The exchange with the gateway broke (${error.reason._tag})`
      }))
    return yield* readOutcome(answer, { nonce: signed.nonce })
  })
}
