/** The blocks in Python of the guide to candle files, on files of a gateway, where Python has DuckDB, pandas and pyarrow. */
import { assert, describe, it } from "@effect/vitest"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as Effect from "effect/Effect"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const python = process.env["TRIGATE_TEST_PYTHON"] ?? "python3"

const isInstalled = spawnSync(python, ["-c", "import duckdb, pandas, pyarrow"]).status === 0
if (!isInstalled) {
  console.log("Not run here: candle files in DuckDB and pandas, since Python has not all of them and pyarrow")
}

const guide = fs.readFileSync(new URL("../../docs/guides/candle-export.md", import.meta.url), "utf8")

/** The blocks; the last line of each is a comment with what it prints. */
const blocks = [...guide.matchAll(/```python\n(?<code>.*?)# (?<output>[^\n]*\n)```/gsu)].map(({ groups }) => ({
  code: groups?.["code"] ?? "",
  output: groups?.["output"] ?? ""
}))

describe("candle files in other tools", () => {
  it("are shown in three blocks, each with its output", () => {
    assert.lengthOf(blocks, 3)
  })

  it.live.runIf(isInstalled)("are read as the guide shows it", () =>
    Effect.gen(function*() {
      const { url } = yield* hostedGateway({})
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "tools-"))),
        (made) => Effect.sync(() => fs.rmSync(made, { recursive: true, force: true }))
      )
      for (const format of ["csv", "parquet"]) {
        const file = `${url}/candles/BTC/1d?from=1767225600000&to=1769817600000&format=${format}`
        const bytes = yield* Effect.promise(() => fetch(file).then((answer) => answer.arrayBuffer()))
        fs.writeFileSync(path.join(folder, `btc.${format}`), new Uint8Array(bytes))
      }
      for (const { code, output } of blocks) {
        const ended = spawnSync(python, ["-c", code], { cwd: folder, encoding: "utf8" })
        assert.deepStrictEqual([ended.stdout, ended.status], [output, 0], ended.stderr)
      }
    }))
})
