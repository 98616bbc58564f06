import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as GatewayServer from "@trigate/server/GatewayServer"
import * as Settings from "@trigate/server/settings/SettingsSources"
import { ConfigProvider, Context, Effect, Layer } from "effect"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url))

/** A gateway with its sandbox, on a free port. */
const gateway = Effect.gen(function*() {
  const settings = yield* Settings.load.pipe(Effect.provideService(
    ConfigProvider.ConfigProvider,
    ConfigProvider.fromUnknown({ TRIGATE_PORT: "0", TRIGATE_ACCESS_LOG: "off" })
  ))
  return formatAddress(Context.get(yield* Layer.build(GatewayServer.layer(settings)), HttpServer).address)
})

describe("a three-of-five multi-sig across processes", () => {
  it.live("ends in the venue's ok", () =>
    Effect.gen(function*() {
      const url = yield* gateway
      const { stdout } = yield* Effect.promise(() =>
        promisify(execFile)(process.execPath, [main], { env: { ...process.env, GATEWAY_URL: url } })
      )
      assert.deepStrictEqual(stdout.trim().split("\n"), [
        `approved by ${keys.fifthCosigner.address}`,
        `approved by ${keys.cosigner.address}`,
        `approved by ${keys.thirdCosigner.address}`,
        "the venue: {\"status\":\"ok\",\"response\":{\"type\":\"default\"}}"
      ])
    }))
})
