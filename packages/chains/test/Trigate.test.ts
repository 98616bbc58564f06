/** All chains of one process, over a gateway whose sandbox stands for the upstreams. */
import { assert, it } from "@effect/vitest"
import { Exchange, Info, Layer2, Orders, Streams, TokenChain, TradingEvm, Trigate } from "@trigate/chains"
import { trader } from "@trigate/domain/unstable/Sandbox"
import { gateway } from "@trigate/testing/Gateway"
import { flipReason } from "@trigate/testing/Reason"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"

const token = "EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz"

it.live("reads each chain, and an order, its fill and its record are one account's", () =>
  Effect.gen(function*() {
    const { url } = yield* gateway({ TRIGATE_ENDPOINT_KEYS: "any-key" })
    const node = [`${url}/any-key`]
    const program = Effect.gen(function*() {
      const { account, place } = yield* Orders
      const placed = yield* place({ coin: "ETH", side: "buy", sizeInBase: "0.05" })
      assert.strictEqual(placed._tag, "Filled")
      const { userFills } = yield* Streams
      const first = yield* Stream.runHead(userFills({ user: yield* account }))
      assert.deepInclude(first, { _tag: "Some" })
      const { state } = yield* Exchange.use(({ outcome }) => outcome({ signer: placed.signer, nonce: placed.nonce }))
      assert.strictEqual(state, "accepted")
      const wei = yield* TradingEvm.use(({ getBalance }) => getBalance({ address: trader.address }))
      const sent = yield* TradingEvm.use((evm) =>
        evm.getTransactionCount({ address: trader.address, block: "pending" })
      )
      assert.deepStrictEqual([wei > 0n, sent], [true, 0n])
      assert.isAbove(Number(yield* Layer2.use(({ getBalance }) => getBalance({ address: trader.address }))), 0)
      const refused = yield* flipReason(Layer2.use((layer2) => layer2.sendRawTransaction({ transaction: "0x02" })))
      assert.strictEqual(refused._tag, "InvalidRequest")
      const { symbol } = yield* TokenChain.use(({ getTokenData }) => getTokenData({ address: token }))
      assert.strictEqual(symbol, "TRIG")
    })
    yield* Effect.provide(
      program,
      Trigate.layer({
        network: "mainnet",
        addresses: { api: [url], node, tokens: [url], layer2: node },
        privateKey: Redacted.make(trader.privateKey)
      })
    )
  }))

it.effect("a chain without URLs is not configured", () =>
  Effect.gen(function*() {
    const error = yield* flipReason(Info.use(({ allMids }) => allMids()))
    assert.strictEqual(error._tag, "ChainNotConfigured")
  }).pipe(Effect.provide(Trigate.layer({ network: "testnet", addresses: {} }))))
