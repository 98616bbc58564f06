/**
 * Checks a signed body before anything is sent upstream: its form, its nonce, its signer and the accounts that it
 * changes. Returns the bytes to send.
 *
 * The venue's responses to `userRole` and `extraAgents` name the master of an API wallet. If no caller has sent such a
 * query, the gateway sends one.
 */
import * as Action from "@trigate/domain/actions/Action"
import { CurrentCaller, local, type Scope } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Encoding"
import { Address } from "@trigate/domain/encoding/Encoding"
import type { Hash } from "@trigate/domain/encoding/Encoding"
import {
  InvalidSignature,
  NonceMismatch,
  NonceOutOfWindow,
  SignerNotAllowed,
  UnsupportedAction,
  wrapReason
} from "@trigate/domain/errors/GatewayError"
import type { InvalidRequest, NotPermitted, WrapReason } from "@trigate/domain/errors/GatewayError"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import { userRole } from "@trigate/domain/info/InfoOperations"
import type { InfoCall } from "@trigate/domain/info/InfoOperations"
import * as Operation from "@trigate/domain/operations/Operation"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as ActionHash from "@trigate/signing/unstable/actions/ActionHash"
import * as CanonicalAction from "@trigate/signing/unstable/actions/CanonicalAction"
import * as SigningWarning from "@trigate/signing/unstable/inspection/SigningMistake"
import { otherThan, Venue, type VenueProfile } from "@trigate/signing/VenueProfile"
import type { AccountVersions } from "@trigate/upstream/cache/AccountVersions"
import { IsRefresh } from "@trigate/upstream/limits/RateLimiter"
import type { Pipeline } from "@trigate/upstream/Pipeline"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as LoggedAction from "../actionLog/LoggedAction.ts"
import { type Settings, settings } from "../TradingSettings.ts"
import * as ActionDecoder from "./ActionDecoder.ts"

/** The errors with which a signer is refused. */
export type SignerFailure = InvalidSignature | SignerNotAllowed

type RecoveryFault = ActionHash.Unhashable | Secp256k1.UnrecoverableSignature

const unrecoverable = ({ message }: RecoveryFault): InvalidSignature =>
  new InvalidSignature({ reason: message, detail: `Cannot recover the signer: ${message}` })

const invalid = (reason: string, recovered: Address, expected?: Address): InvalidSignature =>
  new InvalidSignature({
    reason,
    recovered,
    ...(expected === undefined ? {} : { expected }),
    detail: `The signature is by ${recovered}: ${reason}`
  })

const isOtherNetwork = (fault: RecoveryFault): boolean =>
  fault._tag === "UnsignableAction" && fault.reason === "otherNetwork"

const isDocumentedForm = (fault: RecoveryFault): boolean =>
  fault._tag === "UnsignableAction" && fault.reason === "documentedForm"

const isUnknownType = (fault: RecoveryFault): boolean =>
  fault._tag === "UnsignableAction" && fault.reason === "unknownType"

interface Recovered {
  readonly canonical: CanonicalAction.CanonicalAction
  readonly signer: Address
  readonly digest: Hash
  readonly inner: ReadonlyArray<{ readonly signer: Address }>
}

const recoverForm = (
  profile: VenueProfile,
  engine: Secp256k1.Engine,
  { signed }: ActionDecoder.ReadBody,
  canonical: CanonicalAction.CanonicalAction
): Result.Result<Recovered, RecoveryFault> => {
  const found = CanonicalAction.toSignable(profile, canonical, signed)
  if (Result.isFailure(found) && canonical.kind === "multiSig" && isUnknownType(found.failure)) {
    // If the type of the inner action is unknown, the leader can be recovered, but the co-signers cannot.
    return Result.flatMap(CanonicalAction.outerSignable(profile, canonical.action, signed), (outer) => {
      const digest = ActionHash.digest(outer)
      return Result.map(
        Secp256k1.recoverResult(digest, signed.signature, engine),
        (signer) => ({ canonical, inner: [], digest, signer })
      )
    })
  }
  return Result.map(
    Result.flatMap(found, (signable) => CanonicalAction.recoverResult(signable, signed.signature, engine)),
    (recovered) => ({ canonical, inner: [], ...recovered })
  )
}

/** Returns whether an address can have signed a body: the leader of a multi-sig action, or the expected signer. */
export const isExpected = (
  { action }: ActionDecoder.ReadBody,
  expected: Address | undefined
): ((signer: Address) => boolean) | undefined => {
  const whose = (action?.type === "multiSig" ? action.payload.outerSigner : expected)?.toLowerCase()
  return whose === undefined ? undefined : (signer) => signer === whose
}

/**
 * Recovers the signer of a body. If the action has an unknown type or unknown members, and its most likely form is not by
 * a wanted signer, tries its other forms.
 */
export const recover = (
  profile: VenueProfile,
  engine: Secp256k1.Engine,
  body: ActionDecoder.ReadBody,
  isWanted?: (signer: Address) => boolean
): Result.Result<Recovered, RecoveryFault> =>
  Result.flatMap(ActionDecoder.canonicalAction(profile, body), (canonical) => {
    const first = recoverForm(profile, engine, body, canonical)
    if (isWanted === undefined || Result.isFailure(first) || isWanted(first.success.signer)) return first
    for (const form of ActionDecoder.otherForms(profile, canonical, body)) {
      const other = recoverForm(profile, engine, body, form)
      if (Result.isSuccess(other) && isWanted(other.success.signer)) return other
    }
    return first
  })

/** Refuses a multi-sig action with two signatures of one co-signer. */
const repeatedCosigner = ({ inner }: Recovered): InvalidSignature | undefined => {
  const seen = new Set<Address>()
  for (const [index, cosigner] of inner.entries()) {
    if (seen.has(cosigner.signer)) {
      return invalid(
        `each co-signer may sign only once, but signature ${index} is the second of this co-signer`,
        cosigner.signer
      )
    }
    seen.add(cosigner.signer)
  }
  return undefined
}

/** The signer and the fingerprint of an authorized body. */
export interface Passed {
  /** The recovered signer, in lower case; absent if no signer can be recovered. */
  readonly signer: Address | undefined
  /** Digest of the signed content, in lower case. */
  readonly fingerprint: Hash
}

/** Serializes the members of a body that a signature can cover, and omits all others. */
const canonicalText = ({ action, expiresAfter = null, nonce, vaultAddress = null }: Action.SignedEnvelope): string =>
  Json.stringify({ action, nonce, vaultAddress: vaultAddress?.toLowerCase() ?? null, expiresAfter })

/**
 * Makes the function that recovers and checks the signer of a body, for a network and an optional allow-list of
 * signers. The signer of a multi-sig action is its leader.
 *
 * Recovery is not possible for forms that the venue documents but does not accept, nor for action types that the
 * gateway relays without knowing their signed fields. Such a body passes without a signer. It is refused with
 * `InvalidSignature` if the gateway or the caller has an allow-list, or if the request names an expected signer.
 */
export const makeAuthorization = (
  profile: VenueProfile,
  engine: Secp256k1.Engine,
  allowed: ReadonlyArray<string> | undefined
) => {
  const signers = allowed === undefined ? undefined : new Set(allowed.map((address) => address.toLowerCase()))
  const hint = SigningWarning.ofNetwork(profile)

  /**
   * Returns the signer if the signature is for the other network: testnet instead of mainnet, or mainnet instead of
   * testnet.
   */
  const signerOnOtherNetwork = (body: ActionDecoder.ReadBody): Address | undefined =>
    Result.getOrUndefined(recover(otherThan(profile), engine, body))?.signer

  const unhashable = (body: ActionDecoder.ReadBody, fault: RecoveryFault): InvalidSignature => {
    const signer = isOtherNetwork(fault) ? signerOnOtherNetwork(body) : undefined
    return signer === undefined ? unrecoverable(fault) : new InvalidSignature({
      reason: hint,
      recovered: signer,
      detail: `The signature is by ${signer}: ${hint} (${fault.message})`
    })
  }

  /**
   * Refuses a signer that is not allowed. If the signature was made for the other network (testnet or mainnet) by an
   * allowed signer, reports that mistake instead.
   */
  const refuseSigner = (
    body: ActionDecoder.ReadBody,
    signer: Address,
    isWanted: (signer: string) => boolean,
    refusal: () => SignerFailure
  ): SignerFailure => {
    const other = signerOnOtherNetwork(body)
    return other !== undefined && isWanted(other) ? invalid(hint, signer, other) : refusal()
  }

  /** Returns whether a signer is on the lists of the gateway and of the caller; `undefined` without lists. */
  const listed = (ofCaller: ReadonlyArray<Address> | undefined): ((signer: Address) => boolean) | undefined =>
    signers === undefined && ofCaller === undefined
      ? undefined
      : (signer) =>
        signers?.has(signer) !== false &&
        ofCaller?.some((address) => address.toLowerCase() === signer) !== false

  /** Returns the first reason to refuse the signer. */
  const findRefusal = (
    body: ActionDecoder.ReadBody,
    recovered: Recovered,
    expected: Address | undefined,
    ofCaller: ReadonlyArray<Address> | undefined
  ): SignerFailure | undefined => {
    const { canonical, signer } = recovered
    const leader = canonical.kind === "multiSig" ? canonical.action.payload.outerSigner : undefined
    if (leader !== undefined && signer !== leader) {
      const reason = "the outer signature of a multiSig must be by its outerSigner"
      return refuseSigner(body, signer, (other) => other === leader, () => invalid(reason, signer, leader))
    }
    const repeated = repeatedCosigner(recovered)
    if (repeated !== undefined) return repeated
    const named = expected?.toLowerCase()
    if (expected !== undefined && named !== signer) {
      const refusal = () => invalid("another signer was expected", signer, expected)
      return refuseSigner(body, signer, (other) => other === named, refusal)
    }
    if (signers !== undefined && !signers.has(signer)) {
      const detail = `${signer} is not on the list of signers of this gateway`
      return refuseSigner(body, signer, (other) => signers.has(other), () => new SignerNotAllowed({ signer, detail }))
    }
    return ofCaller === undefined || ofCaller.some((address) => address.toLowerCase() === signer)
      ? undefined
      : new SignerNotAllowed({ signer, detail: `${signer} is not among the signers of this caller` })
  }

  return (
    body: ActionDecoder.ReadBody,
    expected: Address | undefined,
    ofCaller: ReadonlyArray<Address> | undefined
  ): Result.Result<Passed, SignerFailure> => {
    const { action, signed } = body
    const found = recover(profile, engine, body, isExpected(body, expected) ?? listed(ofCaller))
    if (Result.isFailure(found)) {
      const isTolerable = isDocumentedForm(found.failure) || (isUnknownType(found.failure) && action === undefined)
      return !isTolerable || signers !== undefined || ofCaller !== undefined || expected !== undefined
        ? Result.fail(unhashable(body, found.failure))
        : Result.succeed({
          signer: undefined,
          fingerprint: CanonicalAction.fingerprint(canonicalText(signed), signed.signature)
        })
    }
    const { digest, signer } = found.success
    const refusal = findRefusal(body, found.success, expected, ofCaller)
    return refusal === undefined
      ? Result.succeed({ signer, fingerprint: CanonicalAction.fingerprint(digest, signed.signature) })
      : Result.fail(refusal)
  }
}

/** A body that passed all checks: what every later step needs to know about its action, which is read only here. */
export interface Admitted {
  readonly actionType: string
  /** The operation of the action, with its actual cost. */
  readonly operation: Action.ExchangeOperation
  /** The number of legs: the venue's response has a status for each. */
  readonly legs: number
  /** The orders and the expiry, by which the effect of the action can be looked up at the venue. */
  readonly trace: LoggedAction.ActionTrace
  /** The signer, the vault and the accounts that the body names, in lower case. */
  readonly accounts: ReadonlyArray<string>
  /** The decoded body. Its action has every member that was sent. */
  readonly signed: Action.SignedEnvelope
  /** The decoded action; absent for an action type of which the gateway decodes only the envelope. */
  readonly action: Action.Action | undefined
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
  | SignerFailure

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
 * Provided by `Admission.layer`.
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
  const type = CanonicalAction.find(actionType)
  return (type === undefined ? undefined : CanonicalAction.nonceField(type)?.name) ?? "nonce"
}

// each of these functions returns a reason to refuse, or `undefined`

const mismatch = ({ action, nonce }: Action.SignedEnvelope): NonceMismatch | undefined => {
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
const typesIn = (action: Action.SentAction): ReadonlyArray<string> => {
  const inner = Action.innerAction(action)
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
  Operation.notPermitted(scope, Operation.operationNeed(Action.findOperation(type), type))

/**
 * Returns the last part of the error message for a refused action type. It names the setting that would admit the type.
 */
const relaySetting = (relayActions: Options["relayActions"]): string => {
  const { env } = settings.relayActions
  switch (relayActions) {
    case "known":
      return `${env} is unset, and the catalog is of ${Action.catalogDate}; \`*\` relays unknown types too`
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
    ? Object.keys(Action.actionCatalog)
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
) => Result.Result<Passed, AdmissionFailure>

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
  const checkSigner = makeAuthorization(profile, engine, options.signers)

  const unsupported = (type: string): UnsupportedAction | undefined => {
    if (relayActions === "all" || listed.has(type)) return undefined
    const actionType = type.slice(0, MAX_TYPE)
    const kind = Action.isActionType(type) ? "" : "unknown "
    const detail = `This gateway does not relay the ${kind}action type ${JSON.stringify(actionType)}: ${
      relaySetting(relayActions)
    }`
    return new UnsupportedAction({ actionType, supported, detail })
  }

  const documentedForm = (body: ActionDecoder.ReadBody): InvalidRequest | undefined => {
    const documented = strict ? ActionDecoder.documentedForms(body) : []
    return documented.length === 0 ? undefined : Operation.invalidRequest(documented)
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
  { vaultAddress }: Action.SignedEnvelope,
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
    if (Result.isFailure(respelled)) return Result.fail(Operation.invalidRequest([respelled.failure]))
    const passed = judged(read, now, scope, expectedSigner)
    if (Result.isFailure(passed)) return Result.fail(passed.failure)
    const { fingerprint, signer } = passed.success
    const unknown = ActionDecoder.unknownMembers(read)
    return Result.succeed({
      actionType: signed.action.type,
      operation: Action.operationFor(signed.action),
      legs: Action.legCount(signed.action),
      trace: LoggedAction.makeTrace(signed),
      accounts: accountsIn(signed, signer, respelled.success),
      signed,
      action,
      nonce: signed.nonce,
      signer,
      isListed: options.signers !== undefined,
      fingerprint,
      body: respelled.success === text ? body : Json.encode(respelled.success),
      warnings: [...ActionDecoder.warnings(profile, read, now), ...unknown],
      isKnown: unknown.length === 0,
      sentences: () => ActionDecoder.sentences(profile, read)
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

/** The queries whose responses name the masters of API wallets. */
export const masterQueries: ReadonlySet<string> = new Set(["userRole", "extraAgents"])

const decodeQuery = Schema.decodeUnknownOption(Schema.Struct({ user: Address }))
const decodeRole = Schema.decodeUnknownOption(Schema.Union([
  Schema.Struct({ role: Schema.Literal("agent"), data: Schema.Struct({ user: Address }) }),
  Schema.Struct({ role: Schema.Literals(["user", "subAccount", "vault"]) })
]))
const decodeAgents = Schema.decodeUnknownOption(Schema.Array(Schema.Struct({ address: Address })))

/**
 * Returns the signers in the response to a query, each with its master; the list of masters is empty if the signer is
 * not an API wallet.
 */
const mastersIn = (
  call: InfoCall,
  { json: { valueOrUndefined: body }, status }: Operation.UpstreamResponse
): ReadonlyArray<readonly [signer: string, accounts: ReadonlyArray<string>]> => {
  const query = decodeQuery(call.body.valueOrUndefined)
  if (status !== 200 || Option.isNone(query)) return []
  const user = query.value.user.toLowerCase()
  if (InfoProtocol.queryType(call) === "extraAgents") {
    return Option.getOrElse(decodeAgents(body), () => []).map(({ address }) => [address.toLowerCase(), [user]])
  }
  return Option.toArray(decodeRole(body)).map((found) => [
    user,
    found.role === "agent" ? [found.data.user.toLowerCase()] : []
  ])
}

/** Stores the masters of API wallets from the response to one of {@link masterQueries}. */
export const learn = (
  versions: AccountVersions["Service"],
  call: InfoCall,
  response: Operation.UpstreamResponse
): Effect.Effect<void> =>
  Effect.forEach(
    mastersIn(call, response),
    ([signer, accounts]) => versions.learn(signer, accounts),
    { discard: true }
  )

const roleQuery = (user: string): InfoCall => {
  const request = { user }
  return { operation: userRole, request, body: Json.write({ type: userRole.name, ...request }), surface: "gateway" }
}

/**
 * Increments the versions of the accounts that an action changed. If `venueResponds` is false, does not query the master
 * of the signer.
 */
export type Changed = (admitted: Admitted, venueResponds: boolean) => Effect.Effect<void>

/** Makes the function {@link Changed} for the account versions of a pipeline; `send` sends a query to the venue. */
export const makeAccountChanges = Effect.fnUntraced(function*<E>(
  { accounts, inTurn }: Pick<Pipeline["Service"], "accounts" | "inTurn">,
  send: (call: InfoCall) => Effect.Effect<Operation.UpstreamResponse, E>
) {
  const scope = yield* Effect.scope
  const inFlight = new Set<string>()

  const find = (signer: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (inFlight.has(signer)) return Effect.void
      inFlight.add(signer)
      const call = roleQuery(signer)
      const found = Effect.flatMap(send(call), (response) => learn(accounts, call, response)).pipe(
        Effect.provideService(IsRefresh, true),
        Effect.provideService(CurrentCaller, local),
        Effect.ignore,
        Effect.ensuring(Effect.sync(() => inFlight.delete(signer)))
      )
      return Effect.asVoid(Effect.forkIn(found, scope))
    })

  const changed: Changed = Effect.fnUntraced(function*(admitted, venueResponds) {
    const { fingerprint, signer } = admitted
    const isOpen = yield* accounts.change(signer ?? fingerprint, admitted.accounts)
    if (!isOpen || !venueResponds || signer === undefined) return
    const caller = yield* CurrentCaller
    const cost = roleQuery(signer).operation.cost.weight
    yield* inTurn("trading-api", { key: `role ${signer}`, caller: caller.id, cost, start: find(signer) })
  })
  return changed
})
