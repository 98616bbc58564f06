/**
 * Every public module of `@trigate/signing` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/signing/…`: Node then loads only those.
 */

/** Decimal strings in the venue's canonical form, and amounts of HYPE in the venue's integer unit `wei`. */
export * as Decimal from "./Decimal.ts"

/** Issues nonces for actions, unique for each signer. */
export * as NonceSource from "./NonceSource.ts"

/**
 * Places and cancels orders by coin name: takes a nonce, signs, sends once, and determines the outcome if the response
 * is lost. Works through a gateway and with embedded services.
 */
export * as Orders from "./Orders.ts"

/** The secp256k1 curve: keys, signatures, and signer recovery, with libsecp256k1 or with noble. */
export * as Secp256k1 from "./Secp256k1.ts"

/** Signers: a private key in this process, a wallet, or an external key store. */
export * as Signer from "./Signer.ts"

/**
 * Profiles of the venue's networks: the constants that the venue's documentation does not define, and the
 * service that selects a program's network.
 */
export * as VenueProfile from "./VenueProfile.ts"

/** Builds request bodies: actions in the form of the `Venue`, signed by the `Signer`. */
export * as ActionBuilder from "./actions/ActionBuilder.ts"

/** Makes orders, trailing stops, cancels and modifications in the venue's form, from parameters whose names contain the units. */
export * as OrderAction from "./actions/OrderAction.ts"

/**
 * A multi-sig action that co-signers prepare on several machines: its terms, the proposal, the approvals, and the body
 * that the leader sends.
 */
export * as MultiSigProposal from "./multisig/MultiSigProposal.ts"
