/** Formats failures as one line on standard error with an exit code by error class, and help for the terminal. */
import { oneLine } from "@trigate/domain/encoding/Encoding"
import { type GatewayError, unwrapReason } from "@trigate/domain/errors/GatewayError"
import * as Cause from "effect/Cause"
import type * as CliError from "effect/cli/CliError"
import * as CliOutput from "effect/cli/CliOutput"
import type { FlagDoc, HelpDoc } from "effect/cli/HelpDoc"
import * as TerminalCapabilities from "effect/cli/TerminalCapabilities"
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as MutableRef from "effect/MutableRef"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import { withoutKeys, wrapped } from "./Output.ts"

/** Each exit code with its class and meaning, in the order of the codes. */
export const codes = {
  ok: { code: 0, meaning: "done" },
  unexpected: { code: 1, meaning: "failed for a reason that is not listed below" },
  usage: { code: 2, meaning: "a wrong flag, argument, file or key; nothing was sent" },
  refused: { code: 3, meaning: "the request was refused before it reached an upstream" },
  notFound: { code: 4, meaning: "the requested resource does not exist (yet)" },
  unavailable: { code: 5, meaning: "the gateway or an upstream did not respond, or its rate limit is used up" },
  rejected: { code: 6, meaning: "the venue rejected the signed action" },
  unknownOutcome: { code: 7, meaning: "a signed action was sent and its outcome is unknown" },
  interrupted: { code: 130, meaning: "interrupted, or not confirmed at the prompt" },
  closed: { code: 141, meaning: "standard output was closed by its reader" }
} as const

/** A class of error. */
export type ErrorClass = keyof typeof codes

const ofGatewayErrors: { readonly [Tag in GatewayError["_tag"]]: ErrorClass } = {
  InvalidRequest: "refused",
  UnsupportedAction: "refused",
  UnsupportedMethod: "refused",
  UnsupportedBlock: "refused",
  LogRangeTooWide: "refused",
  UnavailableOnNode: "refused",
  ChainNotConfigured: "refused",
  NonceOutOfWindow: "refused",
  NonceMismatch: "refused",
  NonceAlreadyUsed: "refused",
  InvalidSignature: "refused",
  SignerNotAllowed: "refused",
  PolicyViolation: "refused",
  ActionNotFound: "notFound",
  Unauthorized: "refused",
  NotPermitted: "refused",
  QuotaExceeded: "unavailable",
  Overloaded: "unavailable",
  InvalidAddress: "refused",
  TokenNotFound: "notFound",
  UnknownAsset: "notFound",
  HistoryUnavailable: "notFound",
  ArchiveNotConfigured: "refused",
  ArchiveUnavailable: "unavailable",
  PayloadTooLarge: "refused",
  UpstreamUnavailable: "unavailable",
  UpstreamRateLimited: "unavailable",
  UpstreamTimeout: "unavailable",
  UpstreamMalformed: "unavailable",
  UpstreamForbidden: "unavailable",
  CallReverted: "refused",
  OutcomeUnknown: "unknownOutcome"
}

/** The class of each error that a command can fail with, by tag. */
export const classes = {
  ...ofGatewayErrors,
  ActionRejected: "rejected",
  ReceiptAbsent: "notFound",
  NothingNamed: "notFound",
  NoOpenOrder: "notFound",
  SubscriptionRefused: "refused",
  StreamLost: "unavailable",
  MalformedFrame: "unavailable",
  ActionAbsent: "notFound",
  ReceiptTimeout: "unavailable",
  ShowHelp: "usage",
  UsageFault: "usage",
  SettingsError: "usage",
  InvalidPrivateKey: "usage",
  StartError: "unexpected",
  CheckFailed: "unavailable",
  CheckIncomplete: "unavailable",
  DriftFound: "unexpected",
  NotReady: "unavailable",
  ActionsFault: "unexpected",
  AuditFault: "unexpected",
  KeyStoreFault: "unexpected",
  KeyRefusal: "usage",
  StillUnknown: "unknownOutcome",
  Declined: "interrupted",
  SignerMismatch: "unexpected",
  SignerUnavailable: "unexpected",
  NonceAhead: "unexpected",
  NonceStoreUnavailable: "unexpected",
  UnsignableAction: "refused",
  MsgPackUnencodable: "refused",
  MultiSigMalformed: "refused",
  ProposalAltered: "refused",
  ProposalExpired: "refused",
  WrongSigner: "refused",
  CosignerNotAuthorized: "refused",
  AlreadyApproved: "refused",
  ApprovalOfOther: "refused",
  ThresholdNotMet: "refused"
} as const satisfies { readonly [tag: string]: ErrorClass }

const byTag: ReadonlyMap<unknown, ErrorClass> = new Map(Object.entries(classes))

const ofError = (failure: unknown): number => {
  const error = unwrapReason(failure)
  return codes[Predicate.hasProperty(error, "_tag") ? byTag.get(error._tag) ?? "unexpected" : "unexpected"].code
}

/** Whether an interruption is the intended end of the running command. */
export const EndsByInterruption = Context.Reference("@trigate/cli/Report/EndsByInterruption", {
  defaultValue: () => MutableRef.make(false)
})

/** Declares an interruption to be the intended end of the command. */
export const endByInterruption: Effect.Effect<void> = Effect.map(EndsByInterruption, (ends) => {
  MutableRef.set(ends, true)
})

/** Returns the exit code for a program's exit. */
export const of = (exit: Exit.Exit<unknown, unknown>): number => {
  if (Exit.isSuccess(exit)) return codes.ok.code
  if (Cause.hasInterruptsOnly(exit.cause)) return codes.interrupted.code
  return Option.match(Cause.findErrorOption(exit.cause), { onNone: () => codes.unexpected.code, onSome: ofError })
}

/** The exit codes as lines of help text. */
export const text: string = Object.values(codes).map(({ code, meaning }) => `${String(code).padStart(3)}  ${meaning}`)
  .join("\n")

const say = (line: string) => Console.error(`trigate: ${oneLine(line)}`)

const field = (error: object, name: string): string => {
  const value: unknown = Predicate.hasProperty(error, name) ? error[name] : undefined
  return Predicate.isString(value) || Predicate.isNumber(value) ? String(value) : ""
}

/** Formats an error as a line: its message, and the fields that show what to do. */
export const formatError = (error: { readonly _tag: string; readonly message: string }): string => {
  switch (error._tag) {
    case "OutcomeUnknown":
      return `${error.message}. Nonce ${field(error, "nonce")}, signer ${field(error, "signer")}. ${
        field(error, "advice")
      }`
    case "ActionRejected":
      return `The venue rejected ${"entries" in error ? "legs of the action" : "the action"} (${
        field(error, "reason")
      }): ${error.message}`
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
      return /[a-z]/u.test(field(error, "coin")) && !error.message.includes("did you mean")
        ? `${error.message}; names are case-sensitive`
        : error.message
    default: {
      const wait = field(error, "retryAfter")
      return wait === "" ? error.message : `${error.message}; try again in ${wait} s`
    }
  }
}

/** Prints an error. */
export const error = (failed: { readonly _tag: string; readonly message: string }) => say(formatError(failed))

/** Prints why a program failed, except errors that the command-line parser has already printed. */
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

const formatSubcommands = ({ subcommands = [] }: HelpDoc): string =>
  subcommands.flatMap(({ commands }) => commands.map(({ name }) => name)).join(", ")

// oxlint-disable-next-line no-control-regex -- the escape that begins a colour
const colour = /\u001B\[[0-9;]*m/gu

const bold = (text: string): string => `\u001B[1m${text}\u001B[0m`

/**
 * Maximum width of the names in a row of help, as a fraction of the line's width. If the names are wider, their
 * descriptions begin on the next line.
 */
const widestNames = 0.4

const indentation = " ".repeat(6)

/** The beginning of a line of a report: the label of a row, or the indentation. */
const before = /^ {2,}(?:\S+(?: \S+)* {2,})?/u

const wrappedLine = (line: string, width: number): string => {
  const visible = line.replaceAll(colour, "")
  const head = before.exec(visible)?.[0] ?? ""
  const text = visible.slice(head.length)
  const isBelow = head.length > width * widestNames
  // a line without indentation, or with colours in its text, is meant to be copied and stays whole
  if ((visible.length <= width && !isBelow) || head === "" || !line.endsWith(text)) return line
  const names = line.slice(0, line.length - text.length)
  const margin = isBelow ? indentation : " ".repeat(head.length)
  const lines = wrapped(width - margin.length, text).join(`\n${margin}`)
  return isBelow ? `${names.trimEnd()}\n${margin}${lines}` : `${names}${lines}`
}

const heading = /^(?<title>[A-Z][A-Z ]+):?$/u

/** Wraps a formatted help text at a width. Lines of usage and of examples stay whole, so that they can be copied. */
export const layout = (help: string, width: number): string => {
  let section = ""
  const lines: Array<string> = []
  for (const line of help.split("\n")) {
    const title = heading.exec(line.replaceAll(colour, ""))?.groups?.["title"]
    if (title !== undefined) {
      section = title
      if (lines.length > 0 && lines.at(-1) !== "") lines.push("")
    }
    lines.push(section === "EXAMPLES" || section === "USAGE" ? line : wrappedLine(line, width))
  }
  return lines.join("\n")
}

// shortens the type of `--completions`, because the help would list the shells twice: as the type and in the
// description
const shortened = (flag: FlagDoc): FlagDoc => flag.name === "completions" ? { ...flag, type: "shell" } : flag

/** An annotation of a command: the titles of its flag groups, by the name of the first flag in each group. */
export const FlagTitles = Context.Reference<ReadonlyMap<string, string>>("@trigate/cli/Report/FlagTitles", {
  defaultValue: () => new Map()
})

const titled = (help: string, titles: ReadonlyMap<string, string>, colors: boolean): string =>
  help.split("\n").flatMap((line) => {
    const title = titles.get(/^ {2}--(?<flag>\S+)/u.exec(line.replaceAll(colour, ""))?.groups?.["flag"] ?? "")
    return title === undefined ? [line] : [colors ? bold(title.toUpperCase()) : title.toUpperCase(), line]
  }).join("\n")

const formatHelp = (doc: HelpDoc, width: number, colors: boolean): string => {
  const { annotations, globalFlags } = doc
  const shown = globalFlags === undefined ? doc : { ...doc, globalFlags: globalFlags.map(shortened) }
  const help = CliOutput.defaultFormatter({ colors }).formatHelpDoc(shown)
  return layout(titled(help, Context.get(annotations, FlagTitles), colors), width)
}

const exitCodes = `EXIT CODES\n${text.replace(/^/gmu, "  ")}`

/**
 * Makes the presenter that prints help on standard output, `width` characters wide, and a mistake in the command line
 * as one line.
 */
export const presenter = (width: number): CliOutput.Presenter => ({
  present: Effect.fnUntraced(function*(event) {
    switch (event._tag) {
      case "Help": {
        if (event.reason === "Implicit") {
          return yield* say(
            `Missing subcommand: ${formatSubcommands(event.helpDoc)}; see ${event.commandPath.join(" ")} --help`
          )
        }
        const { canColor } = yield* TerminalCapabilities.TerminalCapabilities
        const help = formatHelp(event.helpDoc, width, canColor)
        return yield* Console.log(event.commandPath.length === 1 ? `${help}\n\n${layout(exitCodes, width)}` : help)
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
