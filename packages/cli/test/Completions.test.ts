import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { command, folder, main } from "./run.ts"

/** Runs a script of a shell to which `trigate` is a command. */
const inShell = Effect.fn(function*(shell: string, args: ReadonlyArray<string>, script: string) {
  const cwd = yield* folder
  fs.symlinkSync(main(), path.join(cwd, "trigate"))
  return yield* command(shell, [...args, "-c", `PATH="${cwd}:$PATH"; export PATH\n${script}`], {
    HOME: cwd,
    TERM: "dumb"
  })
})

/** What bash offers for each line, in the order in which it would show it. */
const complete = `
source <(trigate --completions bash)
for line in "$@"; do
  COMP_LINE="$line" COMP_POINT=\${#line}
  read -ra COMP_WORDS <<< "$line"
  [[ "$line" == *" " ]] && COMP_WORDS+=("")
  COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
  COMPREPLY=()
  _trigate trigate "\${COMP_WORDS[COMP_CWORD]}" "\${COMP_WORDS[COMP_CWORD - 1]}"
  echo "\${COMPREPLY[*]}"
done
complete -p trigate`

const cases: ReadonlyArray<readonly [line: string, offered: string]> = [
  [
    "trigate ",
    "watch positions order cancel info evm token receipt delegate undelegate big-blocks multisig serve sandbox status " +
    "check inspect guard mcp actions audit keys candles"
  ],
  ["trigate multi", "multisig"],
  ["trigate info ", "spot-meta candles raw"],
  ["trigate info candles BTC ", "1m 3m 5m 15m 30m 1h 2h 4h 8h 12h 1d 3d 1w 1M"],
  ["trigate info candles --o", "--out"],
  ["trigate info candles BTC 1h --out ", "csv json ndjson"],
  ["trigate multisig propose ", "delegate undelegate big-blocks action"],
  ["trigate multisig propose delegate --le", "--leader"],
  ["trigate big-blocks ", "on off"],
  ["trigate delegate --network ", "mainnet testnet"],
  ["trigate actions ", "list show resolve forget"]
]

const zsh = spawnSync("zsh", ["--version"]).status === 0
if (!zsh) console.log("Completions.test.ts: no zsh on this machine, its completions are not loaded")

describe("completions", () => {
  it.live("complete commands, flags and values in bash", () =>
    Effect.gen(function*() {
      const lines = cases.map(([line]) => `"${line}"`).join(" ")
      const ended = yield* inShell("bash", ["--norc"], `set -- ${lines}\n${complete}`)
      assert.deepStrictEqual([ended.code, ended.stderr], [0, ""])
      const wanted = [...cases.map(([, offered]) => offered), "complete -F _trigate trigate", ""]
      assert.deepStrictEqual(ended.stdout.split("\n"), wanted)
    }))

  it.live.skipIf(!zsh)("complete commands in a zsh at a terminal", () =>
    Effect.gen(function*() {
      const ended = yield* inShell(
        "zsh",
        ["-f"],
        `
zmodload zsh/zpty
zpty z 'PS1= zsh -f -i'
zpty -w z 'autoload -Uz compinit; compinit -D -u; source <(trigate --completions zsh); echo R""EADY'
zpty -r z out '*READY*'
zpty -w -n z $'trigate multi\\t'
zpty -r z out '*multisig *'
zpty -w -n z $'prop\\t'
zpty -r z out '*propose *'
print done`
      )
      assert.deepStrictEqual(ended, { code: 0, stdout: "done\n", stderr: "" })
    }))
})
