/** How a command that fails says so: one line on standard error. */
import * as Cause from "effect/Cause"
import type * as CliError from "effect/cli/CliError"
import type { Presenter } from "effect/cli/CliOutput"
import * as CliOutput from "effect/cli/CliOutput"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
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

/** Help on standard output; a command line that does not parse ends in one line that names the help to read. */
export const presenter: Presenter = {
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? Effect.forEach(
        event.errors.slice(0, 1),
        (error) => say(`${withoutKeys(usage(error))}; see ${event.commandPath.join(" ")} --help`),
        { discard: true }
      )
      : CliOutput.defaultPresenter.present(event)
}
