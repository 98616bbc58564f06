/** `trigate order` and `cancel`: orders by coin name, signed with one key. */
import * as Info from "@trigate/client/Info"
import type { Address } from "@trigate/domain/encoding/Hex"
import { type Asset, unknownAsset } from "@trigate/domain/info/AssetLookup"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as OrderAction from "@trigate/signing/actions/OrderAction"
import type { Cloid, Order } from "@trigate/signing/actions/OrderAction"
import * as Decimal from "@trigate/signing/Decimal"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as Account from "../Account.ts"
import * as GatewayAccess from "../GatewayAccess.ts"
import * as Input from "../Input.ts"
import * as SignedSending from "../SignedSending.ts"
import { layer, signAndSend } from "./ActionCommands.ts"

const plain = /^[0-9]{1,24}(?:\.[0-9]{1,24})?$/u

const positive = (text: string): Option.Option<string> =>
  plain.test(text) && /[1-9]/u.test(text) ? Option.fromUndefinedOr(Decimal.canonical(text)) : Option.none()

const expectedPositive = () => "a plain decimal above 0, such as 0.01"

const cloid = /^0x[0-9a-fA-F]{32}$/u

const isCloid = (text: string): text is Cloid => cloid.test(text)

const timesInForce = { gtc: "Gtc", ioc: "Ioc", alo: "Alo" } as const

/** Maximum slippage of a market order from the mid price, in percent. */
const maxSlippage = 50

/** Generates a client order ID, so that the outcome can be looked up after a lost response. */
const newCloid: Effect.Effect<Cloid> = Effect.map(
  Effect.forEach(Array.from({ length: 8 }), () => Random.nextIntBetween(0, 0xffff)),
  (words): Cloid => `0x${words.map((word) => word.toString(16).padStart(4, "0")).join("")}`
)

/** Reads the mid price of an asset. Fails with `UnknownAsset` if the venue has no price for it. */
const readMid = Effect.fnUntraced(function*({ coin }: Asset) {
  const dex = coin.includes(":") ? { dex: coin.slice(0, coin.indexOf(":")) } : {}
  const mids = yield* GatewayAccess.ask(Info.allMids(dex))
  return yield* Effect.fromOption(Option.fromUndefinedOr(mids[coin]), () => unknownAsset(coin, Object.keys(mids)))
})

/** `trigate order`. */
export const order = Command.make(
  "order",
  {
    side: Argument.Literals("side", ["buy", "sell"]).pipe(Argument.withDescription("buy or sell")),
    size: Argument.String("size").pipe(
      Argument.filterMap(positive, expectedPositive),
      Argument.withDescription("Size in the coin: 0.01")
    ),
    coin: Argument.String("coin").pipe(
      Argument.withDescription("Perpetual (BTC), spot pair (PURR/USDC, @107) or dex:COIN; case-sensitive")
    ),
    price: Flag.String("price").pipe(
      Flag.withMetavar("price"),
      Flag.filterMap(positive, expectedPositive),
      Flag.optional,
      Flag.withDescription(
        "Limit price; without it the order is a market order, whose unfilled part is cancelled"
      )
    ),
    tif: Flag.Literals("tif", ["gtc", "ioc", "alo"]).pipe(
      Flag.optional,
      Flag.withDescription(
        "With --price: gtc rests until it is cancelled (default), ioc is filled at once or cancelled, alo only rests"
      )
    ),
    slippage: Flag.String("slippage").pipe(
      Flag.withMetavar("percent"),
      Flag.filterMap(
        (text) => Option.filter(Option.map(positive(text), Number), (percent) => percent <= maxSlippage),
        () => `a percentage above 0, up to ${maxSlippage}`
      ),
      Flag.optional,
      Flag.withDescription("Without --price: maximum slippage from the mid price, in percent (default: 5)")
    ),
    reduceOnly: Flag.Boolean("reduce-only").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Only reduce a position, never open or reverse one")
    ),
    cloid: Flag.String("cloid").pipe(
      Flag.withMetavar("hex"),
      Flag.filterMap(Option.liftPredicate(isCloid), () => "16 bytes in hex, 0x first"),
      Flag.optional,
      Flag.withDescription("Client order id, 16 bytes in hex (default: a random one)")
    ),
    network: Input.network,
    ...SignedSending.flags
  },
  Effect.fnUntraced(function*({ cloid, coin, price, reduceOnly, side, size, slippage, tif, ...options }) {
    if (Option.isSome(price) && Option.isSome(slippage)) {
      return yield* Input.fault("--slippage is for market orders; omit it with --price")
    }
    if (Option.isNone(price) && Option.isSome(tif)) {
      return yield* Input.fault("--tif requires --price: a market order never rests on the book")
    }
    return yield* signAndSend(
      options,
      Effect.fnUntraced(function*() {
        const asset = yield* GatewayAccess.ask(Info.asset(coin))
        if (Decimal.atMostPlaces(size, asset.szDecimals) !== size) {
          return yield* Input.fault(
            `${size} has too many decimal places: sizes of ${coin} have at most ${asset.szDecimals}`
          )
        }
        const ownId = yield* Option.match(cloid, { onNone: () => newCloid, onSome: Effect.succeed })
        const shared = { asset: asset.id, side, sizeInBase: size, reduceOnly, cloid: ownId }
        const verb = `${side === "buy" ? "buys" : "sells"} ${size} ${coin}${reduceOnly ? ", reduce only," : ""}`
        const place = (order: Order, terms: string) => ({
          body: (nonce: number) => ActionBuilder.placeOrders({ orders: [order] }, { nonce }),
          does: `${verb} ${terms}, cloid ${ownId}`
        })
        if (Option.isSome(price)) {
          const timeInForce = timesInForce[Option.getOrElse(tif, () => "gtc" as const)]
          return place({ ...shared, priceInQuote: price.value, timeInForce }, `at ${price.value} (${timeInForce})`)
        }
        const mid = yield* readMid(asset)
        const percent = Option.getOrElse(slippage, () => 5)
        const bound = OrderAction.worstPrice(mid, side, percent, asset)
        return place(
          { ...shared, priceInQuote: bound, timeInForce: "Ioc" },
          `at the market price, now ${mid}, with at most ${percent} % slippage`
        )
      })
    )
  })
).pipe(
  Command.withDescription(
    "Place a limit order or a market order, signed with your key. Prints the order and its destination, asks for confirmation " +
      "unless the venue is a sandbox, and sends the order once. If the response is lost, the cloid identifies the order: see trigate actions list"
  ),
  Command.withShortDescription("Place a limit order or a market order"),
  Command.withExamples([
    { command: "trigate order buy 0.01 BTC --price 50000 --key-file key.txt" },
    { command: "trigate order sell 0.5 ETH --reduce-only --slippage 1", description: "A market order" }
  ]),
  Command.provide(layer),
  GatewayAccess.options
)

/** No open order of the account has the given ID. */
export class NoOpenOrder extends Schema.TaggedError<NoOpenOrder>()("NoOpenOrder", {
  id: Schema.String,
  account: Schema.String
}) {
  override get message() {
    return this.id === ""
      ? `${this.account} has no open orders; nothing was sent`
      : `${this.account} has no open order ${this.id}; nothing was sent. To list the open orders, run trigate positions ${this.account}`
  }
}

const orderId = /^[1-9][0-9]{0,15}$/u

/** Maximum number of orders that one action cancels. */
const maxCancels = 1000

/**
 * Returns the open orders with the given IDs, on any of the dexes. Without IDs, returns up to {@link maxCancels} open
 * orders.
 */
const ordersToCancel = Effect.fnUntraced(function*(
  account: Address,
  dexes: ReadonlyArray<string>,
  ids: ReadonlyArray<string>
) {
  const open = (yield* GatewayAccess.ask(
    Effect.forEach(dexes, (dex) => Info.openOrders({ user: account, ...Account.inDex(dex) }), { concurrency: 4 })
  )).flat()
  if (ids.length === 0) {
    return open.length === 0 ? yield* new NoOpenOrder({ id: "", account }) : open.slice(0, maxCancels)
  }
  return yield* Effect.forEach(ids, (id) =>
    Effect.fromOption(
      Option.fromUndefinedOr(open.find(({ cloid, oid }) => String(oid) === id || cloid === id.toLowerCase())),
      () => new NoOpenOrder({ id, account })
    ))
})

/** `trigate cancel`. */
export const cancel = Command.make(
  "cancel",
  {
    ids: Argument.String("id").pipe(
      Argument.filter((id) => orderId.test(id) || isCloid(id), () => "an order id, or a cloid: 16 bytes in hex"),
      Argument.withDescription("IDs or cloids of the orders, as printed by trigate positions"),
      Argument.variadic({ max: maxCancels })
    ),
    all: Flag.Boolean("all").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Cancel every open order, on every dex")
    ),
    dex: Account.dexFlag("all, and the venue's own"),
    network: Input.network,
    ...SignedSending.flags
  },
  Effect.fnUntraced(function*({ all, dex, ids, ...options }) {
    if (all === ids.length > 0) {
      return yield* Input.fault("Name the orders to cancel, or use --all for every open order")
    }
    return yield* signAndSend(
      options,
      Effect.fnUntraced(function*({ address }) {
        const account = yield* Account.ofSigner(address)
        const orders = yield* ordersToCancel(account, yield* Account.dexes(dex), ids)
        const assets = new Map(
          yield* Effect.forEach(
            new Set(orders.map(({ coin }) => coin)),
            (coin) => Effect.map(GatewayAccess.ask(Info.asset(coin)), ({ id }) => [coin, id] as const)
          )
        )
        const cancels = orders.map(({ coin, oid }) => ({ asset: assets.get(coin) ?? 0, orderId: oid }))
        const named = orders.map(({ coin, limitPx, oid, side, sz }) =>
          `${oid} (${side === "B" ? "buy" : "sell"} ${sz} ${coin} at ${limitPx})`
        )
        return {
          body: (nonce: number) => ActionBuilder.cancelOrders(cancels, { nonce }),
          does: `cancels ${orders.length === 1 ? "the order" : `${orders.length} orders:`} ${named.join(", ")}`
        }
      })
    )
  })
).pipe(
  Command.withDescription("Cancel open orders by id, signed with your key. The coin of each order is looked up"),
  Command.withExamples([
    { command: "trigate cancel 91490942 --key-file key.txt" },
    { command: "trigate cancel --all" }
  ]),
  Command.provide(layer),
  GatewayAccess.options
)
