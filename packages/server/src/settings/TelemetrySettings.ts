/** The settings of OpenTelemetry, with the names and defaults of its specification. */
import { filtered, isBaseUrl, optional, withDefault, words } from "@trigate/domain/Setting"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"

// OpenTelemetry uses `true` and `false` where Trigate's settings use `on` and `off`; a settings file can contain either
const TrueFalse = Schema.Literals(["true", "false", "on", "off"]).pipe(
  Schema.decodeTo(Schema.Boolean, {
    decode: SchemaGetter.transform((word) => word === "true" || word === "on"),
    encode: SchemaGetter.transform((value) => value ? "true" as const : "false" as const)
  })
)

const arePairs = filtered("key=value, comma separated", (text) => words(text).every((word) => /^[^\s=]+=/u.test(word)))

/** Pairs in OpenTelemetry's format: `key=value,key=value`, the values percent-encoded. */
const Pairs = Schema.String.check(arePairs).pipe(
  Schema.decodeTo(Schema.Record(Schema.String, Schema.StringFromUriComponent), {
    decode: SchemaGetter.transform((text) =>
      Object.fromEntries(
        words(text).map((word) => {
          const end = word.indexOf("=")
          return [word.slice(0, end).trim(), word.slice(end + 1).trim()]
        })
      )
    ),
    encode: SchemaGetter.transform((pairs) => Object.entries(pairs).map(([key, value]) => `${key}=${value}`).join(","))
  })
)

const SecretPairs = Pairs.pipe(
  Schema.decodeTo(Schema.Record(Schema.String, Schema.RedactedFromValue(Schema.String)))
)

// redacted, because the URL of a collector may contain a key
const OtlpEndpoint = Schema.RedactedFromValue(Schema.String.check(isBaseUrl))

const Millis = Schema.FiniteFromString.check(Schema.isInt(), Schema.isGreaterThan(0)).pipe(
  Schema.decodeTo(Schema.DurationFromMillis)
)

const Exporter = Schema.Literals(["otlp", "none"])

const Share = Schema.FiniteFromString.check(Schema.isBetween({ minimum: 0, maximum: 1 }))

const exporter = "`otlp` or `none`"
const millis = "an integer of milliseconds above zero"

/** The settings, by their names in a settings file. */
export const settings = {
  otelSdkDisabled: withDefault("OTEL_SDK_DISABLED", TrueFalse, "false", {
    group: "Telemetry",
    needsRestart: true,
    meaning: "disables all exports",
    takes: "`true` or `false`"
  }),
  otlpEndpoint: optional("OTEL_EXPORTER_OTLP_ENDPOINT", OtlpEndpoint, {
    group: "Telemetry",
    needsRestart: true,
    meaning: "OpenTelemetry collector to which traces, metrics and the program's log are exported; a path like " +
      "`/v1/traces` is appended",
    takes: "an http(s) base URL without query"
  }, "unset: no export"),
  otlpHeaders: optional("OTEL_EXPORTER_OTLP_HEADERS", SecretPairs, {
    group: "Telemetry",
    needsRestart: true,
    meaning: "headers of each export, such as one with a key of the collector",
    takes: "`name=value`, comma separated, percent-encoded"
  }),
  otlpProtocol: withDefault(
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    Schema.Literals(["http/protobuf", "http/json"]),
    "http/protobuf",
    {
      group: "Telemetry",
      needsRestart: true,
      meaning: "encoding of the exports",
      takes: "`http/protobuf` or `http/json`"
    }
  ),
  otlpCompression: withDefault("OTEL_EXPORTER_OTLP_COMPRESSION", Schema.Literals(["none", "gzip"]), "none", {
    group: "Telemetry",
    needsRestart: true,
    meaning: "compression of the exports",
    takes: "`none` or `gzip`"
  }),
  otelServiceName: optional("OTEL_SERVICE_NAME", Schema.String, {
    group: "Telemetry",
    needsRestart: true,
    meaning: "service name of the gateway",
    takes: "a text"
  }, "unset: `service.name` of the resource attributes, otherwise trigate"),
  otelResourceAttributes: optional("OTEL_RESOURCE_ATTRIBUTES", Pairs, {
    group: "Telemetry",
    needsRestart: true,
    meaning: "attributes of everything that is exported",
    takes: "`key=value`, comma separated, percent-encoded"
  }),
  otelTracesExporter: withDefault("OTEL_TRACES_EXPORTER", Exporter, "otlp", {
    group: "Telemetry",
    needsRestart: true,
    meaning: "whether traces are exported",
    takes: exporter
  }),
  otelMetricsExporter: withDefault("OTEL_METRICS_EXPORTER", Exporter, "otlp", {
    group: "Telemetry",
    needsRestart: true,
    meaning: "whether metrics are exported; `/metrics` always contains them",
    takes: exporter
  }),
  otelLogsExporter: withDefault("OTEL_LOGS_EXPORTER", Exporter, "otlp", {
    group: "Telemetry",
    needsRestart: true,
    meaning: "whether the program's log is exported; it is always written to standard output",
    takes: exporter
  }),
  otelTracesSampler: withDefault(
    "OTEL_TRACES_SAMPLER",
    Schema.Literals([
      "always_on",
      "always_off",
      "traceidratio",
      "parentbased_always_on",
      "parentbased_always_off",
      "parentbased_traceidratio"
    ]),
    "parentbased_always_on",
    {
      group: "Telemetry",
      needsRestart: true,
      meaning: "which requests are traced; a `parentbased` sampler decides only for requests without a `traceparent`",
      takes: "`always_on`, `always_off`, `traceidratio`, or one of these after `parentbased_`"
    }
  ),
  otelTracesSamplerArg: withDefault("OTEL_TRACES_SAMPLER_ARG", Share, "1", {
    group: "Telemetry",
    needsRestart: true,
    meaning: "share of the traces that a `traceidratio` sampler samples",
    takes: "a number from 0 to 1"
  }),
  otelSpanDelay: withDefault("OTEL_BSP_SCHEDULE_DELAY", Millis, "5000", {
    group: "Telemetry",
    needsRestart: true,
    meaning: "time between two exports of spans",
    takes: millis
  }),
  otelMetricInterval: withDefault("OTEL_METRIC_EXPORT_INTERVAL", Millis, "60000", {
    group: "Telemetry",
    needsRestart: true,
    meaning: "time between two exports of metrics",
    takes: millis
  })
}
