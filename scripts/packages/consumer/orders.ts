/** A bot's first orders: built, signed and submitted, by an embedded service or through a gateway. */
import * as GatewayExchange from "@trigate/client/Exchange"
import type { ActionResult } from "@trigate/domain/actions/ActionOutcome"
import { ActionEntry } from "@trigate/domain/actions/ActionOutcome"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import { signNext } from "@trigate/signing/Orders"
import { Exchange } from "@trigate/trading/Exchange"
import * as Effect from "effect/Effect"

const order = { asset: 0, side: "buy", priceInQuote: "60000", sizeInBase: "0.001" } as const

const signed = signNext((nonce) => ActionBuilder.placeOrders({ orders: [order, order] }, { nonce }))

const lines = ({ entries }: ActionResult): ReadonlyArray<string> =>
  entries.map(ActionEntry.match({
    Resting: ({ oid }) => `rests as ${oid}`,
    Filled: ({ avgPx, totalSz }) => `filled ${totalSz} at ${avgPx}`,
    Waiting: ({ kind }) => kind,
    Done: () => "done",
    Rejected: ({ message, reason }) => `${reason}: ${message}`,
    Unrecognised: () => "unrecognised"
  }))

export const placedByService = Effect.flatMap(signed, (body) => Exchange.use(({ submit }) => submit(body))).pipe(
  Effect.map(lines)
)

export const placedThroughGateway = Effect.map(Effect.flatMap(signed, GatewayExchange.submit), lines)
