/** The calls of an EVM chain: one request each, whose answer has to carry its id. */
import type { AnyCodec, Operation } from "@trigate/domain/Operation"
import * as EvmProtocol from "@trigate/domain/protocol/EvmProtocol"
import { answerOf } from "@trigate/domain/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import { Connection, label } from "../Connection.ts"
import { ask, type Served, served } from "./Served.ts"

/** The call of an operation that goes to a path. */
export const call = <
  Request extends AnyCodec,
  Response extends AnyCodec,
  const Failures extends ReadonlyArray<AnyCodec>
>(path: string, operation: Operation<string, "read", Request, Response, Failures>) =>
  EvmProtocol.methodOf<Request, Response, Served<Failures>>(served(operation))(
    "GatewayClient",
    label,
    Effect.fnUntraced(function*(call) {
      const id = yield* Connection.use(({ nextId }) => nextId)
      return yield* answerOf(yield* ask(({ chains }) => chains.post(path, EvmProtocol.body(id, call))), id)
    })
  )
