/** What the venue answers to queries and actions, over HTTP and as posts. */
import { frontend, historical, type Order } from "./account.ts"
import { meta, outcomeMeta, perpDexs, spotMeta } from "./listing.ts"
import { isObject } from "./subscriptions.ts"
import type { World } from "./world.ts"

type Query = Readonly<Record<string, unknown>>

const userOf = (query: Query): string => String(query["user"]).toLowerCase()

const dexOf = (query: Query): string => typeof query["dex"] === "string" ? query["dex"] : ""

/** Rows of a window of time, oldest first, at most 2000. */
const within = <Row extends { readonly time: number }>(rows: ReadonlyArray<Row>, query: Query): ReadonlyArray<Row> => {
  const from = Number(query["startTime"] ?? 0)
  const to = typeof query["endTime"] === "number" ? query["endTime"] : Number.POSITIVE_INFINITY
  return rows.filter(({ time }) => time >= from && time <= to).slice(0, 2000)
}

const newestFirst = <Row>(rows: ReadonlyArray<Row>): ReadonlyArray<Row> => rows.toReversed().slice(0, 2000)

const queries: Readonly<Record<string, (world: World, query: Query) => unknown>> = {
  meta: (world, query) => meta(world.perps(dexOf(query))),
  allPerpMetas: (world) => ["", "xyz"].map((dex) => meta(world.perps(dex))),
  metaAndAssetCtxs: (world, query) => [
    meta(world.perps(dexOf(query))),
    world.perps(dexOf(query)).map(({ coin }) => world.context(world.market(coin)))
  ],
  spotMeta: () => spotMeta,
  spotMetaAndAssetCtxs: (world) => [spotMeta, world.spots().map((market) => world.context(market))],
  perpDexs: () => perpDexs,
  outcomeMeta: (world) => outcomeMeta(world.outcomes()),
  allMids: (world, query) => world.mids(dexOf(query)),
  l2Book: (world, query) => {
    const coin = String(query["coin"])
    return world.listed.has(coin) ? world.market(coin).book({}, world.clock.now) : null
  },
  recentTrades: (world, query) => world.market(String(query["coin"])).trades.slice(-30).toReversed(),
  candleSnapshot: (world, query) => {
    const request = isObject(query["req"]) ? query["req"] : {}
    const [from, to] = [Number(request["startTime"]), Number(request["endTime"] ?? Number.POSITIVE_INFINITY)]
    const bars = world.market(String(request["coin"])).bars(String(request["interval"]))
    return bars.filter(({ T, t }) => T >= from && t <= to).slice(-5000)
  },
  userFills: (world, query) => newestFirst(world.account(userOf(query)).fills),
  userFillsByTime: (world, query) => within(world.account(userOf(query)).fills, query),
  historicalOrders: (world, query) => newestFirst(world.account(userOf(query)).updates.map(historical)),
  openOrders: (world, query) => world.account(userOf(query)).open,
  frontendOpenOrders: (world, query) => world.account(userOf(query)).open.map(frontend),
  orderStatus: (world, query) => {
    const found = world.account(userOf(query)).updates.findLast(({ order }) =>
      order.oid === query["oid"] || (order.cloid !== undefined && order.cloid === query["oid"])
    )
    return found === undefined
      ? { status: "unknownOid" }
      : { status: "order", order: historical(found) }
  },
  userFunding: (world, query) =>
    within(world.account(userOf(query)).fundings, query).map(({ time, ...delta }) => ({
      time,
      hash: `0x${"0".repeat(64)}`,
      delta: { type: "funding", ...delta }
    })),
  userNonFundingLedgerUpdates: (world, query) => within(world.account(userOf(query)).ledger, query),
  clearinghouseState: (world, query) => world.account(userOf(query)).clearinghouse(world.clock.now),
  activeAssetData: (world, query) =>
    world.state({ type: "activeAssetData", user: userOf(query), coin: String(query["coin"]) }),
  spotClearinghouseState: (world, query) => world.account(userOf(query)).balances(),
  userTwapSliceFills: (world, query) => newestFirst(world.account(userOf(query)).slices),
  userTwapSliceFillsByTime: (world, query) => {
    const from = Number(query["startTime"] ?? 0)
    return world.account(userOf(query)).slices.filter(({ fill: { time } }) => time >= from)
  },
  twapHistory: (world, query) => newestFirst(world.account(userOf(query)).twaps),
  subAccounts: () => null,
  userRole: () => ({ role: "user" }),
  exchangeStatus: (world) => ({ time: world.clock.now, specialStatuses: null }),
  userRateLimit: () => ({ cumVlm: "0.0", nRequestsUsed: 1, nRequestsCap: 10_000 })
}

export interface Reply {
  readonly status: number
  readonly body: unknown
}

/** The answer to a query; nothing where its type is not known. */
export const info = (world: World, query: unknown): Reply | undefined => {
  if (!isObject(query)) return undefined
  const answer = queries[String(query["type"])]
  if (answer === undefined) return undefined
  const coin = isObject(query["req"]) ? query["req"]["coin"] : query["coin"]
  const isUnknownCoin = typeof coin === "string" && !world.listed.has(coin)
  return isUnknownCoin && query["type"] !== "l2Book"
    ? { status: 500, body: null }
    : { status: 200, body: answer(world, query) }
}

const weights: Readonly<Record<string, number | undefined>> = {
  allMids: 2,
  l2Book: 2,
  clearinghouseState: 2,
  spotClearinghouseState: 2,
  orderStatus: 2,
  exchangeStatus: 2,
  userRole: 60
}

const lists =
  /^(?:recentTrades|historicalOrders|userFills|userFillsByTime|fundingHistory|userFunding|nonUserFundingUpdates|userNonFundingLedgerUpdates|twapHistory|userTwapSliceFills|userTwapSliceFillsByTime|delegatorHistory|delegatorRewards|validatorStats)$/u

/** The weight of a query by the venue's documents: some lists weigh more for each 20 rows, candles for each 60. */
export const queryWeight = (query: unknown, answer: unknown): number => {
  const type = isObject(query) ? String(query["type"]) : ""
  const rows = Array.isArray(answer) ? answer.length : 0
  const perRow = type === "candleSnapshot" ? 1 / 60 : lists.test(type) ? 1 / 20 : 0
  return (weights[type] ?? 20) + Math.floor(rows * perRow)
}

/** The weight of an action by the venue's documents. */
export const actionWeight = (action: unknown): number => {
  const batch = ["orders", "cancels", "modifies"].map((name) => list(member(action, name)).length)
  return 1 + Math.floor(Math.max(...batch) / 40)
}

const cloidOf = (wire: Query): Partial<Order> => typeof wire["c"] === "string" ? { cloid: wire["c"] } : {}

const place = (world: World, user: string, wire: unknown): unknown => {
  if (!isObject(wire)) return { error: "Order is malformed" }
  const market = world.marketOfAsset(Number(wire["a"]))
  if (market === undefined) return { error: "Order has invalid asset" }
  const terms = isObject(wire["t"]) && isObject(wire["t"]["limit"]) ? wire["t"]["limit"] : {}
  const order = {
    side: wire["b"] === true ? "B" as const : "A" as const,
    limitPx: String(wire["p"]),
    sz: String(wire["s"]),
    origSz: String(wire["s"]),
    ...cloidOf(wire)
  }
  if (terms["tif"] !== "Ioc") {
    const { cloid, oid } = world.place(user, market.listed.coin, order)
    return { resting: { oid, ...(cloid === undefined ? {} : { cloid }) } }
  }
  const { limitPx, oid, sz } = world.fill(user, market.listed.coin, order)
  return { filled: { totalSz: sz, avgPx: limitPx, oid } }
}

const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

const member = (value: unknown, name: string): unknown => isObject(value) ? value[name] : undefined

const oidOf = (world: World, user: string, wire: unknown): number | undefined => {
  const id = member(wire, "o") ?? member(wire, "oid") ?? member(wire, "cloid")
  return typeof id === "number"
    ? id
    : world.account(user).open.find(({ cloid }) => cloid !== undefined && cloid === id)?.oid
}

/** Carries out an action for an account; the answer is that of a valid signature. */
export const exchange = (world: World, user: string, action: unknown): unknown => {
  const type = String(member(action, "type"))
  const ok = (statuses: ReadonlyArray<unknown>, of: string) => ({
    status: "ok",
    response: { type: of, data: { statuses } }
  })
  switch (type) {
    case "order":
      return ok(list(member(action, "orders")).map((wire) => place(world, user, wire)), "order")
    case "cancel":
    case "cancelByCloid": {
      const canceled = list(member(action, "cancels")).map((wire) => {
        const oid = oidOf(world, user, wire)
        const isDone = oid !== undefined && world.cancel(user, oid)
        return isDone ? "success" : { error: "Order was never placed, already canceled, or filled." }
      })
      return ok(canceled, "cancel")
    }
    case "modify":
    case "batchModify": {
      const wires = type === "modify" ? [action] : list(member(action, "modifies"))
      const modified = wires.map((wire) => {
        const order = world.modify(
          user,
          "cancel",
          oidOf(world, user, wire),
          cloidOf({ c: member(member(wire, "order"), "c") })
        )
        return order === undefined
          ? { error: "Cannot modify canceled or filled order" }
          : { resting: { oid: order.oid } }
      })
      return type === "modify" ? { status: "ok", response: { type: "default" } } : ok(modified, "order")
    }
    default:
      return { status: "ok", response: { type: "default" } }
  }
}
