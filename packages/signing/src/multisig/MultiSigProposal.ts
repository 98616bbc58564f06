/**
 * A multi-sig action that co-signers prepare on several machines: its terms, the proposal, the approvals, and the body
 * that the leader sends.
 */
import { InnerAction, Signature, SignatureChainId } from "@trigate/domain/actions/Action"
import type { MultiSig as MultiSigWire, SignedAction } from "@trigate/domain/actions/Action"
import * as Json from "@trigate/domain/encoding/Encoding"
import { Address, Hash, lowerCase, Millis } from "@trigate/domain/encoding/Encoding"
import { RequestFault } from "@trigate/domain/errors/GatewayError"
import { type AnyCodec, decodeFaults } from "@trigate/domain/operations/Operation"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as ActionHash from "../actions/ActionHash.ts"
import * as CanonicalAction from "../actions/CanonicalAction.ts"
import * as Hype from "../Decimal.ts"
import * as SigningWarning from "../inspection/SigningMistake.ts"
import * as Secp256k1 from "../Secp256k1.ts"
import { defaultChainId, profileFor } from "../VenueProfile.ts"

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
  threshold: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: CanonicalAction.maxSigners }))
  ),
  authorizedUsers: Schema.optionalKey(
    Schema.Array(Address).check(Schema.isBetweenLength(1, CanonicalAction.maxSigners))
  )
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
): Result.Result<Inner, ActionHash.UnsignableAction> =>
  CanonicalAction.canonicalizeInner(profileFor(terms.network), given).pipe(
    Result.mapBoth({
      onFailure: (error) => error.within(name),
      onSuccess: (action) => ({ ...action, type: given.type })
    })
  )

const checkScheme = (terms: MultiSigTerms, action: Inner): Result.Result<void, ActionHash.UnsignableAction> =>
  Result.flatMap(CanonicalAction.signingScheme(action), (scheme) => {
    if (scheme.scheme === "l1") return Result.succeed(undefined)
    const field = CanonicalAction.nonceField(scheme.type)
    return field === undefined || ActionHash.toUint64(action[field.name]) === BigInt(terms.nonce)
      ? Result.succeed(undefined)
      : Result.fail(ActionHash.wrongShape(field.name, "the nonce of the proposal"))
  }).pipe(Result.mapError((error) => error.within("action")))

const checkRule = ({ authorizedUsers, threshold }: MultiSigTerms): Result.Result<void, ActionHash.UnsignableAction> =>
  threshold !== undefined && authorizedUsers !== undefined && threshold > authorizedUsers.length
    ? Result.fail(ActionHash.wrongShape("threshold", "at most the number of authorized users"))
    : Result.succeed(undefined)

/**
 * Converts terms to the form in which they are hashed: addresses in lower case, each authorized user once, actions in
 * canonical form.
 *
 * Fails with `UnsignableAction` for terms of the wrong shape, a nested wrapper, or a threshold above the number of
 * authorized users. Also fails for a user-signed action whose fields are unknown, or whose nonce differs from the
 * proposal's.
 */
export const canonicalize = (given: unknown): Result.Result<MultiSigTerms, ActionHash.UnsignableAction> =>
  Result.gen(function*() {
    const terms = yield* Result.mapError(decode(given), ActionHash.undecodable)
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
export const innerSignable = (terms: MultiSigTerms): Result.Result<ActionHash.Signable, ActionHash.Unhashable> => {
  const { payload, ...rest } = wrapper(terms, [])
  const signed = { ...rest, payload: { ...payload, action: terms.action } }
  return CanonicalAction.cosignerSignable(profileFor(terms.network), signed, terms)
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
  const amount = ActionHash.toUint64(wei)
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

/**
 * A text could not be decoded as a proposal or as an approval (`what`). `faults` describe its errors, with their paths.
 */
export class MultiSigMalformed extends Schema.TaggedError<MultiSigMalformed>()("MultiSigMalformed", {
  what: Schema.Literals(["proposal", "approval"]),
  faults: Schema.Array(RequestFault)
}) {
  get group() {
    return "fix-request" as const
  }
  override get message() {
    const [first, ...more] = this.faults
    const where = first === undefined || first.path.length === 0 ? "" : `${first.path.join(".")}: `
    const rest = more.length === 0 ? "" : `, and ${more.length} more`
    return `Not a multi-sig ${this.what}: ${where}${first?.message ?? ""}${rest}`
  }
}

/** Makes a function that decodes a value from JSON text, which another machine sent. */
export const textReader = <S extends AnyCodec>(what: MultiSigMalformed["what"], schema: S) => {
  const decode = Schema.decodeUnknownResult(schema, { errors: "all" })
  const malformed = (faults: MultiSigMalformed["faults"]) => new MultiSigMalformed({ what, faults })
  return (text: string): Result.Result<S["Type"], MultiSigMalformed> =>
    Json.parseStrict(text).pipe(
      Result.mapError((refusal) => malformed([refusal])),
      Result.flatMap((parsed) => Result.mapError(decode(parsed), (error) => malformed(decodeFaults(error))))
    )
}

/**
 * The digest of a received proposal does not match its terms: the proposal was altered, or a program version with
 * different rules made it.
 */
export class ProposalAltered extends Schema.TaggedError<ProposalAltered>()("ProposalAltered", {
  claimed: Hash,
  derived: Hash
}) {
  get group() {
    return "fix-request" as const
  }
  override get message() {
    return `The proposal claims the digest ${this.claimed}, but its content has the digest ${this.derived}`
  }
}

/**
 * The terms to propose, as in `MultiSigTerms`.
 *
 * Default `signatureChainId`: the chain ID in a user-signed action, otherwise `0x66eee`.
 */
export interface ProposalRequest extends Omit<MultiSigTerms, "signatureChainId"> {
  readonly signatureChainId?: string
}

const invalid = (message: string) => new SchemaIssue.InvalidValue({ message })

/** An action as JSON text. Its digits and key order are signed, and not every JSON library preserves them. */
const ActionText = Schema.String.pipe(
  Schema.decodeTo(
    Schema.Unknown,
    SchemaTransformation.transformEffect({
      decode: (text: string) =>
        Effect.mapError(Effect.fromResult(Json.parseStrict(text)), ({ message }) => invalid(message)),
      encode: (action: unknown) => Effect.succeed(Json.stringify(action))
    })
  ),
  Schema.decodeTo(InnerAction, SchemaTransformation.passthrough({ strict: false }))
)

const digest = Hash.annotateKey({ description: "The 32 bytes that each co-signer signs" })

/**
 * The members decoded from a received proposal: the terms, and the digest, which is compared with the digest of the
 * terms.
 */
const Received = Schema.Struct({
  ...envelope,
  action: ActionText,
  sentAction: Schema.optionalKey(ActionText),
  digest,
  typedData: Schema.optionalKey(Schema.Unknown),
  summary: Schema.optionalKey(Schema.Unknown)
})

const Proposed = Schema.Struct({
  ...MultiSigTerms.fields,
  digest,
  typedData: ActionHash.WalletData.annotateKey({
    description: "EIP-712 typed data, which a wallet displays and signs; its hash is the digest"
  }),
  summary: Schema.Array(Schema.String).annotateKey({ description: "Effects of the action, one sentence each" })
})

const derive = (given: unknown): Result.Result<typeof Proposed.Type, ActionHash.Unhashable> =>
  Result.gen(function*() {
    const terms = yield* canonicalize(given)
    const signable = yield* innerSignable(terms)
    return {
      ...terms,
      digest: ActionHash.digest(signable),
      typedData: ActionHash.walletData(signable),
      summary: summary(terms)
    }
  })

/** The reasons why a received proposal is refused. */
export type VerificationFailure = ProposalAltered | ActionHash.Unhashable

const derivedAgain = (received: typeof Received.Type): Result.Result<typeof Proposed.Type, VerificationFailure> =>
  Result.flatMap(derive(received), (proposal) =>
    proposal.digest === received.digest
      ? Result.succeed(proposal)
      : Result.fail(new ProposalAltered({ claimed: received.digest, derived: proposal.digest })))

/**
 * A proposal; its encoded form is plain JSON, with the actions as text.
 *
 * Decoding derives digest, typed data and summary from the terms again, and fails if the digest differs. A sender
 * therefore cannot forge the content that a co-signer reads and signs.
 */
export const MultiSigProposal = Received.pipe(
  Schema.decodeTo(
    Schema.toType(Proposed),
    SchemaTransformation.transformEffect({
      decode: (received: typeof Received.Type) =>
        Effect.mapError(Effect.fromResult(derivedAgain(received)), ({ message }) => invalid(message)),
      encode: (proposal: typeof Proposed.Type): Effect.Effect<typeof Received.Type> => Effect.succeed(proposal)
    })
  )
).annotate({ identifier: "MultiSigProposal" })
export type MultiSigProposal = typeof MultiSigProposal.Type

/**
 * Proposes an action of a multi-sig account: returns the message that each co-signer signs, and a summary of its
 * effects.
 *
 * Fails with `MsgPackUnencodable` or `UnsignableAction` for an action that cannot be hashed, or for contradictory
 * terms.
 */
export const propose = (request: ProposalRequest): Effect.Effect<MultiSigProposal, ActionHash.Unhashable> =>
  Effect.suspend(() =>
    Effect.fromResult(derive({
      ...request,
      signatureChainId: request.signatureChainId ?? request.action["signatureChainId"] ?? defaultChainId
    }))
  )

/**
 * Derives a proposal again from its own terms. Fails with `ProposalAltered` if the digest differs, and with the errors
 * of {@link propose}.
 */
export const verify = (proposal: MultiSigProposal): Effect.Effect<MultiSigProposal, VerificationFailure> =>
  Effect.suspend(() => Effect.fromResult(derivedAgain(proposal)))

const encode = Schema.encodeEffect(MultiSigProposal)

/** Encodes a proposal as JSON, to send to the co-signers. */
export const toJson = (proposal: MultiSigProposal): Effect.Effect<string> =>
  // a value of this type always encodes
  Effect.map(Effect.orDie(encode(proposal)), (encoded) => JSON.stringify(encoded, null, 2))

const read = textReader("proposal", Received)

/**
 * Decodes a received proposal: reads the terms, and derives the other members from them again.
 *
 * Fails with `MultiSigMalformed`, with `ProposalAltered` if the digest does not match the terms, and with the errors of
 * {@link propose}.
 */
export const fromJson = (text: string): Effect.Effect<MultiSigProposal, MultiSigMalformed | VerificationFailure> =>
  Effect.suspend(() => Effect.fromResult(Result.flatMap(read(text), derivedAgain)))

/**
 * The signature is not by the expected signer. This is also the error for a signature of another message, because such
 * a signature recovers to an unrelated address.
 *
 * `recovered` is absent if recovery fails. For the role `leader`, a further cause is a signing key that is not the key
 * of the proposal's outer signer.
 */
export class WrongSigner extends Schema.TaggedError<WrongSigner>()("WrongSigner", {
  role: Schema.Literals(["cosigner", "leader"]),
  expected: Address,
  recovered: Schema.optionalKey(Address)
}) {
  get group() {
    return "fix-setup" as const
  }
  override get message() {
    return `The signature is by ${this.recovered ?? "an unknown signer"}, not by the ${this.role} ${this.expected}`
  }
}

/** The signer is not one of the proposal's authorized users. */
export class CosignerNotAuthorized extends Schema.TaggedError<CosignerNotAuthorized>()("CosignerNotAuthorized", {
  signer: Address,
  authorizedUsers: Schema.Array(Address)
}) {
  get group() {
    return "fix-setup" as const
  }
  override get message() {
    return `${this.signer} is not an authorized user of the multi-sig account`
  }
}

/** The co-signer has already approved; a second approval does not count. */
export class AlreadyApproved extends Schema.TaggedError<AlreadyApproved>()("AlreadyApproved", { signer: Address }) {
  get group() {
    return "fix-request" as const
  }
  override get message() {
    return `${this.signer} has already approved`
  }
}

/**
 * The approval is for a different proposal: `digest` is the approved digest, `expected` the digest of this proposal.
 */
export class ApprovalOfOther extends Schema.TaggedError<ApprovalOfOther>()("ApprovalOfOther", {
  signer: Address,
  digest: Hash,
  expected: Hash
}) {
  get group() {
    return "fix-request" as const
  }
  override get message() {
    return `${this.signer} approved ${this.digest}, not this proposal's ${this.expected}`
  }
}

/**
 * There are fewer approvals than the account requires. `missing` lists the authorized users that have not approved; it
 * is empty if the authorized users are unknown.
 */
export class ThresholdNotMet extends Schema.TaggedError<ThresholdNotMet>()("ThresholdNotMet", {
  threshold: Schema.Int,
  approved: Schema.Array(Address),
  missing: Schema.Array(Address)
}) {
  get group() {
    return "fix-request" as const
  }
  override get message() {
    return `${this.approved.length} of ${this.threshold} required co-signers have approved`
  }
}

/** A signing key: the service `Signer`, or an object of the same shape. */
export interface Cosigner<E = never, R = never> {
  readonly address: Address
  readonly sign: (signable: ActionHash.Signable) => Effect.Effect<Signature, E, R>
}

/**
 * An approval: the digest of the proposal, and the co-signer's address and signature. Its encoded form is plain JSON.
 */
export const MultiSigApproval = Schema.Struct({
  digest: Hash,
  signer: Address,
  signature: Signature
}).annotate({ identifier: "MultiSigApproval" })
export type MultiSigApproval = typeof MultiSigApproval.Type

/** The reasons why an approval is refused, before or after it is signed. */
export type ApprovalFailure =
  | VerificationFailure
  | ProposalExpired
  | CosignerNotAuthorized
  | AlreadyApproved
  | WrongSigner

const checkAuthorized = ({ authorizedUsers }: MultiSigProposal, signer: Address) =>
  authorizedUsers === undefined || authorizedUsers.includes(signer)
    ? Effect.void
    : Effect.fail(new CosignerNotAuthorized({ signer, authorizedUsers }))

/**
 * Returns the signature of `digest` in the venue's form, with a `v` of 27 or 28. Fails with `WrongSigner` if the signer
 * is not `expected`, an address in lower case.
 */
const verified = Effect.fnUntraced(function*(
  role: WrongSigner["role"],
  expected: Address,
  digest: Hash,
  given: Secp256k1.GivenSignature
): Effect.fn.Return<Signature, WrongSigner> {
  const engine = yield* Secp256k1.Secp256k1
  return yield* Effect.fromResult(
    Result.mapError(
      Secp256k1.verified(engine, expected, digest, given),
      (recovered) => new WrongSigner({ role, expected, ...(recovered === undefined ? {} : { recovered }) })
    )
  )
})

/** Verifies the signature of an approval against the digest derived from the proposal's own terms. */
const check = Effect.fnUntraced(function*(
  proposal: MultiSigProposal,
  { digest, signature, signer }: MultiSigApproval
): Effect.fn.Return<Signature, ApprovalOfOther | CosignerNotAuthorized | WrongSigner> {
  if (digest !== proposal.digest) return yield* new ApprovalOfOther({ signer, digest, expected: proposal.digest })
  yield* checkAuthorized(proposal, signer)
  return yield* verified("cosigner", signer, digest, signature)
})

/**
 * Returns the proposal, derived again from its terms, if the co-signer `signer` may approve it now. Fails if the
 * proposal was altered, has expired, or is already approved by this co-signer, or if the co-signer is not authorized.
 */
const open = Effect.fnUntraced(function*(
  given: MultiSigProposal,
  signer: Address,
  approvals: ReadonlyArray<MultiSigApproval>
) {
  const proposal = yield* verify(given)
  yield* checkDeadline(proposal)
  yield* checkAuthorized(proposal, signer)
  return approvals.some((approval) => lowerCase(approval.signer) === signer && approval.digest === proposal.digest)
    ? yield* new AlreadyApproved({ signer })
    : proposal
})

const approvalBy = ({ digest }: MultiSigProposal, signer: Address, given: Secp256k1.GivenSignature) =>
  Effect.map(
    verified("cosigner", signer, digest, given),
    (signature): MultiSigApproval => ({ digest, signer, signature })
  )

/**
 * Signs a proposal with a co-signer's key; `approvals` are the approvals collected so far.
 *
 * Fails before signing with an error of `MultiSigProposal.verify`, or with `ProposalExpired`, `CosignerNotAuthorized`
 * or `AlreadyApproved`. Fails after signing with `WrongSigner` if the signature is not by the key's address. The key's
 * own errors are also possible.
 */
export const approve = Effect.fn("MultiSigApproval.approve")(function*<E, R>(
  proposal: MultiSigProposal,
  cosigner: Cosigner<E, R>,
  approvals: ReadonlyArray<MultiSigApproval> = []
): Effect.fn.Return<MultiSigApproval, ApprovalFailure | E, R> {
  const signer = lowerCase(cosigner.address)
  const verified = yield* open(proposal, signer, approvals)
  const signable = yield* Effect.fromResult(innerSignable(verified))
  return yield* approvalBy(verified, signer, yield* cosigner.sign(signable))
})

/**
 * Makes an approval from another program's signature of the proposal's typed data or digest. The signature is 65 bytes
 * in 0x hex, as wallets return it, or an object of `r`, `s` and an optional `v`. `approvals` are the approvals
 * collected so far. Fails like {@link approve}.
 */
export const accept = Effect.fn("MultiSigApproval.accept")(function*(
  proposal: MultiSigProposal,
  address: Address,
  signature: Secp256k1.GivenSignature,
  approvals: ReadonlyArray<MultiSigApproval> = []
): Effect.fn.Return<MultiSigApproval, ApprovalFailure> {
  const signer = lowerCase(address)
  return yield* approvalBy(yield* open(proposal, signer, approvals), signer, signature)
})

/** Encodes an approval as JSON, to send to the leader. */
export const approvalToJson = (approval: MultiSigApproval): string => JSON.stringify(approval, null, 2)

const readApproval = textReader("approval", MultiSigApproval)

/** Decodes a received approval; {@link assemble} verifies the signature. Fails with `MultiSigMalformed`. */
export const approvalFromJson = (text: string): Effect.Effect<MultiSigApproval, MultiSigMalformed> =>
  Effect.suspend(() => Effect.fromResult(readApproval(text)))

/** The reasons why a body cannot be assembled. */
export type AssemblyFailure = Exclude<ApprovalFailure, AlreadyApproved> | ApprovalOfOther | ThresholdNotMet

/** Returns the approvals without repetitions: one for each co-signer, in the order of receipt. */
const distinct = (approvals: ReadonlyArray<MultiSigApproval>): ReadonlyArray<MultiSigApproval> => {
  const bySigner = new Map<Address, MultiSigApproval>()
  for (const approval of approvals) {
    const signer = lowerCase(approval.signer)
    if (!bySigner.has(signer)) bySigner.set(signer, { ...approval, signer })
  }
  return [...bySigner.values()]
}

const checkThreshold = (
  { authorizedUsers = [], threshold = 1 }: MultiSigProposal,
  approvals: ReadonlyArray<MultiSigApproval>
): Effect.Effect<void, ThresholdNotMet> => {
  const approved = approvals.map(({ signer }) => signer)
  return approved.length >= threshold
    ? Effect.void
    : Effect.fail(
      new ThresholdNotMet({ threshold, approved, missing: authorizedUsers.filter((user) => !approved.includes(user)) })
    )
}

/**
 * Assembles approvals into a multi-sig wrapper, which the leader signs, and returns the body for `POST /exchange`.
 *
 * The approvals can be in any order. Each is verified again, and only one approval of each co-signer counts. Inner
 * signatures are sent without leading zeros, as the venue hashes them.
 *
 * Fails with an error of `MultiSigProposal.verify`, or with `ProposalExpired`, `ApprovalOfOther`,
 * `CosignerNotAuthorized` or `ThresholdNotMet`. Fails with `UnsignableAction` for approvals of more than ten
 * co-signers. Fails with `WrongSigner` if a signature is not its co-signer's, or if the signing key does not belong to
 * the proposal's leader. The errors of the leader's key are also possible.
 */
export const assemble = Effect.fn("MultiSigApproval.assemble")(function*<E, R>(
  given: MultiSigProposal,
  approvals: ReadonlyArray<MultiSigApproval>,
  leader: Cosigner<E, R>
): Effect.fn.Return<SignedAction, AssemblyFailure | E, R> {
  const proposal = yield* verify(given)
  const { expiresAfter, nonce, outerSigner, vaultAddress } = proposal
  yield* checkDeadline(proposal)
  const collected = distinct(approvals)
  if (collected.length > CanonicalAction.maxSigners) {
    return yield* ActionHash.wrongShape("signatures", `a list of at most ${CanonicalAction.maxSigners} signatures`)
  }
  const signatures = yield* Effect.forEach(collected, (approval) => check(proposal, approval))
  yield* checkThreshold(proposal, collected)
  if (lowerCase(leader.address) !== outerSigner) {
    return yield* new WrongSigner({ role: "leader", expected: outerSigner, recovered: lowerCase(leader.address) })
  }
  const action = wrapper(proposal, signatures.map(Secp256k1.trimmed))
  const outer = yield* Effect.fromResult(CanonicalAction.outerSignable(profileFor(proposal.network), action, proposal))
  const signature = yield* verified("leader", outerSigner, ActionHash.digest(outer), yield* leader.sign(outer))
  return {
    action,
    nonce,
    signature,
    ...(vaultAddress === undefined ? {} : { vaultAddress }),
    ...(expiresAfter === undefined ? {} : { expiresAfter })
  }
})
