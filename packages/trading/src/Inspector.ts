/**
 * Describes a signed body as the venue decodes it: the signer, the mistakes, their corrections, and the message.
 *
 * It works offline: nothing is sent, and no gateway is required.
 */
import type { SignedEnvelope } from "@trigate/domain/actions/Action"
import { CurrentCaller } from "@trigate/domain/Caller"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import type { InvalidRequest } from "@trigate/domain/errors/GatewayError"
import type { CorrectedBody, Inspection, Mistake } from "@trigate/domain/unstable/Inspection"
import * as OrderAction from "@trigate/signing/actions/OrderAction"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Signable from "@trigate/signing/unstable/actions/ActionHash"
import * as CanonicalAction from "@trigate/signing/unstable/actions/CanonicalAction"
import * as SignedReading from "@trigate/signing/unstable/inspection/SignedReading"
import * as SignedView from "@trigate/signing/unstable/inspection/SignedView"
import * as SigningWarning from "@trigate/signing/unstable/inspection/SigningMistake"
import { otherThan, Venue, type VenueProfile } from "@trigate/signing/VenueProfile"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as ActionDecoder from "./admission/ActionDecoder.ts"
import type { ReadBody } from "./admission/ActionDecoder.ts"
import * as Admission from "./admission/Admission.ts"
import { Info } from "./Info.ts"
import * as SignerSearch from "./SignatureDiagnosis.ts"

/**
 * Checks bodies as `/exchange` does. Each function returns why `/exchange` refuses a body; `undefined` if `/exchange`
 * relays it.
 */
export interface Refusals {
  readonly ofSigner: (read: ReadBody, expected: Encoding.Address) => string | undefined
  /**
   * Checks a corrected body that was signed with a substitute key, because the signer's own key is not available.
   * Ignores the allow-list of signers.
   */
  readonly ofProof: (read: ReadBody) => string | undefined
}

type Path = Mistake["path"]

const put = (value: unknown, [key, ...rest]: Path, item: unknown): unknown => {
  if (key === undefined) return item
  if (Array.isArray(value)) return value.map((each: unknown, at) => at === key ? put(each, rest, item) : each)
  if (!Predicate.isReadonlyObject(value)) return value
  const members = Object.entries(value).map(([name, each]) => [name, name === key ? put(each, rest, item) : each])
  return Object.fromEntries(
    Object.hasOwn(value, key) || rest.length > 0 || item === undefined ? members : [...members, [key, item]]
  )
}

const without = (value: unknown, key: string): unknown =>
  Predicate.isReadonlyObject(value)
    ? Object.fromEntries(Object.entries(value).filter(([name]) => name !== key))
    : value

const at = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>(
    (part, key) => Predicate.hasProperty(part, key) && Object.hasOwn(part, key) ? part[key] : undefined,
    value
  )

const integer = (text: string | undefined): number | undefined =>
  text !== undefined && /^[0-9]{1,15}/u.test(text) ? Number.parseInt(text, 10) : undefined

const chainId = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : /^0x[0-9a-f]+/u.exec(text)?.[0]

/** Mistakes whose correction changes only the body, because the signature already covers the corrected value. */
const signedTexts: ReadonlySet<string> = new Set(["jsonText", "unicodeForm"])

/**
 * Returns the body with one mistake reverted. Returns it unchanged if the mistake is not in the body, or if the
 * correction would invalidate the signature.
 */
const revertMistake = (body: unknown, { expected, found, mistake, path }: Mistake): unknown => {
  switch (mistake) {
    case "timeUnit":
    case "otherNonce": {
      const time = integer(expected)
      if (time === undefined || path.length === 0) return body
      // a user-signed action repeats the nonce of the body
      const isOwn = mistake === "otherNonce"
        ? path.length > 1
        : at(body, [...path.slice(0, -1), "signatureChainId"]) !== undefined
      return put(put(body, path, time), isOwn ? ["nonce"] : [], isOwn ? time : put(body, path, time))
    }
    case "vaultNotSent":
      return expected === undefined ? put(body, ["vaultAddress"], found) : body
    case "expiresAfterNotSent":
      // an expiry in another unit is signed again
      return expected === undefined || found?.length === expected.length
        ? put(body, ["expiresAfter"], integer(found))
        : body
    case "ownVault":
      return without(body, "vaultAddress")
    case "otherChainId": {
      const signed = chainId(found)
      return path.length === 0 || signed === undefined ? body : put(body, path, signed)
    }
    case "recoveryBitForm":
      return put(body, path, integer(expected))
    case "repeatedCosigner": {
      const signatures = at(body, ["action", "signatures"])
      return Array.isArray(signatures)
        ? put(body, ["action", "signatures"], signatures.filter((_, index) => index !== path.at(-1)))
        : body
    }
    default:
      if (!signedTexts.has(mistake) || found === undefined) return body
      return Result.match(Encoding.parse(found), { onFailure: () => body, onSuccess: (text) => put(body, path, text) })
  }
}

/**
 * The substitute key: signs in place of the expected signer's key when a correction is verified. The caller never
 * receives a signature made with this key.
 */
const proofKey = new Uint8Array(32).fill(0x5a)

const read = (body: unknown): Result.Result<ReadBody, unknown> => ActionDecoder.readText(Encoding.stringify(body))

const isMended = (profile: VenueProfile, body: ReadBody): boolean =>
  ActionDecoder.of(profile, body, Result.getOrUndefined(ActionDecoder.canonicalAction(profile, body))).mistakes
    .length === 0

/** Returns whether the body would pass all checks if the substitute key had signed it. */
const isSignable = (
  profile: VenueProfile,
  engine: Secp256k1.Engine,
  body: unknown,
  { ofProof }: Refusals
): boolean => {
  const key = engine.publicKey(proofKey)
  const unsigned = read(put(without(body, "signature"), ["signature"], { r: "0x1", s: "0x1", v: 27 }))
  if (Result.isFailure(unsigned) || Option.isNone(key) || !isMended(profile, unsigned.success)) return false
  const { signed } = unsigned.success
  const signable = Result.flatMap(
    ActionDecoder.canonicalAction(profile, unsigned.success),
    (action) => CanonicalAction.toSignable(profile, action, signed)
  )
  // a multi-sig action names its leader, so the substitute key cannot sign in place of the leader's key
  if (Result.isFailure(signable) || signable.success.scheme === "multiSig") return false
  const proof = engine.sign(Signable.digestBytes(signable.success.outer), proofKey)
  if (Option.isNone(proof)) return false
  const signature = {
    r: SignedReading.digestHex(proof.value.bytes.subarray(0, 32)),
    s: SignedReading.digestHex(proof.value.bytes.subarray(32)),
    v: 27 + proof.value.recovery
  }
  return Result.match(read(put(without(body, "signature"), ["signature"], signature)), {
    onFailure: () => false,
    onSuccess: (whole) => ofProof(whole) === undefined
  })
}

const mendedSignature = (mistakes: ReadonlyArray<Mistake>, signature: Secp256k1.Signature) => [
  signature,
  ...SignerSearch.repairs.filter(([name]) => mistakes.some(({ mistake }) => mistake === name))
    .map(([, repair]) => repair(signature))
]

/**
 * Returns the corrected body; `undefined` if nothing is wrong.
 *
 * Retains the signature if it is the expected signer's signature of the corrected body. Otherwise the corrected body
 * has no signature and must be signed again. To check an unsigned corrected body, a copy is signed internally with a
 * substitute key.
 */
export const of = (
  profile: VenueProfile,
  engine: Secp256k1.Engine,
  { sentAction, signed }: ReadBody,
  { mended }: ActionDecoder.BodyNormalization,
  mistakes: ReadonlyArray<Mistake>,
  expected: Encoding.Address | undefined,
  refusals: Refusals
): CorrectedBody | undefined => {
  if (mistakes.length === 0) return undefined
  const { signature, ...beside } = signed
  const sent: unknown = { ...beside, action: sentAction, signature }
  const candidates = mended === undefined ? [sent] : [sent, { ...beside, action: mended.action, signature }]
  const bodies = candidates.map((body) => mistakes.reduce(revertMistake, body))
  if (expected !== undefined) {
    for (const body of bodies) {
      for (const kept of mendedSignature(mistakes, signature)) {
        const v = Number(kept.v)
        const whole = read(put(body, ["signature"], { ...kept, v: v < 27 ? v + 27 : v }))
        if (
          Result.isSuccess(whole) && refusals.ofSigner(whole.success, expected) === undefined &&
          isMended(profile, whole.success)
        ) {
          return {
            body: Encoding.stringify(put(body, ["signature"], { ...kept, v: v < 27 ? v + 27 : v })),
            signature: "kept",
            verified: true
          }
        }
      }
    }
  }
  const again = without(bodies.at(-1), "signature")
  return { body: Encoding.stringify(again), signature: "again", verified: isSignable(profile, engine, again, refusals) }
}

/** The admission options of `/exchange`; the inspector also recognizes the signers on the allow-list. */
export type Options = Admission.Options

/**
 * Describes signed bodies.
 *
 * Provided by `Inspector.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { Encoding } from "@trigate/domain"
 * import { ActionBuilder, Signer, VenueProfile } from "@trigate/signing"
 * import { Inspector } from "@trigate/trading"
 * import { Console, Effect, Layer, Redacted } from "effect"
 *
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = Effect.gen(function*() {
 *   const signed = yield* ActionBuilder.useBigBlocks({ nonce: 1_767_225_600_000 })
 *   const { inspect } = yield* Inspector.Inspector
 *   const expected = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
 *   const { diagnosis } = yield* inspect(new TextEncoder().encode(Encoding.stringify(signed)), expected)
 *   yield* Console.log(diagnosis.verdict)
 * })
 *
 * const layer = Layer.provideMerge(Inspector.layer(), VenueProfile.layer("mainnet"))
 *
 * await Effect.runPromise(Effect.provide(program, Layer.merge(layer, Signer.layerPrivateKey(key))))
 * ```
 * ```text
 * fits
 * ```
 */
export class Inspector extends Context.Service<Inspector, {
  /**
   * Describes a signed body of any action type. Fails with `InvalidRequest` if `body` is not a signed body.
   *
   * If a key other than the expected signer's made the signature, the description names the likely mistake. The default
   * expected signer of a multi-sig action is its leader.
   */
  readonly inspect: (body: Uint8Array, expectedSigner?: Encoding.Address) => Effect.Effect<Inspection, InvalidRequest>
}>()("@trigate/trading/Inspector") {}

const bodyForm = (body: ReadBody): Inspection["form"] => {
  if (body.action === undefined) return "opaque"
  return ActionDecoder.documentedForms(body).length === 0 ? "wire" : "documented"
}

/** Converts a parsed value for JSON readers without big integers: integers above 2^53 become decimal strings. */
const legible = (value: unknown): unknown => {
  if (Predicate.isBigInt(value)) return value.toString()
  if (Array.isArray(value)) return value.map(legible)
  return Predicate.isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([key, member]) => [key, legible(member)]))
    : value
}

/** Returns the hashed bytes and the intermediate hashes; empty if the action cannot be hashed. */
const hashes = (canonical: CanonicalAction.CanonicalAction, signed: SignedEnvelope) =>
  Result.getOrElse(
    Result.gen(function*() {
      const { action, kind } = canonical
      const scheme = yield* CanonicalAction.signingScheme(kind === "multiSig" ? action.payload.action : action)
      const isL1 = scheme.scheme === "l1"
      if (kind === "multiSig") {
        return {
          msgpack: yield* Signable.encodeHex(CanonicalAction.hashedWrapper(action)),
          multiSigHash: yield* CanonicalAction.actionHash(action, signed),
          ...(isL1 ? { connectionId: yield* Signable.hash(CanonicalAction.innerValue(action), signed) } : {})
        }
      }
      return isL1
        ? { msgpack: yield* Signable.encodeHex(action), connectionId: yield* Signable.hash(action, signed) }
        : {}
    }),
    () => ({})
  )

// a body can contain a thousand addresses, and more warnings would not help its sender
const maxWarnings = 16

/**
 * Returns warnings about values and member orders of the sent action that differ from the canonical action, because
 * such differences change the hash.
 */
const signingWarnings = (sent: unknown, canonical: unknown): ReadonlyArray<string> =>
  [...SigningWarning.ofValues(sent), ...SigningWarning.ofOrder(sent, canonical)]
    .slice(0, maxWarnings)
    .map(({ message }) => message)

/** Caches recovered signers: each pair of signature and digest is recovered only once. */
const recoveringOnce = (engine: Secp256k1.Engine): Secp256k1.Engine => {
  const seen = new Map<string, Option.Option<Uint8Array>>()
  return {
    ...engine,
    recover: (digest, signature) => {
      const key = String.fromCharCode(...digest, ...signature.bytes, signature.recovery)
      const known = seen.get(key)
      if (known !== undefined) return known
      const recovered = engine.recover(digest, signature)
      seen.set(key, recovered)
      return recovered
    }
  }
}

/**
 * Returns the signer if the signature is valid for the other network: testnet instead of mainnet, or mainnet instead of
 * testnet. An L1 action does not name its network, so only a recovery of the signer shows the network.
 */
const signerOnOtherNetwork = (
  profile: VenueProfile,
  engine: Secp256k1.Engine,
  body: ReadBody
): Inspection["otherNetwork"] => {
  const other = otherThan(profile)
  const { signed } = body
  const recovered = ActionDecoder.canonicalAction(other, body).pipe(
    Result.flatMap((action) => CanonicalAction.toSignable(other, action, signed)),
    Result.flatMap((found) => CanonicalAction.recoverResult(found, signed.signature, engine))
  )
  return Result.isFailure(recovered) ? undefined : {
    network: other.name,
    signer: recovered.success.signer,
    digest: recovered.success.digest
  }
}

const signers = (recovered: CanonicalAction.RecoveredSigner) => ({
  scheme: recovered.scheme,
  outer: { signer: recovered.signer, digest: recovered.digest },
  ...(recovered.scheme === "multiSig" ? { inner: recovered.inner } : {})
})

/** Returns the canonical action, the differences between it and the sent action, and the message to sign. */
const target = (
  profile: VenueProfile,
  { mended }: ActionDecoder.BodyNormalization,
  { sentAction, signed }: ReadBody
) => {
  if (mended === undefined) return { differences: [] }
  const signable = CanonicalAction.toSignable(profile, mended, signed)
  return {
    canonicalAction: legible(mended.action),
    differences: SignedView.differences(sentAction, mended.action, ["action"]),
    ...(Result.isSuccess(signable) ? { typedData: Signable.walletData(signable.success.outer) } : {}),
    ...hashes(mended, signed)
  }
}

/**
 * Decodes a signed body. Also decodes a body that another program has wrapped in an object or in JSON text (see
 * `WrappedBody`). Fails with `InvalidRequest` if the bytes contain no body.
 */
const readBody = (bytes: Uint8Array) =>
  Result.flatMap(ActionDecoder.decodeText(bytes), (text) => {
    const body = Result.map(ActionDecoder.readText(text), (read) => ({ body: read, wrapped: noMistakes }))
    const inner = Result.isFailure(body) ? ActionDecoder.unwrap(text) : undefined
    return inner === undefined ? body : Result.match(ActionDecoder.readText(inner.text), {
      onFailure: () => body,
      onSuccess: (read) => Result.succeed({ body: read, wrapped: [inner.mistake] })
    })
  })

const noMistakes: ReadonlyArray<Mistake> = []

/**
 * Makes the inspector of a network profile with a signature engine.
 *
 * Inspecting a large body takes some milliseconds per step; the event loop runs between steps.
 */
export const make = (
  profile: VenueProfile,
  options: Options = {},
  engine: Secp256k1.Engine = Secp256k1.noble
): Inspector["Service"] => {
  const windowAt = Admission.nonceWindow(options)
  const judge = Admission.judge(profile, options, engine)
  return Inspector.of({
    inspect: Effect.fn("Inspector.inspect")(function*(bytes, expected) {
      const { body, wrapped } = yield* Effect.fromResult(readBody(bytes))
      yield* Effect.yieldNow
      const { earliest, latest, now } = windowAt(yield* Clock.currentTimeMillis)
      const once = recoveringOnce(engine)
      const { sentAction, signed } = body
      const known = Admission.recover(profile, once, body, Admission.isExpected(body, expected))
      const canonicalForm = Result.isSuccess(known)
        ? Result.succeed(known.success.canonical)
        : ActionDecoder.canonicalAction(profile, body)
      const canonical = Result.getOrUndefined(canonicalForm)
      const recovery = canonicalForm.pipe(
        Result.flatMap((action) => CanonicalAction.toSignable(profile, action, signed)),
        Result.flatMap((signable) => CanonicalAction.recoverResult(signable, signed.signature, once))
      )
      const recovered = Result.getOrUndefined(recovery)
      yield* Effect.yieldNow
      const shape = ActionDecoder.of(profile, body, canonical)
      const form = { ...shape, mistakes: [...wrapped, ...shape.mistakes] }
      yield* Effect.yieldNow
      const { scope } = yield* CurrentCaller
      // the nonce window is set around the body's own nonce, so that an old body can still be inspected
      const findRefusal = (read: ReadBody, signer: Encoding.Address | undefined): string | undefined =>
        Result.match(judge(read, read.signed.nonce, scope, signer), {
          onFailure: (refusal) => refusal.message,
          onSuccess: () => undefined
        })
      const diagnosis = yield* SignerSearch.diagnose(profile, once, {
        body,
        canonical,
        form,
        recovered,
        expected,
        signers: options.signers ?? [],
        refusalOf: (signer) => findRefusal(body, signer)
      })
      yield* Effect.yieldNow
      const corrected = of(profile, once, body, form, diagnosis.mistakes, diagnosis.expectedSigner, {
        ofSigner: findRefusal,
        ofProof: (read) =>
          Result.match(judge(read, read.signed.nonce, scope, undefined), {
            // the substitute key is not on any allow-list
            onFailure: (refusal) => refusal._tag === "SignerNotAllowed" ? undefined : refusal.message,
            onSuccess: () => undefined
          })
      })
      const otherNetwork = diagnosis.verdict === "fits" ? undefined : signerOnOtherNetwork(profile, once, body)
      yield* Effect.yieldNow
      const shown = target(profile, form, body)
      yield* Effect.yieldNow
      return {
        actionType: signed.action.type,
        form: bodyForm(body),
        network: profile.name,
        ...shown,
        ...(recovered === undefined ? {} : signers(recovered)),
        ...(Result.isFailure(recovery) ? { unsigned: recovery.failure.message } : {}),
        ...(otherNetwork === undefined ? {} : { otherNetwork }),
        nonce: {
          value: signed.nonce,
          now,
          earliest: Math.max(0, earliest),
          latest,
          inWindow: signed.nonce > earliest && signed.nonce < latest
        },
        diagnosis: {
          ...diagnosis,
          detail: [
            [diagnosis.detail, ...form.unknown].join("; "),
            ...(corrected === undefined || corrected.verified ? [] : ["This correction could not be verified."])
          ].join(". ")
        },
        ...(corrected === undefined ? {} : { corrected }),
        warnings: [
          ...ActionDecoder.warnings(profile, body, now),
          ...form.unknown,
          ...signingWarnings(sentAction, canonical?.action)
        ]
      }
    })
  })
}

/**
 * Provides the `Inspector` for the `Venue` and the `Secp256k1` engine of the context. Default engine: noble.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNoDeps = (options: Options = {}): Layer.Layer<Inspector, never, Venue> =>
  Layer.effect(
    Inspector,
    Effect.zipWith(Venue, Secp256k1.Secp256k1, (profile, engine) => make(profile, options, engine))
  )

/**
 * Provides {@link layerNoDeps} with libsecp256k1, or with noble if libsecp256k1 does not load.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options = {}): Layer.Layer<Inspector, never, Venue> =>
  Layer.provide(layerNoDeps(options), Secp256k1.layer)

const Order = Schema.Struct({ a: Schema.Natural, p: Schema.String, s: Schema.String })
type Order = typeof Order.Type

const decodeOrders = Schema.decodeUnknownOption(Schema.Struct({ orders: Schema.Array(Order) }))
const decodeModify = Schema.decodeUnknownOption(Schema.Struct({ order: Order }))
const decodeModifies = Schema.decodeUnknownOption(
  Schema.Struct({ modifies: Schema.Array(Schema.Struct({ order: Order })) })
)

/** Returns the orders in an action, each with its path. */
const ordersIn = (action: unknown): ReadonlyArray<readonly [path: string, order: Order]> =>
  Option.firstSomeOf([
    Option.map(
      decodeOrders(action),
      ({ orders }) => orders.map((order, index): readonly [string, Order] => [`action.orders.${index}`, order])
    ),
    Option.map(
      decodeModifies(action),
      ({ modifies }) =>
        modifies.map(({ order }, index): readonly [string, Order] => [`action.modifies.${index}.order`, order])
    ),
    Option.map(decodeModify(action), ({ order }) => [["action.order", order] as const])
  ]).pipe(Option.getOrElse(() => []))

const firstSpot = 10_000
const firstOfDexes = 100_000

// a batch can contain a thousand orders, and more warnings would not help its sender
const isPerpetual = ([, { a }]: readonly [string, Order]): boolean => a < firstSpot
const isSpot = ([, { a }]: readonly [string, Order]): boolean => a >= firstSpot && a < firstOfDexes

const perpetuals = Effect.gen(function*() {
  const { meta } = yield* Info
  const { universe } = yield* meta()
  return universe.map(({ name, szDecimals }, asset) => ({ asset, name, szDecimals, market: "perp" as const }))
})

const spotPairs = Effect.gen(function*() {
  const { spotMeta } = yield* Info
  const { tokens, universe } = yield* spotMeta()
  const byIndex = new Map(tokens.map((token) => [token.index, token]))
  return universe.flatMap(({ index, name, tokens: [base] }) => {
    const token = byIndex.get(base)
    return token === undefined
      ? []
      : [{ asset: firstSpot + index, name, szDecimals: token.szDecimals, market: "spot" as const }]
  })
})

/**
 * Returns a warning for each price or size that the venue would refuse as too precise; at most 16 warnings.
 *
 * Reads the metadata from the cache or from the venue. Skips assets of builder-deployed dexes; returns no warnings if
 * the metadata cannot be read.
 *
 * @since 0.1.0
 */
export const warnings = Effect.fnUntraced(function*({ canonicalAction }: Inspection) {
  const orders = ordersIn(canonicalAction)
  const assets = [
    ...(orders.some(isPerpetual) ? yield* Effect.orElseSucceed(perpetuals, () => []) : []),
    ...(orders.some(isSpot) ? yield* Effect.orElseSucceed(spotPairs, () => []) : [])
  ]
  const byAsset = new Map(assets.map((each) => [each.asset, each]))
  return orders.flatMap(([path, { a, p, s }]) => {
    const asset = byAsset.get(a)
    if (asset === undefined) return []
    const fitting = OrderAction.fit({ price: p, size: s }, asset)
    return [{ member: "p", name: "price", sent: p, fits: fitting.price }, {
      member: "s",
      name: "size",
      sent: s,
      fits: fitting.size
    }]
      .filter(({ fits, sent }) => fits !== sent)
      .map(({ fits, member, name, sent }) =>
        `${path}.${member}: ${sent} is too precise for the ${name} of ${asset.name} (szDecimals ${asset.szDecimals}): send ${fits}`
      )
  }).slice(0, maxWarnings)
})
