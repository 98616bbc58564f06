/**
 * The tools of `trigate mcp`, over the gateway that the command calls: queries, the inspector, and, if a policy of the
 * gateway applies to the signer's account, orders and cancels.
 *
 * Orders are signed and sent as `trigate order` does. The guard of the gateway judges each order; before, the tool asks
 * for a person's approval if the order is above a threshold.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { hashKey } from "@trigate/callers/KeyStore"
import * as Exchange from "@trigate/client/Exchange"
import * as Info from "@trigate/client/Info"
import { type ActionReference, ActionState, Cloid, requireAll } from "@trigate/domain/actions/ActionOutcome"
import { barAt, CandleInterval, openTime } from "@trigate/domain/candles/Candle"
import { Address, Millis } from "@trigate/domain/encoding/Encoding"
import { OutcomeUnknown, PolicyViolation, unwrapReason } from "@trigate/domain/errors/GatewayError"
import type * as NonceSource from "@trigate/signing/NonceSource"
import type { Signer } from "@trigate/signing/Signer"
import { requestSignable } from "@trigate/signing/unstable/actions/CanonicalAction"
import { profileFor, type VenueProfile } from "@trigate/signing/VenueProfile"
import * as McpProtocol from "effect/ai/McpProtocol"
import { McpRequestContext, McpServerClient } from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as ByteSize from "effect/ByteSize"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- the listener is Node's own
import { createServer } from "node:http"
import * as ActionCommands from "./commands/ActionCommands.ts"
import { queryDexes } from "./commands/ReadCommands.ts"
import * as GatewayAccess from "./GatewayAccess.ts"
import { fault } from "./Output.ts"
import * as Report from "./Report.ts"
import * as SignedSending from "./SignedSending.ts"

/** A tool failed; the message has the reason, and what to change. */
export class ToolFailure extends Schema.TaggedError<ToolFailure>()("ToolFailure", { message: Schema.String }) {}

/** The number of calls that run at the same time. Others are refused. */
const maxCalls = 16

/** The number of rows of each list that a tool returns. */
const maxRows = 200

const maxCandles = 500

/** The time in milliseconds after which the venue refuses an order. Policies can require such a time. */
const lifetime = 10_000

const about = (description: string) => ({ description })

const countUpTo = (most: number, otherwise: number) =>
  Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: most })).annotate(
      about(`How many to return, 1 to ${most} (default: ${otherwise})`)
    )
  )

const Coin = Schema.String.check(Schema.isBetweenLength(1, 64)).annotate(
  about(
    "Case-sensitive name: BTC (a perpetual), PURR/USDC or @107 (a spot pair), dex:COIN (a perpetual of a builder's dex)"
  )
)

const Amount = Schema.String.annotate(about("Decimal text"))

const isPositive = Schema.makeFilter((text: string) =>
  Option.isSome(ActionCommands.positive(text)) ? undefined : ActionCommands.expectedPositive()
)

const positive = (description: string) => Schema.String.annotate({ description }).check(isPositive)

const Time = Schema.String.annotate(about("UTC, ISO 8601"))

const ofAccount = Schema.optionalKey(Address).annotateKey(
  about("Account: 20 bytes in hex (default: the account of the server's signer)")
)

const Side = Schema.Literals(["buy", "sell"])

const OrderIdText = Schema.String.annotate(about("The venue's order ID"))

const Omitted = Schema.Finite.annotate(about("Rows that were left out, because the list is limited"))

const tool = { failure: ToolFailure } as const

// an unknown parameter is refused: an order with a misspelt limit price would be a market order
const strict = Context.make(Tool.Strict, true)

const reads = strict.pipe(
  Context.add(Tool.Readonly, true),
  Context.add(Tool.Destructive, false),
  Context.add(Tool.Idempotent, true)
)

const Markets = Tool.make("markets", {
  ...tool,
  description: "Lists perpetuals with prices, funding and 24-hour change, highest volume first",
  parameters: Schema.Struct({
    coins: Schema.optionalKey(Schema.Array(Coin).annotate(about("Only these coins"))),
    dex: Schema.optionalKey(Schema.String.annotate(about("A builder's dex (default: the venue's own perpetuals)"))),
    count: countUpTo(maxRows, 50)
  }),
  success: Schema.Struct({
    markets: Schema.Array(Schema.Struct({
      coin: Coin,
      mid: Schema.NullOr(Amount).annotate(about("Mid price in the quote token; null if the book is empty")),
      mark: Amount.annotate(about("Mark price")),
      oracle: Amount.annotate(about("Oracle price")),
      funding: Amount.annotate(about("Funding rate of the current hour, as a fraction: 0.0001 is 0.01 %")),
      change24h: Schema.NullOr(Schema.Finite).annotate(about("Change of the mark price in 24 hours, in percent")),
      volume24h: Amount.annotate(about("Volume of 24 hours in USD")),
      sizeDecimals: Schema.Finite.annotate(about("The most decimal places of an order size")),
      maxLeverage: Schema.Finite
    })),
    omitted: Omitted
  })
}).annotateMerge(reads)

const Candles = Tool.make("candles", {
  ...tool,
  description: `Returns the newest bars of a coin, oldest first, at most ${maxCandles}. The last bar can still change`,
  parameters: Schema.Struct({
    coin: Coin,
    interval: CandleInterval.annotate(about("Length of a bar; 1M is a month")),
    count: countUpTo(maxCandles, 100),
    before: Schema.optionalKey(Millis).annotateKey(
      about("Return the bars up to this time, in milliseconds since 1970 (default: now)")
    )
  }),
  success: Schema.Struct({
    candles: Schema.Array(Schema.Struct({
      open_time: Time,
      open: Amount,
      high: Amount,
      low: Amount,
      close: Amount,
      volume: Amount.annotate(about("In the coin"))
    }))
  })
}).annotateMerge(reads)

const AccountState = Tool.make("account", {
  ...tool,
  description: "Returns the money, positions, open orders and spot balances of an account, on every dex",
  parameters: Schema.Struct({ account: ofAccount }),
  success: Schema.Struct({
    account: Address,
    margin: Schema.Array(Schema.Struct({
      dex: Schema.String.annotate(about("Empty for the venue's own perpetuals")),
      value: Amount.annotate(about("Account value in the dex's quote token")),
      used: Amount.annotate(about("Margin that positions use")),
      withdrawable: Amount
    })),
    positions: Schema.Array(Schema.Struct({
      coin: Coin,
      size: Amount.annotate(about("In the coin; negative for a short position")),
      entry: Schema.NullOr(Amount).annotate(about("Average entry price")),
      value: Amount.annotate(about("Notional value")),
      unrealizedPnl: Amount,
      liquidation: Schema.NullOr(Amount).annotate(about("Liquidation price")),
      leverage: Schema.String.annotate(about("Such as \"5x cross\""))
    })),
    orders: Schema.Array(Schema.Struct({
      orderId: OrderIdText,
      cloid: Schema.NullOr(Schema.String).annotate(about("Client order ID")),
      coin: Coin,
      side: Side,
      size: Amount.annotate(about("The open rest, in the coin")),
      price: Amount.annotate(about("Limit price")),
      type: Schema.String,
      reduceOnly: Schema.Boolean,
      since: Time
    })),
    balances: Schema.Array(Schema.Struct({ token: Schema.String, total: Amount, inOrders: Amount })),
    omitted: Omitted
  })
}).annotateMerge(reads)

const Fills = Tool.make("fills", {
  ...tool,
  description: "Returns the latest fills of an account, newest first",
  parameters: Schema.Struct({ account: ofAccount, count: countUpTo(maxRows, 50) }),
  success: Schema.Struct({
    fills: Schema.Array(Schema.Struct({
      time: Time,
      coin: Coin,
      side: Side,
      size: Amount,
      price: Amount,
      direction: Schema.String.annotate(about("Such as \"Open Long\"")),
      closedPnl: Amount.annotate(about("Realised profit, without the fee")),
      fee: Amount,
      orderId: OrderIdText
    }))
  })
}).annotateMerge(reads)

const Outcome = Tool.make("action_outcome", {
  ...tool,
  description: "Returns the gateway's record of an action that was sent, such as an order whose response was lost. " +
    "Name the order's cloid, or the nonce. Sends nothing",
  parameters: Schema.Struct({
    cloid: Schema.optionalKey(Cloid).annotateKey(about("Client order ID: 16 bytes in hex, 0x first")),
    nonce: Schema.optionalKey(Millis).annotateKey(about("The nonce with which the action was signed")),
    signer: Schema.optionalKey(Address).annotateKey(about("Default: the server's signer")),
    waitSeconds: Schema.optionalKey(
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 30 })).annotate(
        about("How long to wait until the outcome is known (default: 0)")
      )
    )
  }),
  success: Schema.Struct({
    state: ActionState.annotate(about(
      "accepted; rejected; neverArrived: it can no longer take effect; sent or unknown: ask again later"
    )),
    nonce: Millis,
    results: Schema.Array(Schema.String).annotate(about("The result of each order or cancel, if known"))
  })
}).annotateMerge(reads)

const Inspect = Tool.make("inspect", {
  ...tool,
  description:
    "Describes a signed body of POST /exchange: its signer, its mistakes, the corrected body, and whether the " +
    "policies of the gateway would refuse it. Sends nothing to the venue",
  parameters: Schema.Struct({
    body: Schema.String.check(Schema.isBetweenLength(2, 100_000)).annotate(about("The body as JSON text")),
    expectedSigner: Schema.optionalKey(Address).annotateKey(about("The address that should have signed"))
  }),
  success: Schema.Struct({
    actionType: Schema.String,
    signer: Schema.NullOr(Address).annotate(about("The recovered signer")),
    nonce: Millis,
    verdict: Schema.String.annotate(about("The mistakes and their corrections, in one sentence")),
    corrected: Schema.optionalKey(Schema.String.annotate(about("The corrected body, if the body has a mistake"))),
    policyViolation: Schema.optionalKey(Schema.String.annotate(
      about("The refusal of the gateway's policies if the body were sent now; absent if it would pass")
    )),
    warnings: Schema.Array(Schema.String)
  })
}).annotateMerge(reads)

const PlaceOrder = Tool.make("place_order", {
  ...tool,
  description:
    "Signs an order and sends it once, through the gateway, whose policies can refuse it. Without price it is " +
    "a market order, whose unfilled part is cancelled. If the outcome is unknown, call action_outcome; do not place the order again",
  parameters: Schema.Struct({
    coin: Coin,
    side: Side,
    size: positive("Size in the coin, as decimal text: \"0.01\""),
    price: Schema.optionalKey(positive("Limit price in the quote token, as decimal text")),
    tif: Schema.optionalKey(
      Schema.Literals(["gtc", "ioc", "alo"]).annotate(about(
        "With price: gtc rests until it is cancelled (default), ioc is filled at once or cancelled, alo only rests"
      ))
    ),
    slippagePercent: Schema.optionalKey(
      Schema.Finite.check(Schema.isGreaterThan(0), Schema.isLessThanOrEqualTo(ActionCommands.maxSlippage))
        .annotate(about("Without price: maximum distance from the mid price (default: 5)"))
    ),
    reduceOnly: Schema.optionalKey(Schema.Boolean.annotate(about("Only reduce a position (default: false)"))),
    cloid: Schema.optionalKey(Cloid).annotateKey(
      about("Client order ID: 16 bytes in hex, 0x first (default: a random one)")
    )
  }),
  success: Schema.Struct({
    result: Schema.String.annotate(about("Such as \"order 123 is resting\", or the filled size and average price")),
    cloid: Cloid,
    nonce: Millis,
    signer: Address
  }),
  dependencies: [McpRequestContext, McpServerClient]
}).annotateMerge(strict)

const CancelOrders = Tool.make("cancel_orders", {
  ...tool,
  description: "Cancels open orders of the signer's account. Policies never refuse a cancel",
  parameters: Schema.Struct({
    orders: Schema.optionalKey(
      Schema.Array(Schema.String).check(Schema.isBetweenLength(1, maxRows)).annotate(
        about("Order IDs or cloids")
      )
    ),
    all: Schema.optionalKey(Schema.Boolean.annotate(about("True: cancel every open order, on every dex")))
  }),
  success: Schema.Struct({
    cancels: Schema.Array(Schema.Struct({ orderId: OrderIdText, result: Schema.String })),
    omitted: Omitted,
    nonce: Millis,
    signer: Address
  })
}).annotateMerge(strict)

const isViolation = Schema.is(PolicyViolation)
const isUnknown = Schema.is(OutcomeUnknown)

/** Formats a refusal with its numbers. */
const formatViolation = (refusal: PolicyViolation): string => {
  const { leg, limit, measured, policy, rule, unit } = refusal
  return `${Report.formatError(refusal)} ${JSON.stringify({ rule, policy, measured, limit, unit, leg })}`
}

/** Returns the text of a typed error: its tag, its message, and what to do. */
const toFailure = (failed: { readonly _tag: string; readonly message: string }): ToolFailure => {
  const error = unwrapReason(failed)
  const text = isViolation(error)
    ? formatViolation(error)
    : isUnknown(error)
    ? `${error.message}. Call action_outcome with the nonce ${error.nonce} before you send anything else`
    : Report.formatError(error)
  return new ToolFailure({
    message: failed._tag === "ToolFailure" || failed._tag === "UsageFault" ? text : `${error._tag}: ${text}`
  })
}

/** The signer of the writing tools, and the limits that the operator has set. */
export interface Trading {
  readonly signer: Signer["Service"]
  /** The account for which the signer signs. */
  readonly account: Address
  readonly network: VenueProfile["name"]
  /** The notional above which an order needs a person's approval. */
  readonly approveAbove: number
}

/** An action that no policy can name, and that the venue does not know. */
const probe = { type: "trigateProbe" } as const

/**
 * Returns why orders of a signer are not guarded; `undefined` if a policy of the gateway applies to the signer's account.
 *
 * Asks the inspector to judge an action of an unknown type, which every policy refuses. The action is not sent.
 */
export const findUnguarded = Effect.fnUntraced(function*({ account, network, signer }: Omit<Trading, "approveAbove">) {
  const nonce = yield* Clock.currentTimeMillis
  const { outer } = yield* Effect.fromResult(requestSignable(profileFor(network), { action: probe, nonce }))
  const body = { action: probe, nonce, signature: yield* signer.sign(outer) }
  const { policyViolation } = yield* GatewayAccess.send(Exchange.inspect(body))
  if (policyViolation === undefined) return `No policy of the gateway applies to the account ${account}`
  const { message, policy, rule } = policyViolation
  return policy === undefined && rule !== "halt" ? message : undefined
})

const formatTime = (millis: number): string => DateTime.formatIso(DateTime.makeUnsafe(millis))

const formatSide = (side: "A" | "B"): typeof Side.Type => side === "B" ? "buy" : "sell"

const changePercent = (mark: string, before: string): number | null =>
  Number(before) > 0 ? Math.round((Number(mark) / Number(before) - 1) * 1e4) / 100 : null

const queryMarkets = Effect.fnUntraced(function*(
  { coins, count = 50, dex = "" }: Tool.Parameters<typeof Markets>
) {
  const [{ universe }, contexts] = yield* GatewayAccess.send(Info.metaAndAssetCtxs(SignedSending.inDex(dex)))
  const found = universe.flatMap(({ isDelisted, maxLeverage, name, szDecimals }, at) => {
    const context = contexts[at]
    if (context === undefined || isDelisted === true || coins?.includes(name) === false) return []
    const { dayNtlVlm, funding, markPx, midPx, oraclePx, prevDayPx } = context
    return [{
      coin: name,
      mid: midPx ?? null,
      mark: markPx,
      oracle: oraclePx,
      funding,
      change24h: changePercent(markPx, prevDayPx),
      volume24h: dayNtlVlm,
      sizeDecimals: szDecimals,
      maxLeverage
    }]
  }).toSorted((a, b) => Number(b.volume24h) - Number(a.volume24h))
  return { markets: found.slice(0, count), omitted: Math.max(0, found.length - count) }
})

const queryCandles = Effect.fnUntraced(function*(
  { before, coin, count = 100, interval }: Tool.Parameters<typeof Candles>
) {
  const endTime = before ?? (yield* Clock.currentTimeMillis)
  const startTime = Math.max(0, openTime(interval, barAt(interval, endTime) - count + 1))
  const { candles } = yield* GatewayAccess.send(Info.candleSnapshot({ coin, interval, startTime, endTime }))
  return {
    candles: candles.slice(-count).map(({ c, h, l, o, t, v }) => ({
      open_time: formatTime(t),
      open: o,
      high: h,
      low: l,
      close: c,
      volume: v
    }))
  }
})

const queryAccount = Effect.fnUntraced(function*(user: Address) {
  const covered = yield* SignedSending.dexes(Option.none())
  const { dexes, spot } = yield* GatewayAccess.send(
    Effect.all({ dexes: queryDexes(user, covered), spot: Info.spotClearinghouseState({ user }) }, { concurrency: 2 })
  )
  const positions = dexes.flatMap(({ perpetuals }) => perpetuals.assetPositions)
  const orders = dexes.flatMap((each) => each.orders)
  const lists = [positions, orders, spot.balances]
  return {
    account: user,
    margin: dexes.map(({ dex, perpetuals: { marginSummary, withdrawable } }) => ({
      dex,
      value: marginSummary.accountValue,
      used: marginSummary.totalMarginUsed,
      withdrawable
    })),
    positions: positions.slice(0, maxRows).map(({ position }) => ({
      coin: position.coin,
      size: position.szi,
      entry: position.entryPx ?? null,
      value: position.positionValue,
      unrealizedPnl: position.unrealizedPnl,
      liquidation: position.liquidationPx ?? null,
      leverage: `${position.leverage.value}x ${position.leverage.type}`
    })),
    orders: orders.slice(0, maxRows).map((
      { cloid, coin, limitPx, oid, orderType, reduceOnly, side, sz, timestamp }
    ) => ({
      orderId: String(oid),
      cloid: cloid ?? null,
      coin,
      side: formatSide(side),
      size: sz,
      price: limitPx,
      type: orderType,
      reduceOnly,
      since: formatTime(timestamp)
    })),
    balances: spot.balances.slice(0, maxRows).map(({ coin, hold, total }) => ({ token: coin, total, inOrders: hold })),
    omitted: lists.reduce((sum, { length }) => sum + Math.max(0, length - maxRows), 0)
  }
})

const queryFills = Effect.fnUntraced(function*(user: Address, { count = 50 }: Tool.Parameters<typeof Fills>) {
  const fills = yield* GatewayAccess.send(Info.userFills({ user }))
  return {
    fills: fills.slice(0, count).map(({ closedPnl, coin, dir, fee, feeToken, oid, px, side, sz, time }) => ({
      time: formatTime(time),
      coin,
      side: formatSide(side),
      size: sz,
      price: px,
      direction: dir,
      closedPnl,
      fee: `${fee} ${feeToken ?? ""}`.trim(),
      orderId: String(oid)
    }))
  }
})

const queryOutcome = Effect.fnUntraced(function*(
  { cloid, nonce, signer, waitSeconds = 0 }: Tool.Parameters<typeof Outcome>,
  own: Address | undefined
) {
  const by = signer ?? own
  const reference: ActionReference | undefined = cloid !== undefined
    ? { cloid, ...(by === undefined ? {} : { signer: by }) }
    : nonce !== undefined && by !== undefined
    ? { signer: by, nonce }
    : undefined
  if (reference === undefined) {
    return yield* fault("Name the cloid of the order, or the nonce and the signer of the action")
  }
  const record = yield* GatewayAccess.send(Exchange.outcome(reference, { wait: Duration.seconds(waitSeconds) }))
  return {
    state: record.state,
    nonce: record.nonce,
    results: (record.settled?.entries ?? []).map(SignedSending.describeEntry)
  }
})

const inspect = Effect.fnUntraced(function*({ body, expectedSigner }: Tool.Parameters<typeof Inspect>) {
  const seen = yield* GatewayAccess.send(Exchange.inspect(new TextEncoder().encode(body), expectedSigner))
  const { actionType, corrected, diagnosis, nonce, outer, policyViolation, warnings } = seen
  return {
    actionType,
    signer: outer?.signer ?? null,
    nonce: nonce.value,
    verdict: diagnosis.detail,
    ...(corrected === undefined ? {} : { corrected: corrected.body }),
    ...(policyViolation === undefined ? {} : { policyViolation: formatViolation(policyViolation) }),
    warnings
  }
})

const Approval = Schema.Struct({
  approve: Schema.Boolean.annotate({ title: "Send this order", description: "The order is sent only if this is true" })
})

/** Asks the person at the client to approve an order. Fails if the person does not, or cannot be asked. */
const requireApproval = Effect.fnUntraced(function*(does: string, notional: number, { approveAbove, signer }: Trading) {
  const worth = `The notional of the order is ${
    notional.toFixed(2)
  }; orders above ${approveAbove} need a person's approval`
  const { elicitation } = yield* McpServer.clientCapabilities
  // a client that only opens addresses cannot ask for a value
  if (elicitation === undefined || (elicitation.form === undefined && elicitation.url !== undefined)) {
    return yield* new ToolFailure({
      message:
        `NotApproved: ${worth}, and this client does not support elicitation, so no person can approve it. Nothing was sent`
    })
  }
  const { approve } = yield* McpServer.elicit({
    message: `${signer.address} ${does}. ${worth}. Send it?`,
    schema: Approval
  }).pipe(Effect.catchCause(() => Effect.succeed({ approve: false })))
  if (!approve) {
    return yield* new ToolFailure({ message: `NotApproved: ${worth}, which was not given. Nothing was sent` })
  }
})

/** Signs an action and sends it once. The result can contain legs that the venue refused. */
const signAndSend = Effect.fnUntraced(function*(unsigned: ActionCommands.Unsigned, { network, signer }: Trading) {
  const signed = yield* ActionCommands.sign(unsigned, signer, network)
  const result = yield* SignedSending.send(yield* GatewayAccess.connect, signed)
  return { entries: result.entries, result, nonce: signed.body.nonce, signer: signer.address }
})

const readPositive = (text: string) =>
  Effect.fromOption(ActionCommands.positive(text), () => fault(`${text} is not ${ActionCommands.expectedPositive()}`))

const placeOrder = Effect.fnUntraced(function*(
  { cloid, coin, price, reduceOnly = false, side, size, slippagePercent, tif }: Tool.Parameters<typeof PlaceOrder>,
  trading: Trading
) {
  if (price !== undefined && slippagePercent !== undefined) {
    return yield* fault("slippagePercent is for market orders; omit it with price")
  }
  if (price === undefined && tif !== undefined) {
    return yield* fault("tif requires price: a market order never rests on the book")
  }
  const order = yield* ActionCommands.prepareOrder({
    coin,
    side,
    size: yield* readPositive(size),
    price: price === undefined ? Option.none() : Option.some(yield* readPositive(price)),
    tif: Option.fromUndefinedOr(tif),
    slippage: Option.fromUndefinedOr(slippagePercent),
    reduceOnly,
    cloid: Option.fromUndefinedOr(cloid)
  })
  const mid = yield* Effect.catchTag(ActionCommands.readMid(order.asset), "UnknownAsset", () => Effect.succeed("0"))
  const notional = Number(size) * Math.max(Number(order.limit), Number(mid))
  // also if the notional is not a number
  if (!(notional <= trading.approveAbove)) {
    // a person is not asked about an order that the policies refuse; this body has expired, so the venue would refuse it
    const expired = { ...order, body: (nonce: number) => order.body(nonce, nonce - 1) }
    const { body } = yield* ActionCommands.sign(expired, trading.signer, trading.network)
    const { policyViolation } = yield* GatewayAccess.send(Exchange.inspect(body))
    if (policyViolation !== undefined) return yield* policyViolation
    yield* requireApproval(order.does, notional, trading)
  }
  // the policies can have changed since this server started
  const unguarded = yield* findUnguarded(trading)
  if (unguarded !== undefined) return yield* fault(`${unguarded}; nothing was sent`)
  const { entries, nonce, result, signer } = yield* signAndSend(
    { ...order, body: (nonce) => order.body(nonce, nonce + lifetime) },
    trading
  )
  yield* requireAll(result)
  return { result: entries.map(SignedSending.describeEntry).join("; "), cloid: order.cloid, nonce, signer }
})

const cancelOrders = Effect.fnUntraced(function*(
  { all = false, orders: ids = [] }: Tool.Parameters<typeof CancelOrders>,
  trading: Trading
) {
  if (all === ids.length > 0) return yield* fault("Name the orders to cancel, or set all to true")
  const dexes = yield* SignedSending.dexes(Option.none())
  const cancel = yield* ActionCommands.prepareCancel(trading.account, dexes, ids)
  const { entries, nonce, signer } = yield* signAndSend(cancel, trading)
  const results = entries.map(SignedSending.describeEntry)
  return {
    cancels: cancel.orders.slice(0, maxRows).map(({ oid }, at) => ({
      orderId: String(oid),
      result: results[at] ?? "unknown"
    })),
    omitted: Math.max(0, cancel.orders.length - maxRows),
    nonce,
    signer
  }
})

const readingTools = Toolkit.make(Markets, Candles, AccountState, Fills, Outcome, Inspect)

const writingTools = Toolkit.make(PlaceOrder, CancelOrders)

type Calls = Effect.Services<typeof GatewayAccess.connect> | NonceSource.NonceSource

/** Returns a function that runs a tool call: at most {@link maxCalls} at the same time, with typed errors as text. */
const makeRunner = Effect.gen(function*() {
  const services = yield* Effect.context<Calls>()
  const limit = yield* Semaphore.make(maxCalls)
  const busy = new ToolFailure({ message: `Overloaded: ${maxCalls} calls are running; wait until one has ended` })
  return <A, E extends { readonly _tag: string; readonly message: string }, R>(call: Effect.Effect<A, E, R>) =>
    call.pipe(
      Effect.mapError(toFailure),
      Semaphore.withPermitsIfAvailable(limit, 1),
      Effect.flatMap(Option.match({ onNone: () => Effect.fail(busy), onSome: Effect.succeed })),
      Effect.provideContext(services)
    )
})

/** The signer's address and account, which are the defaults of queries, and the signer of the writing tools. */
export interface Options {
  readonly own: Pick<Trading, "account"> & { readonly signer: { readonly address: Address } } | undefined
  /** Absent if nothing can be signed, or if no policy applies. */
  readonly trading: Trading | undefined
}

const layerReading = ({ own }: Options) => {
  const find = (account: Address | undefined) =>
    Effect.fromNullishOr(account ?? own?.account).pipe(
      Effect.mapError(() => new ToolFailure({ message: "Name an account: this server has no signer" }))
    )
  const handlers = Effect.map(makeRunner, (run) =>
    readingTools.of({
      markets: (given) => run(queryMarkets(given)),
      candles: (given) => run(queryCandles(given)),
      account: ({ account }) => run(Effect.flatMap(find(account), queryAccount)),
      fills: (given) => run(Effect.flatMap(find(given.account), (user) => queryFills(user, given))),
      action_outcome: (given) => run(queryOutcome(given, own?.signer.address)),
      inspect: (given) => run(inspect(given))
    }))
  return Layer.provide(McpServer.toolkit(readingTools), readingTools.toLayer(handlers))
}

const layerWriting = (trading: Trading) => {
  const handlers = Effect.map(makeRunner, (run) =>
    writingTools.of({
      place_order: (given) => run(placeOrder(given, trading)),
      cancel_orders: (given) => run(cancelOrders(given, trading))
    }))
  return Layer.provide(McpServer.toolkit(writingTools), writingTools.toLayer(handlers))
}

/** Registers the tools. The writing tools exist only with {@link Options.trading}. */
export const layer = (options: Options) =>
  options.trading === undefined
    ? layerReading(options)
    : Layer.merge(layerReading(options), layerWriting(options.trading))

/** The tools, and the transport: streamable HTTP on a port of this machine, otherwise standard input and output. */
export interface ServerOptions extends Options {
  /** The description of the server for the model. */
  readonly instructions: string
  readonly version: string
  /** The port, and the key that each request has to carry as `Authorization: Bearer`. */
  readonly http: { readonly port: number; readonly key: Redacted.Redacted } | undefined
}

const unauthorized = HttpServerResponse.text(
  "The header `Authorization: Bearer` with the key of this server is missing\n",
  {
    status: 401,
    headers: { "www-authenticate": "Bearer" }
  }
)

/** Maximum bytes of a request over HTTP. */
const mostBytes = ByteSize.mebibytes(1)

/** Refuses requests without the key: other users and programs of the machine reach the port too. */
const layerKey = (key: Redacted.Redacted) => {
  const expected = hashKey(`Bearer ${Redacted.value(key)}`)
  return HttpRouter.middleware(
    (handled) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) =>
        // hashes, so that the time of the comparison reveals nothing about the key
        hashKey(headers["authorization"] ?? "") === expected
          ? Effect.provideService(handled, HttpIncomingMessage.MaxBodySize, mostBytes)
          : Effect.succeed(unauthorized)),
    { global: true }
  )
}

// without 2026-07-28, in which a server cannot ask the person at the client while a call runs
const protocols = [McpProtocol.v2025_11_25, McpProtocol.v2025_06_18, McpProtocol.v2025_03_26] as const

/** Serves the tools until it is interrupted, or until standard input ends. */
export const serve = ({ http, instructions, version, ...options }: ServerOptions) => {
  const server = { name: "trigate", version, instructions, protocols, registrations: layer(options) }
  if (http === undefined) {
    // a fiber of its own, which the server interrupts when standard input ends
    return Layer.launch(McpServer.layerStdio(server)).pipe(
      Effect.forkChild,
      Effect.flatMap(Fiber.await),
      Effect.flatMap((exit) => Exit.hasInterrupts(exit) ? Effect.void : exit),
      Effect.catchTag("IllegalArgumentError", Effect.die)
    )
  }
  const routes = McpServer.layerHttp({ ...server, path: "/mcp", allowSessionTermination: true })
  const { key, port } = http
  return HttpRouter.serve(Layer.merge(routes, layerKey(key)), { disableLogger: true, disableListenLog: true }).pipe(
    Layer.provide(NodeHttpServer.layer(createServer, { host: "127.0.0.1", port })),
    Layer.launch,
    Effect.catchTags({
      IllegalArgumentError: Effect.die,
      ServeError: () =>
        Effect.fail(fault(`The port ${port} of 127.0.0.1 is in use, or not permitted; name another with --http`))
    })
  )
}
