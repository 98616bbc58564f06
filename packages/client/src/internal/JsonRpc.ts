/** Calls of an EVM chain. Each call is one request; the ID of its response is verified. */
import { type Chain, nodeLabels } from "@trigate/domain/Caller"
import { type CallFailure, OutcomeUnknown } from "@trigate/domain/errors/GatewayError"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import { parseAnswer } from "@trigate/domain/evm/EvmProtocol"
import { typedMethodMapper } from "@trigate/domain/operations/Operation"
import * as Effect from "effect/Effect"
import { Connection } from "../Connection.ts"
import { ask, broken, served } from "./Served.ts"

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
        return yield* parseAnswer(yield* ask(({ chains }) => chains.post(path, EvmProtocol.body(id, call))), id)
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
      const answer = yield* Effect.mapError(sending, broken({ advice }))
      return yield* Effect.mapError(parseAnswer(answer, id), (error) =>
        error._tag === "UpstreamMalformed"
          ? new OutcomeUnknown({ upstream: error.upstream, advice, detail: error.message })
          : error)
    })
  )
}
