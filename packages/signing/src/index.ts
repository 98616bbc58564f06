/**
 * Every module of `@trigate/signing` that needs no optional peer, as a namespace.
 *
 * Written by `npm run docs:generate`. Code that starts often imports the modules themselves, such as
 * `@trigate/signing/…`: Node then loads only those.
 */

/** Decimal numbers as text, in the form in which the venue prints and hashes them: plain, without needless zeros. */
export * as Decimal from "./Decimal.ts"

/** Amounts of HYPE: decimal text, and the integer `wei` that the venue counts in. */
export * as Hype from "./Hype.ts"

/** Nonces for actions: no signer gets the same one twice. */
export * as NonceSource from "./NonceSource.ts"

/** A `NonceSource` that several processes share: each nonce is one atomic step in Redis. */
export * as NonceSourceRedis from "./NonceSourceRedis.ts"

/** The curve secp256k1, by the fastest library that loads: keys, signatures, and the addresses that signed. */
export * as Secp256k1 from "./Secp256k1.ts"

/** Signers: a private key in this process, a wallet, or a key in another place. */
export * as Signer from "./Signer.ts"

/** Recovers the signers of a request and identifies the signed message. */
export * as SignerRecovery from "./SignerRecovery.ts"

/** How one real network of the trading chain spells what the documents leave open, and which network a program is for. */
export * as VenueProfile from "./VenueProfile.ts"

/** Ready request bodies: an action built in the form of the `Venue` and signed by the `Signer`. */
export * as ActionBuilder from "./actions/ActionBuilder.ts"

/** What in an action is not in the venue's form, and the form that it has to have. */
export * as ActionForm from "./actions/ActionForm.ts"

/** The hash of an action: the connection id that signs an L1 action, and the action hash of a multi-sig wrapper. */
export * as ActionHash from "./actions/ActionHash.ts"

/** Names that programs send in place of the venue's: types, members and words of other venues, versions and languages. */
export * as ActionNames from "./actions/ActionNames.ts"

/** The order in which the venue hashes the members of an action, whatever their order in the body. */
export * as ActionOrder from "./actions/ActionOrder.ts"

/** What each value of an action has to be: its type, its closed set of words, its range, and the value that was meant. */
export * as ActionValues from "./actions/ActionValues.ts"

/** Puts an action into the form in which the venue hashes it, however its JSON was ordered and spelled. */
export * as CanonicalAction from "./actions/CanonicalAction.ts"

/** Canonical MessagePack: byte for byte what the venue's own encoder writes for a parsed JSON value. */
export * as MsgPack from "./actions/MsgPack.ts"

/** Orders, cancels and modifies in the venue's form, from terms that name their units. */
export * as OrderAction from "./actions/OrderAction.ts"

/** What a key signs: one EIP-712 message of flat fields, as its 32-byte digest and as the object a wallet displays. */
export * as Signable from "./actions/Signable.ts"

/** User-signed actions: the action's own fields are the typed data. */
export * as UserSigned from "./actions/UserSigned.ts"

/** The digest that is signed under a view of a request, with each step between them computed once. */
export * as SignedDigest from "./inspection/SignedDigest.ts"

/** Messages that a signer may have signed by mistake, instead of the message that belongs to a request. */
export * as SignedReading from "./inspection/SignedReading.ts"

/** One way to read a request: what would be hashed and signed if a program did everything else as the venue does. */
export * as SignedView from "./inspection/SignedView.ts"

/** The table of mistakes: what each means, how it is recognised, its sentence and its repair. Documents are made from it. */
export * as SigningMistake from "./inspection/SigningMistake.ts"

/** What in an action makes correct signatures recover to strangers, because the venue hashes it in another spelling. */
export * as SigningWarning from "./inspection/SigningWarning.ts"

/** Chains that wallets are connected to, and under which they sign although the venue hashes another chain id. */
export * as WalletChains from "./inspection/WalletChains.ts"

/** Multi-sig wrappers: how one is read, what its inner signers sign, and what its leader signs over all of it. */
export * as MultiSig from "./multisig/MultiSig.ts"

/** The co-signers' approvals of a multi-sig proposal, and the body that the leader sends once there are enough. */
export * as MultiSigApproval from "./multisig/MultiSigApproval.ts"

/** What the co-signers of a multi-sig account are asked to sign, as a value that is passed between their machines. */
export * as MultiSigProposal from "./multisig/MultiSigProposal.ts"

/** What a multi-sig account is to do, who sends it and until when. The co-signers' signatures follow from these terms. */
export * as MultiSigTerms from "./multisig/MultiSigTerms.ts"
