import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import type { Program } from "./blocks.ts"
import { excused, read } from "./blocks.ts"
import { checkout, folderIn, run } from "./run.ts"
import { check } from "./types.ts"
import * as AttemptResult from "./verdict.ts"

/** A document of blocks, each an info string and its lines. */
const document = (...blocks: ReadonlyArray<readonly [info: string, text: string, comment?: string]>) =>
  read(
    "a.md",
    blocks.map(([info, text, comment]) =>
      `${comment === undefined ? "" : `<!-- ${comment} -->\n\n`}\`\`\`${info}\n${text}\n\`\`\`\n`
    ).join("\n")
  )

describe("what a document asks to be run", () => {
  it("is its ts and sh blocks, each with the output right after it", () => {
    const { faults, programs } = document(["sh", "echo 1"], ["text", "1"], ["ts", "console.log(2)"], ["json", "2"])
    assert.deepStrictEqual(faults, [])
    assert.deepStrictEqual(programs, [
      {
        path: "a.md",
        line: 1,
        language: "sh",
        text: "echo 1\n",
        file: "block-1.ts",
        named: false,
        output: { format: "text", text: "1\n" },
        excuse: undefined
      },
      {
        path: "a.md",
        line: 9,
        language: "ts",
        text: "console.log(2)\n",
        file: "block-9.ts",
        named: false,
        output: { format: "json", text: "2\n" },
        excuse: undefined
      }
    ])
  })

  it("leaves out what is excused, and tells it", () => {
    const found = document(["sh", "npm ci # all of it\nnpm test", "not run: long"], [
      "",
      "GET /",
      "not run: an example"
    ])
    assert.deepStrictEqual(found.faults, [])
    assert.deepStrictEqual(excused(found), ["a.md: npm ci (long)", "a.md: GET / (an example)"])
  })

  it("is nothing that nobody would run, compare or use", () => {
    assert.deepStrictEqual(document(["typescript", "1"]).faults, [
      "a.md:1: \"typescript\" is no language of a guide: ts and sh are run, text and json are their output"
    ])
    assert.deepStrictEqual(document(["text", "1"]).faults, ["a.md:1: the output of no program"])
    assert.deepStrictEqual(document(["sh", "true"], ["text", ""], ["text", ""]).faults, [
      "a.md:9: the output of no program"
    ])
    assert.deepStrictEqual(document(["sh", "true", "skip"]).faults, [
      "a.md:3: the comment is not of the form <!-- not run: reason -->"
    ])
    assert.deepStrictEqual(document(["ts", "// one.ts"], ["sh", "node two.ts"]).faults, [
      "a.md:1: no later block runs or imports one.ts"
    ])
    assert.deepStrictEqual(document(["ts", "// one.ts"], ["text", "1"], ["sh", "node one.ts"]).faults, [
      "a.md:1: one.ts is a file, so a later block has the output"
    ])
  })
})

describe("a program that does not do what is shown", () => {
  const program = (text: string, output?: Program["output"]): Program => ({
    path: "a.md",
    line: 7,
    language: "sh",
    text,
    file: "",
    named: false,
    output,
    excuse: undefined
  })
  const ended = { code: 0, stdout: "{ \"a\": \"b  c\",\n \"n\": 90071992547409931 }\n", stderr: "" }

  it("is told with the line of the document", () => {
    assert.strictEqual(
      AttemptResult.of(program("", { format: "text", text: "other\n" }), { ...ended, stdout: "this\n" }),
      "a.md:7: prints\nthis\ninstead of\nother\n"
    )
    assert.strictEqual(
      AttemptResult.of(program(""), { code: 3, stdout: "out\n", stderr: "err" }),
      "a.md:7: ended with 3\nout\nerr"
    )
  })

  it("may fail where the document shows that it does", () => {
    for (const text of ["trigate: no\n", "{\"_tag\": \"InvalidRequest\"}\n", "HTTP/1.1 422 Unprocessable Entity\n"]) {
      const shown = program("", { format: "text", text })
      assert.isUndefined(AttemptResult.of(shown, { code: 2, stdout: text, stderr: "" }))
    }
    const other = program("", { format: "text", text: "no\n" })
    assert.strictEqual(
      AttemptResult.of(other, { code: 2, stdout: "no\n", stderr: "" }),
      "a.md:7: ended with 2\nno\n"
    )
  })

  it("may lay out JSON in its own way, with every digit and every space inside a text", () => {
    const json = (text: string) => AttemptResult.of(program("", { format: "json", text }), ended)
    assert.isUndefined(json("{\"a\":\"b  c\",\"n\":90071992547409931}"))
    assert.isDefined(json("{\"a\":\"b c\",\"n\":90071992547409931}"))
    assert.isDefined(json("{\"a\":\"b  c\",\"n\":90071992547409932}"))
  })
})

describe("a document that is run", () => {
  const nobody = { sandbox: "http://127.0.0.1:1", front: "http://127.0.0.1:2" }

  it.live(
    "shares one folder, in which the packages and the commands of the repository are",
    () =>
      Effect.gen(function*() {
        const fine = document(
          ["ts", "// two.ts\nexport const two: number = 2"],
          [
            "ts",
            "import { two } from \"./two.ts\"\nimport * as Effect from \"effect/Effect\"\nconsole.log(two, Effect.isEffect(2))"
          ],
          ["text", "2 false"],
          ["sh", "echo http://localhost:8080 localhost:8080 > where.txt"],
          ["sh", "cat where.txt\ntest -d examples/client"],
          ["text", "http://localhost:8080 127.0.0.1:8080"],
          ["sh", "npx trigate --version\ntrigate --version\nnode --version | cut -c 1-3"],
          ["text", "trigate v0.1.0\ntrigate v0.1.0\nv24"],
          ["sh", "echo localhost:8080 http://127.0.0.1:8081/metrics"],
          ["text", "localhost:8080 http://127.0.0.1:8081/metrics"],
          ["sh", "test localhost:8081 = 127.0.0.1:2"],
          ["sh", "echo first; trigate evm gas --json; echo never"],
          [
            "text",
            "first\ntrigate: No gateway responds at http://localhost:8080; start one with trigate serve, or name another " +
            "with --gateway"
          ]
        )
        assert.deepStrictEqual(fine.faults, [])
        assert.deepStrictEqual(yield* run(fine, nobody), [])
      })
  )

  it.live("is told each of its faults", () =>
    Effect.gen(function*() {
      const wrong = document(
        ["sh", "false | true"],
        ["ts", "console.log(1)"],
        ["text", "2"],
        ["ts", "process.exitCode = 4"],
        ["sh", "echo $unset"]
      )
      const [piped, printed, exited, unset, ...more] = yield* run(wrong, nobody)
      assert.strictEqual(piped, "a.md:1: ended with 1\n")
      assert.strictEqual(printed, "a.md:5: prints\n1\ninstead of\n2\n")
      assert.strictEqual(exited, "a.md:13: ended with 4\n")
      assert.match(unset ?? "", /^a\.md:17: ended with 1\n.*unset: unbound variable\n$/u)
      assert.deepStrictEqual(more, [])
    }))

  it.live("starts each program as if alone: with its arguments, its environment, its exit code, and code of its own", () =>
    Effect.gen(function*() {
      const counted = document(
        ["ts", "// count.ts\nexport const counts = { runs: 0 }"],
        [
          "ts",
          "// one.ts\nimport { counts } from \"./count.ts\"\ncounts.runs += 1\nconsole.log(process.argv.slice(2), process.env[\"NAME\"], process.exitCode)"
        ],
        ["sh", "node one.ts a 'b c'; NAME=x npx -- node one.ts | cat"],
        ["text", "[ 'a', 'b c' ] undefined undefined\n[] x undefined"],
        ["sh", "node one.ts && echo 'process.exitCode = 3' > exit.ts && node exit.ts || { echo $?; node one.ts; }"],
        ["text", "[] undefined undefined\n3\n[] undefined undefined"],
        ["sh", "echo 'console.error(1); process.exit(7)' > end.ts; node end.ts 2>&1 || echo $?"],
        ["text", "1\n7"],
        ["sh", "echo 'await new Promise(() => {})' > never.ts; node never.ts || echo $?"],
        ["text", "13"],
        [
          "sh",
          "echo 'setTimeout(() => { throw new Error(\"late\") })' > late.ts; node late.ts 2>&1 | grep -c 'Error: late'"
        ],
        ["ts", "setTimeout(() => console.log(\"later\"), 1)"],
        ["text", "later"],
        ["sh", "node absent.ts"]
      )
      assert.deepStrictEqual(counted.faults, [])
      const [piped, absent, ...more] = yield* run(counted, nobody)
      assert.strictEqual(piped, "a.md:49: ended with 1\n1\n")
      assert.match(absent ?? "", /^a\.md:61: ended with 1\n[^]*Cannot find module/u)
      assert.deepStrictEqual(more, [])
    }))

  it.live("leaves no process behind when nobody waits for it any longer", () =>
    Effect.gen(function*() {
      const cwd = yield* folderIn(checkout.parent)
      const endless = document(["sh", `sleep 1000 &\ntouch ${cwd}/begun\nwait`])
      const begun = Effect.callback<void>((resume) => {
        const watcher = fs.watch(cwd, () => resume(Effect.void))
        return Effect.sync(() => watcher.close())
      })
      // what is interrupted is waited for: whoever still had its output open would be waited for as well
      assert.isUndefined(yield* Effect.raceFirst(begun, run(endless, nobody)))
    }))

  it.live("has the mistakes in its types told with the line of the document", () =>
    Effect.gen(function*() {
      const wrong = document(
        ["ts", "export const one = 1\nconst two: string = one\nconsole.log(two)"],
        ["ts", "import { mainnet } from \"@trigate/signing/VenueProfile\"\nconsole.log(mainnet.nothing)"]
      )
      assert.deepStrictEqual(yield* check([wrong]), [
        "a.md:3: error TS2322: Type 'number' is not assignable to type 'string'.",
        "a.md:9: error TS2339: Property 'nothing' does not exist on type 'VenueProfile'."
      ])
    }))
})
