/** A bot over the services `Info` and `Exchange`: live, served or in memory, it is the same program. */
import type { AnySignedAction } from "@trigate/domain/actions/SignedAction"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import { Exchange } from "@trigate/trading/Exchange"
import { Info } from "@trigate/trading/Info"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

export interface Quote {
  readonly asset: number
  readonly coin: string
  /** How far below the middle price it bids, as a share of it. */
  readonly distance: number
  readonly sizeInBase: string
}

/** What became of a bid. */
export type Bid = "resting" | "filled" | { readonly refused: string }

/** Sends an action once. Where the reply is lost, the same bytes ask what became of it, until somebody answers. */
const send = Effect.fnUntraced(function*(signed: AnySignedAction) {
  const exchange = yield* Exchange
  return yield* exchange.submit(signed).pipe(
    Effect.map(({ entries: [entry] }): Bid =>
      entry?._tag === "Rejected" ? { refused: entry.reason } : entry?._tag === "Filled" ? "filled" : "resting"
    ),
    Effect.catchTag("OutcomeUnknown", () =>
      exchange.resolve(signed).pipe(
        Effect.retry({ times: 5 }),
        Effect.map((found): Bid => found._tag === "Rejected" ? { refused: found.rejection.reason } : "resting")
      ))
  )
})

/** Bids below the middle price. */
export const bid = Effect.fn("bid")(function*({ asset, coin, distance, sizeInBase }: Quote) {
  const mids = yield* Info.use((info) => info.allMids({}))
  const price = Number(mids[coin]) * (1 - distance)
  const order = { asset, side: "buy", priceInQuote: price.toPrecision(5), sizeInBase, timeInForce: "Gtc" } as const
  const nonce = yield* Clock.currentTimeMillis
  return yield* send(yield* ActionBuilder.placeOrders({ orders: [order] }, { nonce }))
})
