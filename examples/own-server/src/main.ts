import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Config, Effect, Layer } from "effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { createServer } from "node:http"
import * as Routes from "./Routes.ts"

const server = Layer.unwrap(Effect.map(
  Config.withDefault(Config.Int("PORT"), 3000),
  (port) => NodeHttpServer.layer(createServer, { port, host: "127.0.0.1" })
))

// Effect's own request log tells whole paths, and the gateway's keyed routes have the caller's key in them
const served = HttpRouter.serve(Routes.layer, { disableLogger: true })

NodeRuntime.runMain(Layer.launch(served.pipe(Layer.provide(server))))
