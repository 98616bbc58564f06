/**
 * Messages that a signer may have signed instead of the one that a request stands for, by the mistake that leads there.
 *
 * A wrong signature says nothing but an address that nobody holds; whether a mistake was made is seen by undoing it and
 * recovering again.
 */
import type { SignatureMistake } from "@trigate/domain/Inspection"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as ActionHash from "./ActionHash.ts"
import type * as CanonicalAction from "./CanonicalAction.ts"
import { fromHex, type Hex, isAddress, toHex, toUint64, trimmedHex, uint64Bytes, utf8 } from "./internal/bytes.ts"
import { keccak256 } from "./internal/Keccak256.ts"
import * as MsgPack from "./MsgPack.ts"
import * as MultiSig from "./MultiSig.ts"
import * as Signable from "./Signable.ts"
import type { SignedRequest } from "./SignerRecovery.ts"
import * as UserSigned from "./UserSigned.ts"
import { documentedChainField, mainnet, testnet, type VenueProfile } from "./VenueProfile.ts"

/** A digest that may have been signed, and the mistakes that lead to it: at least one. */
export interface SignedReading {
  readonly mistakes: ReadonlyArray<SignatureMistake>
  readonly digest: Hex
}

/** Whose signature is looked at: the request's own, or those inside a multi-sig wrapper. */
export type Part = "outer" | "inner"

/** `sent` is the counterpart of the value in the body as it came. */
type Rewrite = (value: unknown, sent: unknown) => unknown

type Leaf = (value: unknown, sent: unknown, key: string) => unknown

const memberOf = (value: unknown, key: string | number): unknown =>
  Predicate.isObjectOrArray(value) && Object.hasOwn(value, key) && Predicate.hasProperty(value, key)
    ? value[key]
    : undefined

const mapLeaves = (leaf: Leaf) => {
  const walk = (value: unknown, sent: unknown, key: string): unknown => {
    if (Array.isArray(value)) {
      return value.map((item: unknown, index) => walk(item, memberOf(sent, index), key))
    }
    return Predicate.isObject(value)
      ? Object.fromEntries(Object.entries(value).map(([name, item]) => [name, walk(item, memberOf(sent, name), name)]))
      : leaf(value, sent, key)
  }
  return (value: unknown, sent: unknown): unknown => walk(value, sent, "")
}

const sameHex = (a: unknown, b: unknown): boolean =>
  Predicate.isString(a) && Predicate.isString(b) && /^0x[0-9a-fA-F]+$/.test(a) && /^0x[0-9a-fA-F]+$/.test(b) &&
  trimmedHex(a) === trimmedHex(b)

const isScalar = (key: string): boolean => key === "r" || key === "s"

/** Addresses in the letter case in which they were sent. */
const addressesAsSent: Rewrite = mapLeaves((value, sent) => isAddress(value) && isAddress(sent) ? sent : value)

/** Addresses in lower case. */
const addressesLowered: Rewrite = mapLeaves((value) => isAddress(value) ? value.toLowerCase() : value)

/** Halves of inner signatures with the leading zeros that they were sent with. */
const signaturesAsSent: Rewrite = mapLeaves((value, sent, key) => isScalar(key) && sameHex(value, sent) ? sent : value)

/** Halves of inner signatures at full length. */
const signaturesPadded: Rewrite = mapLeaves((value, _sent, key) =>
  isScalar(key) && Predicate.isString(value) && /^0x[0-9a-f]{1,64}$/.test(value)
    ? `0x${value.slice(2).padStart(64, "0")}`
    : value
)

/** Chain ids without leading zeros, in lower case. */
const chainIdsTrimmed: Rewrite = mapLeaves((value, _sent, key) =>
  key === "signatureChainId" && Predicate.isString(value) ? trimmedHex(value) : value
)

/** Chain ids as whole bytes. */
const chainIdsPadded: Rewrite = mapLeaves((value, _sent, key) => {
  if (key !== "signatureChainId" || !Predicate.isString(value)) return value
  const digits = trimmedHex(value).slice(2)
  return `0x${digits.padStart(digits.length + digits.length % 2, "0")}`
})

/** Members in the order in which they were sent. */
const keysAsSent: Rewrite = (value, sent) => {
  if (Array.isArray(value)) return value.map((item: unknown, index) => keysAsSent(item, memberOf(sent, index)))
  if (!Predicate.isObject(value) || !Predicate.isObject(sent)) return value
  const members = new Map(Object.entries(value))
  const order = [...new Set([...Object.keys(sent).filter((key) => members.has(key)), ...members.keys()])]
  return Object.fromEntries(order.map((key) => [key, keysAsSent(members.get(key), memberOf(sent, key))]))
}

const mapMembers = (
  change: (members: ReadonlyArray<readonly [string, unknown]>) => ReadonlyArray<readonly [string, unknown]>
): Rewrite => {
  const walk = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(walk)
    return Predicate.isObject(value)
      ? Object.fromEntries(change(Object.entries(value)).map(([key, item]) => [key, walk(item)]))
      : value
  }
  return walk
}

/** Members in alphabetical order, as serializers with sorted maps print them. */
const keysSorted: Rewrite = mapMembers((members) => members.toSorted(([a], [b]) => a < b ? -1 : 1))

/** Members that are null left out. */
const nullsDropped: Rewrite = mapMembers((members) => members.filter(([, item]) => item !== null))

/** A wrapper with its `type`. */
const typeAdded: Rewrite = (value) => Predicate.isObject(value) ? { type: "multiSig", ...value } : value

/** A way to read a request. */
interface View {
  readonly profile: VenueProfile
  readonly canonical: CanonicalAction.CanonicalAction
  readonly context: ActionHash.HashContext
  /** Applied to what is hashed. */
  readonly rewrite: Rewrite
  readonly hash: (value: unknown, context: ActionHash.HashContext) => Result.Result<Hex, unknown>
  readonly digest: (signable: Signable.Signable) => Hex
  /** Whether inner signers name the account and the leader. */
  readonly wrapped: boolean
}

type Action = CanonicalAction.Action

const userSignedNonce = (action: Action): string | undefined =>
  ["nonce", "time"].find((key) => "signatureChainId" in action && toUint64(action[key]) !== undefined)

/** The single action, or the one inside the wrapper, changed. */
const mapAction = (view: View, change: (action: Action) => Action): View => {
  const { canonical } = view
  if (canonical.kind === "single") {
    return { ...view, canonical: { kind: "single", action: change(canonical.action) } }
  }
  const { payload } = canonical.action
  const action = { ...canonical.action, payload: { ...payload, action: change(payload.action) } }
  return { ...view, canonical: { kind: "multiSig", action } }
}

const withContext = (view: View, change: Partial<ActionHash.HashContext>): View => ({
  ...view,
  context: { ...view.context, ...change }
})

const withRewrite = (view: View, rewrite: Rewrite): View => ({
  ...view,
  rewrite: (value, sent) => rewrite(view.rewrite(value, sent), sent)
})

const withNonce = (view: View, nonce: bigint): View =>
  mapAction(withContext(view, { nonce }), (action) => {
    const key = userSignedNonce(action)
    return key === undefined ? action : { ...action, [key]: nonce }
  })

const withProfile = (view: View, profile: VenueProfile): View =>
  mapAction({ ...view, profile }, (action) =>
    Object.fromEntries(
      Object.entries(action).map(([key, value]) =>
        key === view.profile.chainField ? [profile.chainField, profile.chainName] : [key, value]
      )
    ))

const withChainId = (view: View, id: string): View => {
  const changed = mapAction(
    view,
    (action) => "signatureChainId" in action ? { ...action, signatureChainId: id } : action
  )
  const { canonical } = changed
  return canonical.kind === "single" ? changed : {
    ...changed,
    canonical: { kind: "multiSig", action: { ...canonical.action, signatureChainId: id } }
  }
}

const concat = (...parts: ReadonlyArray<Uint8Array>): Uint8Array =>
  Uint8Array.from(parts.flatMap((part) => Array.from(part)))

/** The preimage of a published sample: vault before nonce, zeros for no vault, no markers. */
const documentedHash: View["hash"] = (value, { nonce, vaultAddress }) =>
  Result.gen(function*() {
    const integer = toUint64(nonce)
    if (integer === undefined) return yield* Result.fail(ActionHash.wrongShape("nonce", "an unsigned 64-bit integer"))
    const vault = isAddress(vaultAddress) ? fromHex(vaultAddress) : new Uint8Array(20)
    return toHex(keccak256(concat(yield* MsgPack.encode(value), vault, uint64Bytes(integer))))
  })

/** The digest as a wallet signs plain messages, which it prefixes. */
const personalDigest: View["digest"] = (signable) =>
  toHex(keccak256(concat(utf8("\u0019Ethereum Signed Message:\n32"), fromHex(Signable.digest(signable)))))

/** Slips in a nonce: seconds for milliseconds and back, one off, neighbours swapped, one digit one off. */
const nonceSlips = (nonce: bigint): ReadonlyArray<bigint> => {
  const digits = nonce.toString()
  const swapped = Array.from(
    { length: digits.length - 1 },
    (_, at) =>
      BigInt(digits.slice(0, at) + digits.slice(at + 1, at + 2) + digits.slice(at, at + 1) + digits.slice(at + 2))
  )
  const oneOff = Array.from({ length: digits.length }, (_, at) => 10n ** BigInt(at))
    .flatMap((step) => [nonce + step, nonce - step])
  return [nonce / 1000n, nonce * 1000n, nonce / 1000n * 1000n, ...oneOff, ...swapped]
}

/** Lifetimes that programs give their actions, in seconds; the one that was signed but not sent can only be guessed. */
const lifetimes = [5, 10, 15, 20, 30, 60, 120, 300, 600, 3600]

/** Chains that wallets are connected to: Ethereum, the venue's two, Arbitrum, its test network, Base, the L1 agent's. */
const chainIds = ["0x1", "0x3e7", "0x3e6", "0xa4b1", "0x66eee", "0x2105", "0x539"]

type Vary = (view: View, request: SignedRequest, expected: string) => ReadonlyArray<View>

interface Variation {
  readonly mistake: SignatureMistake
  /** Few and telling, so that it is also tried together with others. */
  readonly pairs: boolean
  readonly vary: Vary
}

const rewriting = (mistake: SignatureMistake, ...rewrites: ReadonlyArray<Rewrite>): Variation => ({
  mistake,
  pairs: true,
  vary: (view) => rewrites.map((rewrite) => withRewrite(view, rewrite))
})

const isGiven = (value: unknown): boolean => value !== undefined && value !== null

/** Most likely first. */
const variations: ReadonlyArray<Variation> = [
  {
    mistake: "otherNetwork",
    pairs: true,
    vary: (view) => [withProfile(view, view.profile.name === "mainnet" ? testnet : mainnet)]
  },
  {
    mistake: "vaultNotSigned",
    pairs: true,
    vary: (view) => isGiven(view.context.vaultAddress) ? [withContext(view, { vaultAddress: null })] : []
  },
  {
    mistake: "expiresAfterNotSigned",
    pairs: true,
    vary: (view) => isGiven(view.context.expiresAfter) ? [withContext(view, { expiresAfter: null })] : []
  },
  rewriting("untrimmedSignature", signaturesAsSent, signaturesPadded),
  rewriting("mixedCaseAddress", addressesAsSent, addressesLowered),
  rewriting("chainIdText", chainIdsTrimmed, chainIdsPadded),
  rewriting("fieldOrder", keysAsSent, keysSorted),
  rewriting("nullDropped", nullsDropped),
  rewriting("typeHashed", typeAdded),
  { mistake: "notWrapped", pairs: true, vary: (view) => [{ ...view, wrapped: false }] },
  {
    mistake: "documentedChainField",
    pairs: true,
    vary: (view) => [withProfile(view, { ...view.profile, chainField: documentedChainField })]
  },
  { mistake: "documentedPreimage", pairs: false, vary: (view) => [{ ...view, hash: documentedHash }] },
  { mistake: "personalSign", pairs: false, vary: (view) => [{ ...view, digest: personalDigest }] },
  { mistake: "otherChainId", pairs: false, vary: (view) => chainIds.map((id) => withChainId(view, id)) },
  {
    mistake: "vaultNotSent",
    pairs: false,
    vary: (view, _request, expected) =>
      isGiven(view.context.vaultAddress)
        ? []
        : [expected, "0x0000000000000000000000000000000000000000"].map((vaultAddress) =>
          withContext(view, { vaultAddress })
        )
  },
  {
    mistake: "expiresAfterNotSent",
    pairs: false,
    vary: (view, { nonce }) =>
      isGiven(view.context.expiresAfter)
        ? []
        : lifetimes.map((seconds) => withContext(view, { expiresAfter: BigInt(nonce) + BigInt(seconds) * 1000n }))
  },
  {
    mistake: "otherNonce",
    pairs: false,
    vary: (view, { nonce }) => [BigInt(nonce), ...nonceSlips(BigInt(nonce))].map((slip) => withNonce(view, slip))
  }
]

const singleDigest = (view: View, action: Action, sent: unknown): Result.Result<Hex, unknown> =>
  Result.gen(function*() {
    const scheme = yield* UserSigned.schemeOf(action)
    return view.digest(
      scheme.scheme === "l1"
        ? ActionHash.agentSignable(view.profile, yield* view.hash(view.rewrite(action, sent), view.context))
        : yield* UserSigned.signable(view.profile, scheme.type, action)
    )
  })

const at = (value: unknown, ...path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((found, key) => Predicate.hasProperty(found, key) ? found[key] : undefined, value)

const digestOf = (view: View, part: Part, sent: unknown): Result.Result<Hex, unknown> =>
  Result.gen(function*() {
    const { canonical, context, profile } = view
    if (canonical.kind === "single") return yield* singleDigest(view, canonical.action, sent)
    const { payload, signatureChainId } = canonical.action
    if (part === "outer") {
      const hash = yield* view.hash(view.rewrite(MultiSig.hashedWrapper(canonical.action), sent), context)
      return view.digest(yield* MultiSig.leaderSignable(profile, signatureChainId, hash, context.nonce))
    }
    const inner = at(sent, "payload", "action")
    if (!view.wrapped) return yield* singleDigest(view, payload.action, inner)
    const scheme = yield* UserSigned.schemeOf(payload.action)
    if (scheme.scheme === "userSigned") {
      return view.digest(yield* UserSigned.innerSignable(profile, scheme.type, payload.action, payload))
    }
    const sentValue = [at(sent, "payload", "multiSigUser"), at(sent, "payload", "outerSigner"), inner]
    const hash = yield* view.hash(view.rewrite(MultiSig.innerValue(canonical.action), sentValue), context)
    return view.digest(ActionHash.agentSignable(profile, hash))
  })

interface Step {
  readonly mistakes: ReadonlyArray<SignatureMistake>
  readonly view: View
}

const stepsFrom = (
  { mistakes, view }: Step,
  tried: ReadonlyArray<Variation>,
  request: SignedRequest,
  expected: string
): ReadonlyArray<Step> =>
  tried.flatMap(({ mistake, vary }) =>
    vary(view, request, expected).map((varied) => ({ mistakes: [...mistakes, mistake], view: varied }))
  )

/** Bytes that may be hashed in all: every reading hashes the whole action, and a caller chooses how large it is. */
const maxHashed = 2 * 1024 * 1024

const readingsOf = (canonical: CanonicalAction.CanonicalAction): number =>
  Result.match(MsgPack.encode(canonical.action), {
    onFailure: () => 0,
    onSuccess: ({ length }) => Math.floor(maxHashed / length)
  })

/**
 * The readings of a request, most likely first: every mistake alone, then the telling ones in pairs. Each digest comes
 * once, and the one that the request stands for never. The larger the action, the fewer readings.
 *
 * `canonical` is the action in the venue's form; the action of `request` is the one that was sent, with its order of keys.
 * `expected` is whose signature it should be: an API wallet's owner may have been signed as the vault.
 */
export function* readings(
  profile: VenueProfile,
  canonical: CanonicalAction.CanonicalAction,
  request: SignedRequest,
  part: Part,
  expected: string
): Generator<SignedReading> {
  const start: Step = {
    mistakes: [],
    view: {
      profile,
      canonical,
      context: request,
      rewrite: (value) => value,
      hash: ActionHash.hash,
      digest: Signable.digest,
      wrapped: true
    }
  }
  const seen = new Set([Result.getOrUndefined(digestOf(start.view, part, request.action))])
  const singles = stepsFrom(start, variations, request, expected)
  const telling = variations.filter(({ pairs }) => pairs)
  const groups = [
    () => singles,
    () =>
      telling.flatMap((first, index) =>
        stepsFrom(start, [first], request, expected).flatMap((step) =>
          stepsFrom(step, telling.slice(index + 1), request, expected)
        )
      )
  ]
  let left = readingsOf(canonical)
  for (const group of groups) {
    for (const { mistakes, view } of group()) {
      if (left-- <= 0) return
      const digest = Result.getOrUndefined(digestOf(view, part, request.action))
      if (digest !== undefined && !seen.has(digest)) {
        seen.add(digest)
        yield { mistakes, digest }
      }
    }
  }
}
