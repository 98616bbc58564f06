/** What a page does with the client: it reads, and handles a typed error. The result is the text of the page. */
import * as GatewayClient from "@trigate/client/GatewayClient"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"

const gateway = new URLSearchParams(location.search).get("gateway") ?? ""

const program = Effect.gen(function*() {
  const { info } = yield* GatewayClient.GatewayClient
  const { tokens } = yield* info.spotMeta()
  const refused = yield* Effect.flip(info.candleSnapshot({ coin: "NOSUCHCOIN", interval: "1d", startTime: 0 }))
  return `${tokens[0]?.name} ${refused._tag}`
}).pipe(
  Effect.provide(GatewayClient.layer({ baseUrl: gateway }).pipe(Layer.provide(FetchHttpClient.layer))),
  Effect.catchCause((cause) => Effect.succeed(`failed: ${String(cause)}`))
)

document.title = await Effect.runPromise(program)
