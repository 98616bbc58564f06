/** An order by each client through a gateway with its defaults: placed once, and the result of each leg read. */
import { assert, describe, it } from "@effect/vitest"
import { ApiRequestError, ExchangeClient, HttpTransport } from "@nktkas/hyperliquid"
import * as Connection from "@trigate/client/Connection"
import * as Exchange from "@trigate/client/Exchange"
import type { AnySignedAction } from "@trigate/domain/actions/Action"
import type { ActionResult } from "@trigate/domain/actions/ActionOutcome"
import { requireAll } from "@trigate/domain/actions/ActionOutcome"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as NonceSource from "@trigate/signing/NonceSource"
import * as Signer from "@trigate/signing/Signer"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as EmbeddedExchange from "@trigate/trading/Exchange"
import * as Trading from "@trigate/trading/Trading"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { privateKeyToAccount } from "viem/accounts"
import { classified, exchangeAt } from "./ccxtVenue.ts"
import { sent } from "./hyperliquidVenue.ts"
import { rejection } from "./rejection.ts"
import { taken, venue } from "./venue.ts"

const { trader } = keys

const refusal = "Order must have minimum value of $10. asset=0"
const resting = `{"resting":{"oid":77738308}}`
const filled = `{"filled":{"totalSz":"0.02","avgPx":"60000.5","oid":77747314}}`
const refused = `{"error":"${refusal}"}`
const legs = { resting, filled, refused }

const statuses = (...each: ReadonlyArray<keyof typeof legs>) =>
  taken(`{"type":"order","data":{"statuses":[${each.map((leg) => legs[leg]).join(",")}]}}`)

/** A venue whose statuses are as told, and a gateway with its defaults in front of it. */
const started = Effect.fnUntraced(function*(...each: ReadonlyArray<keyof typeof legs>) {
  const upstream = yield* venue(() => statuses(...each))
  const { url } = yield* hostedGateway({ TRIGATE_TRADING_API_URL: upstream.url })
  return { upstream, url }
})

const isOrder = (body: string) => body.includes(`"type":"order"`)

describe("ccxt", () => {
  const exchangeThrough = Effect.fnUntraced(function*(url: string) {
    const exchange = exchangeAt(url, trader)
    // without it ccxt approves a fee of its own and sets its referrer first
    exchange.options = { ...exchange.options, builderFee: false }
    yield* Effect.promise(() => exchange.loadMarkets())
    return exchange
  })
  const symbol = "BTC/USDC:USDC"

  it.live("places an order and reads its id", () =>
    Effect.gen(function*() {
      const { upstream, url } = yield* started("resting")
      const exchange = yield* exchangeThrough(url)
      const placed = yield* Effect.promise(() => exchange.createOrder(symbol, "limit", "buy", 0.001, 60_000))
      assert.strictEqual(placed.id, "77738308")
      assert.deepStrictEqual(sent(upstream).filter(isOrder), [exchange.last_request_body])
    }))

  it.live("is told of a refused leg", () =>
    Effect.gen(function*() {
      const { upstream, url } = yield* started("resting", "refused")
      const exchange = yield* exchangeThrough(url)
      const order = { symbol, type: "limit", side: "buy", amount: 0.001, price: 60_000 } as const
      const error = classified(yield* rejection(() => exchange.createOrders([order, order])))
      assert.strictEqual(error.name, "InvalidOrder")
      assert.include(error.message, refusal)
      assert.strictEqual(sent(upstream).filter(isOrder).length, 1)
    }))
})

describe("@nktkas/hyperliquid", () => {
  const order = { a: 0, b: true, p: "60000", s: "0.001", r: false, t: { limit: { tif: "Gtc" } } } as const
  const at = (apiUrl: string) =>
    new ExchangeClient({
      transport: new HttpTransport({ apiUrl }),
      wallet: privateKeyToAccount(trader.privateKey)
    })

  it.live("places orders and reads the status of each", () =>
    Effect.gen(function*() {
      const { upstream, url } = yield* started("resting", "filled")
      const placed = yield* Effect.promise(() => at(url).order({ orders: [order, order], grouping: "na" }))
      assert.deepStrictEqual<unknown>(placed.response.data.statuses, [JSON.parse(resting), JSON.parse(filled)])
      assert.strictEqual(sent(upstream).length, 1)
    }))

  it.live("is told of a refused leg", () =>
    Effect.gen(function*() {
      const { upstream, url } = yield* started("resting", "refused")
      const error = yield* rejection(() => at(url).order({ orders: [order, order], grouping: "na" }))
      assert.instanceOf(error, ApiRequestError)
      assert.strictEqual(error.message, `order 1: ${refusal}`)
      assert.strictEqual(sent(upstream).length, 1)
    }))
})

const signing = Layer.mergeAll(
  Signer.layerPrivateKey(Redacted.make(trader.privateKey)),
  VenueProfile.layer("mainnet"),
  NonceSource.layerMemory()
)

const placeThree = Effect.gen(function*() {
  const { address } = yield* Signer.Signer
  const nonce = yield* NonceSource.NonceSource.use((nonces) => nonces.next(address))
  const order = { asset: 0, side: "buy", priceInQuote: "60000", sizeInBase: "0.001" } as const
  return yield* ActionBuilder.placeOrders({ orders: [order, order, order] }, { nonce })
}).pipe(Effect.provide(signing))

const submissions: {
  readonly [name: string]: (
    signed: AnySignedAction,
    places: { readonly url: string; readonly upstream: string }
  ) => Effect.Effect<ActionResult, { readonly _tag: string }>
} = {
  "the typed client": (signed, { url }) =>
    Exchange.submit(signed).pipe(
      Effect.provide(Connection.layer({ baseUrl: url }).pipe(Layer.provide(FetchHttpClient.layer)))
    ),
  "an embedded service": (signed, { upstream }) =>
    EmbeddedExchange.Exchange.use(({ submit }) => submit(signed)).pipe(
      Effect.provide(Trading.layer({ network: "mainnet", addresses: { api: [upstream] } }))
    )
}

for (const [name, submit] of Object.entries(submissions)) {
  describe(`by ${name}`, () => {
    it.live("places orders and returns the entry of each; a refused one is not hidden", () =>
      Effect.gen(function*() {
        const { upstream, url } = yield* started("resting", "filled", "refused")
        const result = yield* submit(yield* placeThree, { url, upstream: upstream.url })
        assert.deepStrictEqual(result.entries, [
          { _tag: "Resting", oid: 77_738_308 },
          { _tag: "Filled", oid: 77_747_314, totalSz: "0.02", avgPx: "60000.5" },
          { _tag: "Rejected", reason: "MinimumNotional", message: refusal }
        ])
        const error = yield* Effect.flip(requireAll(result))
        assert.deepInclude(error, { reason: "MinimumNotional", message: refusal, entries: result.entries })
        assert.strictEqual(sent(upstream).length, 1)
      }))

    it.live("reads one error for the batch as a refusal of each order", () =>
      Effect.gen(function*() {
        const { upstream, url } = yield* started("refused")
        const { entries } = yield* submit(yield* placeThree, { url, upstream: upstream.url })
        const each = { _tag: "Rejected", reason: "MinimumNotional", message: refusal } as const
        assert.deepStrictEqual(entries, [each, each, each])
      }))
  })
}
