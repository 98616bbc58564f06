/** The queries of `POST /info`. */
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { Candle, CandleWindowRequest } from "./Candle.ts"
import * as CandleAnswer from "./CandleAnswer.ts"
import { mostBars, retainedBars } from "./CandleWindow.ts"
import type { InfoQuery } from "./InfoQueryTable.ts"
import { passthroughQueries as table } from "./InfoQueryTable.ts"
import type { Json } from "./Json.ts"
import * as Operation from "./Operation.ts"
import { UnknownAsset } from "./ResourceError.ts"
import { SpotMeta } from "./SpotMeta.ts"
import type * as UpstreamResponse from "./UpstreamResponse.ts"

const spotMetaRequest = Schema.Struct({ type: Schema.Literal("spotMeta") }).pipe(
  Schema.decodeTo(
    Schema.Void,
    SchemaTransformation.transform({ decode: (): void => {}, encode: () => ({ type: "spotMeta" as const }) })
  )
)

const minute = 60_000

/** HTTP 500 `null`: what the venue says of a coin, or whatever else was asked for, that it does not know. */
const isNothing = (answer: UpstreamResponse.UpstreamResponse): boolean =>
  answer.status === 500 && answer.text.trim() === "null"

/** All spot pairs and tokens. */
export const spotMeta = Operation.read({
  name: "spotMeta",
  chain: "trading",
  protocol: "info",
  summary: "All spot pairs and tokens",
  sources: ["official-api", "node"],
  cost: { weight: 20, requestUnits: 1 },
  cheap: true,
  request: spotMetaRequest,
  response: SpotMeta,
  failures: [],
  cachePolicy: () => ({ fresh: 5 * minute, refreshAfter: 4 * minute, staleIfError: 60 * minute }),
  isCacheable: Operation.decodes(SpotMeta)
})

const candleSnapshotRequest = Schema.Struct({
  type: Schema.Literal("candleSnapshot"),
  req: CandleWindowRequest
}).pipe(
  Schema.decodeTo(
    Schema.toType(CandleWindowRequest),
    SchemaTransformation.transform({
      decode: ({ req }) => req,
      encode: (req) => ({ type: "candleSnapshot" as const, req })
    })
  )
)

/** Bars of one coin and interval; a coin that the venue does not know is HTTP 500 `null` there. */
export const candleSnapshot = Operation.read({
  name: "candleSnapshot",
  chain: "trading",
  protocol: "info",
  summary: "Bars of one coin and interval, at most the newest 5000",
  sources: ["official-api"],
  cost: { weight: 20, rowsPerWeight: 60, maxRows: retainedBars, requestUnits: 1 },
  request: candleSnapshotRequest,
  response: Schema.Array(Candle),
  recognized: CandleAnswer.barsIn,
  mostRows: mostBars,
  failures: [UnknownAsset],
  refusal: {
    matches: isNothing,
    failure: ({ coin }) => new UnknownAsset({ coin, detail: `The venue knows no coin ${JSON.stringify(coin)}` })
  },
  cachePolicy: CandleAnswer.cachePolicy,
  isCacheable: CandleAnswer.isCacheable
})

/** The documented queries by their `type`. */
export const infoOperations = { spotMeta, candleSnapshot } as const

/** The name of a query. The venue checks the rest of the request. */
const passthroughRequest = Schema.Struct({
  type: Schema.String.check(Schema.isPattern(/^[A-Za-z][A-Za-z0-9_]{0,63}$/u, { expected: "the type of a query" }))
})

const isSomething = (_request: unknown, answer: Json): boolean => answer.text.trim() !== "null"

const queryOf = (name: string, { fresh, weight }: Pick<InfoQuery, "fresh" | "weight">, source: Operation.Source) =>
  Operation.read({
    name,
    chain: "trading",
    protocol: "info",
    summary: "A query of another type, relayed as it is; some types weigh 2, `userRole` weighs 60",
    sources: [source],
    cost: { weight, requestUnits: 1 },
    request: passthroughRequest,
    response: Schema.Unknown,
    failures: [],
    verbatim: true,
    isFinal: isNothing,
    isCacheable: isSomething,
    ...(fresh === undefined ? {} : { cachePolicy: () => ({ fresh, staleIfError: 0 }) })
  })

const queriesAt = (source: Operation.Source) => {
  const other = queryOf("info", { weight: 20 }, source)
  const known = new Map(Object.entries(table).map(([type, query]) => [type, queryOf(type, query, source)]))
  return { other, of: (type: string) => known.get(type) ?? other }
}

const passthroughQueries = { gateway: queriesAt("official-api"), node: queriesAt("node") }

/** The types of pass-through queries whose operations have the type's name; those of all others are called `info`. */
export const knownQueryTypes: ReadonlyArray<string> = Object.keys(table)

/** A pass-through query of a type that is not known. All such types share one name, so that it can be a metric label. */
export const passthroughQuery = passthroughQueries.gateway.other

/**
 * The operation of a further type on a surface, with what the type costs.
 *
 * Nodes serve some of them and answer otherwise than the venue, so that none stands in for the official API.
 */
export const passthroughQueryOf = (type: string, surface: Operation.Surface): typeof passthroughQuery =>
  passthroughQueries[surface].of(type)
