/** Bots that start at the same time and query the sandbox's venue through the pipeline that serves live chains. */
import type { BotCost } from "@trigate/api/unstable/SandboxApi"
import { local } from "@trigate/domain/Caller"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import * as InfoOperations from "@trigate/domain/info/InfoOperations"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import { Info } from "@trigate/trading/Info"
import * as TradingUpstream from "@trigate/trading/TradingUpstream"
import * as OutlierDetection from "@trigate/upstream/attempts/OutlierDetection"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"
import * as Pipeline from "@trigate/upstream/Pipeline"
import { HttpTransport } from "@trigate/upstream/transport/HttpTransport"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

const call = (operation: InfoOperations.InfoCall["operation"], request: object = {}): InfoOperations.InfoCall => ({
  operation,
  request,
  body: Encoding.write({ type: operation.name, ...request }),
  surface: "gateway"
})

/** The queries with which a bot starts: metadata, prices, and books. */
const queries = [
  call(InfoOperations.meta),
  call(InfoOperations.spotMeta),
  call(InfoOperations.perpDexs),
  call(InfoOperations.metaAndAssetCtxs),
  call(InfoOperations.allMids),
  ...["BTC", "ETH", "SOL", "HYPE", "kPEPE"].map((coin) => call(InfoOperations.l2Book, { coin }))
]

const queryWeights: ReadonlyMap<string, number> = new Map(
  queries.map(({ body, operation }) => [body.text, operation.cost.weight])
)

const botWeight = queries.reduce((sum, { operation }) => sum + operation.cost.weight, 0)

/** Starts bots at the same time. Returns the weight of their queries with and without the gateway. */
export const start = Effect.fnUntraced(function*(state: SandboxState["Service"], bots: number) {
  let requests = 0
  let weight = 0
  const transport = HttpTransport.of({
    send: ({ body = new Uint8Array() }) => {
      requests += 1
      weight += queryWeights.get(new TextDecoder().decode(body)) ?? 0
      return Sandbox.serveVenue("/info", body).pipe(
        Effect.map(({ pieces, status }) => ({
          status,
          headers: { "content-type": "application/json" },
          body: pieces
        })),
        Effect.provideService(SandboxState, state),
        Effect.provideService(VenueProfile.Venue, VenueProfile.profileFor("mainnet"))
      )
    }
  })
  const pipeline = Pipeline.layerNoDeps({ owner: local }).pipe(
    Layer.provide([RateLimiter.layerUnlimited, OutlierDetection.layerAlways, ResponseCache.layer()]),
    Layer.provide(Layer.succeed(HttpTransport, transport))
  )
  const services = yield* Layer.build(
    Layer.provide(TradingUpstream.layerInfo({ api: ["http://venue.sandbox"] }), pipeline)
  )
  const { relay } = Context.get(services, Info)
  const bot = Effect.forEach(queries, relay, { concurrency: "unbounded" })
  // a fault of the sandbox can refuse queries
  const started = Array.from({ length: bots }, () => Effect.ignore(bot))
  yield* Effect.all(started, { concurrency: "unbounded", discard: true })
  return {
    bots,
    queries: bots * queries.length,
    requests,
    weightWithout: bots * botWeight,
    weight,
    weightPerMinute: RateLimiter.defaultWeight
  } satisfies BotCost
}, Effect.scoped)
