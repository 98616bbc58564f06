/** Checks a signed body before anything is sent upstream, and returns the bytes to send. */
import type { Action } from "@trigate/domain/actions/Action"
import { actionCatalog, catalogDate, innerAction, isActionType, legCount } from "@trigate/domain/actions/ActionCatalog"
import type { SentAction } from "@trigate/domain/actions/ActionCatalog"
import { NonceMismatch, NonceOutOfWindow } from "@trigate/domain/actions/ActionError"
import type { ExchangeOperation } from "@trigate/domain/actions/ExchangeOperations"
import { findOperation, operationFor } from "@trigate/domain/actions/ExchangeOperations"
import type { SignedEnvelope } from "@trigate/domain/actions/SignedAction"
import { CurrentCaller } from "@trigate/domain/Caller"
import type { Scope } from "@trigate/domain/Caller"
import type { Address } from "@trigate/domain/encoding/Hex"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import type { NotPermitted } from "@trigate/domain/errors/CallerError"
import { type WrapReason, wrapReason } from "@trigate/domain/errors/GatewayError"
import type { InvalidRequest } from "@trigate/domain/errors/RequestError"
import { UnsupportedAction } from "@trigate/domain/errors/RequestError"
import { invalidRequest, notPermitted, operationNeed } from "@trigate/domain/operations/Operation"
import * as UserSigned from "@trigate/signing/actions/UserSigned"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import { Venue } from "@trigate/signing/VenueProfile"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as LoggedAction from "../actionLog/LoggedAction.ts"
import type { Settings } from "../TradingSettings.ts"
import { settings } from "../TradingSettings.ts"
import * as ActionDecoder from "./ActionDecoder.ts"
import * as BodyNormalization from "./BodyNormalization.ts"
import * as SignerAuthorization from "./SignerAuthorization.ts"

/** A body that passed all checks: what every later step needs to know about its action, which is read only here. */
export interface Admitted {
  readonly actionType: string
  /** The operation of the action, with its actual cost. */
  readonly operation: ExchangeOperation
  /** The number of legs: the venue's response has a status for each. */
  readonly legs: number
  /** The orders and the expiry, by which the effect of the action can be looked up at the venue. */
  readonly trace: LoggedAction.ActionTrace
  /** The signer, the vault and the accounts that the body names, in lower case. */
  readonly accounts: ReadonlyArray<string>
  /** The decoded body. Its action has every member that was sent. */
  readonly signed: SignedEnvelope
  /** The decoded action; absent for an action type of which the gateway decodes only the envelope. */
  readonly action: Action | undefined
  readonly nonce: number
  /**
   * The recovered signer, in lower case; absent if recovery is not possible, for example for forms that the venue
   * documents but does not accept.
   */
  readonly signer: Address | undefined
  /** Whether the signer was checked against an allow-list. */
  readonly isListed: boolean
  /**
   * The digest of the signed content (the action, its nonce and its signature), in 0x hex of 64 digits.
   *
   * It does not depend on unsigned differences such as whitespace and the order of members.
   */
  readonly fingerprint: string
  /** The bytes to send: the bytes of the request, with `venueChain` renamed. */
  readonly body: Uint8Array
  /** Warnings for the sender, one sentence each: ASCII without line breaks. */
  readonly warnings: ReadonlyArray<string>
  /** Whether the catalog has the types and the members of the action. */
  readonly isKnown: boolean
  /** Returns the mistakes in the body, one sentence each, as the inspector describes them; computed on demand. */
  readonly sentences: () => ReadonlyArray<string>
}

/** The errors with which a body is refused. */
export type AdmissionFailure =
  | InvalidRequest
  | UnsupportedAction
  | NonceMismatch
  | NonceOutOfWindow
  | NotPermitted
  | SignerAuthorization.SignerFailure

/** Options of the admission checks. */
export interface Options {
  /**
   * The admitted action types, including the type inside a multi-sig. `known` (default): the catalog of known actions.
   * `all`: any type. `none`: no type. A list: the listed types.
   */
  readonly relayActions?: "known" | "all" | "none" | ReadonlyArray<string>
  /** Whether to refuse action forms that the venue documents but does not accept. Default: false. */
  readonly strict?: boolean
  /** Addresses whose actions are admitted. Default: any. */
  readonly signers?: ReadonlyArray<string>
  /**
   * How far a nonce can be before and after the current time; both limits are excluded. Default: 2 days before and 1
   * day after, as at the venue.
   */
  readonly nonceWindow?: { readonly past: Duration.Input; readonly future: Duration.Input }
}

/** The lowest and the highest nonce, both excluded, and the time for which they were computed; in milliseconds. */
export interface NonceWindow {
  readonly now: number
  readonly earliest: number
  readonly latest: number
}

/** Returns a function from a time to the nonce window at that time. */
export const nonceWindow = ({ nonceWindow }: Pick<Options, "nonceWindow">): (now: number) => NonceWindow => {
  const past = Duration.toMillis(nonceWindow?.past ?? "2 days")
  const future = Duration.toMillis(nonceWindow?.future ?? "1 day")
  return (now) => ({ now, earliest: now - past, latest: now + future })
}

/**
 * Checks signed bodies.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { VenueProfile } from "@trigate/signing"
 * import { Admission } from "@trigate/trading"
 * import { Console, Effect, Layer } from "effect"
 *
 * const admission = Layer.provide(
 *   Admission.layer({ relayActions: ["order", "cancel"], strict: true }),
 *   VenueProfile.layer("mainnet")
 * )
 *
 * const program = Admission.Admission.use(({ admit }) => admit(new TextEncoder().encode("{}"))).pipe(
 *   Effect.catchTag("RequestError", ({ reason }) => Console.log(reason._tag))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, admission))
 * ```
 * ```text
 * InvalidRequest
 * ```
 */
export class Admission extends Context.Service<Admission, {
  /**
   * Runs all checks, including whether the `CurrentCaller` is allowed to use the signer and the action type. Fails with
   * the error of the first failed check. Decoding errors are reported together, with their paths.
   *
   * If `expectedSigner` is set, a body of another signer, or of a signer that cannot be recovered, fails with
   * `InvalidSignature`.
   */
  readonly admit: (body: Uint8Array, expectedSigner?: Address) => Effect.Effect<Admitted, WrapReason<AdmissionFailure>>
}>()("@trigate/trading/admission/Admission") {}

const MAX_TYPE = 64

const nonceMember = (actionType: string): string => {
  const type = UserSigned.find(actionType)
  return (type === undefined ? undefined : UserSigned.nonceField(type)?.name) ?? "nonce"
}

// each of these functions returns a reason to refuse, or `undefined`

const mismatch = ({ action, nonce }: SignedEnvelope): NonceMismatch | undefined => {
  const actionNonce = action[nonceMember(action.type)]
  if (!Predicate.isNumber(actionNonce) || !Number.isSafeInteger(actionNonce) || actionNonce < 0) return undefined
  const detail = `The action's nonce ${actionNonce} differs from the body's nonce ${nonce}`
  return actionNonce === nonce ? undefined : new NonceMismatch({ nonce, actionNonce, detail })
}

const outOfWindow = (
  nonce: number,
  { earliest, latest, now }: NonceWindow
): NonceOutOfWindow | undefined => {
  if (nonce > earliest && nonce < latest) return undefined
  const detail = `The nonce ${nonce} is not between ${earliest} and ${latest} (milliseconds, both excluded)`
  return new NonceOutOfWindow({ nonce, now, earliest: Math.max(0, earliest), latest, detail })
}

/** Returns the types of an action: its own type, and the type of the action inside a multi-sig. */
const typesIn = (action: SentAction): ReadonlyArray<string> => {
  const inner = innerAction(action)
  return inner === undefined ? [action.type] : [action.type, inner.type]
}

const firstRefusal = <Refusal>(
  types: ReadonlyArray<string>,
  refuse: (type: string) => Refusal | undefined
): Refusal | undefined => {
  for (const type of types) {
    const refusal = refuse(type)
    if (refusal !== undefined) return refusal
  }
  return undefined
}

const outOfScope = (scope: Scope) => (type: string): NotPermitted | undefined =>
  notPermitted(scope, operationNeed(findOperation(type), type))

/**
 * Returns the last part of the error message for a refused action type. It names the setting that would admit the type.
 */
const relaySetting = (relayActions: Options["relayActions"]): string => {
  const { env } = settings.relayActions
  switch (relayActions) {
    case "known":
      return `${env} is unset, and the catalog is of ${catalogDate}; \`*\` relays unknown types too`
    case "none":
      return `${env} is \`none\``
    default:
      return `${env} lists the types that are relayed`
  }
}

/** Returns the action types that the options admit explicitly. */
const admittedTypes = (relayActions: Exclude<Options["relayActions"], undefined>): ReadonlyArray<string> =>
  relayActions === "none"
    ? []
    : Predicate.isString(relayActions)
    ? Object.keys(actionCatalog)
    : [...new Set(relayActions)]

/** Returns whether options admit an action type. */
export const relays = ({ relayActions = "known" }: Pick<Options, "relayActions">, type: string): boolean =>
  relayActions === "all" || admittedTypes(relayActions).includes(type)

/** Checks a decoded body at the given time, with the permissions (scope) of a caller. */
export type Judge = (
  read: ActionDecoder.ReadBody,
  now: number,
  scope: Scope,
  expectedSigner: Address | undefined
) => Result.Result<SignerAuthorization.Passed, AdmissionFailure>

/**
 * Makes the checks of a decoded body: action type, caller permissions (scope), action form, nonce and signer.
 *
 * Both `/exchange` and the inspector use them.
 */
export const judge = (
  profile: VenueProfile,
  options: Options = {},
  engine: Secp256k1.Engine = Secp256k1.noble
): Judge => {
  const { relayActions = "known", strict = false } = options
  const windowAt = nonceWindow(options)
  const supported = admittedTypes(relayActions)
  const listed = new Set(supported)
  const checkSigner = SignerAuthorization.make(profile, engine, options.signers)

  const unsupported = (type: string): UnsupportedAction | undefined => {
    if (relayActions === "all" || listed.has(type)) return undefined
    const actionType = type.slice(0, MAX_TYPE)
    const kind = isActionType(type) ? "" : "unknown "
    const detail = `This gateway does not relay the ${kind}action type ${JSON.stringify(actionType)}: ${
      relaySetting(relayActions)
    }`
    return new UnsupportedAction({ actionType, supported, detail })
  }

  const documentedForm = (body: ActionDecoder.ReadBody): InvalidRequest | undefined => {
    const documented = strict ? ActionDecoder.documentedForms(body) : []
    return documented.length === 0 ? undefined : invalidRequest(documented)
  }

  return (read, now, scope, expectedSigner) => {
    const { signed } = read
    const types = typesIn(signed.action)
    const refusal = firstRefusal(types, unsupported) ?? firstRefusal(types, outOfScope(scope)) ??
      documentedForm(read) ??
      mismatch(signed) ??
      outOfWindow(signed.nonce, windowAt(now))
    return refusal === undefined ? checkSigner(read, expectedSigner, scope.signers) : Result.fail(refusal)
  }
}

const addresses = /0x[0-9a-fA-F]{40}(?![0-9a-fA-F])/gu

/** Returns the signer and the accounts that the text of a body names, in lower case. */
const accountsIn = (
  { vaultAddress }: SignedEnvelope,
  signer: Address | undefined,
  text: string
): ReadonlyArray<string> =>
  [signer, vaultAddress, ...text.match(addresses) ?? []].flatMap((account) => account?.toLowerCase() ?? [])

/**
 * Makes the `Admission` service with the checks that the options configure.
 *
 * Signatures must be for the network of the profile. Before a body is sent, its key `venueChain` is renamed to the
 * profile's name for that key. The given engine recovers signers.
 */
export const make = (
  profile: VenueProfile,
  options: Options = {},
  engine: Secp256k1.Engine = Secp256k1.noble
): Admission["Service"] => {
  const judged = judge(profile, options, engine)

  const check = (
    body: Uint8Array,
    text: string,
    read: ActionDecoder.ReadBody,
    now: number,
    scope: Scope,
    expectedSigner: Address | undefined
  ): Result.Result<Admitted, AdmissionFailure> => {
    const { action, signed } = read
    const respelled = ActionDecoder.respellChainField(profile, text)
    if (Result.isFailure(respelled)) return Result.fail(invalidRequest([respelled.failure]))
    const passed = judged(read, now, scope, expectedSigner)
    if (Result.isFailure(passed)) return Result.fail(passed.failure)
    const { fingerprint, signer } = passed.success
    const unknown = ActionDecoder.unknownMembers(read)
    return Result.succeed({
      actionType: signed.action.type,
      operation: operationFor(signed.action),
      legs: legCount(signed.action),
      trace: LoggedAction.makeTrace(signed),
      accounts: accountsIn(signed, signer, respelled.success),
      signed,
      action,
      nonce: signed.nonce,
      signer,
      isListed: options.signers !== undefined,
      fingerprint,
      body: respelled.success === text ? body : Utf8.encode(respelled.success),
      warnings: [...ActionDecoder.warnings(profile, read, now), ...unknown],
      isKnown: unknown.length === 0,
      sentences: () => BodyNormalization.sentences(profile, read)
    })
  }

  return Admission.of({
    admit: (body, expectedSigner) =>
      Effect.contextWith((context) => {
        const now = Context.get(context, Clock.Clock).currentTimeMillisUnsafe()
        const { scope } = Context.get(context, CurrentCaller)
        const admitted = Result.flatMap(
          ActionDecoder.decodeText(body),
          (text) =>
            Result.flatMap(ActionDecoder.readText(text), (read) => check(body, text, read, now, scope, expectedSigner))
        )
        return Effect.fromResult(Result.mapError(admitted, wrapReason))
      })
  })
}

/**
 * Provides `Admission` for the `Venue` of the context, with libsecp256k1 if that library loads.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options = {}): Layer.Layer<Admission, never, Venue> =>
  Layer.effect(
    Admission,
    Effect.zipWith(Venue, Secp256k1.Secp256k1, (profile, engine) => make(profile, options, engine))
  ).pipe(Layer.provide(Secp256k1.layer))

/** Converts the gateway's settings to the options of the admission checks. */
export const toOptions = (
  { relayActions, signers, strict }: Pick<Settings, "relayActions" | "signers" | "strict">
): Options => ({
  strict,
  relayActions: Option.match(relayActions, {
    onNone: () => "known" as const,
    onSome: (types) => types === "*" ? "all" as const : types
  }),
  ...(Option.isSome(signers) ? { signers: signers.value } : {})
})

/** Reads `TRIGATE_STRICT`, `TRIGATE_RELAY_ACTIONS` and `TRIGATE_SIGNERS`. */
export const config: Config.Config<Options> = Config.map(
  Config.all({ relayActions: settings.relayActions, signers: settings.signers, strict: settings.strict }),
  toOptions
)
