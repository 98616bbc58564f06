/** Queries of the trading chain. */
import * as Paths from "@trigate/api/Paths"
import type { CandleWindowRequest } from "@trigate/domain/Candle"
import * as CandleWalk from "@trigate/domain/CandleWalk"
import type { CandleStretch, CandleWindow } from "@trigate/domain/CandleWindow"
import type { ServedFailure } from "@trigate/domain/GatewayError"
import * as InfoOperations from "@trigate/domain/InfoOperations"
import * as Json from "@trigate/domain/Json"
import type { AnyCodec, Operation } from "@trigate/domain/Operation"
import * as InfoProtocol from "@trigate/domain/protocol/InfoProtocol"
import * as Protocol from "@trigate/domain/protocol/Protocol"
import { UnknownAsset } from "@trigate/domain/ResourceError"
import type { SpotMeta } from "@trigate/domain/SpotMeta"
import * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { Connection } from "./Connection.ts"
import { ask, type Served, served } from "./internal/Served.ts"

const query = <
  Request extends AnyCodec,
  Response extends AnyCodec,
  const Failures extends ReadonlyArray<AnyCodec>
>(operation: Operation<string, "read", Request, Response, Failures>) =>
  InfoProtocol.methodOf<Request, Response, Served<Failures>>(served(operation))(
    "GatewayClient",
    (body) => ask(({ chains }) => chains.post(Paths.info, body.text))
  )

/** All spot pairs and tokens. */
export const spotMeta: () => Effect.Effect<SpotMeta, ServedFailure, Connection> = query(InfoOperations.spotMeta)

/** The bars of a coin in a window, at most the newest 5000, and whether any of the window are missing. */
export const candleSnapshot: (
  request: CandleWindowRequest
) => Effect.Effect<CandleWindow, ServedFailure | UnknownAsset, Connection> = InfoProtocol
  .candlesOf(served(InfoOperations.candleSnapshot))(
    "GatewayClient",
    (body) => ask(({ chains }) => chains.post(Paths.info, body.text))
  )

/** The bars of a window of any length, also of what only the gateway has; see {@link CandleWalk.walk}. */
export const candles = (
  request: CandleWindowRequest,
  options?: CandleWalk.Options
): Stream.Stream<CandleStretch, ServedFailure | UnknownAsset, Connection> =>
  CandleWalk.walk(request, candleSnapshot, options)

/** A query of any type, with its members as the venue spells them. */
export interface RawQuery {
  readonly type: string
  readonly [member: string]: unknown
}

const readRaw = Protocol.readerOf(served({ ...InfoOperations.passthroughQuery, failures: [UnknownAsset] }))

/** The venue's response to a query of any type, not decoded; integers beyond 2^53 are `bigint`. */
export const raw: (request: RawQuery) => Effect.Effect<unknown, ServedFailure | UnknownAsset, Connection> = Effect.fn(
  "GatewayClient.info"
)(function*(request) {
  return yield* readRaw(request, yield* ask(({ chains }) => chains.post(Paths.info, Json.stringify(request))))
})
