/** The routes of candle history: what there is, and the bars of a series as a file. */
import { GatewayApi } from "@trigate/api/GatewayApi"
import * as CandleExport from "@trigate/archive/CandleExport"
import { ArchiveNotConfigured } from "@trigate/domain/ArchiveError"
import { contentTypes } from "@trigate/domain/CandleText"
import { permitted } from "@trigate/domain/Operation"
import { UnknownAsset } from "@trigate/domain/ResourceError"
import { settings } from "@trigate/domain/Settings"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as EncodedRoutes from "./EncodedRoutes.ts"
import { serving } from "./RequestCaller.ts"

/** The part of the contract that these routes serve. */
export class CandlesApi extends HttpApi.make("gateway").add(GatewayApi.groups.candles) {}

const { env } = settings.archive

const notConfigured = Effect.suspend(() =>
  Effect.fail(
    new ArchiveNotConfigured({
      setting: env,
      detail: `This gateway keeps no candle history: ${env} says what is recorded, such as ${env}=BTC:1m`
    })
  )
)

const candles = HttpApiBuilder.group(
  CandlesApi,
  "candles",
  Effect.fnUntraced(function*(handlers) {
    const { serve } = yield* serving
    const exported = yield* CandleExport.ExportedArchive
    const archive = Effect.andThen(
      permitted({ chain: "trading", class: "read" }),
      exported === undefined ? notConfigured : Effect.succeed(exported)
    )

    const list = Effect.gen(function*() {
      const { status } = yield* archive
      return (yield* status).map(({ bars, bytes, coin, interval, known }) => ({
        coin,
        interval,
        bars,
        bytes,
        known: CandleExport.instantsOf({ coin, interval }, known)
      }))
    })

    const file = Effect.fnUntraced(function*(series: CandleExport.Wanted, format: keyof typeof contentTypes) {
      const source = yield* archive
      const known = yield* CandleExport.known(source, series)
      if (known === undefined) {
        const { coin, interval } = series
        return yield* new UnknownAsset({ coin, detail: `The candle archive holds nothing of ${coin} ${interval}` })
      }
      return HttpServerResponse.stream(CandleExport.file(source, series, known, format), {
        contentType: contentTypes[format]
      })
    })

    return handlers
      .handle("list", ({ request }) => serve(request, undefined, list))
      .handleRaw(
        "file",
        ({ params, query: { format = "ndjson", ...bounds }, request }) =>
          serve(request, undefined, file({ ...params, ...bounds }, format))
      )
  })
)

/** The routes, for an `HttpRouter`. */
export const layer = HttpApiBuilder.layer(CandlesApi).pipe(
  Layer.provide(candles),
  Layer.provide(EncodedRoutes.problems)
)
