/** Starts the backend. Variables: `PORT`, `ARCHIVE_FOLDER`, those of `Chains.ts`, and `OTEL_…` for a collector. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Otlp from "effect/observability/Otlp"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import { createServer } from "node:http"
import * as Chains from "./Chains.ts"
import * as Server from "./Server.ts"

const settings = Config.all({
  folder: Config.withDefault(Config.String("ARCHIVE_FOLDER"), "archive"),
  port: Config.withDefault(Config.Int("PORT"), 3000)
})

// the standard's defaults; Effect itself exports only what is named
const exporters = ConfigProvider.layerAdd(ConfigProvider.fromUnknown({
  OTEL_TRACES_EXPORTER: ["otlp"],
  OTEL_METRICS_EXPORTER: ["otlp"],
  OTEL_LOGS_EXPORTER: ["otlp"]
}))

// exports nothing while no OTEL_EXPORTER_OTLP_ENDPOINT is set
const telemetry = Otlp.layerFromConfig({ resource: { serviceName: "backend" } }).pipe(
  Layer.provide([FetchHttpClient.layer, OtlpSerialization.layerProtobuf, exporters])
)

const server = Layer.unwrap(Effect.map(
  settings,
  ({ folder, port }) =>
    Server.layer({ folder }).pipe(Layer.provide(NodeHttpServer.layer(createServer, { port, host: "127.0.0.1" })))
))

NodeRuntime.runMain(Layer.launch(server.pipe(
  Layer.provide([Chains.layer, NodeServices.layer]),
  Layer.provide(telemetry)
)))
