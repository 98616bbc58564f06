/**
 * The reservations of one account: the orders of each action whose effect the account's state does not show yet, and the
 * new orders of the last minute.
 *
 * Replicas share reservations as one document per account. A change is applied at once, and applied again to the
 * documents of other replicas, until it is stored.
 */
import * as Encoding from "@trigate/domain/encoding/Encoding"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { GuardedMarket } from "./Markets.ts"
import type { Exposure, OpenOrder } from "./Rules.ts"

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
