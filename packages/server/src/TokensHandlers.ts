/** `GET /api/v2/getTokenData` and `POST /api/v2/jsonRPC`. */
import type { Surface } from "@trigate/domain/Operation"
import { tokenRpcOperations, tokenSendOperations } from "@trigate/domain/TokenOperations"
import * as TokenRpc from "@trigate/domain/TokenRpc"
import { TokenChain } from "@trigate/tokens/TokenChain"
import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { EncodedApi } from "./EncodedApi.ts"
import { CurrentRequestFacts } from "./RequestFacts.ts"
import * as RpcRoute from "./RpcRoute.ts"

const envelope: RpcRoute.Envelope<TokenRpc.TokenRpcAnswer> = {
  read: TokenRpc.readCall,
  // the chain's own servers answer a call without an id too
  isNotification: () => false,
  answer: TokenRpc.answerText,
  error: TokenRpc.errorText,
  isError: (answer) => answer._tag === "Error"
}

/** The handler of the JSON-RPC route, shared with the keyed one. */
export const rpcRoute = Effect.map(TokenChain, (tokens) =>
  RpcRoute.make({
    operations: [...Object.values(tokenRpcOperations), ...Object.values(tokenSendOperations)],
    envelope,
    concurrency: 8,
    relay: (operation, params, surface) => tokens.relay({ operation, params, surface })
  }))

/** The handler of the token-data route, shared with the keyed one. */
export const tokenDataRoute = Effect.map(
  TokenChain,
  (tokens) =>
    Effect.fnUntraced(function*(address: string, _surface: Surface) {
      const facts = yield* CurrentRequestFacts
      const token = yield* tokens.getTokenData({ address })
      facts.operations.push({ operation: "getTokenData", outcome: "ok" })
      return token
    })
)

export const layer = HttpApiBuilder.group(
  EncodedApi,
  "tokens",
  Effect.fnUntraced(function*(handlers) {
    const tokenData = yield* tokenDataRoute
    return handlers.handle("getTokenData", ({ query }) => tokenData(query.address, "gateway"))
  })
)
