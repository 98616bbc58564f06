/** `trigate serve` as a process: what only a process can show of where its settings come from. */
import { assert, describe, it } from "@effect/vitest"
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { folder } from "./run.ts"

describe("trigate serve", () => {
  it.live("takes a flag before the environment, and the environment before the file of its folder", () =>
    Effect.gen(function*() {
      const cwd = yield* folder
      const layer2Url = "http://127.0.0.1:9/key"
      fs.writeFileSync(path.join(cwd, "trigate.config.yaml"), `port: 1\nnetwork: mainnet\nlayer2Url: [${layer2Url}]\n`)
      const running = yield* gatewayProcess(
        { TRIGATE_PORT: "2", TRIGATE_NETWORK: "testnet" },
        { args: ["--port", "0"], folder: cwd }
      )
      assert.notInclude(["1", "2"], new URL(running.url).port)
      const [first = "", ...lines] = running.printed().split("\n")
      assert.include(first, "(testnet)")
      assert.include(lines, "  layer2: layer2 x1")
    }))
})
