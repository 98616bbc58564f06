import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { gateway } from "../../server/test/gateway.ts"
import { folder, main } from "./run.ts"

const document = fs.readFileSync(new URL("../../../docs/cli.md", import.meta.url), "utf8")
const blocks = [...document.matchAll(/^```sh\n(?<script>.*?)^```/gmsu)].map((match) => match.groups?.["script"] ?? "")

const keyFiles = {
  "key.txt": keys.trader,
  "cosigner-1.txt": keys.cosigner,
  "cosigner-2.txt": keys.thirdCosigner,
  "leader.txt": keys.leader
}

describe("docs/cli.md", () => {
  it.live("shows commands that work, line after line", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const cwd = yield* folder
      fs.symlinkSync(main, path.join(cwd, "trigate"))
      for (const [file, { privateKey }] of Object.entries(keyFiles)) fs.writeFileSync(path.join(cwd, file), privateKey)
      const ended = yield* Effect.callback<{ readonly code: number | null; readonly stderr: string }>((resume) => {
        const child = spawn("bash", ["-e", "-c", blocks.join("\n")], {
          cwd,
          env: {
            PATH: `${cwd}:${path.dirname(process.execPath)}:${process.env["PATH"] ?? ""}`,
            TRIGATE_GATEWAY_URL: url,
            TRIGATE_PRIVATE_KEY: keys.trader.privateKey
          },
          stdio: ["ignore", "ignore", "pipe"]
        })
        let stderr = ""
        child.stderr.on("data", (chunk: Buffer) => {
          stderr += chunk.toString("utf8")
        })
        child.on("close", (code) => resume(Effect.succeed({ code, stderr })))
        return Effect.sync(() => child.kill("SIGKILL"))
      })
      assert.strictEqual(ended.code, 0, ended.stderr)
      assert.strictEqual(fs.readFileSync(path.join(cwd, "purr.csv"), "utf8").split("\n").length, 1443)
      assert.strictEqual(blocks.join("").match(/^trigate /gmu)?.length, 15)
    }), 120_000)
})
