/** Queries of the trading chain: spot pairs and tokens, and bars. */
import { readerOf } from "@trigate/domain/Answer"
import type { CandleWindowRequest } from "@trigate/domain/Candle"
import type { CandleStretch, CandleWindow } from "@trigate/domain/CandleWindow"
import { fromSnapshot } from "@trigate/domain/CandleWindow"
import { faultsOf, invalidRequest } from "@trigate/domain/Decode"
import type { CommonFailure } from "@trigate/domain/GatewayError"
import type { passthroughQuery } from "@trigate/domain/InfoOperations"
import { infoOperations } from "@trigate/domain/InfoOperations"
import * as JsonText from "@trigate/domain/JsonText"
import type { AnyCodec, Request, Surface } from "@trigate/domain/Operation"
import type { ChainNotConfigured, InvalidRequest, UnavailableOnNode } from "@trigate/domain/RequestError"
import type { UnknownAsset } from "@trigate/domain/ResourceError"
import type { SpotMeta } from "@trigate/domain/SpotMeta"
import type { ReadFailure } from "@trigate/domain/TransportFailure"
import type * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Utf8 from "@trigate/domain/Utf8"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import * as CandleWalk from "./CandleWalk.ts"

/** A query to relay: its operation, the request that was read from the body, the body, and the surface it came to. */
export type InfoCall = {
  readonly [Type in keyof Operations]: {
    readonly operation: Operations[Type]
    readonly request: Request<Operations[Type]>
    readonly body: Uint8Array
    readonly surface: Surface
  }
}[keyof Operations]

/** What calls relay: the documented queries, and those of further types. */
type Operations = typeof infoOperations & { readonly further: typeof passthroughQuery }

/** What sending a query can end in. */
export type InfoSendFailure = ReadFailure | ChainNotConfigured | UnavailableOnNode

/** Sends a query. */
export type Transport = (call: InfoCall) => Effect.Effect<UpstreamResponse.UpstreamResponse, InfoSendFailure>

/** Answers queries. */
export class Info extends Context.Service<Info, {
  /**
   * Sends a body; the answer comes as it is, but for the venue's HTTP 500 `null`, which to a candle query means
   * `UnknownAsset`.
   */
  readonly relay: (call: InfoCall) => Effect.Effect<UpstreamResponse.UpstreamResponse, InfoSendFailure | UnknownAsset>
  /** All spot pairs and tokens; `SpotLookup.make` finds one. */
  readonly spotMeta: () => Effect.Effect<SpotMeta, CommonFailure>
  /** Bars of a window as one answer holds them, and whether it holds all of them. */
  readonly candleSnapshot: (request: CandleWindowRequest) => Effect.Effect<CandleWindow, CommonFailure | UnknownAsset>
  /** Bars of a window of any length, see {@link CandleWalk.walk}. */
  readonly candles: (
    request: CandleWindowRequest,
    options?: CandleWalk.Options
  ) => Stream.Stream<CandleStretch, CommonFailure | UnknownAsset>
}>()("@trigate/trading/Info") {}

const writerOf = <S extends AnyCodec>(schema: S) => {
  const encode = Schema.encodeEffect(schema, { errors: "all" })
  return (request: S["Type"]): Effect.Effect<Uint8Array, InvalidRequest> =>
    Effect.mapBoth(encode(request), {
      onFailure: (error) => invalidRequest(faultsOf(error)),
      onSuccess: (wire) => Utf8.encode(JsonText.stringify(wire))
    })
}

const { candleSnapshot, spotMeta } = infoOperations
const writeSpotMeta = writerOf(spotMeta.request)
const readSpotMeta = readerOf(spotMeta)
const writeCandles = writerOf(candleSnapshot.request)
const readCandles = readerOf(candleSnapshot)

/** The service over some way to send. */
export const make = (send: Transport): Info["Service"] => {
  const relay = Effect.fnUntraced(function*(call: InfoCall) {
    const answer = yield* send(call)
    const { request } = call
    return request !== undefined && "coin" in request && candleSnapshot.refusal?.matches(answer) === true
      ? yield* candleSnapshot.refusal.failure(request, answer)
      : answer
  })
  const meta = Effect.fn("Info.spotMeta")(function*() {
    const body = yield* writeSpotMeta(undefined)
    const answer = yield* send({ operation: spotMeta, request: undefined, body, surface: "gateway" })
    return yield* readSpotMeta(undefined, answer)
  })
  const snapshot = Effect.fn("Info.candleSnapshot")(function*(request: CandleWindowRequest) {
    const body = yield* writeCandles(request)
    const answer = yield* send({ operation: candleSnapshot, request, body, surface: "gateway" })
    const candles = yield* readCandles(request, answer)
    // the clock after the answer: what aged out on the way is told as missing
    return fromSnapshot(request, candles, yield* Clock.currentTimeMillis)
  })
  return Info.of({
    relay,
    spotMeta: meta,
    candleSnapshot: snapshot,
    candles: (request, options) => CandleWalk.walk(request, snapshot, options)
  })
}
