/** The queries of `POST /info`. */
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { Candle, CandleWindowRequest } from "./Candle.ts"
import * as CandleKeeping from "./CandleKeeping.ts"
import * as CandleText from "./CandleText.ts"
import { retainedBars } from "./CandleWindow.ts"
import { decodes } from "./Keepable.ts"
import * as Operation from "./Operation.ts"
import * as Relayed from "./Relayed.ts"
import { UnknownAsset } from "./ResourceError.ts"
import { SpotMeta } from "./SpotMeta.ts"

const spotMetaRequest = Schema.Struct({ type: Schema.Literal("spotMeta") }).pipe(
  Schema.decodeTo(
    Schema.Void,
    SchemaTransformation.transform({ decode: (): void => {}, encode: () => ({ type: "spotMeta" as const }) })
  )
)

const minute = 60_000

/** All spot pairs and tokens. */
export const spotMeta = Operation.read({
  name: "spotMeta",
  chain: "trading",
  protocol: "info",
  summary: "All spot pairs and tokens",
  sources: ["official-api", "node"],
  cost: { weight: 20, requestUnits: 1 },
  request: spotMetaRequest,
  response: SpotMeta,
  failures: [],
  keeping: () => ({ fresh: 5 * minute, renewAfter: 4 * minute, stale: 60 * minute }),
  keepable: decodes(SpotMeta)
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
  recognized: CandleText.barsIn,
  failures: [UnknownAsset],
  refusal: {
    matches: (answer) => answer.status === 500 && Relayed.text(answer).trim() === "null",
    failure: ({ coin }) => new UnknownAsset({ coin, detail: `The venue knows no coin ${JSON.stringify(coin)}` })
  },
  keeping: CandleKeeping.keeping,
  keepable: CandleKeeping.keepable
})

/** The documented queries by their `type`. */
export const infoOperations = { spotMeta, candleSnapshot } as const
