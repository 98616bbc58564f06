/** Queries of the trading chain: markets, accounts, and bars; and the tick and lot sizes of orders. */
import { walk } from "@trigate/domain/candles/Candle"
import type { CandleStretch, CandleWindow, CandleWindowRequest, WalkOptions } from "@trigate/domain/candles/Candle"
import { wrapReason } from "@trigate/domain/errors/GatewayError"
import type { CallFailure, CommonFailure, UnknownAsset } from "@trigate/domain/errors/GatewayError"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import { candleSnapshot } from "@trigate/domain/info/InfoOperations"
import type { InfoCall } from "@trigate/domain/info/InfoOperations"
import type { Inspection } from "@trigate/domain/Inspection"
import type { Backend, UpstreamResponse } from "@trigate/domain/operations/Operation"
import * as OrderAction from "@trigate/signing/actions/OrderAction"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"

/** The backend to which `Info` sends its queries. */
export type InfoBackend = Pick<Backend<InfoCall, never, UpstreamResponse>, "read">

/** The methods of the service `Info`. Typed methods are derived from the declared operations. */
export interface InfoMethods extends InfoProtocol.Methods<CallFailure> {
  /**
   * Relays a query and returns the response unchanged.
   *
   * There is one exception: if the venue responds to a candle query with HTTP 500 `null`, the call fails with
   * `UnknownAsset`.
   */
  readonly relay: (call: InfoCall) => Effect.Effect<UpstreamResponse, CallFailure | UnknownAsset>
  /**
   * Requests the bars of a time window from the venue in one response. Returns them, and whether they cover the whole
   * window.
   */
  readonly candleSnapshot: (request: CandleWindowRequest) => Effect.Effect<CandleWindow, CallFailure | UnknownAsset>
  /** Streams the bars of a time window of any length, see {@link walk}. */
  readonly candles: (
    request: CandleWindowRequest,
    options?: WalkOptions
  ) => Stream.Stream<CandleStretch, CallFailure | UnknownAsset>
}

/**
 * Serves queries, with a method for each of `infoOperations`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { Info, InfoUpstream } from "@trigate/trading"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { candleSnapshot, l2Book } = yield* Info.Info
 *   const { coverage } = yield* candleSnapshot({ coin: "BTC", interval: "1d", startTime: 0 })
 *   const book = yield* l2Book({ coin: "BTC" })
 *   yield* Console.log(coverage, book?.coin)
 * }).pipe(
 *   Effect.catchTag("UnknownAsset", ({ coin }) => Console.log(`${coin} is not listed`)),
 *   Effect.catchReason("UpstreamError", "UpstreamRateLimited", ({ retryAfter }) => Console.log(`again in ${retryAfter} s`))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, InfoUpstream.layerFetch({ url: "http://localhost:8080" })))
 * ```
 * ```text
 * complete BTC
 * ```
 */
export class Info extends Context.Service<Info, InfoMethods>()("@trigate/trading/Info") {}

const candlesOver = InfoProtocol.makeCandlesMethod(candleSnapshot)

/** Makes the service `Info` over a backend. */
export const make = ({ read }: InfoBackend): Info["Service"] => {
  const send: InfoProtocol.Send<CommonFailure> = (call) => read({ ...call, surface: "gateway" })
  const snapshot = candlesOver("Info", send)
  const relayCandles = Effect.fnUntraced(function*(call: InfoProtocol.CandleCall) {
    const response = yield* read(call)
    return candleSnapshot.refusal?.matches(response) === true
      ? yield* candleSnapshot.refusal.failure(call.request, response)
      : response
  })
  return Info.of({
    ...InfoProtocol.makeMethods("Info", send),
    relay: (call) =>
      Effect.mapError<UpstreamResponse, CommonFailure | UnknownAsset, never, CallFailure | UnknownAsset>(
        InfoProtocol.isCandleCall(call) ? relayCandles(call) : read(call),
        wrapReason
      ),
    candleSnapshot: snapshot,
    candles: (request, options) => walk(request, snapshot, options)
  })
}

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
