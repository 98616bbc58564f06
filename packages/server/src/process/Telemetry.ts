/**
 * Exports traces, metrics and the program's log to an OpenTelemetry collector over OTLP/HTTP.
 *
 * The module is loaded only if a collector is configured. Data that cannot be exported is dropped: no request waits for the
 * collector.
 */
import { GatewayApi } from "@trigate/api/GatewayApi"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as OpenApi from "effect/http-api/OpenApi"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as OtlpExporter from "effect/observability/OtlpExporter"
import * as OtlpLogger from "effect/observability/OtlpLogger"
import * as OtlpMetrics from "effect/observability/OtlpMetrics"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import * as OtlpTracer from "effect/observability/OtlpTracer"
import * as Option from "effect/Option"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import * as Tracer from "effect/Tracer"
import type { Settings } from "../settings/Settings.ts"

type Sampler = Settings["otelTracesSampler"]

const idBits = 52

/**
 * Returns whether a trace is in the sampled fraction `share` (0 to 1) of all traces. The end of the trace ID decides,
 * so that all services make the same decision.
 */
const isAmong = (share: number, traceId: string): boolean =>
  Number.parseInt(traceId.slice(-idBits / 4), 16) >= (1 - share) * 2 ** idBits

/** Makes a tracer with the sampler of `OTEL_TRACES_SAMPLER`. */
const sampled = (tracer: Tracer.Tracer, sampler: Sampler, share: number): Tracer.Tracer => {
  const isParentBased = sampler.startsWith("parentbased_")
  const takes: (traceId: () => string) => boolean = sampler.endsWith("traceidratio")
    ? (traceId) => isAmong(share, traceId())
    : () => sampler.endsWith("always_on")
  return Tracer.make({
    span: (options) => {
      // Effect already samples a child span like its parent
      if (isParentBased && Option.isSome(options.parent)) return tracer.span(options)
      const span = tracer.span({ ...options, sampled: true })
      return takes(() => span.traceId) ? span : tracer.span({ ...options, sampled: false })
    }
  })
}

/** Logs when the collector starts to refuse exports, and when it accepts them again. */
const watched = Effect.map(HttpClient.HttpClient, (client) => {
  let isAway = false
  const logChange = (isNowAway: boolean, why: string) =>
    Effect.suspend(() => {
      if (isAway === isNowAway) return Effect.void
      isAway = isNowAway
      return isAway
        ? Effect.logWarning(`Telemetry is not exported: the collector ${why}`)
        : Effect.logInfo("Telemetry is exported again")
    })
  return client.pipe(
    HttpClient.tap(({ status }) =>
      status < 400 ? logChange(false, "") : logChange(true, `responds with HTTP ${status}`)
    ),
    // a fixed text, because the HTTP client's messages contain the URL
    HttpClient.tapError(() => logChange(true, "cannot be reached"))
  )
})

const makeResource = ({ otelResourceAttributes, otelServiceName }: Settings) => {
  const attributes = Option.getOrElse(otelResourceAttributes, () => ({}))
  const { "service.name": named, ...rest } = { "service.name": "trigate", ...attributes }
  return {
    serviceName: Option.getOrElse(otelServiceName, () => named),
    serviceVersion: Context.getOrUndefined(GatewayApi.annotations, OpenApi.Version),
    attributes: rest
  }
}

const signals = (settings: Settings, endpoint: string) => {
  const common = {
    resource: makeResource(settings),
    headers: Option.match(settings.otlpHeaders, {
      onNone: (): { readonly [name: string]: string } => ({}),
      onSome: (headers) => Record.map(headers, Redacted.value)
    }),
    compression: settings.otlpCompression
  }
  const url = (signal: string) => `${endpoint.replace(/\/+$/u, "")}/v1/${signal}`
  const tracer = Layer.effect(
    Tracer.Tracer,
    Effect.map(
      OtlpTracer.make({ ...common, url: url("traces"), exportInterval: settings.otelSpanDelay }),
      (tracer) => sampled(tracer, settings.otelTracesSampler, settings.otelTracesSamplerArg)
    )
  )
  const metrics = OtlpMetrics.layer({ ...common, url: url("metrics"), exportInterval: settings.otelMetricInterval })
  const log = OtlpLogger.layer({ ...common, url: url("logs") })
  const none = Layer.empty
  return Layer.mergeAll(
    settings.otelTracesExporter === "otlp" ? tracer : none,
    settings.otelMetricsExporter === "otlp" ? metrics : none,
    settings.otelLogsExporter === "otlp" ? log : none
  )
}

/**
 * Exports telemetry until the layer's scope closes, then takes at most 3 seconds to flush pending data.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  settings: Settings,
  endpoint: Redacted.Redacted
): Layer.Layer<never> =>
  signals(settings, Redacted.value(endpoint)).pipe(
    Layer.provide([
      settings.otlpProtocol === "http/json" ? OtlpSerialization.layerJson : OtlpSerialization.layerProtobuf,
      Layer.effect(HttpClient.HttpClient, watched).pipe(Layer.provide(FetchHttpClient.layer)),
      OtlpExporter.layerFlusher,
      // an empty provider, because Effect's exporters would otherwise read the environment and ignore flags and files
      ConfigProvider.layer(ConfigProvider.fromUnknown({}))
    ])
  )
