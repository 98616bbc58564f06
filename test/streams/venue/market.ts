/** One market: its price, trades, bars and books, all drawn from the venue's random numbers. */
import { decimal, type Listed } from "./listing.ts"
import { intervals, type Normal } from "./subscriptions.ts"

export interface Trade {
  readonly coin: string
  readonly side: "A" | "B"
  readonly px: string
  readonly sz: string
  readonly time: number
  readonly hash: string
  readonly tid: number
  readonly users: readonly [buyer: string, seller: string]
}

export interface Bar {
  readonly t: number
  readonly T: number
  readonly s: string
  readonly i: string
  readonly o: string
  readonly c: string
  readonly h: string
  readonly l: string
  readonly v: string
  readonly n: number
}

interface Level {
  readonly px: string
  readonly sz: string
  readonly n: number
}

export type Random = () => number

/** A hash of 32 bytes. */
export const hashBy = (random: Random): string =>
  `0x${Array.from({ length: 8 }, () => Math.floor(random() * 2 ** 32).toString(16).padStart(8, "0")).join("")}`

/** An id of 50 bits. */
export const tidBy = (random: Random): number => Math.floor(random() * 2 ** 50)

const userBy = (random: Random): string => `0x${Math.floor(random() * 2 ** 32).toString(16).padStart(40, "e")}`

export class Market {
  readonly listed: Listed
  readonly trades: Array<Trade> = []
  readonly #bars = new Map<string, Array<Bar>>()
  readonly #random: Random
  #units: number

  constructor(listed: Listed, random: Random) {
    this.listed = listed
    this.#random = random
    this.#units = listed.start
  }

  get px(): string {
    return decimal(this.#units, this.listed.pxDecimals)
  }

  #size(): string {
    return decimal(1 + Math.floor(this.#random() * 10 ** (this.listed.szDecimals + 1)), this.listed.szDecimals)
  }

  #level(units: number): Level {
    return {
      px: decimal(units, this.listed.pxDecimals),
      sz: this.#size(),
      n: 1 + Math.floor(this.#random() * 40)
    }
  }

  trade(time: number): Trade {
    this.#units = Math.max(10, this.#units + Math.floor(this.#random() * 5) - 2)
    const trade: Trade = {
      coin: this.listed.coin,
      side: this.#random() < 0.5 ? "A" : "B",
      px: this.px,
      sz: this.#size(),
      time,
      hash: hashBy(this.#random),
      tid: tidBy(this.#random),
      users: [userBy(this.#random), userBy(this.#random)]
    }
    this.trades.push(trade)
    for (const [interval, millis] of intervals) this.#extend(interval, millis, trade)
    return trade
  }

  #extend(interval: string, millis: number, { coin, px, sz, time }: Trade): void {
    const bars = this.#bars.get(interval) ?? []
    this.#bars.set(interval, bars)
    const t = time - time % millis
    const last = bars.at(-1)
    if (last === undefined || last.t < t) {
      bars.push({ t, T: t + millis - 1, s: coin, i: interval, o: px, c: px, h: px, l: px, v: sz, n: 1 })
      return
    }
    bars[bars.length - 1] = {
      ...last,
      c: px,
      h: Number(px) > Number(last.h) ? px : last.h,
      l: Number(px) < Number(last.l) ? px : last.l,
      v: (Number(last.v) + Number(sz)).toFixed(this.listed.szDecimals),
      n: last.n + 1
    }
  }

  bars(interval: string): ReadonlyArray<Bar> {
    return this.#bars.get(interval) ?? []
  }

  /** A whole book; a delisted coin's is empty. */
  book({ fast, mantissa, nSigFigs }: Partial<Normal>, time: number): unknown {
    const count = fast === true ? 5 : 20
    const step = typeof nSigFigs === "number" ? 10 * (typeof mantissa === "number" ? mantissa : 1) : 1
    const side = (direction: number) =>
      this.listed.delisted === true
        ? []
        : Array.from({ length: count }, (_, index) =>
          this.#level(Math.max(1, this.#units + direction * step * (index + 1))))
    return {
      coin: this.listed.coin,
      time,
      levels: [side(-1), side(1)],
      ...(step === 1 ? {} : { spread: decimal(2 * step, this.listed.pxDecimals) }),
      ...(fast === true ? { fast: true } : {})
    }
  }

  bbo(time: number): unknown {
    return { coin: this.listed.coin, time, bbo: [this.#level(this.#units - 1), this.#level(this.#units + 1)] }
  }
}
