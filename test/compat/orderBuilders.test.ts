/**
 * Orders, cancels and modifies of our builders against those of `@nktkas/hyperliquid` and ccxt: the same action, printed in
 * the same order, and the same signature.
 */
import { assert, describe, it } from "@effect/vitest"
import { ExchangeClient } from "@nktkas/hyperliquid"
import { formatPrice, formatSize } from "@nktkas/hyperliquid/utils"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import type * as OrderAction from "@trigate/signing/actions/OrderAction"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Signer from "@trigate/signing/Signer"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import { sampleRuns } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { privateKeyToAccount } from "viem/accounts"
import { exchangeAt } from "./ccxtVenue.ts"

const nonce = 1_795_230_000_000
const vaultAddress = keys.multiSigUser.address
const builder = keys.stranger.address

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** So many units of a thousandth: at most five digits, as prices have, and three decimal places. */
const Price = between(1, 99_999)
const Size = between(1, 9_999_999)
const Id = between(1, 2 ** 48)

const text = (thousandths: number): string => {
  const digits = String(thousandths).padStart(4, "0")
  return `${digits.slice(0, -3)}.${digits.slice(-3)}`.replace(/\.?0+$/u, "")
}

const padded = (thousandths: number, zeros: number): string => {
  const plain = text(thousandths)
  return zeros === 0 ? plain : `${plain.includes(".") ? plain : `${plain}.`}${"0".repeat(zeros)}`
}

const Terms = Schema.Struct({
  isBuy: Schema.Boolean,
  price: Price,
  size: Size,
  zeros: between(0, 3),
  reduceOnly: Schema.Boolean,
  tif: Schema.Literals(["Gtc", "Ioc", "Alo"]),
  trigger: Schema.NullOr(Schema.Struct({ price: Price, isTakeProfit: Schema.Boolean, isMarket: Schema.Boolean })),
  cloid: Schema.NullOr(Id)
})
type Terms = typeof Terms.Type

/** `@nktkas/hyperliquid` takes a small one for an order id. */
const cloidOf = (id: number) => `0xc1${id.toString(16).padStart(30, "0")}` as const

const ours = (terms: Terms, asset = 3): OrderAction.Order => ({
  asset,
  side: terms.isBuy ? "buy" : "sell",
  priceInQuote: padded(terms.price, terms.zeros),
  sizeInBase: padded(terms.size, terms.zeros),
  reduceOnly: terms.reduceOnly,
  ...(terms.cloid === null ? {} : { cloid: cloidOf(terms.cloid) }),
  ...(terms.trigger === null ? { timeInForce: terms.tif } : {
    trigger: {
      kind: terms.trigger.isTakeProfit ? "takeProfit" as const : "stopLoss" as const,
      priceInQuote: text(terms.trigger.price),
      isMarket: terms.trigger.isMarket
    }
  })
})

const theirs = (terms: Terms) => ({
  a: 3,
  b: terms.isBuy,
  p: padded(terms.price, terms.zeros),
  s: padded(terms.size, terms.zeros),
  r: terms.reduceOnly,
  t: terms.trigger === null ? { limit: { tif: terms.tif } } : {
    trigger: {
      isMarket: terms.trigger.isMarket,
      triggerPx: text(terms.trigger.price),
      tpsl: terms.trigger.isTakeProfit ? "tp" as const : "sl" as const
    }
  },
  ...(terms.cloid === null ? {} : { c: cloidOf(terms.cloid) })
})

const Envelope = { vault: Schema.Boolean, expires: Schema.NullOr(between(nonce, nonce + 1_000_000)) }

const optionsOf = ({ expires, vault }: { readonly vault: boolean; readonly expires: number | null }) => ({
  ...(vault ? { vaultAddress } : {}),
  ...(expires === null ? {} : { expiresAfter: expires })
})

const signing = Layer.merge(
  Signer.layerPrivateKey(Redacted.make(keys.trader.privateKey)),
  VenueProfile.layer("mainnet")
)

type Sent = { readonly action: unknown; readonly nonce: number; readonly signature: unknown }

/** The body that the peer would send. */
const peerBody = (act: (client: ExchangeClient) => Promise<unknown>) =>
  Effect.gen(function*() {
    const sent: Array<Sent> = []
    const client = new ExchangeClient({
      wallet: privateKeyToAccount(keys.trader.privateKey),
      nonceManager: () => nonce,
      transport: {
        isTestnet: false,
        request: (_endpoint: string, payload: Sent) => {
          sent.push(payload)
          return Promise.resolve(JSON.parse(`{"status":"ok","response":{"type":"default"}}`))
        }
      }
    })
    yield* Effect.promise(() => act(client))
    const [body] = sent
    return body ?? assert.fail("nothing was sent")
  })

const Signature = Schema.Struct({ r: Schema.String, s: Schema.String, v: Schema.Int })

/** ccxt leaves out leading zeros. */
const whole = (signature: unknown) =>
  Effect.map(Schema.decodeUnknownEffect(Signature)(signature), ({ r, s, v }) => [BigInt(r), BigInt(s), v])

const same = Effect.fnUntraced(function*<A extends Sent, E>(
  body: Effect.Effect<A, E, Signer.Signer | VenueProfile.Venue>,
  peer: Sent
) {
  const { action, signature } = yield* Effect.provide(body, signing)
  assert.strictEqual(JSON.stringify(action), JSON.stringify(peer.action))
  assert.deepStrictEqual(yield* whole(signature), yield* whole(peer.signature))
})

const runs = { arbitrary: { runs: sampleRuns(60) } }

describe("builders against @nktkas/hyperliquid", () => {
  const Placed = Schema.Struct({
    orders: Schema.NonEmptyArray(Terms),
    grouping: Schema.Literals(["na", "normalTpsl", "positionTpsl"]),
    fee: Schema.NullOr(between(0, 1000)),
    ...Envelope
  })

  it.effect.prop("sign the same orders", { placed: Placed }, ({ placed }) =>
    Effect.gen(function*() {
      const { fee, grouping, orders } = placed
      const opts = optionsOf(placed)
      const peer = yield* peerBody((client) =>
        client.order(
          { orders: orders.map(theirs), grouping, ...(fee === null ? {} : { builder: { b: builder, f: fee } }) },
          opts
        )
      )
      const builderFee = fee === null ? {} : { builderFee: { address: builder, feeInTenthsOfBp: fee } }
      const terms = { orders: orders.map((order) => ours(order)), grouping, ...builderFee }
      yield* same(ActionBuilder.placeOrders(terms, { nonce, ...opts }), peer)
    }).pipe(Effect.provide(Secp256k1.layer)), runs)

  it.effect.prop(
    "sign the same cancels",
    { ids: Schema.NonEmptyArray(Id), fast: Schema.Boolean, envelope: Schema.Struct(Envelope) },
    ({ envelope, fast, ids }) =>
      Effect.gen(function*() {
        const opts = optionsOf(envelope)
        const flag = fast ? { f: true } as const : {}
        yield* same(
          ActionBuilder.cancelOrders(ids.map((orderId) => ({ asset: 3, orderId })), { nonce, fast, ...opts }),
          yield* peerBody((client) => client.cancel({ cancels: ids.map((o) => ({ a: 3, o })), ...flag }, opts))
        )
        const cloids = ids.map((id) => ({ asset: 3, cloid: cloidOf(id) }))
        yield* same(
          ActionBuilder.cancelOrdersByCloid(cloids, { nonce, fast, ...opts }),
          yield* peerBody((client) => client.cancelByCloid({ cancels: cloids, ...flag }, opts))
        )
      }),
    runs
  )

  it.effect.prop(
    "sign the same modifies",
    { orders: Schema.NonEmptyArray(Schema.Struct({ id: Id, byCloid: Schema.Boolean, to: Terms })), ...Envelope },
    ({ orders, ...envelope }) =>
      Effect.gen(function*() {
        const opts = optionsOf(envelope)
        const oid = ({ byCloid, id }: { readonly byCloid: boolean; readonly id: number }) => byCloid ? cloidOf(id) : id
        yield* same(
          ActionBuilder.modifyOrders(orders.map((each) => ({ order: oid(each), to: ours(each.to) })), {
            nonce,
            ...opts
          }),
          yield* peerBody((client) =>
            client.batchModify({ modifies: orders.map((each) => ({ oid: oid(each), order: theirs(each.to) })) }, opts)
          )
        )
        const [first] = orders
        yield* same(
          ActionBuilder.modifyOrder({ order: oid(first), to: ours(first.to) }, { nonce, ...opts }),
          yield* peerBody((client) => client.modify({ oid: oid(first), order: theirs(first.to) }, opts))
        )
      }),
    runs
  )

  it.effect.prop(
    "cut to the same steps where they are asked to",
    { price: between(1, 10 ** 13), size: between(1, 10 ** 13), szDecimals: between(0, 5), isSpot: Schema.Boolean },
    ({ isSpot, price, size, szDecimals }) =>
      Effect.gen(function*() {
        const market = isSpot ? "spot" as const : "perp" as const
        const decimal = (units: number) => `${Math.floor(units / 1e8)}.${String(units % 1e8).padStart(8, "0")}`
        const peer = (cut: () => string) => Effect.option(Effect.try({ try: cut, catch: () => "zero" }))
        const [p, s] = [
          yield* peer(() => formatPrice(decimal(price), szDecimals, market)),
          yield* peer(() => formatSize(decimal(size), szDecimals))
        ]
        const order = {
          asset: 3,
          side: "buy" as const,
          priceInQuote: decimal(price),
          sizeInBase: decimal(size),
          cutTo: { szDecimals, market }
        }
        const body = yield* Effect.option(ActionBuilder.placeOrders({ orders: [order] }, { nonce }))
        assert.strictEqual(body._tag, p._tag === "Some" && s._tag === "Some" ? "Some" : "None")
        if (body._tag === "None" || p._tag === "None" || s._tag === "None") return
        const [placed] = body.value.action.orders
        assert.deepStrictEqual([placed?.p, placed?.s], [p.value, s.value])
      }).pipe(Effect.provide(signing)),
    { arbitrary: { runs: sampleRuns(300) } }
  )
})

/** ccxt with one market, by the trader's key, at the nonce; nothing is asked of anybody. */
const ccxt = () => {
  const exchange = exchangeAt("http://localhost:1", keys.trader)
  exchange.setMarkets([{
    id: "3",
    baseId: "3",
    symbol: "BTC/USDC:USDC",
    base: "BTC",
    quote: "USDC",
    settle: "USDC",
    type: "swap",
    swap: true,
    spot: false,
    contract: true,
    precision: { amount: 0.001, price: 0.001 }
  }])
  exchange.options = { ...exchange.options, approvedBuilderFee: false }
  exchange.incrementingNonce = () => nonce
  return exchange
}

const Signed = Schema.Struct({ action: Schema.Unknown, nonce: Schema.Int, signature: Schema.Unknown })
const bodyOf = (request: unknown) => Schema.decodeUnknownEffect(Signed)(request)

const ccxtOrder = (terms: Terms, id?: number) => ({
  symbol: "BTC/USDC:USDC",
  type: "limit",
  side: terms.isBuy ? "buy" : "sell",
  amount: text(terms.size),
  price: text(terms.price),
  ...(id === undefined ? {} : { id: String(id) }),
  params: {
    reduceOnly: terms.reduceOnly,
    ...(terms.cloid === null ? {} : { clientOrderId: cloidOf(terms.cloid) }),
    ...(terms.trigger === null ? { timeInForce: terms.tif } : terms.trigger.isTakeProfit
      ? { takeProfitPrice: text(terms.trigger.price) }
      : { stopLossPrice: text(terms.trigger.price) })
  }
})

describe("builders against ccxt", () => {
  /** ccxt triggers limits as limits only, and wants a client's id of all orders or of none. */
  const asCcxt = (terms: Terms, cloid: number | null): Terms => ({
    ...terms,
    cloid,
    zeros: 0,
    trigger: terms.trigger === null ? null : { ...terms.trigger, isMarket: false }
  })
  const Batch = { orders: Schema.NonEmptyArray(Terms), id: Schema.NullOr(Id), vault: Schema.Boolean }

  it.effect.prop("sign the same orders and modifies", Batch, ({ id, orders, vault }) =>
    Effect.gen(function*() {
      const exchange = ccxt()
      const params = vault ? { vaultAddress } : {}
      const terms = orders.map((order) => asCcxt(order, id))
      yield* same(
        ActionBuilder.placeOrders({ orders: terms.map((order) => ours(order)) }, { nonce, ...params }),
        yield* bodyOf(exchange.createOrdersRequest(terms.map((order) => ccxtOrder(order)), { ...params }))
      )
      yield* same(
        ActionBuilder.modifyOrders(terms.map((to, at) => ({ order: at + 1, to: ours(to) })), { nonce, ...params }),
        yield* bodyOf(exchange.editOrdersRequest(terms.map((to, at) => ccxtOrder(to, at + 1)), { ...params }))
      )
    }), { arbitrary: { runs: sampleRuns(20) } })

  it.effect.prop(
    "sign the same cancels",
    { ids: Schema.NonEmptyArray(Id), vault: Schema.Boolean },
    ({ ids, vault }) =>
      Effect.gen(function*() {
        const exchange = ccxt()
        const params = vault ? { vaultAddress } : {}
        const symbol = "BTC/USDC:USDC"
        yield* same(
          ActionBuilder.cancelOrders(ids.map((orderId) => ({ asset: 3, orderId })), { nonce, ...params }),
          yield* bodyOf(exchange.cancelOrdersRequest(ids.map(String), symbol, { ...params }))
        )
        yield* same(
          ActionBuilder.cancelOrdersByCloid(ids.map((id) => ({ asset: 3, cloid: cloidOf(id) })), { nonce, ...params }),
          yield* bodyOf(exchange.cancelOrdersRequest([], symbol, { ...params, clientOrderId: ids.map(cloidOf) }))
        )
      }),
    { arbitrary: { runs: sampleRuns(20) } }
  )
})
