/** Random sequences of orders, transfers, prices and time, and what holds of trading after each step. */
import { assert } from "@effect/vitest"
import type { SentAction } from "@trigate/domain/actions/Action"
import * as Json from "@trigate/domain/encoding/Encoding"
import type { Fill } from "@trigate/domain/info/Account"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as Seed from "@trigate/sandbox/unstable/Seed"
import { findCollateral, usdc, usdh, weiPerUsd } from "@trigate/sandbox/unstable/venue/Assets"
import { hyperliquidity } from "@trigate/sandbox/unstable/venue/Fees"
import { firstSide, one } from "@trigate/sandbox/unstable/venue/Outcomes"
import * as PriceTimeBook from "@trigate/sandbox/unstable/venue/TradingState"
import { findAccount } from "@trigate/sandbox/unstable/venue/TradingState"
import type { TradingState } from "@trigate/sandbox/unstable/venue/TradingState"
import type { OrderSnapshot, VenueEvent } from "@trigate/sandbox/unstable/venue/Venue"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { venueNow } from "./trader.ts"

const addressOf = (index: number) => `0x${index.toString(16).padStart(40, "1")}` as const
export const users = [addressOf(1), addressOf(2), addressOf(3), addressOf(4)] as const

/** Ids and coins that are traded: three perpetuals, two of builders in different collateral, and two spot pairs. */
const assets = [
  [0, "BTC"],
  [1, "ETH"],
  [15, "kPEPE"],
  [110_000, "xyz:XYZ100"],
  [130_000, "km:US500"],
  [10_107, "@107"],
  [10_000, "PURR/USDC"]
] as const

/** Numbers from a run's seed. */
export const drawing = (run: number) => {
  const family = Seed.series("properties", String(run))
  let index = 0
  return {
    below: (bound: number) => Seed.below(family, index++, bound),
    fraction: () => Seed.fraction(family, index++),
    one: <A>(all: readonly [A, ...ReadonlyArray<A>]): A => all[Seed.below(family, index++, all.length)] ?? all[0]
  }
}
type Draw = ReturnType<typeof drawing>

const chain = { signatureChainId: "0x66eee", hyperliquidChain: "Mainnet" } as const

/** A price near the mark, with four digits. */
const priceNear = (draw: Draw, mark: number): string => {
  const px = mark * (1 + (draw.fraction() - 0.5) * draw.one([0.0005, 0.01, 0.2]))
  return String(px >= 10_000 ? Math.round(px) : Number(px.toPrecision(4)))
}

const sizeOf = (draw: Draw, mark: number, decimals: number): string =>
  (draw.one([12, 300, 4_000]) * (0.5 + draw.fraction()) / mark).toFixed(decimals)

interface Market {
  readonly id: number
  readonly mark: number
  readonly szDecimals: number
}

const orderIn = (draw: Draw, { id, mark, szDecimals }: Market, reduceOnly = draw.below(6) === 0) => ({
  a: id,
  b: draw.below(2) === 0,
  p: priceNear(draw, mark),
  s: sizeOf(draw, mark, szDecimals),
  r: reduceOnly,
  t: draw.below(5) === 0
    ? {
      trigger: {
        isMarket: draw.below(2) === 0,
        triggerPx: priceNear(draw, mark),
        tpsl: draw.one(["tp", "sl"])
      }
    }
    : { limit: { tif: draw.one(["Gtc", "Gtc", "Alo", "Ioc", "FrontendMarket"]) } }
})

const actionOf = (
  draw: Draw,
  markets: ReadonlyArray<Market>,
  state: TradingState,
  user: (typeof users)[number]
): SentAction => {
  const market = markets[draw.below(markets.length)] ?? assert.fail()
  // includes orders that wait for the fill of their parent
  const active = [...findAccount(state, user).orders.values()].filter(({ place }) => place !== "gone")
  const order = active[draw.below(Math.max(1, active.length))]
  const destination = draw.one(users)
  const vaultAddress = [...state.vaults.keys()].at(-1) ?? destination
  const asset = assets.find(([, coin]) => coin === order?.coin)?.[0] ?? markets.at(-1)?.id
  const kinds: readonly [() => SentAction, ...ReadonlyArray<() => SentAction>] = [
    () => ({
      type: "order",
      orders: [orderIn(draw, market), orderIn(draw, market)],
      grouping: draw.one(["na", "na", "na", "positionTpsl"])
    }),
    () => ({
      type: "order",
      orders: [orderIn(draw, market, false), orderIn(draw, market, true), orderIn(draw, market, true)],
      grouping: "normalTpsl"
    }),
    () => ({ type: "order", orders: [orderIn(draw, market)], grouping: "na" }),
    () => ({ type: "cancel", cancels: [{ a: asset, o: order?.oid ?? 1 }] }),
    () => ({
      type: "batchModify",
      modifies: [{ oid: order?.oid ?? 1, order: { ...orderIn(draw, market), a: asset } }],
      a: draw.below(3) > 0
    }),
    () => ({ type: "usdSend", ...chain, destination, amount: `${draw.below(900)}.${draw.below(100)}`, time: 1 }),
    () => ({
      type: "usdClassTransfer",
      ...chain,
      amount: String(draw.below(2_000)),
      toPerp: draw.below(2) === 0,
      nonce: 1
    }),
    () => ({
      type: "spotSend",
      ...chain,
      destination,
      token: draw.one(["HYPE", "NEW"]),
      amount: String(draw.fraction()).slice(0, 8),
      time: 1
    }),
    () => ({
      type: "sendAsset",
      ...chain,
      destination,
      ...(draw.below(2) === 0
        ? { sourceDex: draw.one(["", "spot", "xyz"]), destinationDex: draw.one(["", "spot", "xyz"]), token: "USDC" }
        : { sourceDex: draw.one(["km", "spot"]), destinationDex: draw.one(["km", "spot"]), token: "USDH" }),
      amount: String(draw.below(700)),
      fromSubAccount: "",
      nonce: 1
    }),
    () => ({ type: "updateLeverage", asset: market.id, isCross: draw.below(3) > 0, leverage: 1 + draw.below(21) }),
    () => ({ type: "updateIsolatedMargin", asset: market.id, isBuy: true, ntli: (draw.below(200) - 100) * 1_000_000 }),
    () => ({
      type: "twapOrder",
      twap: {
        a: market.id,
        b: draw.below(2) === 0,
        s: sizeOf(draw, market.mark, market.szDecimals),
        r: draw.below(4) === 0,
        m: 5 + draw.below(20),
        t: draw.below(2) === 0
      }
    }),
    () => ({ type: "withdraw3", ...chain, destination, amount: String(draw.below(50)), time: 1 }),
    () => ({ type: "approveBuilderFee", ...chain, maxFeeRate: "0.05%", builder: destination, nonce: 1 }),
    () => ({
      type: "order",
      orders: [orderIn(draw, market)],
      grouping: "na",
      builder: { b: destination, f: 1 + draw.below(60) }
    }),
    () => ({ type: "claimRewards" }),
    () => ({
      type: "userSetAbstraction",
      ...chain,
      user,
      abstraction: draw.one(["unifiedAccount", "unifiedAccount", "disabled"]),
      nonce: 1
    }),
    () => ({
      type: "borrowLend",
      operation: draw.one(["supply", "withdraw"]),
      token: 0,
      amount: draw.one([null, String(draw.below(400))])
    }),
    () => ({ type: "cDeposit", ...chain, wei: draw.below(1_000_000_000), nonce: 1 }),
    () => ({ type: "cWithdraw", ...chain, wei: draw.below(500_000_000), nonce: 1 }),
    () => ({ type: "scheduleCancel", time: state.now + 5_000 + draw.below(600_000) }),
    () => ({ type: "createVault", name: "v", description: "", initialUsd: 100_000_000, nonce: 1 }),
    () => ({ type: "vaultTransfer", vaultAddress, isDeposit: draw.below(3) > 0, usd: draw.below(400) * 1_000_000 }),
    () => ({ type: "vaultDistribute", vaultAddress, usd: draw.below(300) * 1_000_000 })
  ]
  return draw.one(kinds)()
}

export const sum = (amounts: Iterable<bigint>): bigint => [...amounts].reduce((total, amount) => total + amount, 0n)

/** The money of all accounts: cash, isolated margin, rewards, and spot balances. */
const money = (state: TradingState) => {
  const amounts = new Map<string, bigint>()
  const add = (amount: bigint, ...path: ReadonlyArray<string | number>) => {
    if (amount !== 0n) amounts.set(path.join(" "), amount)
  }
  for (const { address, builderRewards, clearings, rewards, spot, supplied } of state.accounts.values()) {
    for (const [token, wei] of supplied) add(wei, address, token, "supplied")
    add(rewards, address, "rewards")
    add(builderRewards, address, "builder rewards")
    for (const [dex, { cash, positions }] of clearings) {
      add(cash, address, dex)
      for (const [coin, { raw }] of positions) add(raw, address, coin)
    }
    for (const [token, { hold, total }] of spot) {
      add(hold, address, token, "hold")
      add(total, address, token)
    }
  }
  return amounts
}

/** Asserts what holds of trading at any time. */
export const check = (state: TradingState): void => {
  const accounts = [...state.accounts.values()]
  const { house } = state
  /** The money in the dexes whose collateral is a token, in millionths. */
  const inDexes = (token: number): bigint =>
    sum([...state.perpDexes.values()].map(({ liquidator, name }) => findCollateral(name) === token ? liquidator : 0n)) +
    sum(
      accounts.flatMap(({ clearings }) =>
        [...clearings].flatMap(([dex, { cash, positions }]) =>
          findCollateral(dex) === token ? [cash + sum([...positions.values()].map(({ raw }) => raw))] : []
        )
      )
    )
  const usd = house.cash + house.feesUsd +
    sum(accounts.map(({ builderRewards, rewards }) => rewards + builderRewards))
  const tokens = new Set([
    ...state.deposited.keys(),
    ...house.spot.keys(),
    ...accounts.flatMap(({ spot }) => [...spot.keys()])
  ])
  for (const token of tokens) {
    const spot = sum(accounts.map((account) => account.spot.get(token)?.total ?? 0n)) +
      sum(accounts.map(({ supplied }) => supplied.get(token) ?? 0n)) +
      sum(accounts.map(({ unstaking }) => token === 150 ? sum(unstaking.map(({ wei }) => wei)) : 0n)) +
      (house.spot.get(token) ?? 0n) + (house.feesSpot.get(token) ?? 0n)
    assert.strictEqual(
      spot + (inDexes(token) + (token === usdc ? usd : 0n)) * weiPerUsd,
      state.deposited.get(token) ?? 0n,
      `token ${token}`
    )
  }
  for (const [coin, market] of state.markets) {
    const sizes = accounts.flatMap(({ clearings }) =>
      [...clearings.values()].map(({ positions }) => positions.get(coin)?.size ?? 0n)
    )
    assert.strictEqual(sum(sizes) + (house.positions.get(coin) ?? 0n), 0n, coin)
    const bid = PriceTimeBook.best(market.bids)
    const ask = PriceTimeBook.best(market.asks)
    if (bid !== undefined && ask !== undefined) assert.isTrue(bid.px < ask.px, `${coin} is crossed`)
    for (const order of [...PriceTimeBook.iterateOrders(market.bids), ...PriceTimeBook.iterateOrders(market.asks)]) {
      assert.isTrue(order.sz > 0n && order.sz <= order.origSz, `size of ${order.oid}`)
      assert.deepStrictEqual([order.status, order.place], ["open", "book"])
      assert.strictEqual(findAccount(state, order.user).open.get(order.oid), order)
    }
  }
  for (const account of accounts) {
    const holds = new Map<number, bigint>()
    const exposure = new Map<string, { bids: bigint; asks: bigint }>()
    for (const order of account.open.values()) {
      if (order.place !== "book") continue
      const isSpot = /^[@#]|\//u.test(order.coin)
      if (isSpot) {
        const deployed = [...state.spotPairs.values()].find(({ index }) => order.coin === `@${index}`)
        const base = state.spotTokens.get(deployed?.base ?? -1)?.token
        const [token, wei] = order.isBuy
          ? [deployed?.quote ?? usdc, order.px * order.sz]
          : base !== undefined
          ? [base.index, order.sz * 10n ** BigInt(base.weiDecimals - base.szDecimals)]
          : order.coin.startsWith("#")
          ? [firstSide + Number(order.coin.slice(1)), order.sz * one]
          : order.coin === "@107"
          ? [150, order.sz * 10n ** 6n]
          : [1, order.sz * 10n ** 5n]
        holds.set(token, (holds.get(token) ?? 0n) + wei)
      } else if (!order.reduceOnly) {
        const known = exposure.get(order.coin) ?? { bids: 0n, asks: 0n }
        exposure.set(
          order.coin,
          order.isBuy
            ? { ...known, bids: known.bids + order.sz }
            : { ...known, asks: known.asks + order.sz }
        )
      }
    }
    for (const [token, { hold, total }] of account.spot) {
      assert.strictEqual(hold, holds.get(token) ?? 0n, `hold of ${token}`)
      const isBorrowed = account.abstraction === "portfolioMargin" && token === usdc
      assert.isTrue((total >= hold || isBorrowed) && hold >= 0n, `balance of ${token}`)
    }
    assert.deepStrictEqual(new Map(account.exposure), exposure)
  }
}

const isFinal = (status: string): boolean => status !== "open" && status !== "triggered"

/** Follows the life of each order: it begins with `open` or a rejection, and nothing follows its end. */
const makeLives = () => {
  const last = new Map<number, { readonly status: string; readonly sz: bigint }>()
  return {
    last,
    see: (events: ReadonlyArray<VenueEvent>) => {
      for (const event of events) {
        if (event.kind !== "order") continue
        const { oid, status, sz } = event.order
        const before = last.get(oid)
        assert.isFalse(before !== undefined && isFinal(before.status), `${oid}: ${status} after ${before?.status}`)
        // the first of an order that waited for its parent may be the parent's end
        if (before === undefined) assert.notStrictEqual(status, "triggered")
        if (status === "filled") assert.strictEqual(sz, 0n)
        last.set(oid, { status, sz })
      }
    }
  }
}

/** Follows the books from the events alone, and asserts of each resting order that is filled that it was the next by price and time. */
const makeQueues = () => {
  const queues = new Map<string, Map<number, OrderSnapshot>>()
  let fills = 0
  const queueOf = (coin: string, isBuy: boolean) => {
    const key = `${coin} ${isBuy ? "buys" : "sells"}`
    const queue = queues.get(key) ?? new Map<number, OrderSnapshot>()
    queues.set(key, queue)
    return queue
  }
  const seeOrder = (order: OrderSnapshot): void => {
    const queue = queueOf(order.coin, order.isBuy)
    const rests = order.place === "book" || (order.place === "gone" && order.trigger === undefined)
    // an order that is already there stays where it is
    if (order.status === "open" && rests) queue.set(order.oid, order)
    else queue.delete(order.oid)
  }
  const seeFill = (fill: Fill): void => {
    const { coin, side } = fill
    const oid = Number(fill.oid)
    const queue = queueOf(coin, side === "B")
    const { isBuy, px } = queue.get(oid) ?? assert.fail(`${oid} is filled and was not open`)
    const [next] = [...queue.values()]
      .filter((order) => isBuy ? order.px >= px : order.px <= px)
      .toSorted((left, right) => left.px === right.px ? 0 : left.px > right.px === isBuy ? -1 : 1)
    assert.strictEqual(oid, next?.oid, `the next ${isBuy ? "buy" : "sell"} of ${coin}`)
    fills++
  }
  return {
    fills: () => fills,
    see: (events: ReadonlyArray<VenueEvent>) => {
      for (const event of events) {
        if (event.kind === "order") seeOrder(event.order)
        if (event.kind === "fill" && !event.fill.crossed) seeFill(event.fill)
      }
    }
  }
}

const deployer = `0x${"d".repeat(40)}` as const

/** Deploys a token of which each user has some, and a pair with the orders of Hyperliquidity. Returns the token. */
const deployToken = Effect.gen(function*() {
  const { trading } = yield* SandboxState
  const deploy = (members: object) => trading.act(deployer, { type: "spotDeploy", ...members })
  yield* trading.depositSpot(deployer, 150, "3000")
  yield* trading.depositSpot(deployer, usdc, "1000")
  const spec = { name: "NEW", szDecimals: 1, weiDecimals: 7 }
  const token = Number((yield* deploy({ registerToken2: { spec, maxGas: 300_000_000_000 } })).data)
  const owners = [...users, deployer].map((user) => [user, "9000000000"])
  const userAndWei = [...owners, [hyperliquidity, "6000000000"]]
  yield* deploy({ enableFreezePrivilege: { token } })
  yield* deploy({ userGenesis: { token, userAndWei, existingTokenAndWei: [[1, "12345678901"]] } })
  yield* deploy({ genesis: { token, maxSupply: "63345678901" } })
  const spot = Number((yield* deploy({ registerSpot: { tokens: [token, usdc] } })).data)
  yield* deploy({ registerHyperliquidity: { spot, startPx: "1.5", orderSz: "20", nOrders: 40, nSeededLevels: 10 } })
  yield* deploy({ setDeployerTradingFeeShare: { token, share: "33.333%" } })
  return { token, spot }
})

/** Plays a run, and returns its state as text. Runs `after` after each step, and `pass` for the time before it. */
export const play = <R = never>(
  run: number,
  steps: number,
  after: Effect.Effect<void, never, R> = Effect.void,
  pass: (milliseconds: number) => Effect.Effect<void, never, R> = TestClock.adjust
) =>
  Effect.gen(function*() {
    const { info, trading } = yield* SandboxState
    const draw = drawing(run)
    const lives = makeLives()
    const queues = makeQueues()
    yield* Effect.asVoid(trading.follow(lives.see))
    yield* Effect.asVoid(trading.follow(queues.see))
    for (const user of users) {
      yield* trading.depositUsd(user, "5000")
      yield* trading.depositSpot(user, 0, "3000")
      yield* trading.depositSpot(user, 150, "50")
      yield* trading.depositSpot(user, 1, "9000")
      yield* trading.depositSpot(user, usdh, "4000")
    }
    const { spot, token } = yield* deployToken
    const deployed = [10_000 + spot, `@${spot}`] as const
    const all = [...assets, deployed, deployed]
    const outcomes = new Map<string, number>()
    for (let step = 0; step < steps; step++) {
      yield* pass(draw.one([0, 0, 0, 200, 1_000, 7_000, 90_000, 1_000_000, 5_000_000]))
      const now = yield* trading.now
      const venue = trading.at(yield* Ref.get(info.state), now)
      const markets = all.map(([id, coin]): Market => {
        const asset = venue.listing.byCoin.get(coin) ?? assert.fail()
        return { id, mark: venue.path.priceAt(asset.market, now), szDecimals: asset.szDecimals }
      })
      if (draw.below(20) === 0) {
        const freezeUser = { token, user: draw.one(users), freeze: draw.below(3) === 0 }
        yield* trading.act(deployer, { type: "spotDeploy", freezeUser })
      }
      const user = draw.one(users)
      const action = actionOf(draw, markets, venue.state, user)
      const before = money(venue.state)
      const outcome = yield* Effect.result(trading.act(user, action))
      if (Result.isFailure(outcome)) assert.deepStrictEqual(money(venue.state), before, action.type)
      outcomes.set(`${action.type} ${outcome._tag}`, (outcomes.get(`${action.type} ${outcome._tag}`) ?? 0) + 1)
      check(venue.state)
      // what the stream said is what the account lists
      const listed = [...findAccount(venue.state, user).open.keys()].toSorted((a, b) => a - b)
      const followed = [...lives.last].flatMap(([oid, { status }]) =>
        !isFinal(status) && venue.state.accounts.get(user)?.orders.get(oid)?.place !== undefined &&
          venue.state.accounts.get(user)?.orders.get(oid)?.place !== "parent"
          ? [oid]
          : []
      )
      assert.deepStrictEqual(listed, followed.toSorted((a, b) => a - b))
      yield* after
    }
    return {
      outcomes,
      makerFills: queues.fills(),
      text: Json.stringify(yield* Effect.map(trading.snapshot, printable))
    }
  })

/** State as JSON: maps and sets as lists, big integers as text. */
export const printable = (value: unknown): unknown =>
  typeof value === "bigint"
    ? String(value)
    : value instanceof Map || value instanceof Set
    ? [...value].map(printable)
    : Array.isArray(value)
    ? value.map(printable)
    : typeof value === "object" && value !== null
    ? Object.fromEntries(Object.entries(value).map(([name, member]) => [name, printable(member)]))
    : value

/** Plays orders of all users at five prices around the mark, and returns how many resting ones were filled. */
export const crowd = (run: number, steps: number) =>
  Effect.gen(function*() {
    const { trading } = yield* SandboxState
    const draw = drawing(run)
    const queues = makeQueues()
    yield* Effect.asVoid(trading.follow(queues.see))
    for (const user of users) yield* trading.depositUsd(user, "100000")
    const path = { time: 0, price: 3_000 }
    yield* trading.playPrices("ETH", [path])
    for (let step = 0; step < steps; step++) {
      yield* TestClock.adjust(draw.one([0, 0, 0, 0, 0, 0, 1_000]))
      const user = draw.one(users)
      const venue = yield* venueNow
      const open = [...findAccount(venue.state, user).open.values()]
      const oid = open[draw.below(Math.max(1, open.length))]?.oid
      const order = {
        a: 1,
        b: draw.below(2) === 0,
        p: String(path.price + draw.one([-0.2, -0.1, 0, 0.1, 0.2])),
        s: String(1 + draw.below(9) / 10),
        r: draw.below(8) === 0,
        t: { limit: { tif: draw.one(["Gtc", "Gtc", "Gtc", "Alo", "Ioc"]) } }
      }
      const action: SentAction = oid === undefined || draw.below(6) > 0
        ? { type: "order", orders: [order], grouping: "na" }
        : draw.below(2) === 0
        ? { type: "cancel", cancels: [{ a: 1, o: oid }] }
        : { type: "batchModify", modifies: [{ oid, order }], a: true }
      yield* Effect.result(trading.act(user, action))
      check((yield* venueNow).state)
    }
    return queues.fills()
  })

export const Summary = Schema.Struct({
  marginSummary: Schema.Struct({
    accountValue: Schema.String,
    totalNtlPos: Schema.String,
    totalMarginUsed: Schema.String
  })
})

export const Run = Schema.Natural.check(Schema.isLessThan(1_000_000))
