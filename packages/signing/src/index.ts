/**
 * Every module of `@trigate/signing` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/signing/…`: Node then loads only those.
 */

/** Decimal strings in the venue's canonical form, and amounts of HYPE in the venue's integer unit `wei`. */
export * as Decimal from "./Decimal.ts"

/** Issues nonces for actions, unique for each signer. */
export * as NonceSource from "./NonceSource.ts"

/** A `NonceSource` that several processes share: each nonce is issued atomically in Redis. */
export * as NonceSourceRedis from "./NonceSourceRedis.ts"

/** The secp256k1 curve: keys, signatures, and signer recovery, with libsecp256k1 or with noble. */
export * as Secp256k1 from "./Secp256k1.ts"

/** Signers: a private key in this process, a wallet, or an external key store. */
export * as Signer from "./Signer.ts"

/**
 * Profiles of the trading chain's networks: the constants that the venue's documentation does not define, and the
 * service that selects a program's network.
 */
export * as VenueProfile from "./VenueProfile.ts"

/** Builds request bodies: actions in the form of the `Venue`, signed by the `Signer`. */
export * as ActionBuilder from "./actions/ActionBuilder.ts"

/** Converts an action to the venue's form, and reports the differences in names, values and structure as mistakes. */
export * as ActionForm from "./actions/ActionForm.ts"

/**
 * The message that a signer signs: canonical MessagePack, the hash of an action, and EIP-712 messages with their
 * digests.
 */
export * as ActionHash from "./actions/ActionHash.ts"

/**
 * Converts an action to the form in which the venue hashes it, whatever the order and format of its JSON: L1 actions,
 * user-signed actions as EIP-712 typed data, and multi-sig wrappers. Recovers the signers of a request.
 */
export * as CanonicalAction from "./actions/CanonicalAction.ts"

/** Makes orders, trailing stops, cancels and modifications in the venue's form, from parameters whose names contain the units. */
export * as OrderAction from "./actions/OrderAction.ts"

/** Generates messages that a signer could have signed by mistake instead of the correct one. */
export * as SignedReading from "./inspection/SignedReading.ts"

/**
 * A view of a request: a hypothesis about how the signer deviated from the venue's hashing and signing, and the digest
 * that results from it.
 */
export * as SignedView from "./inspection/SignedView.ts"

/** The table of signing mistakes and warnings: the meaning, detection, message and correction of each. */
export * as SigningMistake from "./inspection/SigningMistake.ts"

/**
 * The chains to which wallets connect. A wallet can sign with the ID of its connected chain while the venue hashes
 * another chain ID. The inspector tries the IDs in this list to find this mistake.
 */
export * as WalletChains from "./inspection/WalletChains.ts"

/**
 * A multi-sig action that co-signers prepare on several machines: its terms, the proposal, the approvals, and the body
 * that the leader sends.
 */
export * as MultiSigProposal from "./multisig/MultiSigProposal.ts"
