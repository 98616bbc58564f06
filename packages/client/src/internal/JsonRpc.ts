/** Calls of an EVM chain. Each call is one request; the ID of its response is verified. */
import { type Chain, nodeLabels } from "@trigate/domain/Caller"
import type { CallFailure } from "@trigate/domain/errors/GatewayError"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import { parseAnswer } from "@trigate/domain/evm/EvmProtocol"
import { typedMethodMapper } from "@trigate/domain/operations/Operation"
import * as Effect from "effect/Effect"
import { Connection } from "../Connection.ts"
import { ask, served } from "./Served.ts"

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
