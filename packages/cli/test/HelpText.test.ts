import { assert, describe, it } from "@effect/vitest"
import * as Report from "@trigate/cli/Report"
import { grouped } from "@trigate/server/unstable/settings/Settings"
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
  --long name, -l
      A description of some
      length

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

  it.effect.each([40, 60, 80, 120])("fits a terminal of %i columns", (columns) =>
    Effect.gen(function*() {
      for (const args of [["--help"], ["serve", "--help"], ["info", "candles", "--help"]]) {
        const { stdout } = yield* run(args, { columns })
        const [laidOut = ""] = stdout.replace(/^USAGE\n.*\n/mu, "").split("EXAMPLES")
        const tooLong = laidOut.split("\n").filter((line) => line.length > columns)
        assert.deepStrictEqual(tooLong, [], args.join(" "))
      }
    }))

  it.effect("of serve has each setting under the title of its group", () =>
    Effect.gen(function*() {
      const { stdout } = yield* run(["serve", "--help"], { columns: 80 })
      const flags = new Map(
        stdout.split("\n\n").map((section) => [
          section.split("\n")[0],
          [...section.matchAll(/^ {2}--(?<flag>\S+)/gmu)].map(({ groups }) => groups?.["flag"])
        ])
      )
      for (const { group, members } of grouped) {
        assert.deepStrictEqual(flags.get(group.toUpperCase()), members.map(([, { flag }]) => flag), group)
      }
      assert.include(
        stdout,
        `LISTENING
  --host value
      Address to listen on. Takes a host name or an IP address [env:
      TRIGATE_HOST] [default: 127.0.0.1]
`
      )
    }))

  it.effect("says what each argument of each command is", () =>
    Effect.gen(function*() {
      const bare: Array<string> = []
      const visit: (path: ReadonlyArray<string>) => Effect.Effect<number> = Effect.fnUntraced(function*(path) {
        const { stdout } = yield* run([...path, "--help"])
        const sections = stdout.split("\n\n").map((section) => section.split("\n"))
        for (const [title, ...lines] of sections) {
          if (title === "ARGUMENTS") bare.push(...lines.filter((line) => !/^ {2}\S+ \S+ {2,}\S/u.test(line)))
        }
        const names = stdout.includes("<subcommand>")
          ? sections.filter(([title = ""]) => title === "SUBCOMMANDS" || title.endsWith(":"))
            .flatMap((lines) => lines.flatMap((line) => /^ {2}([a-z0-9-]+)/u.exec(line)?.[1] ?? []))
          : []
        const counts = yield* Effect.forEach(names, (name) => visit([...path, name]))
        return counts.reduce((sum, count) => sum + count, 1)
      })
      assert.isAbove(yield* visit([]), 40)
      assert.deepStrictEqual(bare, [])
    }))

  it.effect("says which flags are required, and the shells once", () =>
    Effect.gen(function*() {
      const { stdout } = yield* run(["multisig", "propose", "delegate", "--help"])
      assert.include(stdout, "--account address     The multi-sig account (required)\n")
      assert.strictEqual(stdout.match(/pwsh/gu)?.length, 1)
      const widths = stdout.split("\n").map((line) => line.length)
      assert.isAtMost(Math.max(...widths), 120)
    }))
})
