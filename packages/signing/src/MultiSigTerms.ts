/** What a multi-sig account is to do, who sends it and until when: all that the co-signers' signatures follow from. */
import type { MultiSig as MultiSigWire } from "@trigate/domain/Action"
import { InnerAction, SignatureChainId } from "@trigate/domain/Action"
import { faultsOf } from "@trigate/domain/Decode"
import { Address } from "@trigate/domain/Hex"
import type { Signature } from "@trigate/domain/Signature"
import { Millis } from "@trigate/domain/Time"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Unhashable } from "./ActionHash.ts"
import * as CanonicalAction from "./CanonicalAction.ts"
import { lowerCase } from "./internal/bytes.ts"
import { toUint64 } from "./internal/uint64.ts"
import * as MultiSig from "./MultiSig.ts"
import { maxSigners } from "./MultiSigAction.ts"
import type * as Signable from "./Signable.ts"
import * as SigningScheme from "./SigningScheme.ts"
import { UnsignableAction, wrongShape } from "./UnsignableAction.ts"
import { nonceField } from "./UserSignedType.ts"
import { mainnet, testnet, type VenueProfile } from "./VenueProfile.ts"

/** What surrounds the action; `threshold` and `authorizedUsers` are the account's rule, where it is known. */
export const envelope = {
  network: Schema.Literals(["mainnet", "testnet"]),
  multiSigUser: Address.annotateKey({ description: "The account that acts" }),
  outerSigner: Address.annotateKey({ description: "The leader, who sends the action and whose nonce counts" }),
  signatureChainId: SignatureChainId.annotateKey({ description: "Chain id that the leader signs the wrapper under" }),
  nonce: Millis,
  vaultAddress: Schema.optionalKey(Address),
  expiresAfter: Schema.optionalKey(Millis),
  threshold: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxSigners }))),
  authorizedUsers: Schema.optionalKey(Schema.Array(Address).check(Schema.isBetweenLength(1, maxSigners)))
}

/**
 * The terms that all signers agree on.
 *
 * `action` is the form that is signed and, unless `sentAction` is given, the form that is sent: one action of the venue
 * (`userSetAbstraction`) is sent in an abbreviated form. Members of actions beyond the four known ones have to be in the
 * venue's order. Without `threshold` or `authorizedUsers` nothing is checked against them.
 */
export const MultiSigTerms = Schema.Struct({
  ...envelope,
  action: InnerAction,
  sentAction: Schema.optionalKey(InnerAction)
})
export type MultiSigTerms = typeof MultiSigTerms.Type

type Inner = MultiSigTerms["action"]

/** The profile of the network that the terms name. */
export const profileOf = ({ network }: Pick<MultiSigTerms, "network">): VenueProfile =>
  network === "mainnet" ? mainnet : testnet

const decodeTerms = Schema.decodeUnknownResult(MultiSigTerms)

const read = (terms: unknown): Result.Result<MultiSigTerms, UnsignableAction> =>
  Result.mapError(decodeTerms(terms), (error) => {
    const [first] = faultsOf(error)
    return new UnsignableAction({
      reason: "shape",
      path: first?.path ?? [],
      detail: first?.message ?? "Not the terms of a multi-sig action"
    })
  })

const single = (
  terms: MultiSigTerms,
  name: "action" | "sentAction",
  given: Inner
): Result.Result<Inner, UnsignableAction> =>
  CanonicalAction.canonicalize(profileOf(terms), given).pipe(
    Result.flatMap(({ action, kind }) =>
      kind === "single" && Predicate.isString(action["type"])
        ? Result.succeed({ ...action, type: action["type"] })
        : Result.fail(wrongShape("type", "another than multiSig"))
    ),
    Result.mapError((error) => error.within(name))
  )

const checkScheme = (terms: MultiSigTerms, action: Inner): Result.Result<void, UnsignableAction> =>
  Result.flatMap(SigningScheme.of(action), (scheme) => {
    if (scheme.scheme === "l1") return Result.succeed(undefined)
    const field = nonceField(scheme.type)
    return field === undefined || toUint64(action[field.name]) === BigInt(terms.nonce)
      ? Result.succeed(undefined)
      : Result.fail(wrongShape(field.name, "the nonce of the proposal"))
  }).pipe(Result.mapError((error) => error.within("action")))

const checkRule = ({ authorizedUsers, threshold }: MultiSigTerms): Result.Result<void, UnsignableAction> =>
  threshold !== undefined && authorizedUsers !== undefined && threshold > authorizedUsers.length
    ? Result.fail(wrongShape("threshold", "at most the number of authorized users"))
    : Result.succeed(undefined)

/**
 * The terms as they are hashed: addresses in lower case, each authorized user once, actions in canonical form.
 *
 * Fails with `UnsignableAction` for terms that do not read, a wrapper inside the wrapper, a user-signed action under
 * another nonce, a user-signed action whose fields are not known, a threshold that can never be met.
 */
export const canonicalize = (given: unknown): Result.Result<MultiSigTerms, UnsignableAction> =>
  Result.gen(function*() {
    const terms = yield* read(given)
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

/** The wrapper as the leader sends it, around the form of the action that is sent; the terms are in canonical form. */
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

/** What each co-signer signs. Fails with `MsgPackUnencodable` or `UnsignableAction`. */
export const innerSignable = (terms: MultiSigTerms): Result.Result<Signable.Signable, Unhashable> => {
  const sent = wrapper(terms, [])
  return MultiSig.innerSignable(
    profileOf(terms),
    { ...sent, payload: { ...sent.payload, action: terms.action } },
    terms
  )
}
