/** `GET /api/v2/getTokenData`, `POST /api/v2/jsonRPC`, and the methods over REST. */
import type { Surface } from "@trigate/domain/Operation"
import { UnsupportedMethod } from "@trigate/domain/RequestError"
import {
  tokenRestPosts,
  tokenRestReads,
  tokenRpcOperations,
  tokenSendOperations
} from "@trigate/domain/TokenOperations"
import type { TokenRpcOperation, TokenSendOperation } from "@trigate/domain/TokenOperations"
import * as TokenRpc from "@trigate/domain/TokenRpc"
import { TokenChain } from "@trigate/tokens/TokenChain"
import type { RestCall } from "@trigate/tokens/TokenChain"
import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as ApiKey from "./ApiKey.ts"
import { CallerKeys } from "./CallerKeys.ts"
import { EncodedApi } from "./EncodedApi.ts"
import * as RequestBody from "./RequestBody.ts"
import { CurrentRequestFacts, noteRelayed } from "./RequestFacts.ts"
import * as Responses from "./Responses.ts"
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
    longest: 100,
    concurrency: 8,
    relay: (operation, params, surface) => tokens.relay({ operation, params, surface })
  }))

const reads: ReadonlyMap<string, TokenRpcOperation> = new Map(tokenRestReads.map((each) => [each.name, each]))
const posts: ReadonlyMap<string, TokenRpcOperation | TokenSendOperation> = new Map(
  tokenRestPosts.map((each) => [each.name, each])
)

/** The call of a request; the routes have a path for each method. */
const restCall = Effect.fnUntraced(function*(request: HttpServerRequest.HttpServerRequest, surface: Surface) {
  const end = request.url.indexOf("?")
  const path = (end < 0 ? request.url : request.url.slice(0, end)).replace(/\/$/u, "")
  const name = path.slice(path.lastIndexOf("/") + 1)
  if (request.method === "POST") {
    const operation = posts.get(name)
    const asked = yield* RequestBody.text(request)
    if (operation?.class === "once") return { operation, asked, surface }
    if (operation !== undefined) return { operation, asked, surface }
  } else {
    const operation = reads.get(name)
    const asked = [...new URLSearchParams(end < 0 ? "" : request.url.slice(end))].filter(([name]) =>
      !ApiKey.isQueryName(name)
    )
    if (operation !== undefined) return { operation, asked, surface }
  }
  return yield* new UnsupportedMethod({ method: name.slice(0, 128), detail: "No such method" })
})

/** The handler of the REST routes, shared with the keyed ones. */
export const restRoute = Effect.map(
  TokenChain,
  (tokens) =>
    Effect.fnUntraced(function*(request: HttpServerRequest.HttpServerRequest, surface: Surface) {
      const facts = yield* CurrentRequestFacts
      const call: RestCall = yield* restCall(request, surface)
      const answer = yield* tokens.rest(call)
      noteRelayed(facts, call.operation.name, answer)
      return Responses.relayed(answer)
    })
)

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
    const keys = yield* CallerKeys
    const tokenData = yield* tokenDataRoute
    return handlers.handle(
      "getTokenData",
      ({ query, request }) => Effect.andThen(ApiKey.admission(keys, request), tokenData(query.address, "gateway"))
    )
  })
)
