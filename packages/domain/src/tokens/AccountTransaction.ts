/** A transaction of an account of the token chain, its position in the account's history, and a received jetton transfer. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { TonAddress } from "./TonAddress.ts"

const RawAddress = Schema.String.check(Schema.isPattern(/^-?[0-9]{1,10}:[0-9a-f]{64}$/u)).annotate({
  description: "An address in raw form: workchain and account id in lower-case hex"
})
const Digits = Schema.String.check(Schema.isPattern(/^(?:0|[1-9][0-9]{0,39})$/u))
const Nanotons = Digits.annotate({ description: "An amount in nanotons, as a decimal string" })

/**
 * The position of a transaction in the history of its account.
 *
 * `lt` is the logical time, a 64-bit integer as a decimal string. `hash` is the hash of the transaction's cell.
 *
 * @since 0.1.0
 * @category models
 */
export const Position = Schema.Struct({
  lt: Digits.annotate({ description: "Logical time, as a decimal string" }),
  hash: Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/u)).annotate({
    description: "Hash of the transaction in lower-case hex"
  })
}).annotate({ identifier: "TransactionPosition" })
/** @since 0.1.0 */
export type Position = typeof Position.Type

/** The position before the first transaction of every account. */
export const genesis: Position = { lt: "0", hash: "0".repeat(64) }

/**
 * Formats a position as `<lt>:<hash>`, which is the id of an event in a stream of transactions.
 *
 * @since 0.1.0
 */
export const formatPosition = ({ hash, lt }: Position): string => `${lt}:${hash}`

const decodePosition = Schema.decodeUnknownOption(Position)

/**
 * Parses a position of the form `<lt>:<hash>`, where the hash is hex in upper or lower case. Returns `None` for any
 * other text.
 *
 * @since 0.1.0
 */
export const parsePosition = (text: string): Option.Option<Position> => {
  const colon = text.indexOf(":")
  return colon < 0
    ? Option.none()
    : decodePosition({ lt: text.slice(0, colon), hash: text.slice(colon + 1).toLowerCase() })
}

/**
 * A message that a transaction received or sent.
 *
 * `opcode` is absent when the body has no 32-bit opcode. `comment` is the text of a body with opcode 0.
 *
 * @since 0.1.0
 * @category models
 */
export const TransactionMessage = Schema.Struct({
  kind: Schema.Literals(["internal", "external-in", "external-out"]),
  source: Schema.NullOr(RawAddress),
  destination: Schema.NullOr(RawAddress),
  value: Nanotons,
  bounced: Schema.Boolean,
  opcode: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^0x[0-9a-f]{8}$/u))),
  comment: Schema.optionalKey(Schema.String),
  body: Schema.String.annotate({ description: "The body as a bag of cells in base64" })
}).annotate({ identifier: "TransactionMessage" })
/** @since 0.1.0 */
export type TransactionMessage = typeof TransactionMessage.Type

/**
 * A finalized transaction of an account.
 *
 * All members are decoded from the transaction's own cell, whose hash is compared with the position.
 *
 * @since 0.1.0
 * @category models
 */
export const AccountTransaction = Schema.Struct({
  account: RawAddress,
  ...Position.fields,
  previous: Position.annotate({
    description: "Position of the account's previous transaction; logical time 0 if there is none"
  }),
  time: Schema.Int.annotate({ description: "Unix time in seconds" }),
  aborted: Schema.Boolean.annotate({ description: "Whether the transaction failed and its effects were discarded" }),
  fee: Nanotons,
  inMessage: Schema.NullOr(TransactionMessage),
  outMessages: Schema.Array(TransactionMessage)
}).annotate({ identifier: "AccountTransaction" })
/** @since 0.1.0 */
export type AccountTransaction = typeof AccountTransaction.Type

/**
 * A received jetton transfer: a transaction, neither aborted nor bounced, of the jetton wallet that the master contract
 * derives for the owner.
 *
 * `lt` and `hash` are those of the jetton wallet's transaction.
 *
 * @since 0.1.0
 * @category models
 */
export const JettonTransfer = Schema.Struct({
  ...Position.fields,
  time: Schema.Int.annotate({ description: "Unix time in seconds" }),
  owner: RawAddress,
  master: RawAddress,
  wallet: RawAddress.annotate({ description: "The owner's jetton wallet, as derived by the master contract" }),
  sender: Schema.NullOr(RawAddress).annotate({ description: "Owner of the sending jetton wallet; null for a mint" }),
  amount: Digits.annotate({ description: "Amount in the jetton's smallest unit, as a decimal string" }),
  queryId: Digits,
  forwardAmount: Nanotons,
  comment: Schema.optionalKey(Schema.String),
  forwardPayload: Schema.optionalKey(Schema.String).annotate({ description: "A bag of cells in base64" })
}).annotate({ identifier: "JettonTransfer" })
/** @since 0.1.0 */
export type JettonTransfer = typeof JettonTransfer.Type

/** The start of a stream of transactions: after a position, or at the account's first transaction. */
export type StartPosition = Position | "genesis"

/** The request of a stream of an account's transactions. */
export interface TransactionsRequest {
  /** The account's address in any form; its checksum is verified. */
  readonly address: string | TonAddress
  /** The start of the stream. Default: only new transactions. */
  readonly after?: StartPosition
}

/** An owner and a jetton, which together identify a jetton wallet. */
export interface JettonWalletRequest {
  /** Address of the owner, in any form. */
  readonly owner: string | TonAddress
  /** Address of the jetton's master contract, in any form. */
  readonly master: string | TonAddress
}

/** The request of a stream of received jetton transfers. */
export interface JettonTransfersRequest extends JettonWalletRequest {
  /** The start of the stream. Default: only new transactions. */
  readonly after?: StartPosition
}
