import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Connection from "@trigate/client/Connection"
import * as Evm from "@trigate/client/Evm"
import * as Exchange from "@trigate/client/Exchange"
import * as Info from "@trigate/client/Info"
import * as Layer2 from "@trigate/client/Layer2"
import * as Tokens from "@trigate/client/Tokens"
import * as Gas from "@trigate/domain/evm/EvmResources"
import { coins, keys, tokens, transactions } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { Clock, Config, Console, Effect, Layer } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"

const program = Effect.gen(function*() {
  const now = yield* Clock.currentTimeMillis

  const price = yield* Evm.gasPrice()
  yield* Console.log(`HyperEVM: gas costs ${Gas.formatGwei(price)} gwei`)

  const token = yield* Tokens.getTokenData({ address: tokens.onchain })
  yield* Console.log(`token chain: ${token.symbol ?? "a token without a symbol"}, ${token.totalSupply} units`)

  const receipt = yield* Layer2.getTransactionReceipt({ hash: transactions.failed })
  yield* Console.log(`layer 2: ${receipt === null ? "not in a block yet" : receipt.status}`)

  // every error is in the type: a tag that the method cannot fail with does not compile
  yield* Info.candleSnapshot({ coin: coins.unknown, interval: "1h", startTime: now - 3_600_000 }).pipe(
    Effect.map(({ candles }) => `${candles.length} bars`),
    Effect.catchTag("UnknownAsset", ({ coin }) => Effect.succeed(`nobody trades ${coin}`)),
    Effect.flatMap((line) => Console.log(`venue: ${line}`))
  )

  // a key that everyone knows: a program of your own has its wallet sign `Signable.typedData` of @trigate/signing
  const signed = yield* SandboxSigner.signAction(keys.trader, {
    nonce: now,
    action: { type: "evmUserModify", usingBigBlocks: true }
  })
  const outcome = yield* Exchange.submit(signed).pipe(
    Effect.as("taken"),
    Effect.catchTags({
      ActionRejected: ({ message, reason }) => Effect.succeed(`refused, ${reason}: ${message}`),
      // it may have been taken: the same bytes show it, and a fresh nonce could do it twice
      OutcomeUnknown: () =>
        Effect.map(Exchange.resolve(signed), ({ _tag }) => _tag === "Rejected" ? "refused" : "taken")
    })
  )
  yield* Console.log(`signed action: ${outcome}`)
})

const gateway = Connection.layerConfig({
  baseUrl: Config.withDefault(Config.String("GATEWAY_URL"), "http://127.0.0.1:8080")
})

NodeRuntime.runMain(Effect.provide(program, gateway.pipe(Layer.provide(FetchHttpClient.layer))))
