import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServer from "@trigate/server/requests/Listener"
import { Config, Effect, Layer } from "effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Routes from "./Routes.ts"

// the HTTP server of the bundled gateway, with its bounds on connections
const server = Layer.unwrap(Effect.map(
  Config.withDefault(Config.Int("PORT"), 3000),
  (port) => NodeServer.layer({ port, host: "127.0.0.1" })
))

NodeRuntime.runMain(Layer.launch(HttpRouter.serve(Routes.layer).pipe(Layer.provide(server))))
