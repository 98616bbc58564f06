/** One account: its orders, fills, funding and transfers, as streams and queries show them. */
import { hashBy, type Random, tidBy } from "./market.ts"

export interface Order {
  readonly coin: string
  readonly side: "A" | "B"
  readonly limitPx: string
  readonly sz: string
  readonly oid: number
  readonly timestamp: number
  readonly origSz: string
  readonly cloid?: string
}

export interface Update {
  readonly order: Order
  readonly status: string
  readonly statusTimestamp: number
}

export interface Fill {
  readonly coin: string
  readonly px: string
  readonly sz: string
  readonly side: "A" | "B"
  readonly time: number
  readonly startPosition: string
  readonly dir: string
  readonly closedPnl: string
  readonly hash: string
  readonly oid: number
  readonly crossed: boolean
  readonly fee: string
  readonly tid: number
  readonly cloid?: string
  readonly feeToken: string
  readonly twapId: number | null
}

export interface Funding {
  readonly time: number
  readonly coin: string
  readonly usdc: string
  readonly szi: string
  readonly fundingRate: string
  readonly nSamples: number | null
}

export interface LedgerRow {
  readonly time: number
  readonly hash: string
  readonly delta: Readonly<Record<string, unknown>>
}

/** An order as queries show it. */
export const frontend = (order: Order) => ({
  ...order,
  triggerCondition: "N/A",
  isTrigger: false,
  triggerPx: "0.0",
  children: [],
  isPositionTpsl: false,
  reduceOnly: false,
  orderType: "Limit",
  tif: "Gtc",
  cloid: order.cloid ?? null
})

/** What became of an order, as queries show it. */
export const historical = ({ order, status, statusTimestamp }: Update) => ({
  order: frontend(order),
  status,
  statusTimestamp
})

const finals = /ejected$|anceled$|Cancel$|^filled$/u

export class Account {
  readonly user: string
  readonly updates: Array<Update> = []
  readonly fills: Array<Fill> = []
  readonly fundings: Array<Funding> = []
  readonly ledger: Array<LedgerRow> = []
  readonly slices: Array<{ readonly fill: Fill; readonly twapId: number }> = []
  readonly twaps: Array<unknown> = []
  readonly #random: Random

  constructor(user: string, random: Random) {
    this.user = user
    this.#random = random
  }

  /** Orders that are open, oldest first. */
  get open(): ReadonlyArray<Order> {
    const latest = new Map(this.updates.map((update) => [update.order.oid, update]))
    return [...latest.values()].filter(({ status }) => !finals.test(status)).map(({ order }) => order)
  }

  update(order: Order, status: string, statusTimestamp: number): Update {
    const update = { order, status, statusTimestamp }
    this.updates.push(update)
    return update
  }

  fill(order: Order, time: number): Fill {
    const fill: Fill = {
      coin: order.coin,
      px: order.limitPx,
      sz: order.sz,
      side: order.side,
      time,
      startPosition: "0.0",
      dir: order.side === "B" ? "Open Long" : "Open Short",
      closedPnl: "0.0",
      hash: hashBy(this.#random),
      oid: order.oid,
      crossed: this.#random() < 0.5,
      fee: "0.01",
      tid: tidBy(this.#random),
      ...(order.cloid === undefined ? {} : { cloid: order.cloid }),
      feeToken: "USDC",
      twapId: null
    }
    this.fills.push(fill)
    return fill
  }

  dust(order: Order, time: number): Fill {
    const fill = { ...this.fill(order, time), dir: "Spot Dust Conversion", hash: `0x${"0".repeat(64)}`, tid: 0 }
    this.fills[this.fills.length - 1] = fill
    return fill
  }

  slice(order: Order, time: number): { readonly fill: Fill; readonly twapId: number } {
    const fill = { ...this.fill(order, time), hash: `0x${"0".repeat(64)}` }
    // a slice of a TWAP is not among the fills
    this.fills.pop()
    const slice = { fill, twapId: 2_278_664 }
    this.slices.push(slice)
    return slice
  }

  fund(coin: string, time: number): Funding {
    const usdc = (this.#random() - 0.5).toFixed(6)
    const funding = { time, coin, usdc, szi: "0.55919", fundingRate: "0.0000125", nSamples: null }
    this.fundings.push(funding)
    return funding
  }

  transfer(time: number): LedgerRow {
    const usdc = (this.#random() * 1000).toFixed(6)
    const row = { time, hash: hashBy(this.#random), delta: { type: "deposit", usdc } }
    this.ledger.push(row)
    return row
  }

  finishTwap(time: number): unknown {
    const entry = {
      time: Math.floor(time / 1000),
      state: {
        coin: "BTC",
        user: this.user,
        side: "B",
        sz: "0.1",
        executedSz: "0.1",
        executedNtl: "8414.3",
        minutes: 30,
        reduceOnly: false,
        randomize: false,
        timestamp: time - 1_800_000,
        trigger: null,
        stopPx: null
      },
      status: { status: "finished", description: "finished" },
      twapId: 1_530_771 + this.twaps.length
    }
    this.twaps.push(entry)
    return entry
  }

  clearinghouse(time: number) {
    const summary = {
      accountValue: (1000 + this.fills.length).toFixed(1),
      totalNtlPos: "0.0",
      totalRawUsd: "1000.0",
      totalMarginUsed: "0.0"
    }
    return {
      marginSummary: summary,
      crossMarginSummary: summary,
      crossMaintenanceMarginUsed: "0.0",
      withdrawable: "1000.0",
      assetPositions: [],
      time
    }
  }

  balances() {
    return {
      balances: [{ coin: "USDC", token: 0, total: "1000.0", hold: "0.0", entryNtl: "0.0" }],
      tokenToAvailableAfterMaintenance: [[0, "1000.0"]]
    }
  }
}
