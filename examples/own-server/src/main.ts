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

NodeRuntime.runMain(Layer.launch(HttpRouter.serve(Routes.layer).pipe(Layer.provide(server))))
