/**
 * The errors that all calls to a gateway share: the errors with which a gateway refuses a caller, and the error for a
 * gateway that does not respond.
 */
import * as Paths from "@trigate/api/Paths"
import { type Chain, nodeLabels } from "@trigate/domain/Caller"
import {
  callerFailures,
  type CallFailure,
  OutcomeUnknown,
  UpstreamUnavailable,
  wrapReason
} from "@trigate/domain/errors/GatewayError"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import { parseResponse } from "@trigate/domain/evm/EvmProtocol"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import * as Operation from "@trigate/domain/operations/Operation"
import { typedMethodMapper } from "@trigate/domain/operations/Operation"
import * as Effect from "effect/Effect"
import type * as HttpClientError from "effect/http/HttpClientError"
import type * as Schema from "effect/Schema"
import { Connection, label } from "../Connection.ts"

/** The errors of an operation, and the errors with which a gateway refuses a caller. */
export type Served<Failures extends ReadonlyArray<Operation.AnyCodec>> = ReadonlyArray<
  Schema.ConstraintCodec<Failures[number]["Type"] | (typeof callerFailures)[number]["Type"], unknown>
>

/** Extends an operation's errors with the errors by which a gateway refuses a caller. */
export const served = <
  Class extends Operation.MethodClass,
  Request extends Operation.AnyCodec,
  Response extends Operation.AnyCodec,
  const Failures extends ReadonlyArray<Operation.AnyCodec>
>(operation: Operation.Operation<string, Class, Request, Response, Failures>): Operation.Operation<
  string,
  Class,
  Request,
  Response,
  Served<Failures>
> => ({ ...operation, failures: [...operation.failures, ...callerFailures] })

// to the client, the gateway is an upstream, so a failed connection to it is an upstream error
export const unreachable = (error: HttpClientError.HttpClientError): UpstreamUnavailable =>
  new UpstreamUnavailable({
    upstream: label,
    attempts: 1,
    detail: error.reason._tag === "DecodeError"
      ? "The gateway closed the connection during its response"
      : `The gateway could not be reached (${error.reason._tag})`
  })

// for these reasons, no request was built; for any other reason, some bytes of the request could have been sent
const unsent: ReadonlySet<HttpClientError.HttpClientError["reason"]["_tag"]> = new Set([
  "EncodeError",
  "InvalidUrlError"
])

/** Returns the error for a failed connection over which a call was sent at most once. */
export const broken =
  (known: Pick<OutcomeUnknown, "advice" | "nonce" | "signer">) => (error: HttpClientError.HttpClientError) =>
    unsent.has(error.reason._tag)
      ? unreachable(error)
      : new OutcomeUnknown({
        upstream: label,
        ...known,
        detail: `The connection to the gateway failed (${error.reason._tag})`
      })

/** Sends a request over the connection of the context. Fails with `UpstreamUnavailable` if there is no response. */
export const sendRequest = <A>(
  call: (connection: Connection["Service"]) => Effect.Effect<A, HttpClientError.HttpClientError>
) => Effect.mapError(Connection.use(call), (error) => wrapReason(unreachable(error)))

/** Makes a decoder for responses from the gateway itself, which can have a status other than 200. */
export const ownReader = <Response extends Operation.AnyCodec>(response: Response) => {
  const read = Operation.decodeJson(response)
  return (received: Operation.UpstreamResponse): Effect.Effect<Response["Type"], CallFailure> =>
    Effect.mapError(
      read(received.upstream, received.json),
      (malformed) => wrapReason(received.status === 200 ? malformed : Operation.servedResponseFailure(received))
    )
}

/** Makes the call that reads one of the gateway's own routes. `pathOf` returns the path for the call's arguments. */
export const readOwn = <Response extends Operation.AnyCodec, Args extends ReadonlyArray<unknown>>(
  name: string,
  pathOf: (...args: Args) => string,
  response: Response
) => {
  const read = ownReader(response)
  const call: (...args: Args) => Effect.Effect<Response["Type"], CallFailure, Connection> = Effect.fn(
    `GatewayClient.${name}`
  )(function*(...args: Args) {
    return yield* read(yield* sendRequest(({ own }) => own.get(pathOf(...args))))
  })
  return call
}

/** Makes the function that posts a payload to a path of the gateway's own routes. */
export const postOwn = <Payload extends Operation.AnyCodec, Response extends Operation.AnyCodec>(
  name: string,
  payload: Payload,
  response: Response
) => {
  const write = Operation.encodeRequest(payload)
  const read = ownReader(response)
  const call: (path: string, value: Payload["Type"]) => Effect.Effect<Response["Type"], CallFailure, Connection> =
    Effect
      .fn(`GatewayClient.${name}`)(function*(path, value) {
        const { text } = yield* Effect.mapError(write(value), wrapReason)
        return yield* read(yield* sendRequest(({ own }) => own.post(path, text)))
      })
  return call
}

/** Sends a query. */
export const send: InfoProtocol.Send<CallFailure, Connection> = ({ body }) =>
  sendRequest(({ chains }) => chains.post(Paths.info, body.text))

/** Makes the function that sends a query and decodes the response. */
export const query = typedMethodMapper<CallFailure, Connection>((operation) =>
  InfoProtocol.makeMethod(served(operation))("GatewayClient", send)
)

/**
 * Returns a function that makes the client method of an operation. The method sends its call to `path` of the gateway,
 * which leads to the nodes of `chain`.
 */
export const callAt = (path: string, chain: Chain) =>
  typedMethodMapper<CallFailure, Connection>((operation) =>
    EvmProtocol.makeMethod(served(operation))(
      "GatewayClient",
      nodeLabels[chain],
      Effect.fnUntraced(function*(call) {
        const id = yield* Connection.use(({ nextId }) => nextId)
        return yield* parseResponse(
          yield* sendRequest(({ chains }) => chains.post(path, EvmProtocol.body(id, call))),
          id
        )
      })
    )
  )

/**
 * Returns a function that makes the client method that sends a signed transaction once, to `path` of the gateway, which leads to the nodes of
 * `chain`. Fails with `OutcomeUnknown` if the connection breaks, or if the response is not JSON-RPC.
 */
export const sendAt = (path: string, chain: Chain) =>
(
  operation: typeof EvmProtocol.sendRawTransaction
): (
  signed: EvmProtocol.SignedTransaction
) => Effect.Effect<EvmProtocol.TransactionHash, CallFailure | OutcomeUnknown, Connection> => {
  const { advice } = operation
  return EvmProtocol.makeSend(operation, true)(
    "GatewayClient",
    nodeLabels[chain],
    Effect.fnUntraced(function*(call) {
      const id = yield* Connection.use(({ nextId }) => nextId)
      const sending = Connection.use(({ chains }) => chains.post(path, EvmProtocol.body(id, call)))
      const response = yield* Effect.mapError(sending, broken({ advice }))
      return yield* Effect.mapError(parseResponse(response, id), (error) =>
        error._tag === "UpstreamMalformed"
          ? new OutcomeUnknown({ upstream: error.upstream, advice, detail: error.message })
          : error)
    })
  )
}
