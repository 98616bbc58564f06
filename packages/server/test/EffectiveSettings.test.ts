import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as SettingsSources from "@trigate/server/settings/SettingsSources"
import * as Effect from "effect/Effect"

describe("the settings in effect", () => {
  it.effect("name their source, and hide secrets wherever they came from", () =>
    Effect.gen(function*() {
      const settings = yield* Effect.provideService(
        SettingsSources.read({ flags: { port: "9000" } }),
        SettingsSources.ProcessEnvironment,
        {
          TRIGATE_LAYER2_URL: "https://node.example/s3cr3t",
          TRIGATE_DATABASE_URL: "postgres://user:s3cr3t@db/trigate",
          OTEL_EXPORTER_OTLP_HEADERS: "authorization=s3cr3t",
          TRIGATE_BATCH_LIMIT: "7",
          TRIGATE_PORT: "1"
        }
      )
      const list = SettingsSources.list(settings)
      const given = list.filter(({ source }) => source !== undefined)
        .map(({ isSecret, name, source, value }) => ({ name, source, value, isSecret }))
      assert.deepStrictEqual(given, [
        { name: "TRIGATE_PORT", source: "--port", value: "9000", isSecret: false },
        { name: "TRIGATE_LAYER2_URL", source: "TRIGATE_LAYER2_URL", value: undefined, isSecret: true },
        { name: "TRIGATE_BATCH_LIMIT", source: "TRIGATE_BATCH_LIMIT", value: "7", isSecret: false },
        { name: "TRIGATE_DATABASE_URL", source: "TRIGATE_DATABASE_URL", value: undefined, isSecret: true },
        { name: "OTEL_EXPORTER_OTLP_HEADERS", source: "OTEL_EXPORTER_OTLP_HEADERS", value: undefined, isSecret: true }
      ])
      assert.notInclude(JSON.stringify(list), "s3cr3t")
      assert.strictEqual(list.find(({ name }) => name === "TRIGATE_HOST")?.default, "127.0.0.1")
    }).pipe(Effect.provide(NodeFileSystem.layer)))
})
