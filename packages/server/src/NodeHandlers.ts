/** The node provider's surface, behind the caller's endpoint key: the route that encodes its answer. */
import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as Redacted from "effect/Redacted"
import { CallerKeys } from "./CallerKeys.ts"
import { EncodedApi } from "./EncodedApi.ts"
import * as TokensHandlers from "./TokensHandlers.ts"

export const layer = HttpApiBuilder.group(
  EncodedApi,
  "node",
  Effect.fnUntraced(function*(handlers) {
    const keys = yield* CallerKeys
    const tokenData = yield* TokensHandlers.tokenDataRoute
    return handlers.handle(
      "getTokenData",
      ({ params, query }) =>
        Effect.andThen(keys.check(Redacted.make(params.endpointKey)), tokenData(query.address, "node"))
    )
  })
)
