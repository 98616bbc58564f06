/**
 * Places and cancels orders by coin name: takes a nonce, signs, sends once, and determines the outcome if the response
 * is lost. Works through a gateway and with embedded services.
 */
import { type AnySignedAction, ServedExchangeFailure, type SubmitFailure } from "@trigate/domain/actions/Action"
import {
  type ActionEntry,
  type ActionRecord,
  type ActionReference,
  ActionRejected,
  type ActionResult,
  isRejected
} from "@trigate/domain/actions/ActionOutcome"
import { type Resolution, type StillUnknown, stillUnknown } from "@trigate/domain/actions/Resolution"
import type { Address } from "@trigate/domain/encoding/Encoding"
import {
  type ActionNotFound,
  type CallFailure,
  type RequestError,
  UnknownAsset,
  unwrapReason,
  type UpstreamError
} from "@trigate/domain/errors/GatewayError"
import type { UserRole } from "@trigate/domain/info/Account"
import { type Asset, type AssetQueries, findAsset, parseDex, unknownAsset } from "@trigate/domain/info/Market"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as ActionBuilder from "./actions/ActionBuilder.ts"
import { MsgPackUnencodable, UnsignableAction } from "./actions/ActionHash.ts"
import * as OrderAction from "./actions/OrderAction.ts"
import { NonceAhead, NonceSource, NonceStoreUnavailable } from "./NonceSource.ts"
import { Signer, SignerMismatch, SignerUnavailable } from "./Signer.ts"
import type { Venue } from "./VenueProfile.ts"

/** The calls that {@link make} uses: those of a gateway's client, or those of embedded services. */
export interface Calls {
  readonly submit: (signed: AnySignedAction) => Effect.Effect<ActionResult, SubmitFailure>
  readonly resolve: (signed: AnySignedAction) => Effect.Effect<Resolution, StillUnknown>
  readonly outcome: (
    reference: ActionReference,
    options: { readonly wait: Duration.Input }
  ) => Effect.Effect<ActionRecord, CallFailure | ActionNotFound>
  readonly info: AssetQueries<CallFailure> & {
    readonly allMids: (
      request: { readonly dex?: string }
    ) => Effect.Effect<{ readonly [coin: string]: string }, CallFailure>
    readonly userRole: (request: { readonly user: Address }) => Effect.Effect<UserRole, CallFailure>
  }
}

type Terms<Order> = Order extends unknown ? Omit<Order, "asset" | "cutTo" | "priceInQuote"> : never

/**
 * An order by coin name. Without a price, it is a market order, whose unfilled part is cancelled. An order without a
 * client order ID gets a random one.
 */
export type NewOrder = Terms<OrderAction.Order> & {
  /** The coin: `BTC`, `PURR/USDC`, `@107`, `HYPE/USDC`, `dex:COIN`, or `#50`. */
  readonly coin: string
  /** The limit price as a decimal string, such as `1100.5`. Default: the market price. */
  readonly priceInQuote?: string | undefined
  /** The maximum slippage of a market order from the mid price, in percent. Default: 5. */
  readonly slippagePercent?: number | undefined
}

/** An open order, by the venue's order ID or by its client order ID. */
export type OpenOrder =
  & { readonly coin: string }
  & (
    | { readonly oid: OrderAction.OrderId; readonly cloid?: undefined }
    | { readonly cloid: OrderAction.Cloid; readonly oid?: undefined }
  )

/** The members of an action besides its orders. */
export interface Options extends Omit<ActionBuilder.L1Options, "nonce"> {
  /**
   * The maximum time to wait, after a lost response, until the venue's state shows the outcome. The action is then sent
   * again, byte for byte: the venue executes a nonce only once. Default: 10 seconds for orders, 1 second for other
   * actions.
   */
  readonly wait?: Duration.Input | undefined
}

/**
 * The event that determined the outcome: the response, the venue's state after a lost response, or the response to the
 * identical bytes that were sent again.
 */
export type SettledBy = "response" | "venueState" | "resend"

/** The identity of an action that took effect, and the event that determined its outcome. */
export interface Settled {
  readonly signer: Address
  readonly nonce: number
  readonly settledBy: SettledBy
}

/** The result of one order or cancel that the venue accepted. */
export type Placed = Settled & Exclude<ActionEntry, { readonly _tag: "Rejected" }>

/** The result of an action, with an entry for each of its orders or cancels. */
export interface PlacedAll extends Settled, ActionResult {}

/** The errors after which nothing was sent to the venue. */
const notSentReasons = [
  UnknownAsset,
  MsgPackUnencodable,
  UnsignableAction,
  SignerMismatch,
  SignerUnavailable,
  NonceAhead,
  NonceStoreUnavailable,
  ...ServedExchangeFailure.members
] as const

/**
 * The action was not sent to the venue: `reason` is the error of the signer, of a lookup, or of the gateway, such as
 * `UnknownAsset`, `PolicyViolation` or `UpstreamRateLimited`. `group` indicates what to do.
 */
export class NotSent extends Schema.TaggedError<NotSent>()("NotSent", { reason: Schema.Union(notSentReasons) }) {
  override get message() {
    return `Not sent: ${this.reason.message}`
  }
  /** The error group of `reason`. */
  get group() {
    return this.reason.group
  }
}

/**
 * The errors of a call that places or cancels orders: nothing was sent, the venue refused the action, or the outcome is
 * unknown. After `StillUnknown`, do not sign the action again before you know its outcome.
 */
export type OrderFailure = NotSent | ActionRejected | StillUnknown

/** Builds a signed action for a nonce. */
export type Build = (nonce: number) => Effect.Effect<AnySignedAction, ActionBuilder.BuildFailure, Signer | Venue>

/**
 * Places and cancels orders for the signer of the program.
 *
 * Provided by `Trigate.layer` or `Orders.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { Signer } from "@trigate/signing"
 * import { Orders, Trading } from "@trigate/trading"
 * import { Console, Effect, Layer, Redacted } from "effect"
 *
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = Effect.gen(function*() {
 *   const orders = yield* Orders.Orders
 *   const placed = yield* orders.place({ coin: "ETH", side: "buy", sizeInBase: "0.2", priceInQuote: "1100.5" })
 *   yield* Console.log(placed._tag, placed.settledBy)
 * })
 *
 * const venue = Trading.layer({ network: "mainnet", addresses: { api: ["http://localhost:8080"] } })
 * const orders = Orders.layer().pipe(Layer.provide(Signer.layerPrivateKey(key)), Layer.provide(venue))
 *
 * await Effect.runPromise(Effect.provide(program, orders))
 * ```
 * ```text
 * Resting response
 * ```
 */
export class Orders extends Context.Service<Orders, {
  /** The address of the signing key, in lower case. */
  readonly signer: Address
  /** Returns the account for which the key signs: its own account, or the master account of an API wallet. */
  readonly account: Effect.Effect<Address, CallFailure>
  /** Places an order. Fails with `ActionRejected` if the venue refuses it. */
  readonly place: (order: NewOrder, options?: Options) => Effect.Effect<Placed, OrderFailure>
  /** Places several orders as one action. The result has an entry for each order, also for refused ones. */
  readonly placeAll: (
    orders: ReadonlyArray<NewOrder>,
    options?: Options & Pick<OrderAction.Placement, "builderFee" | "grouping">
  ) => Effect.Effect<PlacedAll, OrderFailure>
  /** Cancels an order. Fails with `ActionRejected` if the venue refuses, for example because the order is filled. */
  readonly cancel: (order: OpenOrder, options?: Options) => Effect.Effect<Placed, OrderFailure>
  /** Signs an action of any type with the next nonce, sends it once, and determines the outcome of a lost response. */
  readonly send: (build: Build, options?: Pick<Options, "wait">) => Effect.Effect<PlacedAll, OrderFailure>
}>()("@trigate/signing/Orders") {}

/** Generates a client order ID, so that the outcome can be looked up after a lost response. */
export const newCloid: Effect.Effect<OrderAction.Cloid> = Effect.map(
  Effect.forEach(Array.from({ length: 8 }), () => Random.nextIntBetween(0, 0xffff)),
  (words): OrderAction.Cloid => `0x${words.map((word) => word.toString(16).padStart(4, "0")).join("")}`
)

/** Builds a signed action with the signer's next nonce. */
export const signNext = <A, E, R>(build: (nonce: number) => Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const { address } = yield* Signer
    return yield* build(yield* NonceSource.use((nonces) => nonces.next(address)))
  })

/**
 * Returns the terms of a market order: an order that is filled at once or cancelled, with a limit price at a percentage
 * from the mid price.
 */
export const marketTerms = (mid: string, side: OrderAction.Order["side"], slippagePercent: number, asset: Asset) => ({
  priceInQuote: OrderAction.worstPrice(mid, side, slippagePercent, asset),
  timeInForce: "Ioc" as const
})

/** Returns the query field that selects the dex of a coin; an empty object for the venue's own. */
const dexRequest = (coin: string): { readonly dex?: string } => {
  const dex = parseDex(coin)
  return dex === "" ? {} : { dex }
}

/** The default wait for an action without client order IDs, which cannot be looked up at the venue. */
const withoutCloid = "1 second"

const notSent = (error: NotSent["reason"] | UpstreamError | RequestError) =>
  new NotSent({ reason: unwrapReason(error) })

const notShown: ActionEntry = {
  _tag: "Unrecognised",
  raw: "The action took effect, and the venue's response with the result of this order or cancel is lost"
}

const settledWith = (entries: ReadonlyArray<ActionEntry>): ActionResult => ({
  status: "ok",
  response: { type: "order" },
  entries
})

/** Makes the service `Orders` from the calls that send actions and queries. */
export const make = Effect.fnUntraced(function*({ info, outcome, resolve, submit }: Calls) {
  const context = yield* Effect.context<Signer | NonceSource | Venue>()
  const { address: signer } = Context.get(context, Signer)

  /** Returns the result of an action if the gateway knows it. Fails if the action can no longer take effect. */
  const known = Effect.fnUntraced(function*(nonce: number, wait: Duration.Input) {
    const recorded = outcome({ signer, nonce }, { wait }).pipe(
      // the gateway may restart, but an action that it did not send has no record
      Effect.retry({
        while: (error) => error._tag === "UpstreamError",
        times: Math.ceil(Duration.toSeconds(Duration.fromInputUnsafe(wait))),
        schedule: Schedule.spaced("1 second")
      })
    )
    // without a record, only a resend shows the outcome
    const record = Option.getOrUndefined(yield* Effect.option(recorded))
    switch (record?.state) {
      case "accepted":
        return Option.fromUndefinedOr(record.settled?.entries)
      case "neverArrived":
        return yield* new ActionRejected({
          reason: "Expired",
          message: "The action never arrived at the venue, and has expired"
        })
      case "rejected":
        return yield* new ActionRejected({
          reason: "Unclassified",
          message: "The venue refused the action; the venue's text was lost with the response"
        })
      default:
        return Option.none<ReadonlyArray<ActionEntry>>()
    }
  })

  const settle = Effect.fn("Orders.settle")(function*(signed: AnySignedAction, legs: number, wait: Duration.Input) {
    const { nonce } = signed
    const entries = yield* known(nonce, wait)
    if (Option.isSome(entries)) {
      return { ...settledWith(entries.value), signer, nonce, settledBy: "venueState" as const }
    }
    const resolution = yield* resolve(signed)
    if (resolution._tag === "Rejected") return yield* resolution.rejection
    if (resolution._tag === "Accepted") {
      return { ...resolution.result, signer, nonce, settledBy: "resend" as const }
    }
    const shown = Option.getOrElse(yield* known(nonce, wait), () => Array.from({ length: legs }, () => notShown))
    return { ...settledWith(shown), signer, nonce, settledBy: "resend" as const }
  })

  const sendLegs = Effect.fnUntraced(
    function*(build: Build, legs: number, wait: Duration.Input): Effect.fn.Return<PlacedAll, OrderFailure> {
      const signed = yield* Effect.mapError(Effect.provide(signNext(build), context), notSent)
      const { nonce } = signed
      return yield* submit(signed).pipe(
        Effect.map((result): PlacedAll => ({ ...result, signer, nonce, settledBy: "response" })),
        Effect.catch((error): Effect.Effect<PlacedAll, OrderFailure> => {
          if (error._tag === "ActionRejected") return Effect.fail(error)
          if (error._tag === "OutcomeUnknown") return settle(signed, legs, wait)
          const reason = unwrapReason(error)
          // an earlier action has this nonce: whether this one took effect is not known
          return reason._tag === "NonceAlreadyUsed"
            ? Effect.fail(stillUnknown({ upstream: "gateway", signer, nonce })(reason))
            : Effect.fail(new NotSent({ reason }))
        })
      )
    }
  )

  const toOrder = Effect.fnUntraced(function*({ coin, priceInQuote, slippagePercent = 5, ...terms }: NewOrder) {
    const asset = yield* findAsset(info, coin)
    const cloid = terms.cloid ?? (yield* newCloid)
    if (priceInQuote !== undefined) return { ...terms, asset: asset.id, cloid, priceInQuote }
    const mids = yield* info.allMids(dexRequest(asset.coin))
    const mid = yield* Effect.fromOption(
      Option.fromUndefinedOr(mids[asset.coin]),
      () => unknownAsset(coin, Object.keys(mids))
    )
    const { priceInQuote: limit, timeInForce } = marketTerms(mid, terms.side, slippagePercent, asset)
    const { trigger } = terms
    return trigger === undefined
      ? { ...terms, trigger, asset: asset.id, cloid, priceInQuote: limit, timeInForce }
      : { ...terms, trigger, timeInForce: undefined, asset: asset.id, cloid, priceInQuote: limit }
  })

  const one = (results: Effect.Effect<PlacedAll, OrderFailure>): Effect.Effect<Placed, OrderFailure> =>
    Effect.flatMap(results, (result) => {
      const { entries, nonce, response, settledBy, signer } = result
      const [entry = notShown] = entries
      return isRejected(entry)
        ? Effect.fail(new ActionRejected({ reason: entry.reason, message: entry.message, response, entries }))
        : Effect.succeed({ ...entry, signer, nonce, settledBy })
    })

  const placeAll: Orders["Service"]["placeAll"] = Effect.fnUntraced(
    function*(orders, { builderFee, grouping, wait = "10 seconds", ...options } = {}) {
      const named = yield* Effect.mapError(Effect.forEach(orders, toOrder), notSent)
      const placement = { orders: named, builderFee, grouping }
      return yield* sendLegs(
        (nonce) => ActionBuilder.placeOrders(placement, { ...options, nonce }),
        orders.length,
        wait
      )
    }
  )

  return Orders.of({
    signer,
    account: Effect.map(
      info.userRole({ user: signer }),
      ({ data, role }) => role === "agent" ? data?.user ?? signer : signer
    ),
    placeAll: Effect.fn("Orders.placeAll")(placeAll),
    place: Effect.fn("Orders.place")((order, options) => one(placeAll([order], options))),
    cancel: Effect.fn("Orders.cancel")(function*({ cloid, coin, oid }, { wait = withoutCloid, ...options } = {}) {
      const { id: asset } = yield* Effect.mapError(findAsset(info, coin), notSent)
      return yield* one(sendLegs(
        (nonce) =>
          cloid === undefined
            ? ActionBuilder.cancelOrders([{ asset, orderId: oid }], { ...options, nonce })
            : ActionBuilder.cancelOrdersByCloid([{ asset, cloid }], { ...options, nonce }),
        1,
        wait
      ))
    }),
    send: Effect.fn("Orders.send")((build, { wait = withoutCloid } = {}) => sendLegs(build, 1, wait))
  })
})
