/**
 * Every module of `@trigate/signing` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/signing/…`: Node then loads only those.
 */

/** Decimal strings in the venue's canonical form: plain, without redundant zeros. */
export * as Decimal from "./Decimal.ts"

/** Converts amounts of HYPE between decimal strings and the venue's integer unit `wei`. */
export * as Hype from "./Hype.ts"

/** Issues nonces for actions, unique for each signer. */
export * as NonceSource from "./NonceSource.ts"

/** A `NonceSource` that several processes share: each nonce is issued atomically in Redis. */
export * as NonceSourceRedis from "./NonceSourceRedis.ts"

/** The secp256k1 curve: keys, signatures, and signer recovery, with libsecp256k1 or with noble. */
export * as Secp256k1 from "./Secp256k1.ts"

/** Signers: a private key in this process, a wallet, or an external key store. */
export * as Signer from "./Signer.ts"

/** Recovers the signers of a request and identifies the signed message. */
export * as SignerRecovery from "./SignerRecovery.ts"

/**
 * Profiles of the trading chain's networks: the constants that the venue's documentation does not define, and the
 * service that selects a program's network.
 */
export * as VenueProfile from "./VenueProfile.ts"

/** Builds request bodies: actions in the form of the `Venue`, signed by the `Signer`. */
export * as ActionBuilder from "./actions/ActionBuilder.ts"

/** Converts an action to the venue's form, and reports the differences as mistakes. */
export * as ActionForm from "./actions/ActionForm.ts"

/** Hashes actions: the connection ID of an L1 action, and the action hash of a multi-sig wrapper. */
export * as ActionHash from "./actions/ActionHash.ts"

/**
 * Finds the venue's name for another name in a request, which is a typo, or the name that another venue, API version or
 * programming language uses. Covers action types, members, and the words of closed sets.
 */
export * as ActionNames from "./actions/ActionNames.ts"

/** The order in which the venue hashes the members of an action, independent of their order in the body. */
export * as ActionOrder from "./actions/ActionOrder.ts"

/** Validates each value of an action: its type, its closed set of words, and its range; suggests the intended value. */
export * as ActionValues from "./actions/ActionValues.ts"

/** Converts an action to the form in which the venue hashes it, whatever the order and format of its JSON. */
export * as CanonicalAction from "./actions/CanonicalAction.ts"

/** Canonical MessagePack: encodes a parsed JSON value to the same bytes as the venue does. */
export * as MsgPack from "./actions/MsgPack.ts"

/** Makes orders, trailing stops, cancels and modifications in the venue's form, from parameters whose names contain the units. */
export * as OrderAction from "./actions/OrderAction.ts"

/** A message to sign: an EIP-712 message of flat fields, as a 32-byte digest and as the object that a wallet displays. */
export * as Signable from "./actions/Signable.ts"

/** User-signed actions: their fields are signed as EIP-712 typed data, instead of a hash of the action. */
export * as UserSigned from "./actions/UserSigned.ts"

/**
 * Computes the digests of views. A view is a hypothesis about how a request was hashed and signed. Intermediate results
 * are cached.
 */
export * as SignedDigest from "./inspection/SignedDigest.ts"

/** Generates messages that a signer could have signed by mistake instead of the correct one. */
export * as SignedReading from "./inspection/SignedReading.ts"

/** A view of a request: a hypothesis about how the signer deviated from the venue's hashing and signing. */
export * as SignedView from "./inspection/SignedView.ts"

/**
 * The table of signing mistakes: the meaning, detection, message and correction of each. The documentation is generated
 * from it.
 */
export * as SigningMistake from "./inspection/SigningMistake.ts"

/**
 * Warns about parts of an action that the venue converts to a different format before it hashes them. Without the
 * warning, a signer could sign the parts as sent, and the signature would recover to an unrelated address.
 */
export * as SigningWarning from "./inspection/SigningWarning.ts"

/**
 * The chains to which wallets connect. A wallet can sign with the ID of its connected chain while the venue hashes
 * another chain ID. The inspector tries the IDs in this list to find this mistake.
 */
export * as WalletChains from "./inspection/WalletChains.ts"

/** Decodes multi-sig wrappers, and returns the messages that the inner signers and the leader sign. */
export * as MultiSig from "./multisig/MultiSig.ts"

/**
 * The co-signers' approvals of a multi-sig proposal, and the body that the leader sends after enough co-signers have
 * approved.
 */
export * as MultiSigApproval from "./multisig/MultiSigApproval.ts"

/** A proposal of a multi-sig action, exchanged between the machines of the co-signers. */
export * as MultiSigProposal from "./multisig/MultiSigProposal.ts"

/** The terms of a multi-sig action: the action, its leader and its expiry. They determine the messages that co-signers sign. */
export * as MultiSigTerms from "./multisig/MultiSigTerms.ts"
