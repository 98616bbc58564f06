/**
 * Every module of `@trigate/signing` that needs no optional peer, as a namespace.
 *
 * Written by `npm run docs:generate`. Code that starts often imports the modules themselves, such as
 * `@trigate/signing/…`: Node then loads only those.
 */

/** Decimal numbers as text in the venue's canonical form: plain, without redundant zeros. */
export * as Decimal from "./Decimal.ts"

/** Converts amounts of HYPE between decimal text and the venue's integer unit `wei`. */
export * as Hype from "./Hype.ts"

/** A source of nonces for actions, unique for each signer. */
export * as NonceSource from "./NonceSource.ts"

/** A `NonceSource` that several processes share: each nonce is one atomic step in Redis. */
export * as NonceSourceRedis from "./NonceSourceRedis.ts"

/** The curve secp256k1: keys, signatures, and signer recovery, with the fastest library that loads. */
export * as Secp256k1 from "./Secp256k1.ts"

/** Signers: a private key in this process, a wallet, or an external key store. */
export * as Signer from "./Signer.ts"

/** Recovers the signers of a request and identifies the signed message. */
export * as SignerRecovery from "./SignerRecovery.ts"

/** Profiles of the trading chain's networks: the spellings that the documentation leaves open, and the network of a program. */
export * as VenueProfile from "./VenueProfile.ts"

/** Builds request bodies: actions in the form of the `Venue`, signed by the `Signer`. */
export * as ActionBuilder from "./actions/ActionBuilder.ts"

/** Converts an action to the venue's form, and reports the differences. */
export * as ActionForm from "./actions/ActionForm.ts"

/** Hashes actions: the connection ID of an L1 action, and the action hash of a multi-sig wrapper. */
export * as ActionHash from "./actions/ActionHash.ts"

/** Maps names that programs send to the venue's: types, members and words of other venues, versions and languages. */
export * as ActionNames from "./actions/ActionNames.ts"

/** The order in which the venue hashes the members of an action, independent of their order in the body. */
export * as ActionOrder from "./actions/ActionOrder.ts"

/** Validates each value of an action: its type, its closed set of words, and its range; suggests the intended value. */
export * as ActionValues from "./actions/ActionValues.ts"

/** Converts an action to the form in which the venue hashes it, independent of the order and the spelling of its JSON. */
export * as CanonicalAction from "./actions/CanonicalAction.ts"

/** Canonical MessagePack: byte for byte the venue's own encoding of a parsed JSON value. */
export * as MsgPack from "./actions/MsgPack.ts"

/** Makes orders, cancels and modifications in the venue's form, from parameters that name their units. */
export * as OrderAction from "./actions/OrderAction.ts"

/** A message to sign: an EIP-712 message of flat fields, as its 32-byte digest and as the object that a wallet displays. */
export * as Signable from "./actions/Signable.ts"

/** User-signed actions, whose own fields are the typed data. */
export * as UserSigned from "./actions/UserSigned.ts"

/** Computes the digest of a view of a request, each intermediate step once. */
export * as SignedDigest from "./inspection/SignedDigest.ts"

/** Generates messages that a signer may have signed by mistake instead of the correct message of a request. */
export * as SignedReading from "./inspection/SignedReading.ts"

/** A view of a request: a hypothesis about one deviation from the venue's way of hashing and signing. */
export * as SignedView from "./inspection/SignedView.ts"

/**
 * The table of mistakes: the meaning, the detection, the message and the correction of each. The documentation is generated from
 * it.
 */
export * as SigningMistake from "./inspection/SigningMistake.ts"

/**
 * Warns about parts of an action that the venue hashes in another spelling, so that correct signatures recover to unrelated
 * addresses.
 */
export * as SigningWarning from "./inspection/SigningWarning.ts"

/** Chains to which wallets are connected, and under whose IDs they sign although the venue hashes another chain ID. */
export * as WalletChains from "./inspection/WalletChains.ts"

/** Multi-sig wrappers: decodes them, and returns the messages of inner signers and of the leader. */
export * as MultiSig from "./multisig/MultiSig.ts"

/** The co-signers' approvals of a multi-sig proposal, and the body that the leader sends once the threshold is reached. */
export * as MultiSigApproval from "./multisig/MultiSigApproval.ts"

/** A proposal for the co-signers of a multi-sig account, to be exchanged between their machines. */
export * as MultiSigProposal from "./multisig/MultiSigProposal.ts"

/** The terms of a multi-sig action: the action, its leader and its expiry. They determine the messages that co-signers sign. */
export * as MultiSigTerms from "./multisig/MultiSigTerms.ts"
