/** Starts a gateway that accepts the key of one caller, with the sandbox as its upstream. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as CallerKeys from "@trigate/callers/CallerKeys"
import { Unauthorized } from "@trigate/domain/errors/GatewayError"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as Gateway from "@trigate/server/Gateway"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Http from "node:http"

/** The only key that the gateway accepts. */
export const known = "known-caller-key"

/** Starts a gateway that accepts only the caller key `known`, and returns its URL. */
export const guardedGateway = Effect.gen(function*() {
  const keys = Layer.succeed(CallerKeys.CallerKeys, {
    check: (key) =>
      Redacted.value(key) === known
        ? Effect.succeed({ id: "key:known", scope: {}, quota: {} })
        : Effect.fail(new Unauthorized({ detail: "The key is not known" }))
  })
  const routes = Gateway.layer().pipe(
    Layer.provide(Sandbox.layer()),
    Layer.provide(keys),
    Layer.provide(Gateway.layerDefaults({ sandbox: true }))
  )
  const server = NodeHttpServer.layer(() => Http.createServer(), { port: 0, host: "127.0.0.1" })
  const context = yield* Layer.build(
    HttpRouter.serve(routes, { disableLogger: true, disableListenLog: true }).pipe(Layer.provideMerge(server))
  )
  return formatAddress(Context.get(context, HttpServer).address)
})
