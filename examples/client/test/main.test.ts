import { assert, describe, it } from "@effect/vitest"
import * as GatewayServer from "@trigate/server/GatewayServer"
import * as Settings from "@trigate/server/settings/SettingsSources"
import { ConfigProvider, Context, Effect, Layer } from "effect"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url))

/** A gateway with its sandbox, on a free port. The venue loses its reply to the first action, not to the second. */
const gateway = Effect.gen(function*() {
  const settings = yield* Settings.load.pipe(Effect.provideService(
    ConfigProvider.ConfigProvider,
    ConfigProvider.fromUnknown({
      TRIGATE_PORT: "0",
      TRIGATE_ACCESS_LOG: "off",
      TRIGATE_SANDBOX_LOST_REPLIES: "0.4"
    })
  ))
  return formatAddress(Context.get(yield* Layer.build(GatewayServer.layer(settings)), HttpServer).address)
})

describe("main.ts", () => {
  it.live("calls each chain, handles an error and submits an action whose reply is lost", () =>
    Effect.gen(function*() {
      const url = yield* gateway
      const { stdout } = yield* Effect.promise(() =>
        promisify(execFile)(process.execPath, [main], { env: { ...process.env, GATEWAY_URL: url } })
      )
      const [price, ...lines] = stdout.trim().split("\n")
      assert.match(price ?? "", /^HyperEVM: gas costs [0-9.]+ gwei$/u)
      assert.deepStrictEqual(lines, [
        "token chain: TRIG, 1180591620717411303424123 units",
        "layer 2: failure",
        "venue: nobody trades NOSUCHCOIN",
        "signed action: taken"
      ])
    }))
})
