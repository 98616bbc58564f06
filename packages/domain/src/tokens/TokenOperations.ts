/**
 * The calls of the token chain: `GET /api/v2/getTokenData`, and the methods of `POST /api/v2/jsonRPC`.
 *
 * The methods are those that both families of TON HTTP API servers (Python and C++) document. Methods that write
 * (`send…`) are sent at most once.
 */
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type { Json } from "../encoding/Encoding.ts"
import { InvalidAddress, OutcomeUnknown, TokenNotFound } from "../errors/GatewayError.ts"
import * as Operation from "../operations/Operation.ts"
import * as TonAddress from "./TokenData.ts"

const Address = TonAddress.TonAddress
/** Makes an optional member; clients of older servers send `null` instead of omitting it. */
const optional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const seqno = Schema.Natural.annotate({ description: "Sequence number of a block" })
const atBlock = { seqno: optional(seqno) }
const optionalText = optional(Schema.String)
/** A count, as a JSON number or a string of digits. */
const Count = Schema.Union([Schema.Natural, Schema.String.check(Schema.isPattern(/^[0-9]{1,16}$/u))])
/** A 64-bit integer: logical times and shards exceed 2^53, so most clients send a string. */
const Int64 = Schema.Union([Schema.Int, Schema.BigInt, Schema.String.check(Schema.isPattern(/^-?[0-9]{1,20}$/u))])

/** The cache policy of token data. Its times are short, because any transaction can change the supply. */
const someSeconds = (): Operation.CachePolicy => ({ fresh: 10_000, staleIfError: 5 * 60_000 })

const day = 24 * 60 * 60_000

/**
 * Returns the caching rules for results that depend only on the request. A result is cached if it decodes as `response`.
 */
const computed = (response: Operation.AnyCodec) => ({
  failures: [InvalidAddress],
  cheap: true,
  cachePolicy: (): Operation.CachePolicy => ({ fresh: day, staleIfError: day }),
  isCacheable: Operation.decodes(response)
} as const)

/** Returns whether a response document reports success, in the format of any server. */
const isSuccess = (_request: unknown, response: Json): boolean => {
  const value = response.valueOrUndefined
  if (!Predicate.isObject(value) || Array.isArray(value) || Predicate.hasProperty(value, "error")) return false
  return Predicate.hasProperty(value, "ok") ? value.ok === true : true
}

/**
 * Returns the data of a fungible token. Accepts the master contract's address in any form; the address in the response
 * always has the canonical form.
 */
export const getTokenData = Operation.read({
  name: "getTokenData",
  chain: "tokens",
  protocol: "token-rest",
  summary: "A fungible token by the address of its master contract",
  sources: ["node"],
  cost: { weight: 0, requestUnits: 1 },
  request: Schema.Struct({ address: Address }),
  response: TonAddress.TokenData,
  failures: [InvalidAddress, TokenNotFound],
  cachePolicy: someSeconds,
  // the cached body is in the server's own format, not in that of `response`
  isCacheable: isSuccess
})

const method = <
  const Name extends string,
  Request extends Operation.AnyCodec,
  Response extends Operation.AnyCodec,
  const Failures extends ReadonlyArray<Operation.AnyCodec>
>(
  declaration: Operation.Caching<Request["Type"]> & {
    readonly name: Name
    readonly summary: string
    readonly request: Request
    readonly response: Response
    readonly failures: Failures
    readonly requestUnits?: number
    readonly cheap?: true
  }
): Operation.Operation<Name, "read", Request, Response, Failures> => {
  const { requestUnits = 1, ...rest } = declaration
  return Operation.read({
    ...rest,
    chain: "tokens",
    protocol: "token-rpc",
    sources: ["node"],
    cost: { weight: 0, requestUnits }
  })
}

/** The schema of an object without members, for methods without params. An empty struct would accept any members. */
const noMembers = Schema.Record(Schema.String, Schema.Never)

/** Declares a method whose response is relayed unchanged. */
const relayed = <const Name extends string, Fields extends Record<string, Operation.AnyCodec>>(
  name: Name,
  summary: string,
  fields: Fields,
  requestUnits = 1
) => {
  const hasNoParams = Object.keys(fields).length === 0
  return method({
    name,
    summary,
    request: hasNoParams ? noMembers : Schema.Struct(fields),
    response: Schema.Unknown,
    failures: [InvalidAddress],
    requestUnits,
    ...(hasNoParams ? { cheap: true } : {})
  })
}

const account = { address: Address, ...atBlock }
const message = { source: Address, destination: Address, created_lt: Int64 }
const block = { workchain: Schema.Int, shard: Int64, seqno, root_hash: optionalText, file_hash: optionalText }
const blockTransactions = {
  ...block,
  after_lt: optional(Int64),
  after_hash: optionalText,
  count: optional(Count)
}
const accountTransactions = {
  address: Address,
  limit: optional(Count),
  lt: optional(Int64),
  hash: optionalText,
  to_lt: optional(Int64),
  archival: optional(Schema.Boolean)
}
const getMethod = {
  ...account,
  method: Schema.Union([Schema.String, Schema.Int]),
  stack: Schema.Array(Schema.Unknown)
}

/** Converts an address to its friendly form. */
export const packAddress = method({
  ...computed(Schema.String),
  name: "packAddress",
  summary: "The friendly form of an address, in base64 or base64url depending on the server",
  request: Schema.Struct({ address: Address }),
  response: Schema.String
})

/** Converts an address to its raw form. */
export const unpackAddress = method({
  ...computed(Schema.String),
  name: "unpackAddress",
  summary: "The raw form of an address, in upper or lower case depending on the server",
  request: Schema.Struct({ address: Address }),
  response: Schema.String
})

/** Returns all forms of an address. */
export const detectAddress = method({
  ...computed(TonAddress.DetectedAddress),
  name: "detectAddress",
  summary: "All forms of an address",
  request: Schema.Struct({ address: Address }),
  response: TonAddress.DetectedAddress
})

/**
 * Returns a token contract: jetton master, jetton wallet, NFT collection or NFT item. The servers' method is also named
 * `getTokenData`.
 */
export const getTokenContract = method({
  name: "getTokenData",
  summary: "A token contract by its address: jetton master, jetton wallet, NFT collection or NFT item",
  request: Schema.Struct(account),
  response: TonAddress.TokenContract,
  failures: [InvalidAddress, TokenNotFound],
  cachePolicy: someSeconds,
  isCacheable: Operation.decodes(TonAddress.TokenContract)
})

/** The methods of `POST /api/v2/jsonRPC` by name; `params` is an object, and `result` is in the server's own format. */
export const tokenRpcOperations = {
  packAddress,
  unpackAddress,
  detectAddress,
  getTokenData: getTokenContract,
  getAddressInformation: relayed("getAddressInformation", "Balance, code, data and state of an account", account),
  getExtendedAddressInformation: relayed(
    "getExtendedAddressInformation",
    "An account with its contract type resolved",
    account
  ),
  getWalletInformation: relayed("getWalletInformation", "Wallet type, seqno and balance of an account", account),
  getAddressBalance: relayed("getAddressBalance", "Balance of an account, in nanotons", account),
  getAddressState: relayed("getAddressState", "Whether an account is active, uninitialized or frozen", account),
  getShardAccountCell: relayed("getShardAccountCell", "The cell of an account in its shard's state", account),
  detectHash: method({
    ...computed(Schema.Record(Schema.String, Schema.String)),
    name: "detectHash",
    summary: "All forms of a hash",
    request: Schema.Struct({ hash: Schema.String }),
    response: Schema.Unknown
  }),
  dnsResolve: relayed("dnsResolve", "The records of a domain", {
    domain: Schema.String,
    resolver_address: optional(Address),
    ...atBlock
  }),
  getTransactions: relayed("getTransactions", "Transactions of an account, newest first", accountTransactions, 2),
  getTransactionsStd: relayed(
    "getTransactionsStd",
    "Transactions of an account, newest first, and the ID of the next page's first transaction",
    accountTransactions,
    2
  ),
  tryLocateTx: relayed("tryLocateTx", "The transaction that received a message", message),
  tryLocateResultTx: relayed("tryLocateResultTx", "The transaction that received a message", message),
  tryLocateSourceTx: relayed("tryLocateSourceTx", "The transaction that sent a message", message),
  getMasterchainInfo: relayed("getMasterchainInfo", "The newest masterchain block", {}),
  getConsensusBlock: relayed("getConsensusBlock", "The newest block on which the network reached consensus", {}),
  getMasterchainBlockSignatures: relayed(
    "getMasterchainBlockSignatures",
    "Validators' signatures of a masterchain block",
    { seqno }
  ),
  shards: relayed("shards", "The shard blocks of a masterchain block", { seqno }),
  getShards: relayed("getShards", "The shard blocks of a masterchain block (same as the method `shards`)", { seqno }),
  getShardBlockProof: relayed("getShardBlockProof", "The proof that ties a shard block to the masterchain", {
    workchain: Schema.Int,
    shard: Int64,
    seqno,
    from_seqno: optional(seqno)
  }),
  lookupBlock: relayed("lookupBlock", "A block by its seqno, logical time or Unix time", {
    workchain: Schema.Int,
    shard: Int64,
    ...atBlock,
    lt: optional(Int64),
    unixtime: optional(Schema.Natural)
  }),
  getBlockTransactions: relayed("getBlockTransactions", "Short ids of a block's transactions", blockTransactions),
  getBlockTransactionsExt: relayed("getBlockTransactionsExt", "A block's transactions in full", blockTransactions),
  getBlockHeader: relayed("getBlockHeader", "The header of a block", block),
  getOutMsgQueueSize: relayed("getOutMsgQueueSize", "Lengths of the outgoing message queues, by shard", {}),
  getConfigParam: relayed("getConfigParam", "One parameter of the network's configuration", {
    config_id: Schema.Int,
    ...atBlock
  }),
  getConfigAll: relayed("getConfigAll", "The network's configuration", atBlock),
  getLibraries: relayed("getLibraries", "Library cells by their hashes", { libraries: Schema.Array(Schema.String) }),
  runGetMethod: relayed("runGetMethod", "The result of a contract's get method", getMethod),
  runGetMethodStd: relayed(
    "runGetMethodStd",
    "The result of a contract's get method, with the stack in typed form",
    getMethod
  ),
  estimateFee: relayed("estimateFee", "The fees that a message would cost", {
    address: Address,
    body: Schema.String,
    init_code: optionalText,
    init_data: optionalText,
    ignore_chksig: optional(Schema.Boolean)
  })
} as const

/** Any operation of {@link tokenRpcOperations}. */
export type TokenRpcOperation = (typeof tokenRpcOperations)[keyof typeof tokenRpcOperations]

/** The advice for a message with an unknown outcome. */
export const messageAdvice =
  "Look for the message among the account's transactions first. A wallet executes the identical bytes at most once, because they contain its seqno, " +
  "so it is safe to send them again. Do not sign again under another seqno before you know the outcome"

const sending = <const Name extends string, Fields extends Record<string, Operation.AnyCodec>>(
  name: Name,
  summary: string,
  fields: Fields
) =>
  Operation.once({
    name,
    chain: "tokens",
    protocol: "token-rpc",
    summary,
    sources: ["node"],
    cost: { weight: 0, requestUnits: 1 },
    request: Schema.Struct(fields),
    response: Schema.Unknown,
    failures: [InvalidAddress, OutcomeUnknown],
    advice: messageAdvice
  })

/** A cell as base64, or as an object of its bits and references. */
const cell = Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)])

/** The methods that send a message to the chain, by name. */
export const tokenSendOperations = {
  sendBoc: sending("sendBoc", "Send a message, at most once", { boc: Schema.NonEmptyString }),
  sendBocReturnHash: sending("sendBocReturnHash", "Send a message, at most once, and return its hash", {
    boc: Schema.NonEmptyString
  }),
  sendBocReturnHashNoError: sending(
    "sendBocReturnHashNoError",
    "Send a message, at most once, and return its hash even if the server reports an error",
    { boc: Schema.NonEmptyString }
  ),
  sendQuery: sending("sendQuery", "Assemble a message from its parts and send it, at most once", {
    address: Address,
    body: Schema.String,
    init_code: optionalText,
    init_data: optionalText
  }),
  sendQuerySimple: sending(
    "sendQuerySimple",
    "Assemble a message from its parts, which can be cells as objects, and send it, at most once",
    {
      address: Address,
      body: cell,
      init_code: optional(cell),
      init_data: optional(cell)
    }
  )
} as const

/** Any method that sends a message. */
export type TokenSendOperation = (typeof tokenSendOperations)[keyof typeof tokenSendOperations]

/** The read methods of `GET /api/v2/{method}`; `getTokenData` has its own route. */
export const tokenRestReads: ReadonlyArray<TokenRpcOperation> = Object.values(tokenRpcOperations)
  .filter(({ name }) => name !== "getTokenData")

/**
 * The methods of `POST /api/v2/{method}`: all reads, with their params in the body, and the methods that send messages.
 *
 * On these routes, the response of `getTokenData` has the server's own envelope.
 */
export const tokenRestPosts: ReadonlyArray<TokenRpcOperation | TokenSendOperation> = [
  ...Object.values(tokenRpcOperations),
  ...Object.values(tokenSendOperations)
]
