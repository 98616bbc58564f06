/** A bot over the services `Info` and `Exchange`: live, served or in memory, it is the same program. */
import { type ActionEntry, isOpen } from "@trigate/domain/actions/ActionOutcome"
import * as Resolution from "@trigate/domain/actions/Resolution"
import type { OutcomeUnknown } from "@trigate/domain/errors/GatewayError"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import type { Cloid, Order } from "@trigate/signing/actions/OrderAction"
import * as Decimal from "@trigate/signing/Decimal"
import { NonceSource } from "@trigate/signing/NonceSource"
import { Signer } from "@trigate/signing/Signer"
import { Exchange } from "@trigate/trading/Exchange"
import { Info } from "@trigate/trading/Info"
import * as Effect from "effect/Effect"

export interface Quote {
  /** The index of a perpetual. */
  readonly asset: number
  readonly coin: string
  /** Distance of the bid below the mid price, as a fraction of it. */
  readonly distance: number
  readonly sizeInBase: string
}

/** The outcome of a bid. `neverArrived`: the venue has no such order, and can no longer accept it. */
export type Bid = "resting" | "filled" | "canceled" | "neverArrived" | { readonly refused: string }

/** How long the venue may accept a bid after it was signed, in milliseconds. */
const validFor = 15_000

const outcomeOf = (entry: ActionEntry | undefined): Bid =>
  entry?._tag === "Rejected" ? { refused: entry.reason } : entry?._tag === "Filled" ? "filled" : "resting"

/**
 * Finds the outcome of an order whose reply was lost. Sends nothing: the order is looked up by its client order ID at
 * the venue, and then in the action log until it is found or has expired. Fails with the error if neither happens.
 */
const recover = Effect.fnUntraced(function*(cloid: Cloid, error: OutcomeUnknown) {
  const { orderStatus } = yield* Info
  const { outcome } = yield* Exchange
  const { address: user } = yield* Signer
  const found = yield* orderStatus({ user, oid: cloid })
  if (found.status === "order") {
    const { status } = found.order
    return status === "filled"
      ? "filled"
      : Resolution.isOpen(found.order)
      ? "resting"
      : Resolution.isRejected(found.order)
      ? { refused: status }
      : "canceled"
  }
  const record = yield* outcome({ cloid, signer: user }, { wait: "30 seconds" })
  if (record.state === "neverArrived") return "neverArrived"
  return isOpen(record) ? yield* error : outcomeOf(record.settled?.entries?.[0])
})

/**
 * Places an order once, under a client order ID of its own. If it fails with `OutcomeUnknown`, the order may have been
 * placed: do not place another one.
 */
export const place = Effect.fn("place")(function*(order: Order) {
  const { submit } = yield* Exchange
  const { address } = yield* Signer
  // a signer uses a nonce once, so the ID is unique as well
  const nonce = yield* NonceSource.use(({ next }) => next(address))
  const cloid: Cloid = `0x${nonce.toString(16).padStart(32, "0")}`
  const orders = [{ ...order, cloid }]
  const signed = yield* ActionBuilder.placeOrders({ orders }, { nonce, expiresAfter: nonce + validFor })
  return yield* submit(signed).pipe(
    Effect.map(({ entries: [entry] }) => outcomeOf(entry)),
    Effect.catchTag("OutcomeUnknown", (error) =>
      recover(cloid, error).pipe(
        Effect.retry({ times: 3 }),
        Effect.mapError(() => error)
      ))
  )
})

/** Bids below the mid price. */
export const bid = Effect.fn("bid")(function*({ asset, coin, distance, sizeInBase }: Quote) {
  const { allMids, meta } = yield* Info
  const mids = yield* allMids({})
  const szDecimals = (yield* meta({})).universe[asset]?.szDecimals ?? 0
  // `toPrecision` prints a large or a small number with an exponent, which is not a price
  const price = Decimal.canonical((Number(mids[coin]) * (1 - distance)).toPrecision(12)) ?? "0"
  return yield* place({
    asset,
    side: "buy",
    priceInQuote: price,
    sizeInBase,
    cutTo: { szDecimals, market: "perp" },
    timeInForce: "Gtc"
  })
})
