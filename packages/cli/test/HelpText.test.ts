import { assert, describe, it } from "@effect/vitest"
import * as Report from "@trigate/cli/Report"
import * as Effect from "effect/Effect"
import { run } from "./run.ts"

const help = `DESCRIPTION
  Says what it does in more words than fit
FLAGS
  --long name, -l    A description of some length
GROUP:
  \u001B[36mgo\u001B[0m    Goes on and on and on and on
EXAMPLES
  trigate go --long something --and more
`

describe("help", () => {
  it("is laid out for the width of the terminal, with examples that can be copied", () => {
    assert.strictEqual(
      Report.layout(help, 32),
      `DESCRIPTION
  Says what it does in more
  words than fit

FLAGS
  --long name, -l    A description of some length

GROUP:
  \u001B[36mgo\u001B[0m    Goes on and on and on
        and on

EXAMPLES
  trigate go --long something --and more
`
    )
  })

  it("keeps its lines where there is no terminal", () => {
    assert.strictEqual(Report.layout(help, Infinity), help.replaceAll(/\n(?=FLAGS|GROUP|EXAMPLES)/gu, "\n\n"))
  })

  it.effect("says which flags are required, and the shells once", () =>
    Effect.gen(function*() {
      const { stdout } = yield* run(["multisig", "propose", "delegate", "--help"])
      assert.include(stdout, "--account address     The multi-sig account that acts (required)\n")
      assert.strictEqual(stdout.match(/pwsh/gu)?.length, 1)
      const widths = stdout.split("\n").map((line) => line.length)
      assert.isAtMost(Math.max(...widths), 120)
    }))
})
