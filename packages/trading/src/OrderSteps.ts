/** Checks the prices and sizes of orders against the tick and lot sizes in the venue's metadata. */
import type { Inspection } from "@trigate/domain/unstable/Inspection"
import * as OrderAction from "@trigate/signing/actions/OrderAction"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Info } from "./Info.ts"

const Order = Schema.Struct({ a: Schema.Natural, p: Schema.String, s: Schema.String })
type Order = typeof Order.Type

const decodeOrders = Schema.decodeUnknownOption(Schema.Struct({ orders: Schema.Array(Order) }))
const decodeModify = Schema.decodeUnknownOption(Schema.Struct({ order: Order }))
const decodeModifies = Schema.decodeUnknownOption(
  Schema.Struct({ modifies: Schema.Array(Schema.Struct({ order: Order })) })
)

/** Returns the orders in an action, each with its path. */
const ordersIn = (action: unknown): ReadonlyArray<readonly [path: string, order: Order]> =>
  Option.firstSomeOf([
    Option.map(
      decodeOrders(action),
      ({ orders }) => orders.map((order, index): readonly [string, Order] => [`action.orders.${index}`, order])
    ),
    Option.map(
      decodeModifies(action),
      ({ modifies }) =>
        modifies.map(({ order }, index): readonly [string, Order] => [`action.modifies.${index}.order`, order])
    ),
    Option.map(decodeModify(action), ({ order }) => [["action.order", order] as const])
  ]).pipe(Option.getOrElse(() => []))

const firstSpot = 10_000
const firstOfDexes = 100_000

// a batch can contain a thousand orders, and more warnings would not help its sender
const maxWarnings = 16

const isPerpetual = ([, { a }]: readonly [string, Order]): boolean => a < firstSpot
const isSpot = ([, { a }]: readonly [string, Order]): boolean => a >= firstSpot && a < firstOfDexes

const perpetuals = Effect.gen(function*() {
  const { meta } = yield* Info
  const { universe } = yield* meta()
  return universe.map(({ name, szDecimals }, asset) => ({ asset, name, szDecimals, market: "perp" as const }))
})

const spotPairs = Effect.gen(function*() {
  const { spotMeta } = yield* Info
  const { tokens, universe } = yield* spotMeta()
  const byIndex = new Map(tokens.map((token) => [token.index, token]))
  return universe.flatMap(({ index, name, tokens: [base] }) => {
    const token = byIndex.get(base)
    return token === undefined
      ? []
      : [{ asset: firstSpot + index, name, szDecimals: token.szDecimals, market: "spot" as const }]
  })
})

/**
 * Returns a warning for each price or size that the venue would refuse as too precise; at most 16 warnings.
 *
 * Reads the metadata from the cache or from the venue. Skips assets of builder-deployed dexes; returns no warnings if
 * the metadata cannot be read.
 *
 * @since 0.1.0
 */
export const warnings = Effect.fnUntraced(function*({ canonicalAction }: Inspection) {
  const orders = ordersIn(canonicalAction)
  const assets = [
    ...(orders.some(isPerpetual) ? yield* Effect.orElseSucceed(perpetuals, () => []) : []),
    ...(orders.some(isSpot) ? yield* Effect.orElseSucceed(spotPairs, () => []) : [])
  ]
  const byAsset = new Map(assets.map((each) => [each.asset, each]))
  return orders.flatMap(([path, { a, p, s }]) => {
    const asset = byAsset.get(a)
    if (asset === undefined) return []
    const fitting = OrderAction.fit({ price: p, size: s }, asset)
    return [{ member: "p", name: "price", sent: p, fits: fitting.price }, {
      member: "s",
      name: "size",
      sent: s,
      fits: fitting.size
    }]
      .filter(({ fits, sent }) => fits !== sent)
      .map(({ fits, member, name, sent }) =>
        `${path}.${member}: ${sent} is too precise for the ${name} of ${asset.name} (szDecimals ${asset.szDecimals}): send ${fits}`
      )
  }).slice(0, maxWarnings)
})
