/** The gateway's `/exchange` in a program of one's own, over any Effect `HttpClient`. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as Gateway from "@trigate/server/Gateway"
import { mainnet } from "@trigate/signing/VenueProfile"
import * as Admission from "@trigate/trading/Admission"
import * as ExchangeUpstream from "@trigate/trading/ExchangeUpstream"
import * as UsedNonces from "@trigate/trading/UsedNonces"
import * as Calls from "@trigate/upstream/Calls"
import * as WireHttpClient from "@trigate/upstream/WireHttpClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpRouter from "effect/http/HttpRouter"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Http from "node:http"
import { addressOf, deadline } from "./faultyGateway.ts"
import type { FaultyUpstream } from "./faultyUpstream.ts"

/** Serves the gateway's routes with `/exchange` live over a client; the other services are the sandbox's. */
export const embeddedExchange = Effect.fnUntraced(
  function*(client: Layer.Layer<HttpClient.HttpClient>, upstreams: ReadonlyArray<FaultyUpstream | string>) {
    const exchange = ExchangeUpstream.layer({ api: upstreams.map(addressOf) }).pipe(
      Layer.provide(Admission.layer({ profile: mainnet, strict: false, relayActions: "none" })),
      Layer.provide(UsedNonces.layerMemory()),
      Layer.provide(Calls.layer({ readDeadline: deadline, onceDeadline: deadline })),
      Layer.provide(WireHttpClient.layer),
      Layer.provide(client)
    )
    const routes = Gateway.layerRoutes.pipe(
      Layer.provide(exchange),
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
