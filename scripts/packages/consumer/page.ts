/** What a page does with the client: a call of each chain and a signed action. What they end in is the title of the page. */
import * as Connection from "@trigate/client/Connection"
import * as Evm from "@trigate/client/Evm"
import * as Exchange from "@trigate/client/Exchange"
import * as Info from "@trigate/client/Info"
import * as Layer2 from "@trigate/client/Layer2"
import * as Tokens from "@trigate/client/Tokens"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"

const baseUrl = new URLSearchParams(location.search).get("gateway") ?? ""

const gateway = Connection.layer({ baseUrl }).pipe(Layer.provide(FetchHttpClient.layer))

const program = Effect.gen(function*() {
  const refused = yield* Effect.flip(Info.candleSnapshot({ coin: "NOSUCHCOIN", interval: "1d", startTime: 0 }))
  const price = yield* Evm.gasPrice()
  const token = yield* Tokens.getTokenData({ address: "EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz" })
  const receipt = yield* Layer2.getTransactionReceipt({ hash: `0x${"ab".repeat(32)}` })
  const rejected = yield* Effect.flip(Exchange.submit({
    action: { type: "evmUserModify", usingBigBlocks: true },
    nonce: yield* Clock.currentTimeMillis,
    signature: { r: "0x1", s: "0x2", v: 27 }
  }))
  const mined = receipt === null ? "pending" : receipt.status
  return [refused._tag, typeof price, token.symbol, mined, rejected._tag].join(" ")
}).pipe(
  Effect.provide(gateway),
  Effect.catchCause((cause) => Effect.succeed(`failed: ${String(cause)}`))
)

document.title = await Effect.runPromise(program)
