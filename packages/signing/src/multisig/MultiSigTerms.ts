/** The terms of a multi-sig action: the action, its leader and its expiry. They determine the messages that co-signers sign. */
import { InnerAction, type MultiSig as MultiSigWire, SignatureChainId } from "@trigate/domain/actions/Action"
import type { Signature } from "@trigate/domain/actions/Signature"
import { Address, lowerCase } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import { Millis } from "@trigate/domain/Time"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { undecodable, type Unhashable, type UnsignableAction, wrongShape } from "../actions/ActionHash.ts"
import * as CanonicalAction from "../actions/CanonicalAction.ts"
import type * as Signable from "../actions/Signable.ts"
import * as UserSigned from "../actions/UserSigned.ts"
import * as Hype from "../Hype.ts"
import * as SigningWarning from "../inspection/SigningWarning.ts"
import { toUint64 } from "../internal/bytes.ts"
import { profileFor } from "../VenueProfile.ts"
import * as MultiSig from "./MultiSig.ts"

/**
 * The terms of a multi-sig action, without the action itself. `threshold` and `authorizedUsers` are the account's
 * values, if known.
 */
export const envelope = {
  network: Schema.Literals(["mainnet", "testnet"]),
  multiSigUser: Address.annotateKey({ description: "The multi-sig account" }),
  outerSigner: Address.annotateKey({ description: "The leader, who sends the action with the leader's own nonce" }),
  signatureChainId: SignatureChainId.annotateKey({ description: "Chain id with which the leader signs the wrapper" }),
  nonce: Millis,
  vaultAddress: Schema.optionalKey(Address),
  expiresAfter: Schema.optionalKey(Millis),
  threshold: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: MultiSig.maxSigners }))),
  authorizedUsers: Schema.optionalKey(Schema.Array(Address).check(Schema.isBetweenLength(1, MultiSig.maxSigners)))
}

/**
 * The terms on which all signers agree.
 *
 * `action` is the signed form of the action. `sentAction` is the sent form (default: `action`). The forms differ only
 * for `userSetAbstraction`, which the venue accepts in an abbreviated form. The members of an action of unknown type
 * must be in the venue's order. Without `threshold`, one approval is sufficient; without `authorizedUsers`, any
 * co-signer is accepted.
 */
export const MultiSigTerms = Schema.Struct({
  ...envelope,
  action: InnerAction,
  sentAction: Schema.optionalKey(InnerAction)
})
export type MultiSigTerms = typeof MultiSigTerms.Type

type Inner = MultiSigTerms["action"]

const decode = Schema.decodeUnknownResult(MultiSigTerms)

const single = (
  terms: MultiSigTerms,
  name: "action" | "sentAction",
  given: Inner
): Result.Result<Inner, UnsignableAction> =>
  CanonicalAction.canonicalizeInner(profileFor(terms.network), given).pipe(
    Result.mapBoth({
      onFailure: (error) => error.within(name),
      onSuccess: (action) => ({ ...action, type: given.type })
    })
  )

const checkScheme = (terms: MultiSigTerms, action: Inner): Result.Result<void, UnsignableAction> =>
  Result.flatMap(UserSigned.signingScheme(action), (scheme) => {
    if (scheme.scheme === "l1") return Result.succeed(undefined)
    const field = UserSigned.nonceField(scheme.type)
    return field === undefined || toUint64(action[field.name]) === BigInt(terms.nonce)
      ? Result.succeed(undefined)
      : Result.fail(wrongShape(field.name, "the nonce of the proposal"))
  }).pipe(Result.mapError((error) => error.within("action")))

const checkRule = ({ authorizedUsers, threshold }: MultiSigTerms): Result.Result<void, UnsignableAction> =>
  threshold !== undefined && authorizedUsers !== undefined && threshold > authorizedUsers.length
    ? Result.fail(wrongShape("threshold", "at most the number of authorized users"))
    : Result.succeed(undefined)

/**
 * Converts terms to the form in which they are hashed: addresses in lower case, each authorized user once, actions in
 * canonical form.
 *
 * Fails with `UnsignableAction` for terms of the wrong shape, a nested wrapper, or a threshold above the number of
 * authorized users. Also fails for a user-signed action whose fields are unknown, or whose nonce differs from the
 * proposal's.
 */
export const canonicalize = (given: unknown): Result.Result<MultiSigTerms, UnsignableAction> =>
  Result.gen(function*() {
    const terms = yield* Result.mapError(decode(given), undecodable)
    const { authorizedUsers, sentAction, vaultAddress } = terms
    const action = yield* single(terms, "action", terms.action)
    yield* checkScheme(terms, action)
    const canonical: MultiSigTerms = {
      ...terms,
      multiSigUser: lowerCase(terms.multiSigUser),
      outerSigner: lowerCase(terms.outerSigner),
      ...(vaultAddress === undefined ? {} : { vaultAddress: lowerCase(vaultAddress) }),
      ...(authorizedUsers === undefined ? {} : { authorizedUsers: [...new Set(authorizedUsers.map(lowerCase))] }),
      action,
      ...(sentAction === undefined ? {} : { sentAction: yield* single(terms, "sentAction", sentAction) })
    }
    yield* checkRule(canonical)
    return canonical
  })

/**
 * Makes the multi-sig wrapper that the leader sends. It contains the sent form of the action. The terms must be in
 * canonical form.
 */
export const wrapper = (terms: MultiSigTerms, signatures: ReadonlyArray<Signature>): typeof MultiSigWire.Type => ({
  type: "multiSig",
  signatureChainId: terms.signatureChainId,
  signatures,
  payload: {
    multiSigUser: terms.multiSigUser,
    outerSigner: terms.outerSigner,
    action: terms.sentAction ?? terms.action
  }
})

/** Returns the message that each co-signer signs. Fails with `MsgPackUnencodable` or `UnsignableAction`. */
export const innerSignable = (terms: MultiSigTerms): Result.Result<Signable.Signable, Unhashable> => {
  const { payload, ...rest } = wrapper(terms, [])
  const signed = { ...rest, payload: { ...payload, action: terms.action } }
  return MultiSig.innerSignable(profileFor(terms.network), signed, terms)
}

const limits = {
  expiresAfter: "its expiresAfter",
  nonceWindow: "when its nonce becomes too old"
} as const

/** The venue no longer accepts the action: its expiry has passed, or its nonce is too old. */
export class ProposalExpired extends Schema.TaggedError<ProposalExpired>()("ProposalExpired", {
  because: Schema.Literals(["expiresAfter", "nonceWindow"]),
  deadline: Millis,
  now: Millis
}) {
  get group() {
    return "fix-request" as const
  }
  override get message() {
    return `The proposal expired at ${this.deadline}, ${
      limits[this.because]
    }; it is now ${this.now} (Unix milliseconds)`
  }
}

/**
 * The time, in Unix milliseconds, from which on the action counts as expired, and the limit that determines this time:
 * the action's expiry or the age of its nonce.
 */
export interface Deadline {
  readonly at: number
  readonly because: ProposalExpired["because"]
}

/** Milliseconds after which the venue refuses a nonce: two days (the venue's documentation). */
const nonceLife = 2 * 86_400_000

/** Returns the earlier of two times: the action's expiry, if any, and the time at which its nonce becomes too old. */
export const deadline = (
  { expiresAfter, nonce }: { readonly nonce: number; readonly expiresAfter?: number }
): Deadline =>
  expiresAfter !== undefined && expiresAfter < nonce + nonceLife
    ? { at: expiresAfter, because: "expiresAfter" }
    : { at: nonce + nonceLife, because: "nonceWindow" }

/** Fails with `ProposalExpired` if the deadline of an action has passed. */
export const checkDeadline = Effect.fnUntraced(function*(
  bounds: Parameters<typeof deadline>[0]
): Effect.fn.Return<void, ProposalExpired> {
  const { at, because } = deadline(bounds)
  const now = yield* Clock.currentTimeMillis
  return now < at ? undefined : yield* new ProposalExpired({ because, deadline: at, now })
})

const quoted = (value: unknown): string => SigningWarning.printable(Json.stringify(value))

const instant = (millis: number): string =>
  Option.match(DateTime.make(millis), { onNone: () => `millisecond ${millis}`, onSome: DateTime.formatIso })

const hype = (wei: unknown): string => {
  const amount = toUint64(wei)
  return amount === undefined ? `${quoted(wei)} wei` : `${Hype.hypeFromWei(amount)} HYPE (wei ${amount})`
}

const describeEffect = (action: Inner): string => {
  switch (action["type"]) {
    case "tokenDelegate":
      return action["isUndelegate"] === true
        ? `undelegates ${hype(action["wei"])} from the validator ${quoted(action["validator"])}`
        : `delegates ${hype(action["wei"])} of stake to the validator ${quoted(action["validator"])}`
    case "CSignerAction":
      return "jailSelf" in action ? "jails itself as a validator" : "unjails itself as a validator"
    case "evmUserModify":
      return `chooses ${action["usingBigBlocks"] === true ? "big" : "small"} blocks for its EVM transactions`
    default:
      return `performs the action ${quoted(action)}`
  }
}

const cosigners = ({ authorizedUsers, threshold }: MultiSigTerms): string => {
  const needed = threshold === undefined
    ? "The number of co-signers that have to approve is not stated"
    : `${threshold}${authorizedUsers === undefined ? "" : ` of ${authorizedUsers.length}`} co-signers have to approve`
  return authorizedUsers === undefined ? `${needed}.` : `${needed}: ${authorizedUsers.join(", ")}.`
}

const expiry = ({ at, because }: Deadline): string =>
  because === "expiresAfter"
    ? `The venue refuses the action after ${instant(at)}, when the action expires.`
    : `The venue refuses the action after ${instant(at)}, when its nonce becomes too old.`

/**
 * Describes the effects of terms in canonical form, one sentence for each effect. The text is ASCII, so that any
 * terminal or wallet can display it.
 */
export const summary = (terms: MultiSigTerms): ReadonlyArray<string> => {
  const { action, multiSigUser, network, nonce, outerSigner, sentAction, vaultAddress } = terms
  return [
    `On ${network}, the multi-sig account ${multiSigUser} ${describeEffect(action)}.`,
    ...(sentAction === undefined ? [] : [`The action is sent to the venue in another form: ${quoted(sentAction)}.`]),
    ...(vaultAddress === undefined ? [] : [`The action is for the vault or sub-account ${vaultAddress}.`]),
    `The leader ${outerSigner} sends the action with the nonce ${nonce} (${instant(nonce)}).`,
    cosigners(terms),
    expiry(deadline(terms)),
    ...(action["type"] === "evmUserModify"
      ? ["Caution: the account's original key keeps control of its EVM account, whatever the co-signers decide."]
      : []),
    ...SigningWarning.ofValues(sentAction ?? action).map(({ message }) => `Caution: ${message}.`)
  ]
}
