/** Services of the gateway in a program of one's own: over any Effect `HttpClient`, or without a server in front. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { local } from "@trigate/domain/Caller"
import { Layer2 } from "@trigate/evm/Layer2"
import * as Layer2Upstream from "@trigate/evm/Layer2Upstream"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as Gateway from "@trigate/server/Gateway"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import type { FaultyUpstream } from "@trigate/testing/FaultyUpstream"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import * as Admission from "@trigate/trading/admission/Admission"
import { Exchange } from "@trigate/trading/Exchange"
import * as TradingUpstream from "@trigate/trading/TradingUpstream"
import * as OutlierDetection from "@trigate/upstream/attempts/OutlierDetection"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as HttpTransportHttpClient from "@trigate/upstream/transport/HttpTransport"
import type { HttpTransport } from "@trigate/upstream/transport/HttpTransport"
import * as HttpTransportUndici from "@trigate/upstream/transport/HttpTransportUndici"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpRouter from "effect/http/HttpRouter"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Http from "node:http"
import { addressOf } from "./faultyGateway.ts"
import { deadline } from "./time.ts"

type Addresses = ReadonlyArray<FaultyUpstream | string>

// rate limits would end a test of thousands of calls before its faults do
const callsOver = (wire: Layer.Layer<HttpTransport>, limit: Duration.Input) =>
  Pipeline.layerNoDeps({ owner: local, readDeadline: limit, onceDeadline: limit, retries: { share: 1 } }).pipe(
    Layer.provide([RateLimiter.layerUnlimited, OutlierDetection.layer(), ResponseCache.layer()]),
    Layer.provide(wire)
  )

const exchangeOver = (api: Addresses) =>
  TradingUpstream.layerExchange({ api: api.map(addressOf) }).pipe(
    Layer.provide(
      Admission.layer().pipe(Layer.provide(VenueProfile.layer("mainnet")))
    ),
    Layer.provide(ActionLogMemory.layer())
  )

/** Serves the gateway's routes with `/exchange` live over a client; the other services are the sandbox's. */
export const embeddedExchange = Effect.fnUntraced(
  function*(client: Layer.Layer<HttpClient.HttpClient>, api: Addresses) {
    const wire = HttpTransportHttpClient.layer.pipe(Layer.provide(client))
    const routes = Gateway.layer().pipe(
      Layer.provide(exchangeOver(api).pipe(Layer.provide(callsOver(wire, deadline)))),
      Layer.provide(Sandbox.layer()),
      Layer.provide(Gateway.layerDefaults({ sandbox: false }))
    )
    const server = NodeHttpServer.layer(() => Http.createServer(), { port: 0, host: "127.0.0.1" })
    const context = yield* Layer.build(
      HttpRouter.serve(routes, { disableLogger: true, disableListenLog: true }).pipe(Layer.provideMerge(server))
    )
    return { url: formatAddress(Context.get(context, HttpServer).address) }
  }
)

/** The services behind `/exchange` and `/l2` without a server in front, for calls by the thousand. */
export const services = Effect.fnUntraced(
  function*(upstreams: { readonly api?: Addresses; readonly layer2?: Addresses }) {
    const { api = [], layer2 = [] } = upstreams
    const context = yield* Layer.build(
      Layer.merge(exchangeOver(api), Layer2Upstream.layerNoDeps({ addresses: layer2.map(addressOf) })).pipe(
        Layer.provide(callsOver(HttpTransportUndici.layer(), "10 minutes"))
      )
    )
    return { exchange: Context.get(context, Exchange), layer2: Context.get(context, Layer2) }
  }
)
