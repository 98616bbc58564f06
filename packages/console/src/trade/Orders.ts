/**
 * Orders of the sandbox's trader, whose key is public: they are signed in the page, sent, and followed until their
 * outcome is known, even if the response is lost.
 */
import { signal } from "@preact/signals"
import type { Connection } from "@trigate/client/Connection"
import type * as Exchange from "@trigate/client/Exchange"
import * as Info from "@trigate/client/Info"
import {
  type ActionEntry,
  type ActionRecord,
  type Cloid,
  isOpen,
  type OrderId,
  requireAll
} from "@trigate/domain/actions/ActionOutcome"
import { adviceFor } from "@trigate/domain/actions/Resolution"
import { millisBetween, type MonotonicTime } from "@trigate/domain/encoding/Encoding"
import type { Position } from "@trigate/domain/info/Account"
import type { Asset } from "@trigate/domain/info/Market"
import { trader } from "@trigate/domain/unstable/Sandbox"
import type * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import type * as OrderAction from "@trigate/signing/actions/OrderAction"
import type * as Signer from "@trigate/signing/Signer"
import type * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Redacted from "effect/Redacted"
import * as AccountState from "../account/AccountState.tsx"
import * as Gateway from "../Gateway.ts"
import { readiness } from "../Live.ts"
import * as Table from "../Table.tsx"
import { label } from "./Coins.tsx"

/** Maximum slippage of a market order from the mid price, in percent. */
export const slippage = 5

/** The types of orders, by the name that the page shows. */
export const types = {
  market: "Market",
  limit: "Limit",
  stopLoss: "Stop loss",
  takeProfit: "Take profit"
} as const

/** The times in force of limit orders, by the name that the page shows. */
export const timesInForce = { Gtc: "Until cancelled", Ioc: "Immediate or cancel", Alo: "Post only" } as const

/** The terms of an order, as texts of the form. */
export interface Terms {
  readonly coin: string
  readonly side: "buy" | "sell"
  readonly type: keyof typeof types
  readonly size: string
  /** The price of a limit order, or the trigger price of a stop loss or a take profit. */
  readonly price: string
  readonly timeInForce: keyof typeof timesInForce
  readonly isReduceOnly: boolean
}

/** The report on the latest action. */
export interface Report {
  /** `wait` while the outcome is unknown. */
  readonly tone: "good" | "bad" | "wait"
  readonly says: ReadonlyArray<string>
  /** The client order ID; present if the response was lost. */
  readonly cloid?: Cloid
}

/** The report on the latest action; `undefined` before the first one. */
export const report = signal<Report | undefined>(undefined)

let lastNonce = 0

/** Returns a nonce that no other action of this page uses. */
const nextNonce = Effect.map(Clock.currentTimeMillis, (now) => lastNonce = Math.max(now, lastNonce + 1))

/** Milliseconds from the signature of an order until the venue refuses it. A lost order can then no longer arrive. */
const lifetime = 5000

/** Returns the network of the venue. */
export const network = (): "mainnet" | "testnet" => readiness.value?.network ?? "mainnet"

/** The code that builds, signs and sends actions: a quarter of the view's script, loaded with the first action. */
const signing = Effect.promise(async () => {
  const [exchange, builder, orders, signer, venue] = await Promise.all([
    import("@trigate/client/Exchange"),
    import("@trigate/signing/actions/ActionBuilder"),
    import("@trigate/signing/actions/OrderAction"),
    import("@trigate/signing/Signer"),
    import("@trigate/signing/VenueProfile")
  ])
  return { exchange, builder, orders, signer, venue }
})

/** Loads the code that signs, before it is needed. */
export const prepare = (): void => void Effect.runPromise(signing)

/** Builds an action with a fresh nonce, signed by the sandbox's trader. */
export const signed = Effect.fnUntraced(function*<A, E>(
  build: (
    builder: typeof ActionBuilder,
    options: ActionBuilder.L1Options
  ) => Effect.Effect<A, E, Signer.Signer | VenueProfile.Venue>,
  signedFor = network()
) {
  const { builder, signer: { makePrivateKey, Signer }, venue: { profileFor, Venue } } = yield* signing
  const signer = yield* makePrivateKey(Redacted.make(trader.privateKey))
  const nonce = yield* nextNonce
  return yield* build(builder, { nonce, expiresAfter: nonce + lifetime }).pipe(
    Effect.provideService(Signer, signer),
    Effect.provideService(Venue, profileFor(signedFor))
  )
})

/** Sends a signed action. */
const submitSigned = (body: Parameters<typeof Exchange.submit>[0]) =>
  Effect.flatMap(signing, ({ exchange }) => exchange.submit(body))

const hexDigit = Effect.map(Random.nextIntBetween(0, 15), (digit) => digit.toString(16))

const newCloid = Effect.map(
  Effect.all(Array.from({ length: 32 }, () => hexDigit)),
  (digits): Cloid => `0x${digits.join("")}`
)

/** Makes the order of the terms. A market order is limited to a slippage from the mid price. */
const toOrder = (
  { isReduceOnly, price, side, size, timeInForce, type }: Terms,
  asset: Asset,
  mid: string,
  { worstPrice }: typeof OrderAction
): OrderAction.Order => {
  const terms = { asset: asset.id, side, sizeInBase: size, reduceOnly: isReduceOnly }
  if (type === "limit") return { ...terms, priceInQuote: price, timeInForce }
  const reference = type === "market" ? mid : price
  const priceInQuote = worstPrice(reference, side, slippage, asset)
  return type === "market"
    ? { ...terms, priceInQuote, timeInForce: "Ioc" }
    : { ...terms, priceInQuote, trigger: { kind: type, priceInQuote: price, isMarket: true } }
}

/** An order whose response was lost. */
interface Lost {
  readonly cloid: Cloid
  readonly advice: string
  readonly since: MonotonicTime
}

/** The result of sending an order. */
type Sent = { readonly entry: ActionEntry | undefined; readonly asset: Asset } | Lost

/** Sends an order with a new client order ID. A lost response is a result, not a failure. */
export const send = Effect.fnUntraced(function*(terms: Terms) {
  const asset = yield* Info.asset(terms.coin)
  const mids = yield* Info.allMids(asset.coin.includes(":") ? { dex: asset.coin.split(":")[0] ?? "" } : {})
  const cloid = yield* newCloid
  const { orders } = yield* signing
  const order = { ...toOrder(terms, asset, mids[asset.coin] ?? "0", orders), cloid }
  const body = yield* signed((builder, options) => builder.placeOrders({ orders: [order] }, options))
  return yield* submitSigned(body).pipe(
    Effect.map(({ entries: [entry] }): Sent => ({ entry, asset })),
    Effect.catchTag(
      "OutcomeUnknown",
      ({ advice }) => Effect.sync((): Sent => ({ cloid, advice, since: Gateway.elapsed() }))
    )
  )
})

/** Looks up the outcome of a lost order until it is known. */
const settle = (cloid: Cloid) =>
  Effect.flatMap(
    signing,
    ({ exchange }) =>
      Effect.repeat(exchange.outcome({ cloid, signer: trader.address }, { wait: "20 seconds" }), { while: isOpen })
  )

/** Replaces the words of the API in a message of the gateway or the venue. */
const plain = (message: string): string =>
  message
    .replaceAll(/ asset=\d+/gu, "")
    .replaceAll(/"(?:orders\.\d+\.)?sizeInBase"/gu, "The size")
    .replaceAll(/"(?:orders\.\d+\.)?(?:trigger\.)?priceInQuote"/gu, "The price")

/** Returns the advice about a refusal, with the number of decimals that the asset allows. */
const advise = ({ message, reason }: Extract<ActionEntry, { readonly _tag: "Rejected" }>, asset: Asset | undefined) => {
  if (asset !== undefined && reason === "LotSize") {
    return `The size of ${label(asset.coin)} has at most ${asset.szDecimals} decimals.`
  }
  if (asset !== undefined && reason === "TickSize") {
    const places = (asset.market === "perp" ? 6 : 8) - asset.szDecimals
    return `A price of ${label(asset.coin)} has at most 5 significant digits and ${places} decimals.`
  }
  return adviceFor(reason) ?? `The venue's message is ${message}`
}

/** Describes the result of an order. */
const describe = (
  entry: ActionEntry | undefined,
  { asset, type }: Partial<Terms> & { readonly asset?: Asset } = {}
): Report => {
  switch (entry?._tag) {
    case "Resting":
      return {
        tone: "good",
        says: [
          type === "stopLoss" || type === "takeProfit"
            ? `Order ${entry.oid} waits for its trigger price.`
            : `Order ${entry.oid} is resting on the book.`
        ]
      }
    case "Filled":
      return {
        tone: "good",
        says: [`Order ${entry.oid} is filled: ${Table.size(entry.totalSz)} at ${Table.decimal(entry.avgPx)}.`]
      }
    case "Waiting":
      return { tone: "good", says: ["The order waits for its trigger price."] }
    case "Rejected":
      return { tone: "bad", says: [`Refused: ${plain(entry.message)}`, advise(entry, asset)] }
    default:
      return { tone: "good", says: ["Done."] }
  }
}

const describeSettled = ({ settled, state }: ActionRecord, seconds: string): Report => {
  if (state === "accepted" || settled?.entries !== undefined) {
    const { says, tone } = describe(settled?.entries?.[0])
    return { tone, says: [`Known after ${seconds} s. ${says[0] ?? ""}`, ...says.slice(1)] }
  }
  return state === "neverArrived"
    ? { tone: "good", says: [`Known after ${seconds} s: the order was not placed, and can no longer arrive.`] }
    : { tone: "bad", says: [`After ${seconds} s: ${state}.`] }
}

const fail = (failure: string): Report => ({ tone: "bad", says: [plain(failure)] })

/** Queries the account immediately, instead of waiting for the stream. */
export const readAgain = (): Promise<void> => AccountState.read(trader.address)

/** Reports the loss, looks up the outcome, and reports it. Returns the record of the action. */
const followLost = async ({ advice, cloid, since }: Lost): Promise<ActionRecord | undefined> => {
  report.value = {
    tone: "wait",
    cloid,
    says: [
      "Outcome unknown: the order was sent, and the response was lost.",
      "The venue may have executed it. The gateway reads the outcome from the venue's state; do not sign the order again.",
      `${advice}.`
    ]
  }
  const outcome = await Gateway.runOnPaper(settle(cloid))
  const seconds = Table.fixed(millisBetween(since, Gateway.elapsed()) / 1000, 1)
  report.value = { cloid, ..."failure" in outcome ? fail(outcome.failure) : describeSettled(outcome.value, seconds) }
  return "failure" in outcome ? undefined : outcome.value
}

/**
 * Places an order and reports on it until its outcome is known. Runs `afterwards` once the order was sent. Returns the
 * record of an order whose response was lost.
 */
export const submit = async (terms: Terms, afterwards?: () => Promise<void>): Promise<ActionRecord | undefined> => {
  report.value = { tone: "wait", says: ["Sending …"] }
  const outcome = await Gateway.runOnPaper(send(terms))
  await afterwards?.()
  const lost = "value" in outcome && "cloid" in outcome.value ? await followLost(outcome.value) : undefined
  if ("failure" in outcome) report.value = fail(outcome.failure)
  else if ("entry" in outcome.value) {
    report.value = describe(outcome.value.entry, { ...terms, asset: outcome.value.asset })
  }
  await readAgain()
  return lost
}

const act = async <E>(call: Effect.Effect<unknown, E, Connection>, says: string): Promise<void> => {
  const outcome = await Gateway.runOnPaper(call)
  report.value = "failure" in outcome ? fail(outcome.failure) : { tone: "good", says: [says] }
  await readAgain()
}

/** An open order's coin and ID. */
type Open = { readonly coin: string; readonly oid: OrderId }

/** Cancels orders. */
export const cancel = (orders: ReadonlyArray<Open>): Promise<void> => {
  const [first] = orders
  const call = Effect.gen(function*() {
    const cancels = yield* Effect.forEach(
      orders,
      ({ coin, oid }) => Effect.map(Info.asset(coin), ({ id }) => ({ asset: id, orderId: oid }))
    )
    const body = yield* signed((builder, options) => builder.cancelOrders(cancels, options))
    return yield* Effect.flatMap(submitSigned(body), requireAll)
  })
  return act(call, orders.length === 1 ? `Order ${first?.oid} is cancelled.` : `${orders.length} orders are cancelled.`)
}

/** Closes a position at the market. */
export const close = async ({ coin, szi }: Position): Promise<void> => {
  await submit({
    coin,
    side: szi.startsWith("-") ? "buy" : "sell",
    type: "market",
    size: szi.replace("-", ""),
    price: "",
    timeInForce: "Ioc",
    isReduceOnly: true
  })
}

/** Sets the leverage of a perpetual. */
export const setLeverage = (coin: string, leverage: number, isCross: boolean): Promise<void> =>
  act(
    Effect.gen(function*() {
      const { id } = yield* Info.asset(coin)
      const action = { type: "updateLeverage", asset: id, isCross, leverage } as const
      return yield* submitSigned(yield* signed((builder, options) => builder.signL1(action, options)))
    }),
    `The leverage of ${label(coin)} is ${leverage}×.`
  )
