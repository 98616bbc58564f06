/** Makes a client method from an endpoint of the contract and a declared operation, one maker for each protocol. */
import { resendAdvice, ServedExchangeFailure } from "@trigate/domain/ExchangeOperations"
import { callerFailures } from "@trigate/domain/GatewayError"
import type { ServedFailure } from "@trigate/domain/GatewayError"
import type { Address } from "@trigate/domain/Hex"
import * as Json from "@trigate/domain/Json"
import { encodeRequest, invalidRequest } from "@trigate/domain/Operation"
import type { AnyCodec, MethodClass, Operation } from "@trigate/domain/Operation"
import * as EvmProtocol from "@trigate/domain/protocol/EvmProtocol"
import type { Identity } from "@trigate/domain/protocol/ExchangeProtocol"
import { outcomeReader } from "@trigate/domain/protocol/ExchangeProtocol"
import * as InfoProtocol from "@trigate/domain/protocol/InfoProtocol"
import * as JsonRpc from "@trigate/domain/protocol/JsonRpc"
import * as Protocol from "@trigate/domain/protocol/Protocol"
import * as TokenProtocol from "@trigate/domain/protocol/TokenProtocol"
import * as TokenRpc from "@trigate/domain/protocol/TokenRpc"
import type { Resolution, StillUnknown } from "@trigate/domain/Resolution"
import { ofOutcome } from "@trigate/domain/Resolution"
import { SignedAction } from "@trigate/domain/SignedAction"
import { OutcomeUnknown, UpstreamUnavailable } from "@trigate/domain/UpstreamError"
import type * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Utf8 from "@trigate/domain/Utf8"
import * as Effect from "effect/Effect"
import type * as HttpClientError from "effect/http/HttpClientError"
import type * as Schema from "effect/Schema"
import * as Transport from "./Transport.ts"

/** The endpoint of the contract that a method calls. */
export interface Endpoint {
  readonly path: string
}

type Served<Failures extends ReadonlyArray<AnyCodec>> = ReadonlyArray<
  Schema.ConstraintCodec<Failures[number]["Type"] | (typeof callerFailures)[number]["Type"], unknown>
>

/** An operation as a gateway serves it: the gateway can also refuse its caller. */
const served = <
  Class extends MethodClass,
  Request extends AnyCodec,
  Response extends AnyCodec,
  const Failures extends ReadonlyArray<AnyCodec>
>(operation: Operation<string, Class, Request, Response, Failures>): Operation<
  string,
  Class,
  Request,
  Response,
  Served<Failures>
> => ({ ...operation, failures: [...operation.failures, ...callerFailures] })

// the gateway is an upstream of this program like any other
const unreachable = (error: HttpClientError.HttpClientError): UpstreamUnavailable =>
  new UpstreamUnavailable({
    upstream: Transport.label,
    attempts: 1,
    detail: error.reason._tag === "DecodeError"
      ? "The gateway broke its answer off"
      : `The gateway could not be reached (${error.reason._tag})`
  })

/** A query whose request is the body. */
export const plain = <
  Request extends AnyCodec,
  Response extends AnyCodec,
  const Failures extends ReadonlyArray<AnyCodec>
>(
  transport: Transport.Transport,
  endpoint: Endpoint,
  operation: Operation<string, "read", Request, Response, Failures>
) =>
  InfoProtocol.methodOf<Request, Response, Served<Failures>>(served(operation))(
    "GatewayClient",
    (body) => Effect.mapError(transport.post(endpoint.path, body.text), unreachable)
  )

/** Methods of a JSON-RPC endpoint. */
export const jsonRpc = (transport: Transport.Transport, endpoint: Endpoint) => {
  let lastId = 0
  return <Request extends AnyCodec, Response extends AnyCodec, const Failures extends ReadonlyArray<AnyCodec>>(
    operation: Operation<string, "read", Request, Response, Failures>
  ) =>
    EvmProtocol.methodOf<Request, Response, Served<Failures>>(served(operation))(
      "GatewayClient",
      Transport.label,
      (call) =>
        Effect.suspend(() => {
          lastId += 1
          const id = lastId
          return Effect.flatMap(
            Effect.mapError(transport.post(endpoint.path, EvmProtocol.body(id, call)), unreachable),
            (response) => JsonRpc.answerOf(response, id)
          )
        })
    )
}

/** The token chain's query, whose request is the query string; its addresses are checked here, like the others' there. */
export const tokenQuery = <
  Request extends AnyCodec,
  Response extends AnyCodec,
  const Failures extends ReadonlyArray<AnyCodec>
>(
  transport: Transport.Transport,
  endpoint: Endpoint,
  operation: Operation<string, MethodClass, Request, Response, Failures>
) => {
  const check = TokenProtocol.checkOf(operation)
  const read = Protocol.readerOf(served(operation))
  return Effect.fn(`GatewayClient.${operation.name}`)(function*(params: Request["Encoded"]) {
    const request = yield* check(Json.write(params))
    const query = new URLSearchParams(Object.entries(params ?? {}).map(([name, value]) => [name, String(value)]))
    const answer = yield* Effect.mapError(transport.get(`${endpoint.path}?${query}`), unreachable)
    return yield* read(request, answer)
  })
}

/** Methods of the token chain's JSON-RPC endpoint; params that do not decode are refused before anything is sent. */
export const tokenRpc =
  (transport: Transport.Transport, endpoint: Endpoint) =>
  <Request extends AnyCodec, Response extends AnyCodec, const Failures extends ReadonlyArray<AnyCodec>>(
    operation: Operation<string, MethodClass, Request, Response, Failures>
  ) => {
    const check = TokenProtocol.checkOf(operation)
    const read = TokenRpc.readerOf(served(operation))
    return Effect.fn(`GatewayClient.${operation.name}`)(function*(params: Request["Encoded"]) {
      const json = Json.write(params)
      const request = yield* check(json)
      const body = JsonRpc.requestText(1, operation.name, json.text)
      const answer = yield* Effect.mapError(transport.post(endpoint.path, body), unreachable)
      return yield* read(request, Transport.label, yield* TokenRpc.readAnswer(answer))
    })
  }

const encodeSigned = encodeRequest(SignedAction)
const writeSigned = (signed: SignedAction) => Effect.map(encodeSigned(signed), ({ text }) => text)

// short of a request that could not be built, a byte may have gone out
const unsent: ReadonlySet<HttpClientError.HttpClientError["reason"]["_tag"]> = new Set([
  "EncodeError",
  "InvalidUrlError"
])

const broken = (identity: Identity) => (error: HttpClientError.HttpClientError) =>
  unsent.has(error.reason._tag)
    ? unreachable(error)
    : new OutcomeUnknown({
      upstream: Transport.label,
      ...identity,
      advice: resendAdvice,
      detail: `The exchange with the gateway broke (${error.reason._tag})`
    })

const readOutcome = outcomeReader(ServedExchangeFailure)

/**
 * Sends a signed action, once: a call that broke on its way fails with `OutcomeUnknown`, never with a plain failure.
 */
export const submit = (transport: Transport.Transport, endpoint: Endpoint) =>
  Effect.fn("GatewayClient.submit")(function*(signed: SignedAction) {
    const body = yield* writeSigned(signed)
    const identity = { nonce: signed.nonce }
    const answer = yield* Effect.mapError(transport.post(endpoint.path, body), broken(identity))
    return yield* readOutcome(answer, identity)
  })

const readText = (body: Uint8Array) =>
  Effect.fromOption(Utf8.decode(body), () => invalidRequest([{ path: [], message: "Not valid UTF-8" }]))

/**
 * Finds out what became of an action after `OutcomeUnknown`, by sending the identical bytes again; nothing else calls it.
 *
 * It takes what was submitted, or the body that was sent. Fails with `StillUnknown` and nothing else: an error of this
 * sending, whose `reason` it is, says nothing of the first one.
 */
export const resolve = (transport: Transport.Transport, endpoint: Endpoint) =>
  Effect.fn("GatewayClient.resolve")(
    (action: Uint8Array | SignedAction): Effect.Effect<Resolution, StillUnknown> => {
      const identity = action instanceof Uint8Array ? {} : { nonce: action.nonce }
      const outcome = (action instanceof Uint8Array ? readText(action) : writeSigned(action)).pipe(
        Effect.flatMap((body) => Effect.mapError(transport.post(endpoint.path, body), broken(identity))),
        Effect.flatMap((answer) => readOutcome(answer, identity))
      )
      return ofOutcome(outcome, { upstream: Transport.label, ...identity })
    }
  )

/** Reads an answer of the gateway itself; one may also come under a status that is not 200. */
const ownReaderOf = <Response extends AnyCodec>(response: Response) => {
  const read = Protocol.decodeJson(response)
  return (answer: UpstreamResponse.UpstreamResponse): Effect.Effect<Response["Type"], ServedFailure> =>
    Effect.mapError(
      read(answer.upstream, answer.json),
      (malformed) => answer.status === 200 ? malformed : Protocol.servedFailureOf(answer)
    )
}

/**
 * Shows a signed action to the gateway, which says what it sees and relays nothing; named an expected signer, it looks for
 * the mistake that makes another one appear.
 */
export const inspect = <Response extends AnyCodec>(
  transport: Transport.Transport,
  endpoint: Endpoint,
  response: Response
) => {
  const read = ownReaderOf(response)
  return Effect.fn("GatewayClient.inspect")(function*(signed: SignedAction, expectedSigner?: Address) {
    const body = yield* writeSigned(signed)
    const query = expectedSigner === undefined ? "" : `?x-trigate-expected-signer=${expectedSigner}`
    return yield* read(yield* Effect.mapError(transport.post(`${endpoint.path}${query}`, body), unreachable))
  })
}

/** What the gateway tells of itself. */
export const state = <Response extends AnyCodec>(
  transport: Transport.Transport,
  endpoint: Endpoint,
  response: Response
) => {
  const read = ownReaderOf(response)
  return Effect.fn("GatewayClient.state")(function*() {
    return yield* read(yield* Effect.mapError(transport.get(endpoint.path), unreachable))
  })
}
