/** How a command that fails says so: one line on standard error. */
import * as Cause from "effect/Cause"
import type * as CliError from "effect/cli/CliError"
import type { Presenter } from "effect/cli/CliOutput"
import * as CliOutput from "effect/cli/CliOutput"
import type { HelpDoc } from "effect/cli/HelpDoc"
import * as TerminalCapabilities from "effect/cli/TerminalCapabilities"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as HelpText from "./HelpText.ts"
import { oneLine, withoutKeys } from "./PlainText.ts"

const say = (line: string) => Console.error(`trigate: ${oneLine(line)}`)

const field = (error: object, name: string): string => {
  const value: unknown = Predicate.hasProperty(error, name) ? error[name] : undefined
  return Predicate.isString(value) || Predicate.isNumber(value) ? String(value) : ""
}

/** The line of an error: its message, and what its fields add for whoever has to act on it. */
export const lineOf = (error: { readonly _tag: string; readonly message: string }): string => {
  switch (error._tag) {
    case "OutcomeUnknown":
      return `${error.message}. Nonce ${field(error, "nonce")}, signer ${field(error, "signer")}. ${
        field(error, "advice")
      }`
    case "ActionRejected":
      return `The venue rejected the action (${field(error, "reason")}): ${error.message}`
    case "ReceiptTimeout": {
      const last = "lastFailure" in error && Predicate.hasProperty(error.lastFailure, "message")
        ? field(error.lastFailure, "message")
        : ""
      return last === "" ? error.message : `${error.message}; the last poll failed: ${last}`
    }
    case "UsageFault":
    case "InvalidPrivateKey":
      return withoutKeys(error.message)
    case "UnknownAsset":
      return /[a-z]/u.test(field(error, "coin")) ? `${error.message}; letter case counts` : error.message
    default: {
      const wait = field(error, "retryAfter")
      return wait === "" ? error.message : `${error.message}; try again in ${wait} s`
    }
  }
}

/** Says an error in its line. */
export const error = (failed: { readonly _tag: string; readonly message: string }) => say(lineOf(failed))

/** Says why a program failed; what the parser of the command line refuses has been said before. */
export const failure = (cause: Cause.Cause<{ readonly _tag: string; readonly message: string }>) => {
  if (Cause.hasInterruptsOnly(cause)) return Effect.void
  return Option.match(Cause.findErrorOption(cause), {
    onNone: () => say(`unexpected: ${String(Cause.squash(cause))}`),
    onSome: (failed) => failed._tag === "ShowHelp" ? Effect.void : error(failed)
  })
}

const suggestion = /\s*Did you mean this\?\s*/u

const usage = (error: CliError.CliError): string => {
  const [what = "", ...meant] = error.message.split(suggestion)
  return meant.length === 0 ? what : `${what}; did you mean ${meant.join(" ").split(/\s+/u).join(", ")}?`
}

const subcommandsOf = ({ subcommands = [] }: HelpDoc): string =>
  subcommands.flatMap(({ commands }) => commands.map(({ name }) => name)).join(", ")

/**
 * Help that was asked for on standard output, in lines of a width; a command line that does not parse, or ends before its
 * subcommand, ends in one line that names the help to read.
 */
export const presenter = (width: number): Presenter => ({
  present: Effect.fnUntraced(function*(event) {
    switch (event._tag) {
      case "Help": {
        if (event.reason === "Implicit") {
          return yield* say(
            `Missing subcommand: ${subcommandsOf(event.helpDoc)}; see ${event.commandPath.join(" ")} --help`
          )
        }
        const { canColor } = yield* TerminalCapabilities.TerminalCapabilities
        return yield* Console.log(HelpText.format(event.helpDoc, width, canColor))
      }
      case "InvalidInvocation": {
        return yield* Effect.forEach(
          event.errors.slice(0, 1),
          (error) => say(`${withoutKeys(usage(error))}; see ${event.commandPath.join(" ")} --help`),
          { discard: true }
        )
      }
      case "Version":
        return yield* CliOutput.defaultPresenter.present(event)
    }
  })
})
