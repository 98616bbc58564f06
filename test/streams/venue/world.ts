/** Everything that happens at the venue, and the ledger of it. Which connection hears of it is not decided here. */
import { Account, type Fill, frontend, historical, type Order, type Update } from "./account.ts"
import { machineTime, randomBy, VenueClock } from "./clock.ts"
import { decimal, dexes, late, type Listed, listing, perpContext, spotContext } from "./listing.ts"
import { Market, type Random } from "./market.ts"
import { channelOf, keyOf, type Normal } from "./subscriptions.ts"

/** One frame for everybody who is subscribed to its key. */
export interface Entry {
  /** From 0, in the order in which things happened. */
  readonly seq: number
  readonly time: number
  readonly key: string
  readonly channel: string
  readonly data: unknown
}

export interface Switches {
  /** What a later frame of a channel with snapshots says of itself. */
  readonly isSnapshot: "absent" | "false" | "true"
  /** How the items of a snapshot are ordered. */
  readonly snapshotOrder: "ascending" | "descending"
  /** The number of items in a snapshot. */
  readonly snapshotItems: number
  /** Members that nobody knows, in every item of every frame. */
  readonly extraFields: boolean
}

export const defaultSwitches: Switches = {
  isSnapshot: "absent",
  snapshotOrder: "ascending",
  snapshotItems: 2000,
  extraFields: false
}

/** The old trades in the first frame after a subscribe. */
export const replayedTrades = 30

export class World {
  readonly clock = new VenueClock()
  readonly random: Random
  readonly ledger: Array<Entry> = []
  /** When each entry of the ledger was made, by the machine's clock. */
  readonly times: Array<number> = []
  readonly listed = new Set<string>()
  /** Every subscription that was ever accepted: frames of a whole state are made for these. */
  readonly known = new Map<string, Normal>()
  readonly publish: (entry: Entry) => void
  switches: Switches = defaultSwitches
  readonly #unpriced = new Set<string>()
  readonly #markets = new Map<string, Market>()
  readonly #accounts = new Map<string, Account>()
  readonly #seed: number
  #lastOid = 566_617_000_000

  constructor(seed: number, publish: (entry: Entry) => void) {
    this.#seed = seed
    this.random = randomBy(seed)
    this.publish = publish
    for (const each of listing) this.#list(each)
  }

  /** Numbers of a market or an account: they do not depend on what was asked for first. */
  #randomOf(name: string): Random {
    const hash = Array.from(name).reduce(
      (sum, letter) => Math.imul(sum ^ (letter.codePointAt(0) ?? 0), 0x01000193),
      0x811c9dc5
    )
    return randomBy(hash ^ Math.imul(this.#seed, 0x9e3779b1))
  }

  #list(listed: Listed): void {
    this.listed.add(listed.coin)
    this.#markets.set(listed.coin, new Market(listed, this.#randomOf(listed.coin)))
  }

  /** Lists one more perpetual of the first dex, or an outcome: both of its sides, and a price of the given one alone. */
  list(coin: string): void {
    this.#list(late(coin, this.perps("").length))
    if (!coin.startsWith("#")) return
    const other = `#${Number(coin.slice(1)) ^ 1}`
    this.#list(late(other, 0))
    this.#unpriced.add(other)
  }

  /** The numbers of the outcomes. */
  outcomes(): ReadonlyArray<number> {
    const coins = [...this.listed].filter((coin) => coin.startsWith("#"))
    return [...new Set(coins.map((coin) => Math.floor(Number(coin.slice(1)) / 10)))]
  }

  market(coin: string): Market {
    const market = this.#markets.get(coin)
    if (market === undefined) throw new Error(`no market ${coin}`)
    return market
  }

  marketOfAsset(asset: number): Market | undefined {
    return [...this.#markets.values()].find(({ listed }) => listed.asset === asset)
  }

  perps(dex: string): ReadonlyArray<Listed> {
    const first = dexes.get(dex) ?? []
    if (dex !== "") return first
    const added = [...this.#markets.values()].filter(({ listed }) =>
      listed.kind === "perp" && !listing.includes(listed)
    )
    return [...first, ...added.map(({ listed }) => listed)]
  }

  account(user: string): Account {
    const name = user.toLowerCase()
    const account = this.#accounts.get(name) ?? new Account(name, this.#randomOf(name))
    this.#accounts.set(name, account)
    return account
  }

  emit(subscription: Normal, data: unknown): void {
    const entry = {
      seq: this.ledger.length,
      time: this.clock.now,
      key: keyOf(subscription),
      channel: channelOf(subscription),
      data: this.decorate(data)
    }
    this.ledger.push(entry)
    this.times.push(machineTime())
    this.publish(entry)
  }

  /** Adds members that nobody knows, where the switch says so. */
  decorate(data: unknown): unknown {
    if (!this.switches.extraFields) return data
    const add = (value: unknown): unknown =>
      typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value, futureField: [1, "x"] } : value
    return Array.isArray(data) ? data.map(add) : add(data)
  }

  /** Time passes with each event, about as long as a block takes. */
  #tick(): number {
    this.clock.advance(7)
    return this.clock.now
  }

  trade(coin: string): void {
    const market = this.market(coin)
    const trade = market.trade(this.#tick())
    this.emit({ type: "trades", coin }, [trade])
    for (const subscription of this.known.values()) {
      if (subscription.type !== "candle" || subscription["coin"] !== coin) continue
      const bar = market.bars(String(subscription["interval"])).at(-1)
      if (bar !== undefined) this.emit(subscription, bar)
    }
  }

  /** The whole states of a coin, of a user or of everything that somebody was ever subscribed to. */
  states(about: { readonly coin?: string; readonly user?: string; readonly type?: string } = {}): void {
    this.#tick()
    for (const subscription of this.known.values()) {
      if (about.coin !== undefined && subscription["coin"] !== about.coin) continue
      if (about.user !== undefined && subscription["user"] !== about.user.toLowerCase()) continue
      if (about.type !== undefined && subscription.type !== about.type) continue
      const state = this.state(subscription)
      if (state !== undefined) this.emit(subscription, state)
    }
  }

  /** The frame of a channel whose frames are whole states. */
  state(subscription: Normal): unknown {
    const time = this.clock.now
    const coin = String(subscription["coin"])
    const user = String(subscription["user"])
    const dex = String(subscription["dex"] ?? "")
    switch (subscription.type) {
      case "allMids":
        return { ...(dex === "" ? {} : { dex }), mids: this.mids(dex) }
      case "l2Book":
        return this.market(coin).book(subscription, time)
      case "bbo":
        return this.market(coin).bbo(time)
      case "activeAssetCtx":
        return { coin, ctx: this.context(this.market(coin)) }
      case "assetCtxs":
        return { dex, ctxs: this.perps(dex).map(({ coin }) => this.context(this.market(coin))) }
      case "spotAssetCtxs":
        return [...this.#markets.values()].filter(({ listed }) => listed.kind === "spot").map((market) =>
          this.context(market)
        )
      case "allDexsAssetCtxs":
        return {
          ctxs: [...dexes.keys()].map((name) => [
            name,
            this.perps(name).map(({ coin }) => this.context(this.market(coin)))
          ])
        }
      case "activeAssetData":
        return {
          user,
          coin,
          leverage: { type: "cross", value: 20 },
          maxTradeSzs: ["683.30131", "684.41969"],
          availableToTrade: ["1000.0", "1000.0"],
          markPx: this.market(coin).px
        }
      case "webData3":
        return {
          userState: {
            agentAddress: null,
            agentValidUntil: null,
            cumLedger: "1000.0",
            serverTime: time,
            isVault: false,
            user
          },
          perpDexStates: [{ totalVaultEquity: "0.0", perpsAtOpenInterestCap: ["CANTO"] }]
        }
      case "clearinghouseState":
        return { dex, user, clearinghouseState: this.account(user).clearinghouse(time) }
      case "allDexsClearinghouseState":
        return {
          user,
          clearinghouseStates: [...dexes.keys()].map((name) => [name, this.account(user).clearinghouse(time)])
        }
      case "openOrders":
        return { dex, user, orders: this.account(user).open.map(frontend) }
      case "spotState":
        return { user, spotState: this.account(user).balances() }
      case "twapStates":
        return { dex, user, states: [] }
      default:
        return undefined
    }
  }

  mids(dex: string): Readonly<Record<string, string>> {
    const shown = [...this.#markets.values()].filter(({ listed: { coin } }) =>
      !this.#unpriced.has(coin) && (dex === "" ? !coin.includes(":") : coin.startsWith(`${dex}:`))
    )
    return Object.fromEntries(shown.map((market) => [market.listed.coin, market.px]))
  }

  context({ listed: { coin, kind }, px }: Market): unknown {
    return kind === "spot" ? spotContext(coin, px) : perpContext(px)
  }

  spots(): ReadonlyArray<Market> {
    return [...this.#markets.values()].filter(({ listed }) => listed.kind === "spot")
  }

  /** A frame of a channel whose later frames may say that they are no snapshot. */
  #events(subscription: Normal, body: Readonly<Record<string, unknown>>): void {
    const { isSnapshot } = this.switches
    this.emit(subscription, isSnapshot === "absent" ? body : { isSnapshot: isSnapshot === "true", ...body })
  }

  #updates(user: string, updates: ReadonlyArray<Update>): void {
    this.emit({ type: "orderUpdates", user }, updates)
    const orderHistory = updates.map(historical)
    this.#events({ type: "userHistoricalOrders", user }, { user, orderHistory })
  }

  /** An order of an account that is not on the book yet. */
  order(coin: string, part: Partial<Order> = {}): Order {
    const { listed: { start, pxDecimals } } = this.market(coin)
    const sz = decimal(1 + Math.floor(this.random() * 100), 2)
    this.#lastOid += 1 + Math.floor(this.random() * 9)
    return {
      coin,
      side: this.random() < 0.5 ? "A" : "B",
      limitPx: decimal(start, pxDecimals),
      sz,
      oid: this.#lastOid,
      timestamp: this.clock.now,
      origSz: sz,
      ...part
    }
  }

  place(user: string, coin: string, part: Partial<Order> = {}, status = "open"): Order {
    const time = this.#tick()
    const account = this.account(user)
    const order = this.order(coin, part)
    this.#updates(account.user, [account.update(order, status, time)])
    return order
  }

  /** An order that is open and filled at one time, in one frame. */
  fill(user: string, coin: string, part: Partial<Order> = {}): Order {
    const time = this.#tick()
    const account = this.account(user)
    const order = this.order(coin, part)
    const fill = account.fill(order, time)
    this.#updates(account.user, [
      account.update(order, "open", time),
      account.update({ ...order, sz: "0.0" }, "filled", time)
    ])
    this.#fills(account.user, [fill])
    return order
  }

  #fills(user: string, fills: ReadonlyArray<Fill>): void {
    this.emit({ type: "userEvents", user }, { fills })
    for (const aggregateByTime of [false, true]) {
      this.#events({ type: "userFills", user, aggregateByTime }, { user, fills })
    }
  }

  /** Fills without a counterparty: of one tid, and of no order that the account placed. */
  dust(user: string, coins: ReadonlyArray<string>): void {
    const time = this.#tick()
    const account = this.account(user)
    this.#fills(account.user, coins.map((coin) => account.dust(this.order(coin), time)))
  }

  cancel(user: string, oid?: number): boolean {
    const time = this.#tick()
    const account = this.account(user)
    const order = account.open.find((open) => oid === undefined || open.oid === oid)
    if (order === undefined) return false
    this.#updates(account.user, [account.update(order, "canceled", time)])
    return true
  }

  /** A modify makes a new order; its open may come before the old one's cancel. */
  modify(user: string, first: "open" | "cancel", oid?: number, part: Partial<Order> = {}): Order | undefined {
    const time = this.#tick()
    const account = this.account(user)
    const old = account.open.find((open) => oid === undefined || open.oid === oid)
    if (old === undefined) return undefined
    const order = this.order(old.coin, { side: old.side, ...part })
    const canceled = () => this.#updates(account.user, [account.update(old, "canceled", time)])
    const opened = () => this.#updates(account.user, [account.update(order, "open", time)])
    const steps = first === "open" ? [opened, canceled] : [canceled, opened]
    for (const step of steps) step()
    return order
  }

  funding(user: string): void {
    const account = this.account(user)
    const funding = account.fund("BTC", this.#tick())
    this.emit({ type: "userEvents", user: account.user }, { funding })
    this.#events({ type: "userFundings", user: account.user }, { user: account.user, fundings: [funding] })
  }

  transfer(user: string): void {
    const account = this.account(user)
    const row = account.transfer(this.#tick())
    const body = { user: account.user, nonFundingLedgerUpdates: [row] }
    this.#events({ type: "userNonFundingLedgerUpdates", user: account.user }, body)
  }

  twap(user: string): void {
    const time = this.#tick()
    const account = this.account(user)
    const slice = account.slice(this.order("BTC"), time)
    this.emit({ type: "userEvents", user: account.user }, { twapSliceFills: [slice] })
    this.#events({ type: "userTwapSliceFills", user: account.user }, { user: account.user, twapSliceFills: [slice] })
    const history = [account.finishTwap(time)]
    this.#events({ type: "userTwapHistory", user: account.user }, { user: account.user, history })
  }

  notify(user: string): void {
    const notification = `Resting order filled: Sold ${this.#tick() % 1000} MON at $0.023038`
    this.emit({ type: "notification", user: user.toLowerCase() }, { notification })
  }

  /** The frame that follows the acknowledgement of a subscribe, if there is one. */
  first(subscription: Normal): unknown {
    const { type } = subscription
    const coin = String(subscription["coin"])
    if (type === "trades") {
      const replay = this.market(coin).trades.slice(-replayedTrades)
      return replay.length === 0 ? undefined : replay
    }
    if (type === "candle") return this.market(coin).bars(String(subscription["interval"])).at(-1)
    const state = this.state(subscription)
    if (state !== undefined) return state
    if (subscription["user"] === undefined) return undefined
    const account = this.account(String(subscription["user"]))
    const { user } = account
    switch (type) {
      case "userFills":
        return { isSnapshot: true, user, fills: this.#snapshot(account.fills) }
      case "userFundings":
        return { isSnapshot: true, user, fundings: this.#snapshot(account.fundings) }
      case "userNonFundingLedgerUpdates":
        return { isSnapshot: true, user, nonFundingLedgerUpdates: this.#snapshot(account.ledger) }
      case "userHistoricalOrders": {
        const orderHistory = account.updates.map(historical)
        return { isSnapshot: true, user, orderHistory: this.#snapshot(orderHistory) }
      }
      case "userTwapHistory":
        return { isSnapshot: true, user, history: this.#snapshot(account.twaps) }
      case "userTwapSliceFills":
        return { isSnapshot: true, user, twapSliceFills: this.#snapshot(account.slices) }
      default:
        return undefined
    }
  }

  #snapshot<Item>(items: ReadonlyArray<Item>): ReadonlyArray<Item> {
    const last = items.slice(-this.switches.snapshotItems)
    return this.switches.snapshotOrder === "ascending" ? last : last.toReversed()
  }

  /** Something at random, about the given coins and users. */
  step(coins: ReadonlyArray<string>, users: ReadonlyArray<string>): void {
    const pick = <Item>(items: ReadonlyArray<Item>): Item | undefined => items[Math.floor(this.random() * items.length)]
    const coin = pick(coins) ?? "BTC"
    const user = pick(users)
    const kind = Math.floor(this.random() * (user === undefined ? 4 : 12))
    if (kind < 3 || user === undefined) return kind === 3 ? this.states({ coin }) : this.trade(coin)
    const actions: ReadonlyArray<() => unknown> = [
      () => this.states({ coin }),
      () => this.fill(user, coin),
      () => this.place(user, coin),
      () => this.cancel(user),
      () => this.modify(user, this.random() < 0.5 ? "open" : "cancel"),
      () => this.funding(user),
      () => this.transfer(user),
      () => this.twap(user),
      () => this.states({ user })
    ]
    actions[kind - 3]?.()
  }
}
