/**
 * The resources of the token chain: addresses, tokens with their four kinds of contracts, and transactions of accounts.
 *
 * The friendly form is 36 bytes as 48 characters of base64 or base64url: tag, workchain, 32-byte hash, and the CRC16
 * XMODEM (big-endian) of these 34 bytes. The raw form is `<workchain>:<64 hex digits>`, without a checksum. The parser
 * is deliberately stricter than most: no mixed alphabets, no bare hex, and no workchain besides 0 and -1.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { openStruct } from "../encoding/Encoding.ts"
import { InvalidAddress } from "../errors/GatewayError.ts"

/** The account of an address, independent of its form; `hash` is 64 lower-case hex digits. */
export interface Account {
  readonly workchain: 0 | -1
  readonly hash: string
}

/** A parsed address: its account, and the flags of the friendly form. */
export interface Parsed extends Account {
  readonly form: "raw" | "bounceable" | "non-bounceable"
  readonly testOnly: boolean
}

/** The options of the friendly form. Default: bounceable, base64url, not test-only. */
export interface FriendlyForm {
  readonly bounceable?: boolean
  readonly urlSafe?: boolean
  readonly testOnly?: boolean
}

const BOUNCEABLE = 0x11
const NON_BOUNCEABLE = 0x51
const TEST_ONLY = 0x80
const FRIENDLY_LENGTH = 48
const CHECKED_BYTES = 34
// longer than every valid address, and short enough for an error message
const MAX_QUOTED = 128

const crc16 = (bytes: Uint8Array): number => {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021
    crc &= 0xffff
  }
  return crc
}

const toHex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")

const readRaw = (text: string): Result.Result<Parsed, string> => {
  const [workchain, hash, ...rest] = text.split(":")
  if (hash === undefined || rest.length > 0 || !/^[0-9a-fA-F]{64}$/u.test(hash)) {
    return Result.fail("a raw address is <workchain>:<64 hex digits>")
  }
  if (workchain !== "0" && workchain !== "-1") return Result.fail("workchain is neither 0 nor -1")
  return Result.succeed({
    workchain: workchain === "0" ? 0 : -1,
    hash: hash.toLowerCase(),
    form: "raw",
    testOnly: false
  })
}

const readFriendly = (text: string): Result.Result<Parsed, string> => {
  if (text.includes(" ")) return Result.fail("contains a space; in a query, + must be sent as %2B")
  if (text.length !== FRIENDLY_LENGTH) {
    return Result.fail(
      `a friendly address has ${FRIENDLY_LENGTH} characters, not ${text.length}; a raw address is <workchain>:<64 hex digits>`
    )
  }
  if (!/^[A-Za-z0-9+/_-]*$/u.test(text)) return Result.fail("contains a character outside base64 and base64url")
  if (/[+/]/u.test(text) && /[_-]/u.test(text)) {
    return Result.fail("mixed alphabets: base64 and base64url in one address")
  }
  const bytes = Uint8Array.from(
    atob(text.replaceAll("-", "+").replaceAll("_", "/")),
    (character) => character.charCodeAt(0)
  )
  const view = new DataView(bytes.buffer)
  if (view.getUint16(CHECKED_BYTES) !== crc16(bytes.subarray(0, CHECKED_BYTES))) return Result.fail("checksum differs")
  const tag = view.getUint8(0) & ~TEST_ONLY
  if (tag !== BOUNCEABLE && tag !== NON_BOUNCEABLE) return Result.fail("unknown tag in the first byte")
  const workchain = view.getInt8(1)
  if (workchain !== 0 && workchain !== -1) return Result.fail("workchain is neither 0 nor -1")
  return Result.succeed({
    workchain,
    hash: toHex(bytes.subarray(2, CHECKED_BYTES)),
    form: tag === BOUNCEABLE ? "bounceable" : "non-bounceable",
    testOnly: (view.getUint8(0) & TEST_ONLY) !== 0
  })
}

const read = (text: string): Result.Result<Parsed, string> => text.includes(":") ? readRaw(text) : readFriendly(text)

/** Parses an address in either form. Fails with `InvalidAddress`, which describes the mistake. */
export const parse = (text: string): Result.Result<Parsed, InvalidAddress> =>
  Result.mapError(read(text), (reason) =>
    new InvalidAddress({
      address: text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text,
      reason,
      detail: `Not a token-chain address: ${reason}`
    }))

/** Formats an account in the raw form, with hex digits in lower case. */
export const formatRaw = (account: Account): string => `${account.workchain}:${account.hash}`

/** Formats an account in the friendly form, which has 48 characters. */
export const format = (account: Account, form: FriendlyForm = {}): string => {
  const { bounceable = true, testOnly = false, urlSafe = true } = form
  const bytes = new Uint8Array(CHECKED_BYTES + 2)
  const view = new DataView(bytes.buffer)
  view.setUint8(0, (bounceable ? BOUNCEABLE : NON_BOUNCEABLE) | (testOnly ? TEST_ONLY : 0))
  view.setInt8(1, account.workchain)
  for (let i = 0; i < 32; i++) view.setUint8(2 + i, Number.parseInt(account.hash.slice(2 * i, 2 * i + 2), 16))
  view.setUint16(CHECKED_BYTES, crc16(bytes.subarray(0, CHECKED_BYTES)))
  const text = btoa(String.fromCharCode(...bytes))
  return urlSafe ? text.replaceAll("+", "-").replaceAll("/", "_") : text
}

const givenTypes = {
  raw: "raw_form",
  bounceable: "friendly_bounceable",
  "non-bounceable": "friendly_non_bounceable"
} as const

/** Returns every form of an address, as servers return them for `detectAddress`. */
export const detect = (address: Parsed) => {
  const { form, testOnly } = address
  const friendly = (bounceable: boolean) => ({
    b64: format(address, { bounceable, testOnly, urlSafe: false }),
    b64url: format(address, { bounceable, testOnly })
  })
  return {
    raw_form: formatRaw(address),
    bounceable: friendly(true),
    non_bounceable: friendly(false),
    given_type: givenTypes[form],
    test_only: testOnly
  }
}

const isAccepted = Schema.makeFilter<string>(
  (text) => Result.match(read(text), { onFailure: (reason) => reason, onSuccess: () => undefined }),
  {
    toJsonSchema: () => ({ pattern: "^(?:(?:0|-1):[0-9a-fA-F]{64}|[A-Za-z0-9+/_-]{48})$" }),
    // a generator cannot make friendly addresses from a pattern, because their checksums would be wrong
    arbitraryConstraint: { patterns: [{ source: "^(?:0|-1):[0-9a-f]{64}$", flags: "" }] }
  }
)

/** An address in any form that `parse` accepts, as the caller wrote it. */
export const TonAddress = Schema.String.check(isAccepted).pipe(Schema.brand("TonAddress")).annotate({
  identifier: "TonAddress",
  description: "Token-chain address: friendly (48 characters of base64 or base64url) or raw (<workchain>:<64 hex>)"
})
export type TonAddress = typeof TonAddress.Type

/** Validates a text as a `TonAddress` without changing it. */
export const check = (text: string): Result.Result<TonAddress, InvalidAddress> =>
  Result.map(parse(text), () => TonAddress.make(text))

/** Formats an account in the gateway's canonical form: friendly, bounceable, base64url, not test-only. */
export const canonical = (account: Account): TonAddress => TonAddress.make(format(account))

/** The number of decimals if the metadata contains none (TEP-64). */
export const DEFAULT_DECIMALS = 9

/**
 * A fungible token, by its master contract.
 *
 * `name` and `symbol` can be absent if `metadata` is `"unresolved"`. Several tokens can have the same name and symbol;
 * only `address` is unique.
 */
export const TokenData = Schema.Struct({
  name: Schema.optionalKey(Schema.String),
  symbol: Schema.optionalKey(Schema.String),
  decimals: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 })).annotate({
    description: "Decimals of an amount; 9 if the token's metadata contains no valid decimals (TEP-64)"
  }),
  totalSupply: Schema.String.check(Schema.isPattern(/^(?:0|[1-9][0-9]{0,77})$/u)).annotate({
    description: "The total supply in the smallest unit, as a decimal string with every digit"
  }),
  mintable: Schema.Boolean.annotate({ description: "Whether the admin can still mint" }),
  burnable: Schema.Boolean.annotate({
    description: "Always true: TEP-74 requires every jetton wallet to accept a burn, and no server reports this value"
  }),
  address: TonAddress.annotate({
    description: "The master contract in canonical form: bounceable, base64url, not test-only"
  }),
  metadata: Schema.Literals(["onchain", "offchain", "unresolved"]).annotate({
    description:
      "`onchain`: name, symbol and decimals come from the contract itself. `offchain`: at least one of them comes from the " +
      "document that the contract refers to. `unresolved`: one of them is missing, or is in a document that could not be read, " +
      "or the stated decimals are not a number from 0 to 255. If the token's decimals are unknown, `decimals` is 9"
  })
}).annotate({ identifier: "TokenData" })
export type TokenData = typeof TokenData.Type

/** A TVM integer of up to 257 bits: a JSON number, or a decimal string from newer servers. */
export const TvmInteger = Schema.Union([
  Schema.Int,
  Schema.BigInt,
  Schema.String.check(Schema.isPattern(/^-?[0-9]{1,78}$/u))
]).pipe(
  Schema.decodeTo(
    Schema.BigInt,
    SchemaTransformation.transform({ decode: (value) => BigInt(value), encode: (value) => value.toString() })
  )
)

/** On-chain metadata by attribute (TEP-64); `uri` refers to a document with further attributes. */
const OnchainContent = Schema.Struct({
  type: Schema.Literal("onchain"),
  data: Schema.NullOr(Schema.Record(Schema.String, Schema.Unknown))
})

/** Off-chain metadata: `data` is the URI of a JSON document. */
const OffchainContent = Schema.Struct({ type: Schema.Literal("offchain"), data: Schema.NullOr(Schema.String) })

/** Metadata of a token contract as servers report it (TEP-64). */
export const TokenContent = Schema.Union([OnchainContent, OffchainContent])
export type TokenContent = typeof TokenContent.Type

/** Makes a member that servers omit, or send as `null`, when it has no value. */
const sometimes = <S extends Schema.ConstraintCodec<unknown, unknown>>(schema: S) =>
  Schema.optionalKey(Schema.NullOr(schema))

/** A fungible token's master contract. `admin_address` is absent if the token has no admin. */
export const JettonMaster = openStruct({
  contract_type: Schema.Literal("jetton_master").pipe(
    Schema.withDecodingDefaultKey(Effect.succeed("jetton_master" as const))
  ),
  total_supply: TvmInteger,
  mintable: Schema.Boolean,
  admin_address: sometimes(Schema.String),
  jetton_content: sometimes(TokenContent),
  jetton_wallet_code: sometimes(Schema.String)
}).annotate({ identifier: "JettonMaster" })
export type JettonMaster = typeof JettonMaster.Type

/** One holder's wallet for a fungible token; `jetton` is the master contract. */
export const JettonWallet = openStruct({
  contract_type: Schema.Literal("jetton_wallet"),
  balance: TvmInteger,
  owner: sometimes(Schema.String),
  jetton: sometimes(Schema.String),
  jetton_wallet_code: sometimes(Schema.String),
  mintless_is_claimed: sometimes(Schema.Boolean)
}).annotate({ identifier: "JettonWallet" })

/** A collection of non-fungible tokens; `next_item_index` is -1 if its items are not numbered in sequence. */
export const NftCollection = openStruct({
  contract_type: Schema.Literal("nft_collection"),
  next_item_index: TvmInteger,
  collection_content: Schema.optionalKey(Schema.Unknown),
  owner_address: sometimes(Schema.String)
}).annotate({ identifier: "NftCollection" })

/**
 * A non-fungible token; `index` has up to 256 bits; `content` contains the domain's records if the token is a DNS item.
 */
export const NftItem = openStruct({
  contract_type: Schema.Literal("nft_item"),
  init: Schema.Boolean,
  index: TvmInteger,
  collection_address: sometimes(Schema.String),
  owner_address: sometimes(Schema.String),
  content: Schema.optionalKey(Schema.Unknown)
}).annotate({ identifier: "NftItem" })

/**
 * The servers' responses to `getTokenData`, distinguished by `contract_type`; integers decode as `bigint`.
 *
 * Old servers omit the `contract_type` of a master contract; decoding adds it.
 */
export const TokenContract = Schema.Union([JettonWallet, NftCollection, NftItem, JettonMaster]).annotate({
  identifier: "TokenContract"
})
export type TokenContract = typeof TokenContract.Type

/** All forms of an address, as returned by `detectAddress`; `given_type` is the form in the request. */
export const DetectedAddress = openStruct({
  raw_form: Schema.String,
  bounceable: Schema.Struct({ b64: Schema.String, b64url: Schema.String }),
  non_bounceable: Schema.Struct({ b64: Schema.String, b64url: Schema.String }),
  given_type: Schema.Literals(["raw_form", "friendly_bounceable", "friendly_non_bounceable"]),
  test_only: Schema.Boolean
}).annotate({ identifier: "DetectedAddress" })
export type DetectedAddress = typeof DetectedAddress.Type

/** The type of a contract's data, in responses of servers of the C++ family to `getTokenData`. */
export const wireTypes: { readonly [Kind in TokenContract["contract_type"]]: string } = {
  jetton_master: "ext.tokens.jettonMasterData",
  jetton_wallet: "ext.tokens.jettonWalletData",
  nft_collection: "ext.tokens.nftCollectionData",
  nft_item: "ext.tokens.nftItemData"
}

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
