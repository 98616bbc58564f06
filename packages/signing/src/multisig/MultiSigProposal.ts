/** A proposal of a multi-sig action, exchanged between the machines of the co-signers. */
import { InnerAction } from "@trigate/domain/actions/Action"
import { Hash } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import { RequestFault } from "@trigate/domain/errors/RequestError"
import { type AnyCodec, decodeFaults } from "@trigate/domain/operations/Operation"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaTransformation from "effect/SchemaTransformation"
import type { Unhashable } from "../actions/ActionHash.ts"
import * as Signable from "../actions/Signable.ts"
import { defaultChainId } from "../VenueProfile.ts"
import * as MultiSigTerms_ from "./MultiSigTerms.ts"
import type { MultiSigTerms } from "./MultiSigTerms.ts"

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
  ...MultiSigTerms_.envelope,
  action: ActionText,
  sentAction: Schema.optionalKey(ActionText),
  digest,
  typedData: Schema.optionalKey(Schema.Unknown),
  summary: Schema.optionalKey(Schema.Unknown)
})

const Proposed = Schema.Struct({
  ...MultiSigTerms_.MultiSigTerms.fields,
  digest,
  typedData: Signable.WalletData.annotateKey({
    description: "EIP-712 typed data, which a wallet displays and signs; its hash is the digest"
  }),
  summary: Schema.Array(Schema.String).annotateKey({ description: "Effects of the action, one sentence each" })
})

const derive = (given: unknown): Result.Result<typeof Proposed.Type, Unhashable> =>
  Result.gen(function*() {
    const terms = yield* MultiSigTerms_.canonicalize(given)
    const signable = yield* MultiSigTerms_.innerSignable(terms)
    return {
      ...terms,
      digest: Signable.digest(signable),
      typedData: Signable.walletData(signable),
      summary: MultiSigTerms_.summary(terms)
    }
  })

/** The reasons why a received proposal is refused. */
export type VerificationFailure = ProposalAltered | Unhashable

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
export const propose = (request: ProposalRequest): Effect.Effect<MultiSigProposal, Unhashable> =>
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
