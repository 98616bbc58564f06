/**
 * The accounts that the guard protects: their positions and open orders as the venue reports them, and the reservations
 * for actions whose effect the venue does not report yet.
 */
import { isOpen } from "@trigate/domain/actions/ActionOutcome"
import { background, CurrentCaller } from "@trigate/domain/Caller"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { parseCall } from "@trigate/domain/info/InfoOperations"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import { SharedStoreUnreachable } from "@trigate/upstream/unstable/SharedState"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import type { ActionLog } from "../actionLog/ActionLog.ts"
import type { Settlement } from "../actionLog/LoggedAction.ts"
import type { Admitted } from "../admission/Admission.ts"
import type { Info } from "../Info.ts"
import * as GuardStore from "./GuardStore.ts"
import * as Losses from "./Losses.ts"
import * as Markets from "./Markets.ts"
import type { GuardedMarket } from "./Markets.ts"
import * as Rules from "./Rules.ts"
import type { Exposure, OpenOrder } from "./Rules.ts"

/** The queries by which the state of an account is read. */
export type Queries = Pick<
  Info["Service"],
  "clearinghouseState" | "frontendOpenOrders" | "relay" | "spotClearinghouseState"
>

/** The possible effect of an action that passed, until {@link Reservation.end} and a later read of the account's state. */
export interface Reservation {
  /** Ends the reservation by the settlement of the attempt, or by the fact that nothing was sent. Only the first call counts. */
  readonly end: (settlement: Settlement | "notSent") => void
}

/** The state of an account at the venue. */
interface View {
  /** When the read began, in milliseconds of a clock that only moves forward. */
  readonly readAt: number
  /** The venue's time of the oldest part. */
  readonly venueTime: number
  readonly positions: ReadonlyArray<readonly [market: Markets.GuardedMarket, size: number]>
  readonly orders: ReadonlyArray<Rules.OpenOrder>
  /** The losses by time of day; `undefined` if they cannot be measured. */
  readonly losses: Losses.Losses | undefined
  /** The venue's own valuation by coin, for a market without a mid price. */
  readonly values: ReadonlyMap<string, number>
}

/** An account that the guard protects. */
export interface GuardedAccount {
  readonly address: Encoding.Address
  readonly reservations: Reservations
  /** The builder dexes in which the account has sent orders. */
  readonly dexes: Set<string>
  /** The times of day from which policies count losses. */
  readonly lossTimes: Map<string, Losses.Since>
  /** The periods whose baselines are known. */
  lossPeriods: string
  view: View | undefined
  exposure: Rules.Exposure | undefined
  /** The prices with which the exposure was made. */
  prices: (market: Markets.GuardedMarket) => number
  builtAt: number
  isRefreshing: boolean
  isStoring: boolean
  /** The reads of the account's state, one at a time. */
  readonly reading: Semaphore.Semaphore
  /** The changes of the stored reservations, one at a time. */
  readonly storing: Semaphore.Semaphore
}

/** Milliseconds by which the venue's state can lag behind its response to an action. */
export const settleFor = 2000

/** A refusal is never based on a state that is older, in milliseconds. */
export const refreshAfter = 1000

/** Milliseconds after which a reservation of another process ends if its action is not in the action log. */
const orphanedAfter = 60_000

/** Milliseconds by which the changes of ended reservations wait for further ones before they are stored. */
const gatherFor = 50

const maxAccounts = 10_000

/** The venue's maximum number of rows in a response, and the maximum number of responses that are read. */
const pageRows = 500
const mostPages = 10

const TwapStatus = Schema.Struct({
  twapId: Schema.NullOr(Schema.Natural),
  state: Schema.Struct({
    coin: Schema.String,
    side: Schema.Literals(["A", "B"]),
    sz: Schema.String,
    executedSz: Schema.String,
    reduceOnly: Schema.Boolean
  }),
  status: Schema.Struct({ status: Schema.String })
})
const decodeTwaps = Schema.decodeUnknownOption(Schema.Array(TwapStatus))

/** Returns prices that do not change: the first of each market. */
const fixed = (priceOf: (market: Markets.GuardedMarket) => number): (market: Markets.GuardedMarket) => number => {
  const prices = new Map<string, number>()
  return (market) => {
    const known = prices.get(market.coin)
    if (known !== undefined) return known
    const price = priceOf(market)
    prices.set(market.coin, price)
    return price
  }
}

/** The services from which the accounts are read, and the store of their reservations. */
export interface Options {
  readonly info: Queries
  readonly log: Pick<ActionLog["Service"], "find">
  readonly markets: Markets.Markets
  /** The store that replicas share; `undefined` if reservations stay in this process. */
  readonly store: GuardStore.GuardStore["Service"] | undefined
}

/** Makes the accounts: none, until an action acts on one. */
export const make = Effect.fnUntraced(function*({ info, log, markets, store }: Options) {
  const clock = yield* Clock.Clock
  const scope = yield* Effect.scope
  const fork = Effect.runForkWith(yield* Effect.context())
  const accounts = new Map<string, GuardedAccount>()
  const ownStore = GuardStore.makeMemory()
  const now = () => Encoding.monotonicMillis(Encoding.monotonicTime(clock))
  // replicas count in the same seconds, one process counts by a clock that only moves forward
  const second = () => Math.floor((store === undefined ? now() : clock.currentTimeMillisUnsafe()) / 1000)
  const run = (effect: Effect.Effect<void>): void => void Fiber.runIn(fork(effect), scope)

  const find = (address: Encoding.Address): GuardedAccount => {
    const known = accounts.get(address)
    if (known !== undefined) return known
    if (accounts.size >= maxAccounts) {
      for (const [each, { reservations }] of accounts) {
        if (reservations.entries.size === 0 && reservations.orders(second()) === 0) accounts.delete(each)
      }
    }
    const account: GuardedAccount = {
      address,
      reservations: new Reservations(store !== undefined),
      dexes: new Set([""]),
      lossTimes: new Map(),
      lossPeriods: "",
      view: undefined,
      exposure: undefined,
      prices: () => 0,
      builtAt: 0,
      isRefreshing: false,
      isStoring: false,
      reading: Semaphore.makeUnsafe(1),
      storing: Semaphore.makeUnsafe(1)
    }
    accounts.set(address, account)
    return account
  }

  const findPrice = ({ view }: GuardedAccount) => (market: Markets.GuardedMarket): number =>
    markets.mid(market) ?? view?.values.get(market.coin) ?? 0

  /** Adds the orders of a reservation to the exposure, or removes them, at the prices with which the exposure was made. */
  const count = (account: GuardedAccount, entry: Reserved, sign: 1 | -1): void => {
    const { exposure, prices } = account
    if (exposure === undefined || (sign < 0 && entry.exposure !== exposure)) account.exposure = undefined
    else for (const order of entry.orders) exposure.add(order, prices(order.market), sign)
    entry.exposure = sign < 0 ? undefined : account.exposure
  }

  /** Returns the exposure of an account by its positions, open orders and reservations, at the current prices. */
  const exposure = (account: GuardedAccount): Rules.Exposure | undefined => {
    const { reservations, view } = account
    if (view === undefined) return undefined
    if (account.exposure !== undefined && now() - account.builtAt < refreshAfter) return account.exposure
    const made = new Rules.Exposure()
    account.exposure = made
    account.prices = fixed(findPrice(account))
    account.builtAt = now()
    for (const [market, size] of view.positions) made.setPosition(market, size)
    for (const order of view.orders) made.add(order, account.prices(order.market))
    for (const entry of reservations.entries.values()) count(account, entry, 1)
    return made
  }

  const readTwaps = Effect.fnUntraced(function*(user: string) {
    const call = yield* Effect.orDie(parseCall(Encoding.write({ type: "twapHistory", user }), "gateway", true))
    const { json: { valueOrUndefined: value } } = yield* info.relay(call)
    const latest = new Map(Option.getOrElse(decodeTwaps(value), () => []).toReversed().map((row) => [row.twapId, row]))
    return [...latest.values()].filter(({ status }) => status.status === "activated").map(({ state }) => ({
      market: markets.ofCoin(state.coin),
      isBuy: state.side === "B",
      size: Number(state.sz) - Number(state.executedSz),
      price: null,
      isReduceOnly: state.reduceOnly
    }))
  })

  /** Marks the reservations whose outcome the action log knows by now. */
  const settleKnown = Effect.fnUntraced(function*({ reservations }: GuardedAccount) {
    for (const [id, { isOwn, nonce, signer, since, state }] of reservations.entries) {
      if (signer === undefined || state === "settled" || (isOwn && state === "sent")) continue
      const found = Option.getOrUndefined(yield* Effect.option(log.find({ signer, nonce })))
      // an action that is reserved but not yet sent is not in the log either
      const isKnown = found !== undefined && (found.length > 0 || state === "unknown" || now() - since > orphanedAfter)
      if (isKnown && !found.some(isOpen)) reservations.change(id, "settled", now())
    }
  })

  const periodsAt = ({ lossTimes }: GuardedAccount, time: number): string =>
    [...lossTimes].map(([key, since]) => `${key} ${Losses.periodAt(since, time)}`).join()

  /** Counts the losses of an account since a time of day. */
  const countLosses = (account: GuardedAccount, since: Losses.Since): void => {
    if (account.lossTimes.has(Losses.sinceKey(since))) return
    account.lossTimes.set(Losses.sinceKey(since), since)
    account.view = undefined
  }

  /** Reads the accounts whose losses count anew since the last read, so that no loss before the first action is missed. */
  const beginPeriods = Effect.suspend(() => {
    const time = clock.currentTimeMillisUnsafe()
    const due = [...accounts.values()].filter((each) => each.lossPeriods !== periodsAt(each, time))
    return Effect.forEach(due, (each) => refresh(each, now()), { discard: true })
  })

  /** Reads deposits and transfers since a time, oldest first; `undefined` if there are too many rows to read. */
  const readLedger = Effect.fnUntraced(function*(user: string, since: number) {
    const rows: Array<Losses.Row> = []
    let startTime = since
    for (let page = 0; page < mostPages; page++) {
      const text = Encoding.write({ type: "userNonFundingLedgerUpdates", user, startTime })
      const call = yield* Effect.orDie(parseCall(text, "gateway", true))
      const { json: { valueOrUndefined: value } } = yield* info.relay(call)
      const found = Option.getOrUndefined(Losses.decodeRows(value))
      if (found === undefined) return undefined
      rows.push(...found)
      if (found.length < pageRows) return rows
      startTime = Math.max(...found.map(({ time }) => time)) + 1
    }
    return undefined
  })

  const readLosses = Effect.fnUntraced(function*(account: GuardedAccount, equity: number, at: number) {
    const { address, lossTimes } = account
    if (!Number.isFinite(equity)) return undefined
    const time = clock.currentTimeMillisUnsafe()
    const found = yield* Losses.baselines(store ?? ownStore, address, [...lossTimes.values()], { equity, at }, time)
    if (found === undefined) return undefined
    account.lossPeriods = periodsAt(account, time)
    // the ledger is read after the equity: a deposit that the equity contains is in the ledger
    const rows = yield* readLedger(address, Math.min(...[...found.values()].map((baseline) => baseline.at)) + 1)
    if (rows === undefined) return undefined
    return Losses.measure(equity, found, rows, address, (token) => markets.tokenPrice(token) ?? 0)
  })

  const readView = Effect.fnUntraced(function*(account: GuardedAccount) {
    const { address: user, dexes, reservations } = account
    yield* settleKnown(account)
    const readAt = now()
    yield* markets.ensureLists(dexes, readAt)
    yield* markets.ensurePrices(dexes, false, readAt)
    const positions: Array<readonly [Markets.GuardedMarket, number]> = []
    const values = new Map<string, number>()
    const orders: Array<Rules.OpenOrder> = [...yield* readTwaps(user)]
    let venueTime = Number.POSITIVE_INFINITY
    let equity = 0
    for (const dex of dexes) {
      for (const order of yield* info.frontendOpenOrders({ user, dex })) {
        const price = Math.max(Number(order.limitPx), order.isTrigger ? Number(order.triggerPx) : 0)
        orders.push({
          market: markets.ofCoin(order.coin),
          isBuy: order.side === "B",
          size: Number(order.sz),
          price,
          isReduceOnly: order.reduceOnly
        })
      }
      // positions are read after orders: an order that fills in between is counted twice rather than not at all
      const { assetPositions, marginSummary: { accountValue }, time } = yield* info.clearinghouseState({ user, dex })
      equity += Number(accountValue)
      venueTime = Math.min(venueTime, time ?? clock.currentTimeMillisUnsafe())
      for (const { position: { coin, positionValue, szi } } of assetPositions) {
        positions.push([markets.ofCoin(coin), Number(szi)])
        values.set(coin, Math.abs(Number(positionValue) / Number(szi)))
      }
    }
    for (const { coin, entryNtl, total } of (yield* info.spotClearinghouseState({ user })).balances) {
      for (const market of markets.ofBase(coin)) positions.push([market, Number(total)])
      const price = markets.tokenPrice(coin)
      equity += price === undefined ? Number(entryNtl ?? 0) : Number(total) * price
    }
    const losses = account.lossTimes.size === 0 ? undefined : yield* readLosses(account, equity, venueTime)
    account.view = { readAt, venueTime, positions, orders, values, losses }
    account.exposure = undefined
    const shown = [...reservations.entries].filter(([, { since, state }]) =>
      state === "settled" && since + settleFor <= readAt
    )
    if (shown.length === 0) return
    reservations.seen = Math.max(reservations.seen, venueTime)
    for (const [id] of shown) reservations.change(id, "gone", now())
    storeSoon(account)
  })

  /** Whether the account's state is too old to know the effects of actions that are no longer reserved. */
  const isBehind = ({ reservations, view }: GuardedAccount): boolean => (view?.venueTime ?? 0) < reservations.seen

  /** Reads the state of an account that was not read since a time. A state that cannot be read keeps its age. */
  const refresh = (account: GuardedAccount, since: number): Effect.Effect<void> =>
    account.reading.withPermits(1)(
      Effect.suspend(() =>
        account.view !== undefined && account.view.readAt >= since ? Effect.void : Markets.logFailure(readView(account))
      )
    ).pipe(
      Effect.provideService(CurrentCaller, background("guard")),
      Effect.provideService(ResponseCache.MaxAge, refreshAfter / 1000)
    )

  /** Reads the state in the background while the account has reservations that may have ended. */
  const refreshSoon = (account: GuardedAccount): void => {
    const age = now() - (account.view?.readAt ?? 0)
    if (account.reservations.entries.size === 0 || age <= settleFor || account.isRefreshing) return
    account.isRefreshing = true
    const done = Effect.sync(() => void (account.isRefreshing = false))
    run(Effect.ensuring(refresh(account, now()), done))
  }

  /** Takes over the reservations of other replicas. */
  const pull = (account: GuardedAccount, shared: GuardStore.GuardStore["Service"]) =>
    Effect.flatMap(shared.get(account.address), (document) => {
      if (!account.reservations.adopt(document, now(), markets.ofCoin)) {
        return Effect.fail(new SharedStoreUnreachable({ detail: "The stored reservations cannot be read" }))
      }
      account.exposure = undefined
      return Effect.void
    })

  /** Stores the reservations. Returns false, and takes over what another replica has stored, if one was faster. */
  const push = Effect.fnUntraced(function*(account: GuardedAccount, shared: GuardStore.GuardStore["Service"]) {
    const { stored, text } = account.reservations.encode()
    if (yield* shared.put(account.address, account.reservations.version, text)) {
      stored()
      return true
    }
    yield* pull(account, shared)
    return false
  })

  /** Stores the changes of reservations that have ended, soon and together. */
  const storeSoon = (account: GuardedAccount): void => {
    if (store === undefined || account.isStoring) return
    account.isStoring = true
    const stored = Effect.suspend(() => account.reservations.isChanged ? push(account, store) : Effect.succeed(true))
    const attempt = account.storing.withPermits(1)(Effect.orElseSucceed(stored, () => false))
    run(
      Effect.sleep(gatherFor).pipe(
        Effect.andThen(Effect.sync(() => void (account.isStoring = false))),
        Effect.andThen(attempt),
        Effect.map((isStored) => {
          if (!isStored) storeSoon(account)
        })
      )
    )
  }

  const makeReservation = (account: GuardedAccount, id: string, isRepeat: boolean): Reservation => {
    const { reservations } = account
    let isEnded = false
    const change = (to: Parameters<Reservations["change"]>[1]): void => {
      reservations.change(id, to, now())
      storeSoon(account)
    }
    return {
      end: (settlement) => {
        const entry = reservations.entries.get(id)
        if (isEnded || entry === undefined) return
        isEnded = true
        if (settlement === "accepted") change("settled")
        else if (settlement === "unknown") {
          if (entry.state === "sent") change("unknown")
        } else if (!isRepeat) {
          count(account, entry, -1)
          change("gone")
        }
      }
    }
  }

  /** Reserves orders for an action in this process. */
  const hold = (
    account: GuardedAccount,
    admitted: Pick<Admitted, "fingerprint" | "nonce" | "signer">,
    orders: ReadonlyArray<Rules.OpenOrder>,
    legs: number
  ) => {
    const { fingerprint: id, nonce, signer } = admitted
    const { reservations } = account
    if (reservations.entries.has(id)) return makeReservation(account, id, true)
    reservations.countOrders(second(), legs)
    if (orders.length > 0) {
      const entry: Reserved = { nonce, signer, orders, isOwn: true, state: "sent", since: now(), exposure: undefined }
      reservations.entries.set(id, entry)
      count(account, entry, 1)
    }
    return makeReservation(account, id, false)
  }

  /**
   * Judges an action by the reservations of all replicas, and reserves it for all. `judge` returns the refusal by the
   * state in this process; it is called again after more was read.
   */
  const holdShared = <Refusal>(
    account: GuardedAccount,
    shared: GuardStore.GuardStore["Service"],
    judge: () => Refusal | undefined,
    reserve: () => Reservation
  ): Effect.Effect<Reservation | Refusal, SharedStoreUnreachable> =>
    account.storing.withPermits(1)(Effect.gen(function*() {
      yield* pull(account, shared)
      for (;;) {
        if (isBehind(account)) yield* refresh(account, now())
        const refusal = judge()
        if (refusal !== undefined) return refusal
        const reservation = reserve()
        const isStored = yield* Effect.tapError(
          push(account, shared),
          // it is not known whether the store has it: its end is stored later
          () => Effect.sync(() => reservation.end("notSent"))
        )
        if (isStored) return reservation
      }
    }))

  return {
    find,
    all: (): Iterable<GuardedAccount> => accounts.values(),
    exposure,
    isBehind,
    refresh,
    refreshSoon,
    countLosses,
    beginPeriods,
    hold,
    holdShared,
    orders: ({ reservations }: GuardedAccount): number => reservations.orders(second()),
    wait: ({ reservations }: GuardedAccount, more: number, limit: number): number | undefined =>
      reservations.wait(second(), more, limit),
    /** Runs a judgement as if an action had not been reserved yet, because it may be sent again. */
    without: <A>(account: GuardedAccount, id: string, judge: () => A): A => {
      const { entries } = account.reservations
      const earlier = entries.get(id)
      if (earlier === undefined) return judge()
      entries.delete(id)
      account.exposure = undefined
      const judged = judge()
      entries.set(id, earlier)
      account.exposure = undefined
      return judged
    }
  }
})

/** The accounts, as {@link make} returns them. */
export type GuardedAccounts = Effect.Success<ReturnType<typeof make>>

/** The state of an action: on its way, of unknown outcome, or of known outcome. */
const State = Schema.Literals(["sent", "unknown", "settled"])

/** An action whose effect the account's state may not show yet. */
export interface Reserved {
  readonly nonce: number
  readonly signer: Encoding.Address | undefined
  readonly orders: ReadonlyArray<OpenOrder>
  /** Whether this process sends the action. */
  readonly isOwn: boolean
  state: typeof State.Type
  /** When this process learned of the state, in milliseconds of a clock that only moves forward. */
  since: number
  /** The exposure to which the orders were added last. */
  exposure: Exposure | undefined
}

const Order = Schema.Tuple([Schema.String, Schema.Boolean, Schema.Finite, Schema.NullOr(Schema.Finite), Schema.Boolean])

const Document = Schema.fromJsonString(Schema.Struct({
  seen: Schema.Finite,
  rate: Schema.Array(Schema.Tuple([Schema.Int, Schema.Int])),
  entries: Schema.Array(Schema.Struct({
    id: Schema.String,
    nonce: Schema.Finite,
    signer: Schema.NullOr(Encoding.Address),
    state: State,
    orders: Schema.Array(Order)
  }))
}))
const decodeDocument = Schema.decodeOption(Document)

/** An order counts until the same millisecond of the minute after the next second. */
const window = 60

/** Maximum number of seconds whose orders are stored: more than a minute's, because a clock can be set back. */
const mostSeconds = 120

/** The reservations of one account. */
export class Reservations {
  readonly entries = new Map<string, Reserved>()
  /**
   * The venue's time of the newest state by which a reservation ended. An older state can lack the effect of an action
   * that is no longer reserved.
   */
  seen = 0
  /** The version of the stored document from which the entries were made. */
  version = 0
  readonly #rate = new Map<number, number>()
  /** The changes that are not stored yet. */
  readonly #changes = new Map<string, "gone" | Reserved["state"]>()
  readonly #isShared: boolean

  constructor(isShared: boolean) {
    this.#isShared = isShared
  }

  /** Returns the number of new orders in the last 60 seconds. */
  orders(second: number): number {
    let sum = 0
    for (const [each, count] of this.#rate) if (second - each <= window) sum += count
    return sum
  }

  /** Returns the seconds until `more` orders are within the limit; `undefined` if they never are. */
  wait(second: number, more: number, limit: number): number | undefined {
    let excess = this.orders(second) + more - limit
    for (const [each, count] of [...this.#rate].toSorted(([one], [other]) => one - other)) {
      if (excess <= 0) break
      if (second - each > window) continue
      excess -= count
      if (excess <= 0) return Math.max(1, each + window + 1 - second)
    }
    return excess <= 0 ? 0 : undefined
  }

  /** Counts new orders. They stay counted whatever becomes of them. */
  countOrders(second: number, count: number): void {
    if (count === 0) return
    this.#rate.set(second, (this.#rate.get(second) ?? 0) + count)
    if (this.#rate.size > mostSeconds) this.#rate.delete(Math.min(...this.#rate.keys()))
  }

  /** Ends a reservation, or changes its state. */
  change(id: string, to: "gone" | Reserved["state"], now: number): void {
    if (this.#isShared) this.#changes.set(id, to)
    const entry = this.entries.get(id)
    if (to === "gone") this.entries.delete(id)
    else if (entry !== undefined && entry.state !== to) {
      entry.state = to
      entry.since = now
    }
  }

  /** Whether there are changes that are not stored. */
  get isChanged(): boolean {
    return this.#changes.size > 0
  }

  /** Encodes the reservations. Call `stored` if a store has taken the text. */
  encode(): { readonly text: string; readonly stored: () => void } {
    const changes = new Map(this.#changes)
    const text = Encoding.stringify({
      seen: this.seen,
      rate: [...this.#rate],
      entries: [...this.entries].map(([id, { nonce, orders, signer, state }]) => ({
        id,
        nonce,
        signer: signer ?? null,
        state,
        orders: orders.map(({ isBuy, isReduceOnly, market, price, size }) => [
          market.coin,
          isBuy,
          size,
          price,
          isReduceOnly
        ])
      }))
    })
    return {
      text,
      stored: () => {
        this.version++
        for (const [id, to] of changes) if (this.#changes.get(id) === to) this.#changes.delete(id)
      }
    }
  }

  /**
   * Takes over a stored document, and applies the changes that are not stored. Returns false, and changes nothing, if the
   * document cannot be read.
   */
  adopt(
    document: { readonly version: number; readonly text: string } | undefined,
    now: number,
    marketOf: (coin: string) => GuardedMarket
  ): boolean {
    const found = document === undefined ? undefined : Option.getOrUndefined(decodeDocument(document.text))
    if (document !== undefined && found === undefined) return false
    this.version = document?.version ?? 0
    this.seen = Math.max(this.seen, found?.seen ?? 0)
    for (const [second, count] of found?.rate ?? []) {
      this.#rate.set(second, Math.max(count, this.#rate.get(second) ?? 0))
    }
    const known = new Map(this.entries)
    this.entries.clear()
    for (const { id, nonce, orders, signer, state } of found?.entries ?? []) {
      const earlier = known.get(id)
      this.entries.set(id, {
        nonce,
        signer: signer ?? undefined,
        orders: earlier?.orders ?? orders.map(([coin, isBuy, size, price, isReduceOnly]) => ({
          market: marketOf(coin),
          isBuy,
          size,
          price,
          isReduceOnly
        })),
        isOwn: earlier?.isOwn === true,
        state,
        since: earlier?.state === state ? earlier.since : now,
        exposure: undefined
      })
    }
    for (const [id, to] of this.#changes) {
      if (to === "gone" && !this.entries.has(id)) this.#changes.delete(id)
      else this.change(id, to, now)
    }
    return true
  }
}
