/** Exit codes by error class, so that a script knows whether to retry. */
import { type GatewayError, unwrapReason } from "@trigate/domain/errors/GatewayError"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as MutableRef from "effect/MutableRef"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"

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
export const EndsByInterruption = Context.Reference("@trigate/cli/ExitCode/EndsByInterruption", {
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
