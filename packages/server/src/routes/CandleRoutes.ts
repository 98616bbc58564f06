/** The routes of candle history: the list of series, and the bars of a series as a file. */
import { GatewayApi } from "@trigate/api/GatewayApi"
import * as CandleExport from "@trigate/archive/CandleExport"
import { CurrentCaller, CurrentKeepCounted } from "@trigate/domain/Caller"
import { countBars } from "@trigate/domain/candles/Candle"
import { contentTypes } from "@trigate/domain/candles/CandleText"
import { ArchiveNotConfigured } from "@trigate/domain/errors/ArchiveError"
import { Overloaded, QuotaExceeded } from "@trigate/domain/errors/CallerError"
import { UnknownAsset } from "@trigate/domain/errors/ResourceError"
import { permitted } from "@trigate/domain/operations/Operation"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"
import { fromAdapter } from "../requests/IncomingRequest.ts"
import { serving } from "../requests/RequestCaller.ts"
import { CurrentRequestRecord } from "../requests/RequestRecord.ts"
import { settings } from "../settings/Settings.ts"
import * as HttpApiRoutes from "./HttpApiRoutes.ts"

/** The part of the API definition that these routes serve. */
export class CandlesApi extends HttpApi.make("gateway").add(GatewayApi.groups.candles) {}

const { env } = settings.archive

const notConfigured = Effect.suspend(() =>
  Effect.fail(
    new ArchiveNotConfigured({
      setting: env,
      detail: `This gateway does not record candle history: set ${env}, for example ${env}=BTC:1m`
    })
  )
)

/** Maximum number of concurrent exports, in total and per caller. */
const maxOpen = { all: 8, caller: 4 }

/** The number of exported bars that count as one request. */
const barsPerRequest = 10_000

const tooManyOpen = Effect.suspend(() =>
  Effect.fail(
    new Overloaded({
      retryAfter: 1,
      detail: `${maxOpen.all} exports of candle history are open, which is the maximum for all callers`
    })
  )
)

const tooManyOfCaller = Effect.suspend(() =>
  Effect.fail(
    new QuotaExceeded({
      retryAfter: 1,
      detail: `The caller already has ${maxOpen.caller} open exports of candle history, which is the maximum`
    })
  )
)

/** Makes the functions that count the exports of one gateway and pace their reads. */
const makeExports = Effect.map(Semaphore.make(1), (reads) => {
  const openBy = new Map<string, number>()
  let open = 0
  const change = (caller: string, by: number) => {
    const left = (openBy.get(caller) ?? 0) + by
    open += by
    if (left === 0) openBy.delete(caller)
    else openBy.set(caller, left)
  }
  return {
    /**
     * Counts an export until the scope of its request closes. Until then, the request counts against its caller's
     * quota.
     */
    begin: Effect.gen(function*() {
      const { id } = yield* CurrentCaller
      if (open >= maxOpen.all) return yield* tooManyOpen
      if ((openBy.get(id) ?? 0) >= maxOpen.caller) return yield* tooManyOfCaller
      yield* Effect.acquireRelease(Effect.sync(() => change(id, 1)), () => Effect.sync(() => change(id, -1)))
      yield* Effect.acquireRelease(Effect.map(CurrentKeepCounted, (keep) => keep()), (release) => Effect.sync(release))
    }),
    /**
     * Wraps an archive so that it runs one read at a time, each in its own turn of the event loop, because all exports
     * share one database connection.
     */
    paced: (source: CandleExport.Source): CandleExport.Source => ({
      ...source,
      known: (...args) => reads.withPermits(1)(source.known(...args)),
      read: (...args) => reads.withPermits(1)(Effect.andThen(Effect.yieldNow, source.read(...args)))
    })
  }
})

const candles = HttpApiBuilder.group(
  CandlesApi,
  "candles",
  Effect.fnUntraced(function*(handlers) {
    const { serve } = yield* serving
    const exported = Option.getOrUndefined(yield* Effect.serviceOption(CandleExport.ExportedArchive))
    const exports = yield* makeExports
    const archive = Effect.andThen(
      permitted({ chain: "trading", class: "read" }),
      exported === undefined ? notConfigured : Effect.succeed(exported)
    )

    const list = Effect.fnUntraced(function*(after?: string) {
      const source = yield* archive
      return (yield* source.list(after)).map(({ bars, bytes, coin, interval, known }) => ({
        coin,
        interval,
        bars,
        bytes,
        known: CandleExport.rangeInstants({ coin, interval }, known)
      }))
    })

    const file = Effect.fnUntraced(function*(series: CandleExport.Wanted, format: keyof typeof contentTypes) {
      const source = exports.paced(yield* archive)
      const known = yield* CandleExport.known(source, series)
      if (known === undefined) {
        const { coin, interval } = series
        return yield* new UnknownAsset({ coin, detail: `The candle archive contains no bars of ${coin} ${interval}` })
      }
      const { admitted } = yield* CurrentRequestRecord
      const charge = admitted?.charge
      const requests = Math.floor(countBars(known) / barsPerRequest)
      if (charge !== undefined && requests > 0) yield* charge(requests)
      yield* exports.begin
      return HttpServerResponse.stream(CandleExport.file(source, series, known, format), {
        contentType: contentTypes[format]
      })
    })

    return handlers
      .handle("list", ({ query, request }) => serve(fromAdapter(request), list(query.after)))
      .handleRaw(
        "file",
        ({ params, query: { format = "ndjson", ...bounds }, request }) =>
          serve(fromAdapter(request), file({ ...params, ...bounds }, format))
      )
  })
)

/**
 * The routes of candle history, for an `HttpRouter`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = HttpApiBuilder.layer(CandlesApi).pipe(
  Layer.provide(candles),
  Layer.provide(HttpApiRoutes.problems)
)
