import { assert, describe, it } from "@effect/vitest"
import * as ExitCode from "@trigate/cli/Report"
import type * as Trigate from "@trigate/cli/Trigate"
import { gatewayErrors, UnknownAsset } from "@trigate/domain/errors/GatewayError"
import type { UnwrapReason } from "@trigate/domain/errors/GatewayError"
import * as Cause from "effect/Cause"
import type * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as fs from "node:fs"

type Failure = UnwrapReason<Effect.Error<ReturnType<typeof Trigate.run>>>

// whatever the parser itself refuses comes out as ShowHelp
type Parser =
  | "DuplicateOption"
  | "InvalidValue"
  | "MissingArgument"
  | "MissingOption"
  | "UnexpectedArgument"
  | "UnknownSubcommand"
  | "UnrecognizedOption"
  | "UserError"
  | "ValidationError"

type Unclassified = Exclude<Failure["_tag"], keyof typeof ExitCode.classes | Parser>

// does not compile once a command can fail with an error that has no class
const everyErrorHasAClass: [Unclassified] extends [never] ? true : Unclassified = true

describe("ExitCode", () => {
  it("has a class for every error of the closed set", () => {
    assert.isTrue(everyErrorHasAClass)
    const tags = gatewayErrors.map((error) => error.identifier)
    assert.isNotEmpty(tags)
    for (const tag of tags) assert.property(ExitCode.classes, tag)
  })

  it("tells success, errors, interruption and defects apart", () => {
    assert.strictEqual(ExitCode.of(Exit.void), 0)
    assert.strictEqual(ExitCode.of(Exit.fail(new UnknownAsset({ coin: "X", detail: "no" }))), 4)
    assert.strictEqual(ExitCode.of(Exit.fail({ _tag: "Other" })), 1)
    assert.strictEqual(ExitCode.of(Exit.die("bug")), 1)
    assert.strictEqual(ExitCode.of(Exit.failCause(Cause.interrupt(1))), 130)
  })

  it("is what the document says", () => {
    const document = fs.readFileSync(new URL("../../../docs/cli.md", import.meta.url), "utf8")
    const table = document.matchAll(/^\| +(?<code>\d+) +\| (?<meaning>.+?) +\|/gmu)
    const rows = Array.from(table, ({ groups }) => [Number(groups?.["code"]), groups?.["meaning"]])
    assert.deepStrictEqual(rows, Object.values(ExitCode.codes).map(({ code, meaning }) => [code, meaning]))
  })
})
