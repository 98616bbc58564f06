/**
 * Messages that a signer may have signed by mistake, instead of the message that belongs to a request.
 *
 * A wrong signature recovers to an address that nobody holds, which says nothing about the mistake. So each likely mistake
 * is made here on purpose. If the resulting digest recovers to the expected signer, the signer made that mistake.
 */
import type { SignatureMistake } from "@trigate/domain/Inspection"
import * as Utf8 from "@trigate/domain/Utf8"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as ActionHash from "./ActionHash.ts"
import type { Action, CanonicalAction } from "./CanonicalAction.ts"
import { concat, fromHex, type Hex, isAddress, keccak256, toHex, toUint64, trimmedHex } from "./internal/bytes.ts"
import * as MsgPack from "./MsgPack.ts"
import * as MultiSig from "./MultiSig.ts"
import * as Signable from "./Signable.ts"
import type { SignedRequest } from "./SignerRecovery.ts"
import * as UserSigned from "./UserSigned.ts"
import { documentedChainField, otherThan, type VenueProfile } from "./VenueProfile.ts"

/** A digest that may have been signed, and the mistakes that lead to it: at least one. */
export interface SignedReading {
  readonly mistakes: ReadonlyArray<SignatureMistake>
  readonly digest: Hex
}

/** Whose signature is examined: the request's own, or those inside a multi-sig wrapper. */
export type Part = "outer" | "inner"

/** A change to a value before it is hashed; `sent` is its counterpart in the body as it was sent. */
type Rewrite = (value: unknown, sent: unknown) => unknown

type Members = ReadonlyArray<readonly [key: string, value: unknown]>

interface Change {
  readonly leaf?: (value: unknown, sent: unknown, key: string) => unknown
  readonly members?: (members: Members, sent: unknown) => Members
}

const memberOf = (value: unknown, key: string | number): unknown =>
  Predicate.isObjectOrArray(value) && Object.hasOwn(value, key) && Predicate.hasProperty(value, key)
    ? value[key]
    : undefined

const rewriter = ({ leaf = (value) => value, members = (all) => all }: Change): Rewrite => {
  const walk = (value: unknown, sent: unknown, key: string): unknown => {
    if (Array.isArray(value)) return value.map((item: unknown, index) => walk(item, memberOf(sent, index), key))
    if (!Predicate.isObject(value)) return leaf(value, sent, key)
    const changed = members(Object.entries(value), sent)
    return Object.fromEntries(changed.map(([name, item]) => [name, walk(item, memberOf(sent, name), name)]))
  }
  return (value, sent) => walk(value, sent, "")
}

const sameHex = (a: unknown, b: unknown): boolean =>
  Predicate.isString(a) && Predicate.isString(b) && /^0x[0-9a-fA-F]+$/.test(a) && /^0x[0-9a-fA-F]+$/.test(b) &&
  trimmedHex(a) === trimmedHex(b)

const isScalar = (key: string): boolean => key === "r" || key === "s"

/** The scalars of inner signatures with the leading zeros that they were sent with. */
const signaturesAsSent = rewriter({
  leaf: (value, sent, key) => isScalar(key) && sameHex(value, sent) ? sent : value
})

const signaturesPadded = rewriter({
  leaf: (value, _sent, key) =>
    isScalar(key) && Predicate.isString(value) && /^0x[0-9a-f]{1,64}$/.test(value)
      ? `0x${value.slice(2).padStart(64, "0")}`
      : value
})

const chainIds = (spell: (chainId: Hex) => string): Rewrite =>
  rewriter({
    leaf: (value, _sent, key) =>
      key === "signatureChainId" && Predicate.isString(value) ? spell(trimmedHex(value)) : value
  })

/** Members in the order in which they were sent. */
const keysAsSent = rewriter({
  members: (members, sent) => {
    const order = new Map(Predicate.isObject(sent) ? Object.keys(sent).map((key, index) => [key, index]) : [])
    const at = (key: string) => order.get(key) ?? order.size
    return members.toSorted(([a], [b]) => at(a) - at(b))
  }
})

/** A way to read a request. */
interface View {
  readonly profile: VenueProfile
  /** The wrapper, where there is one; its inner action is {@link View.action}. */
  readonly wrapper: MultiSig.MultiSigAction | undefined
  /** The single action, or the one inside the wrapper, in the venue's form. */
  readonly action: Action
  readonly context: ActionHash.HashContext
  /** Applied to what is hashed. */
  readonly rewrite: Rewrite
  readonly hash: (value: unknown, context: ActionHash.HashContext) => Result.Result<Hex, unknown>
  readonly digest: (signable: Signable.Signable) => Hex
  /** Whether inner signers name the account and the leader. */
  readonly wrapped: boolean
}

const withContext = (view: View, change: Partial<ActionHash.HashContext>): View => ({
  ...view,
  context: { ...view.context, ...change }
})

const withRewrite = (view: View, rewrite: Rewrite): View => ({
  ...view,
  rewrite: (value, sent) => rewrite(view.rewrite(value, sent), sent)
})

const withNonce = (view: View, nonce: bigint): View => {
  const { action } = view
  const key = ["nonce", "time"].find((key) => "signatureChainId" in action && toUint64(action[key]) !== undefined)
  return { ...withContext(view, { nonce }), action: key === undefined ? action : { ...action, [key]: nonce } }
}

const withProfile = (view: View, profile: VenueProfile): View => ({
  ...view,
  profile,
  action: Object.fromEntries(
    Object.entries(view.action).map(([key, value]) =>
      key === view.profile.chainField ? [profile.chainField, profile.chainName] : [key, value]
    )
  )
})

const withChainId = (view: View, signatureChainId: string): View => ({
  ...view,
  action: "signatureChainId" in view.action ? { ...view.action, signatureChainId } : view.action,
  wrapper: view.wrapper === undefined ? undefined : { ...view.wrapper, signatureChainId }
})

const hashOf = (...parts: ReadonlyArray<Uint8Array>): Hex => toHex(keccak256(concat(...parts)))

/** The hash of a published sample: vault before nonce, zeros for no vault, no markers. */
const documentedHash: View["hash"] = (value, { nonce, vaultAddress }) =>
  Result.gen(function*() {
    const vault = isAddress(vaultAddress) ? fromHex(vaultAddress) : new Uint8Array(20)
    return hashOf(yield* MsgPack.encode(value), vault, yield* ActionHash.uint64("nonce", nonce))
  })

/** The digest as a wallet signs plain messages, which it prefixes. */
const personalDigest: View["digest"] = (signable) =>
  hashOf(Utf8.encode("\u0019Ethereum Signed Message:\n32"), Signable.digestBytes(signable))

/** Slips in a nonce: seconds for milliseconds and back, one digit off by one, neighbouring digits swapped. */
const nonceSlips = (nonce: bigint): ReadonlyArray<bigint> => {
  const digits = nonce.toString()
  const oneOff = Array.from(digits, (_, at) => 10n ** BigInt(at)).flatMap((step) => [nonce + step, nonce - step])
  const swapped = Array.from(
    digits.slice(1),
    (second, at) => BigInt(`${digits.slice(0, at)}${second}${digits.slice(at, at + 1)}${digits.slice(at + 2)}`)
  )
  return [nonce / 1000n, nonce * 1000n, nonce / 1000n * 1000n, ...oneOff, ...swapped]
}

/** Lifetimes in seconds that programs give their actions; one that was signed but not sent can only be guessed. */
const lifetimes = [5, 10, 15, 20, 30, 60, 120, 300, 600, 3600]

/** Chains that wallets are connected to: Ethereum, the venue's two, Arbitrum, its test network, Base, the L1 agent's. */
const walletChains = ["0x1", "0x3e7", "0x3e6", "0xa4b1", "0x66eee", "0x2105", "0x539"]

const zeroAddress = "0x0000000000000000000000000000000000000000"

type Vary = (view: View, request: SignedRequest, expected: string) => ReadonlyArray<View>

interface Variation {
  readonly mistake: SignatureMistake
  readonly vary: Vary
  /** Whether it is also tried together with others: only mistakes with few views are. */
  readonly pairs: boolean
}

const paired = (mistake: SignatureMistake, vary: Vary): Variation => ({ mistake, vary, pairs: true })

const alone = (mistake: SignatureMistake, vary: Vary): Variation => ({ mistake, vary, pairs: false })

const rewriting = (mistake: SignatureMistake, ...rewrites: ReadonlyArray<Rewrite>): Variation =>
  paired(mistake, (view) => rewrites.map((rewrite) => withRewrite(view, rewrite)))

const isGiven = (value: unknown): boolean => value !== undefined && value !== null

/** Most likely first. */
const variations: ReadonlyArray<Variation> = [
  paired("otherNetwork", (view) => [withProfile(view, otherThan(view.profile))]),
  paired(
    "vaultNotSigned",
    (view) => isGiven(view.context.vaultAddress) ? [withContext(view, { vaultAddress: null })] : []
  ),
  paired(
    "expiresAfterNotSigned",
    (view) => isGiven(view.context.expiresAfter) ? [withContext(view, { expiresAfter: null })] : []
  ),
  rewriting("untrimmedSignature", signaturesAsSent, signaturesPadded),
  rewriting(
    "mixedCaseAddress",
    rewriter({ leaf: (value, sent) => isAddress(value) && isAddress(sent) ? sent : value }),
    rewriter({ leaf: (value) => isAddress(value) ? value.toLowerCase() : value })
  ),
  rewriting(
    "chainIdText",
    chainIds((chainId) => chainId),
    // as whole bytes
    chainIds((chainId) => chainId.length % 2 === 0 ? chainId : `0x0${chainId.slice(2)}`)
  ),
  // in alphabetical order, as serializers with sorted maps print them
  rewriting("fieldOrder", keysAsSent, rewriter({ members: (all) => all.toSorted(([a], [b]) => a < b ? -1 : 1) })),
  rewriting("nullDropped", rewriter({ members: (all) => all.filter(([, item]) => item !== null) })),
  rewriting("typeHashed", (value) => Predicate.isObject(value) ? { type: "multiSig", ...value } : value),
  paired("notWrapped", (view) => [{ ...view, wrapped: false }]),
  paired("documentedChainField", (view) => [withProfile(view, { ...view.profile, chainField: documentedChainField })]),
  alone("documentedPreimage", (view) => [{ ...view, hash: documentedHash }]),
  alone("personalSign", (view) => [{ ...view, digest: personalDigest }]),
  alone("otherChainId", (view) => walletChains.map((id) => withChainId(view, id))),
  alone("vaultNotSent", (view, _request, expected) =>
    isGiven(view.context.vaultAddress)
      ? []
      : [expected, zeroAddress].map((vaultAddress) => withContext(view, { vaultAddress }))),
  alone("expiresAfterNotSent", (view, { nonce }) =>
    isGiven(view.context.expiresAfter)
      ? []
      : lifetimes.map((seconds) => withContext(view, { expiresAfter: BigInt(nonce) + BigInt(seconds) * 1000n }))),
  alone(
    "otherNonce",
    (view, { nonce }) => [BigInt(nonce), ...nonceSlips(BigInt(nonce))].map((slip) => withNonce(view, slip))
  )
]

const agentDigest = (view: View, value: unknown, sent: unknown): Result.Result<Hex, unknown> =>
  Result.map(
    view.hash(view.rewrite(value, sent), view.context),
    (hash) => view.digest(ActionHash.agentSignable(view.profile, hash))
  )

const digestOf = (view: View, part: Part, sent: unknown): Result.Result<Hex, unknown> =>
  Result.gen(function*() {
    const { action, context, profile, wrapper } = view
    const whole = wrapper === undefined ? undefined : { ...wrapper, payload: { ...wrapper.payload, action } }
    if (whole !== undefined && part === "outer") {
      const hash = yield* view.hash(view.rewrite(MultiSig.hashedWrapper(whole), sent), context)
      return view.digest(yield* MultiSig.leaderSignable(profile, whole.signatureChainId, hash, context.nonce))
    }
    const payload = memberOf(sent, "payload")
    const sentAction = whole === undefined ? sent : memberOf(payload, "action")
    const parties = view.wrapped ? whole?.payload : undefined
    const scheme = yield* UserSigned.schemeOf(action)
    if (scheme.scheme === "userSigned") {
      return view.digest(
        parties === undefined
          ? yield* UserSigned.signable(profile, scheme.type, action)
          : yield* UserSigned.innerSignable(profile, scheme.type, action, parties)
      )
    }
    if (whole === undefined || parties === undefined) return yield* agentDigest(view, action, sentAction)
    const sentValue = [memberOf(payload, "multiSigUser"), memberOf(payload, "outerSigner"), sentAction]
    return yield* agentDigest(view, MultiSig.innerValue(whole), sentValue)
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
const maxHashed = 512 * 1024

/** The largest action that is searched, in bytes as it is hashed; one reading of it takes some milliseconds. */
const maxSearched = 16 * 1024

const readingsOf = ({ action }: CanonicalAction): number =>
  Result.match(MsgPack.encode(action), {
    onFailure: () => 0,
    onSuccess: ({ length }) => length > maxSearched ? 0 : Math.floor(maxHashed / length)
  })

/**
 * The readings of a request, most likely first: every mistake alone, then some in pairs. Each digest comes once, and never
 * the right one. The larger the action, the fewer readings. A step without a new digest gives `undefined`: whoever reads can
 * let others run after each.
 *
 * `canonical` is the action in the venue's form; the action of `request` is the one that was sent, with its order of keys.
 * `expected` is whose signature it should be: an API wallet's owner may have been signed as the vault.
 */
export function* readings(
  profile: VenueProfile,
  canonical: CanonicalAction,
  request: SignedRequest,
  part: Part,
  expected: string
): Generator<SignedReading | undefined> {
  let left = readingsOf(canonical)
  if (left === 0) return
  const start: Step = {
    mistakes: [],
    view: {
      profile,
      ...(canonical.kind === "multiSig"
        ? { wrapper: canonical.action, action: canonical.action.payload.action }
        : { wrapper: undefined, action: canonical.action }),
      context: request,
      rewrite: (value) => value,
      hash: ActionHash.hash,
      digest: Signable.digest,
      wrapped: true
    }
  }
  const seen = new Set([Result.getOrUndefined(digestOf(start.view, part, request.action))])
  const telling = variations.filter(({ pairs }) => pairs)
  const groups = [
    () => stepsFrom(start, variations, request, expected),
    () =>
      telling.flatMap((first, index) =>
        stepsFrom(start, [first], request, expected).flatMap((step) =>
          stepsFrom(step, telling.slice(index + 1), request, expected)
        )
      )
  ]
  for (const group of groups) {
    for (const { mistakes, view } of group()) {
      if (left-- <= 0) return
      const digest = Result.getOrUndefined(digestOf(view, part, request.action))
      if (digest !== undefined && !seen.has(digest)) {
        seen.add(digest)
        yield { mistakes, digest }
      } else {
        yield undefined
      }
    }
  }
}
