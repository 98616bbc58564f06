/**
 * The methods of EVM nodes, the same on every chain: the table of the relayed reads, the standard methods as operations
 * of a chain, and the typed reads as functions of the route.
 *
 * The methods are the same on every chain, so each method is declared once and becomes an operation of each chain that
 * serves it. Filters and subscriptions are not included: they exist only on the node that created them, and the next
 * call may use a different node. The gateway implements filters and subscriptions itself.
 */
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as Struct from "effect/Struct"
import type { Chain } from "../Caller.ts"
import { Address, Data, Hash, Quantity } from "../encoding/Encoding.ts"
import * as GatewayError from "../errors/GatewayError.ts"
import * as Operation from "../operations/Operation.ts"
import { Block, BlockNumberOrTag, LogFilter, Receipt, ReceiptLog } from "./EvmResources.ts"

/**
 * The setting that declares the nodes of HyperEVM to be archive nodes. The error message for an unsupported
 * block contains the setting's name.
 */
export const archiveSetting = "TRIGATE_TRADING_NODE_ARCHIVE"

/** A method that is relayed unchanged: its summary and, if it reads state, the index of the block among its params. */
export interface Method {
  readonly summary: string
  readonly block?: number
  /**
   * Whether each call of the method is fast, whatever its params: the method neither reads an arbitrary block nor
   * executes code.
   */
  readonly cheap?: true
  /** Blocks other than `latest` at which nodes without history serve the method. */
  readonly alsoAt?: ReadonlyArray<GatewayError.StateBlock>
}

/**
 * Allows block `pending` for the reads that wallets send before a transaction: the nonce, the gas estimate, and the
 * code. If such a read fails at `pending`, some client libraries cannot send the transaction.
 */
const beforeSending = { alsoAt: ["pending"] } as const

/** The standard methods that read an account. */
const accountMethods = {
  eth_getBalance: { summary: "Balance of an account, in wei", block: 1, alsoAt: [] },
  eth_getTransactionCount: { summary: "Number of transactions that an account has sent", block: 1, ...beforeSending }
} as const

/** Standard methods without typed declarations. `EvmReads` declares the typed methods. */
export const standardMethods: { readonly [name: string]: Method } = {
  web3_clientVersion: { summary: "Name and version of the node", cheap: true },
  web3_sha3: { summary: "Keccak-256 of some bytes" },
  net_version: { summary: "Network id, as a decimal number", cheap: true },
  net_listening: { summary: "Whether the node listens for peers", cheap: true },
  net_peerCount: { summary: "Number of the node's peers" },
  eth_protocolVersion: { summary: "Version of the protocol that the node speaks" },
  eth_syncing: { summary: "Whether the node is still syncing", cheap: true },
  eth_accounts: { summary: "Accounts of the node itself, usually none", cheap: true },
  eth_gasPrice: { summary: "Gas price suggested by the node, in wei", cheap: true },
  eth_maxPriorityFeePerGas: { summary: "Priority fee suggested by the node, in wei", cheap: true },
  eth_blobBaseFee: { summary: "Base fee of a blob in the next block, in wei", cheap: true },
  eth_feeHistory: { summary: "Base fees and priority fees of past blocks", block: 1 },
  ...accountMethods,
  eth_getCode: { summary: "Code of a contract", block: 1, ...beforeSending },
  eth_getStorageAt: { summary: "One storage word of a contract", block: 2 },
  eth_getProof: { summary: "An account and storage words with their Merkle proofs", block: 2 },
  eth_estimateGas: { summary: "Gas that a transaction would use", block: 1, ...beforeSending },
  eth_createAccessList: { summary: "Access list of a transaction", block: 1 },
  eth_simulateV1: { summary: "Results of simulated calls, grouped in blocks", block: 1 },
  eth_getBlockTransactionCountByHash: { summary: "Number of a block's transactions" },
  eth_getBlockTransactionCountByNumber: { summary: "Number of a block's transactions" },
  eth_getUncleCountByBlockHash: { summary: "Number of a block's uncles" },
  eth_getUncleCountByBlockNumber: { summary: "Number of a block's uncles" },
  eth_getUncleByBlockHashAndIndex: { summary: "An uncle of a block" },
  eth_getUncleByBlockNumberAndIndex: { summary: "An uncle of a block" },
  eth_getBlockReceipts: { summary: "Receipts of all transactions of a block" },
  eth_getTransactionByHash: { summary: "A transaction", cheap: true },
  eth_getTransactionByBlockHashAndIndex: { summary: "A transaction of a block" },
  eth_getTransactionByBlockNumberAndIndex: { summary: "A transaction of a block" }
}

/**
 * The filter methods. The gateway stores filters itself: a node loses its filters when it restarts, and other nodes do
 * not have them.
 *
 * The gateway computes the results from blocks and logs, so any node can serve the next call.
 */
export const filterMethods = {
  eth_newFilter: { summary: "Install a filter of logs" },
  eth_newBlockFilter: { summary: "Install a filter of new blocks" },
  eth_newPendingTransactionFilter: { summary: "Install a filter of pending transactions" },
  eth_getFilterChanges: { summary: "Changes since the last call with this filter" },
  eth_getFilterLogs: { summary: "All logs of a filter" },
  eth_uninstallFilter: { summary: "Remove a filter" }
} as const satisfies { readonly [name: string]: Method }

/** Returns the trace methods of OpenEthereum, Erigon, Nethermind and Reth; each name starts with `prefix`. */
const traces = (prefix: string): { readonly [name: string]: Method } => ({
  [`${prefix}_block`]: { summary: "Traces of a block" },
  [`${prefix}_call`]: { summary: "Traces of a call", block: 2 },
  [`${prefix}_callMany`]: { summary: "Traces of several successive calls", block: 1 },
  [`${prefix}_filter`]: { summary: "Traces of a range of blocks, filtered by address" },
  [`${prefix}_get`]: { summary: "One trace of a transaction" },
  [`${prefix}_replayBlockTransactions`]: { summary: "Traces of a block's replayed transactions" },
  [`${prefix}_replayTransaction`]: { summary: "Traces of a replayed transaction" },
  [`${prefix}_transaction`]: { summary: "Traces of a transaction" }
})

/**
 * Families of methods that only some nodes support. A setting selects a family by its name.
 *
 * A family excludes methods that change state or send a transaction, and methods for the operator of the node.
 */
export const families = {
  "zks_*": {
    zks_L1BatchNumber: { summary: "Number of the newest batch" },
    zks_L1ChainId: { summary: "Chain id of the L1" },
    zks_estimateFee: { summary: "Fee of a transaction" },
    zks_estimateGasL1ToL2: { summary: "Gas that a transaction sent from the L1 would use" },
    zks_gasPerPubdata: { summary: "Gas for each published byte" },
    zks_getAllAccountBalances: { summary: "Balances of an account in all tokens" },
    zks_getBaseTokenL1Address: { summary: "L1 address of the base token" },
    zks_getBatchFeeInput: { summary: "Prices from which the node computes fees" },
    zks_getBlockDetails: { summary: "A block with its status on the L1: committed, proven, executed" },
    zks_getBridgeContracts: { summary: "Addresses of the bridges" },
    zks_getBridgehubContract: { summary: "Address of the bridgehub" },
    zks_getBytecodeByHash: { summary: "A bytecode by its hash" },
    zks_getConfirmedTokens: { summary: "A page of the known tokens" },
    zks_getFeeParams: { summary: "Parameters of the fee model" },
    zks_getL1BatchBlockRange: { summary: "First and last block of a batch" },
    zks_getL1BatchDetails: { summary: "A batch with its state on the L1" },
    zks_getL1GasPrice: { summary: "Gas price of the L1" },
    zks_getL2Multicall3: { summary: "Address of Multicall3" },
    zks_getL2ToL1LogProof: { summary: "Proof of a log sent to the L1" },
    zks_getL2ToL1MsgProof: { summary: "Proof of a message sent to the L1" },
    zks_getMainContract: { summary: "Address of the chain's contract on the L1" },
    zks_getProof: { summary: "Storage words as of a batch, with their Merkle proofs" },
    zks_getProtocolVersion: { summary: "Version of the protocol" },
    zks_getRawBlockTransactions: { summary: "Raw transactions of a block" },
    zks_getTestnetPaymaster: { summary: "Address of the test network's paymaster" },
    zks_getTimestampAsserter: { summary: "Address of the timestamp asserter contract" },
    zks_getTokenPrice: { summary: "Price of a token" },
    zks_getTransactionDetails: { summary: "A transaction with its state on the L1" }
  },
  "linea_*": {
    linea_estimateGas: { summary: "Gas and fees of a transaction", block: 1 },
    linea_getProof: { summary: "An account and storage words with their Merkle proofs", block: 2 },
    linea_getTransactionExclusionStatusV1: { summary: "Whether and why the sequencer omitted a transaction" }
  },
  "arb*": {
    arb_checkPublisherHealth: { summary: "Whether the transaction publisher is healthy" },
    arb_findBatchContainingBlock: { summary: "Number of the batch that contains a block" },
    arb_getL1Confirmations: { summary: "Confirmations of a block on the L1" },
    arb_getRawBlockMetadata: { summary: "Metadata of a range of blocks" },
    arb_maintenanceStatus: { summary: "Whether the node is in maintenance" },
    ...traces("arbtrace")
  },
  "rollup_*": {
    rollup_gasPrices: { summary: "Gas prices of layer 1 and layer 2" },
    rollup_getInfo: { summary: "Mode of the node, and indices of its newest transaction and queue element" }
  },
  "trace_*": {
    ...traces("trace"),
    trace_rawTransaction: { summary: "Traces of a signed transaction, without sending it", block: 2 }
  }
} as const satisfies { readonly [name: string]: { readonly [method: string]: Method } }

interface Methods {
  readonly [name: string]: Method
}

const members = Object.values<Methods>(families).flatMap((methods) => Object.entries(methods))

const inFamilies: ReadonlyMap<string, Methods> = new Map([
  ...Object.entries<Methods>(families),
  ...members.map(([name, method]): [string, Methods] => [name, { [name]: method }])
])

/**
 * Returns the methods of the family with the given name, or the single method with that name; `undefined` for an
 * unknown name.
 */
export const methodsNamed = (name: string): Methods | undefined => inFamilies.get(name)

/** Params: a list of up to 4 items, which the node validates. */
export const Params = Schema.Array(Schema.Unknown).check(Schema.isMaxLength(4))

/** A route of EVM methods: its chain and protocol, and whether its nodes serve state at the latest block only. */
export interface Serving {
  readonly chain: Chain
  readonly protocol: Operation.Protocol
  readonly latestOnly: boolean
}

/** Returns the common properties of a route's operations. */
export const served = ({ chain, protocol }: Serving) => ({
  chain,
  protocol,
  sources: ["node"],
  cost: { weight: 0, requestUnits: 1 }
} as const)

/** The params schema of a method that has no params. */
export const noParams = Schema.Tuple([]).pipe(
  Schema.decodeTo(
    Schema.Struct({}),
    SchemaTransformation.transform({ decode: () => ({}), encode: () => [] as const })
  )
)

/** Declares the block parameter of a method that reads state, and the error for blocks that the nodes do not serve. */
export const stateAt = (
  { latestOnly }: Serving,
  position: number | undefined,
  alsoAt: ReadonlyArray<GatewayError.StateBlock> = []
): Pick<RelayedRead, "blockParam"> & { readonly failures: ReadonlyArray<typeof GatewayError.UnsupportedBlock> } =>
  latestOnly && position !== undefined
    ? { failures: [GatewayError.UnsupportedBlock], blockParam: { position, supported: ["latest", ...alsoAt] } }
    : { failures: [] }

/** Declares a typed read. If a caller's call is relayed, the node and not the gateway validates its params. */
export const typedRead = <
  const Name extends string,
  Request extends Operation.AnyCodec,
  Response extends Operation.AnyCodec
>(
  serving: Serving,
  declaration:
    & Pick<Operation.Operation<Name, "read", Request, Response>, "cheap" | "name" | "request" | "response" | "summary">
    & { readonly example: Request["Encoded"] }
) => Operation.read({ ...served(serving), ...declaration, failures: [], relayedRequest: Params, verbatim: true })

interface OnRoute extends Struct.Lambda {
  <O>(operation: (serving: Serving) => O): O
  readonly "~lambda.out": this["~lambda.in"] extends (serving: Serving) => infer O ? O : never
}

/** Makes the operations of a route from a table of functions, each of which accepts the route. */
export const on = <Table extends { readonly [name: string]: (serving: Serving) => unknown }>(
  serving: Serving,
  table: Table
) => Struct.map(table, Struct.lambda<OnRoute>((operation) => operation(serving)))

/** An untyped read: neither request nor response is decoded. */
export type RelayedRead = Operation.Operation<string, "read">

/** Makes an untyped read for each method of a table. */
export const relayedReads = (
  methods: { readonly [name: string]: Method },
  serving: Serving
): ReadonlyArray<RelayedRead> =>
  Object.entries(methods).map(([name, { alsoAt, block, ...method }]) =>
    Operation.read({
      ...served(serving),
      ...method,
      ...stateAt(serving, block, alsoAt),
      name,
      request: Params,
      response: Schema.Unknown,
      verbatim: true
    })
  )

/**
 * Returns the methods that a name in the settings selects: a family, or a single method outside the families. The
 * params of a single method are not validated.
 */
export const configuredReads = (name: string, serving: Serving): ReadonlyArray<RelayedRead> => {
  const declared = methodsNamed(name)
  return declared !== undefined ? relayedReads(declared, serving) : [Operation.read({
    ...served(serving),
    name,
    summary: "A method that the settings allow; its params are not validated",
    request: Schema.Unknown,
    response: Schema.Unknown,
    failures: [],
    verbatim: true
  })]
}

/** The advice for a raw transaction with an unknown outcome. */
export const transactionAdvice =
  "Resend the identical bytes: \"already known\" or \"nonce too low\" then means that the first attempt was accepted. " +
  "Do not sign the transaction again under another nonce before you know its outcome"

/** Returns the operation that sends a signed transaction. */
export const rawTransaction = (serving: Serving) =>
  Operation.once({
    ...served(serving),
    name: "eth_sendRawTransaction",
    summary: "Send a signed transaction, at most once",
    request: Schema.Tuple([Data]),
    response: Hash,
    failures: [GatewayError.OutcomeUnknown, GatewayError.PolicyViolation],
    advice: transactionAdvice
  })

/**
 * Returns the operation that sends a signed transaction and waits for its receipt, at most for the number of
 * milliseconds in the params (EIP-7966).
 */
export const rawTransactionSync = (serving: Serving) =>
  Operation.once({
    ...rawTransaction(serving),
    name: "eth_sendRawTransactionSync",
    summary: "Send a signed transaction, at most once, and return its receipt",
    request: Schema.Tuple([Data, Schema.optionalKey(Schema.Union([Quantity, Schema.Natural]))]),
    response: Receipt
  })

/** Number of the newest block. */
export const blockNumber = (serving: Serving) =>
  typedRead(serving, {
    name: "eth_blockNumber",
    summary: "Number of the newest block",
    cheap: true,
    request: noParams,
    response: Quantity,
    example: []
  })

/** Chain id. */
export const chainId = (serving: Serving) =>
  typedRead(serving, {
    name: "eth_chainId",
    summary: "Chain id",
    cheap: true,
    request: noParams,
    response: Quantity,
    example: []
  })

const full = Schema.optionalKey(Schema.Boolean.annotate({
  description: "Whether to return full transactions instead of their hashes"
}))
const numbered = Schema.toType(Schema.Struct({ block: BlockNumberOrTag, full }))
const hashed = Schema.toType(Schema.Struct({ hash: Hash, full }))

/** A block by number or tag; `null` if the block does not exist yet. */
export const getBlockByNumber = (serving: Serving) =>
  typedRead(serving, {
    name: "eth_getBlockByNumber",
    summary: "A block by number or tag; `null` if the block does not exist yet",
    request: Schema.Tuple([BlockNumberOrTag, Schema.Boolean]).pipe(
      Schema.decodeTo(
        numbered,
        SchemaTransformation.transform({
          decode: ([block, full]): typeof numbered.Type => ({ block, full }),
          encode: ({ block, full = false }) => [block, full] as const
        })
      )
    ),
    response: Schema.NullOr(Block),
    example: ["latest", false]
  })

/** A block by hash; `null` if the node does not know the block. */
export const getBlockByHash = (serving: Serving) =>
  typedRead(serving, {
    name: "eth_getBlockByHash",
    summary: "A block by hash; `null` if the node does not know the block",
    request: Schema.Tuple([Hash, Schema.Boolean]).pipe(
      Schema.decodeTo(
        hashed,
        SchemaTransformation.transform({
          decode: ([hash, full]): typeof hashed.Type => ({ hash, full }),
          encode: ({ full = false, hash }) => [hash, full] as const
        })
      )
    ),
    response: Schema.NullOr(Block),
    example: [`0x${"0".repeat(64)}`, false]
  })

/**
 * Logs that match a filter, over any block range: the gateway splits the block range into ranges that the nodes serve.
 */
export const getLogs = (serving: Serving) =>
  Operation.read({
    ...typedRead(serving, {
      name: "eth_getLogs",
      summary: "Logs of a block range, which is split into ranges that the nodes serve",
      request: Schema.Tuple([LogFilter]).pipe(
        Schema.decodeTo(
          Schema.toType(LogFilter),
          SchemaTransformation.transform({ decode: ([filter]) => filter, encode: (filter) => [filter] as const })
        )
      ),
      response: Schema.Array(ReceiptLog),
      example: [{ fromBlock: "latest" }]
    }),
    failures: [GatewayError.LogRangeTooWide]
  })

const message = Schema.Struct({
  to: Address,
  from: Schema.optionalKey(Address),
  gas: Schema.optionalKey(Quantity),
  value: Schema.optionalKey(Quantity.annotate({ description: "In wei" })),
  data: Schema.optionalKey(Data)
})
const messageAt = Schema.toType(Schema.Struct({ ...message.fields, block: Schema.optionalKey(BlockNumberOrTag) }))

/** The return data of a contract call. No transaction is sent. */
export const call = (serving: Serving) => {
  const state = stateAt(serving, 1)
  return Operation.read({
    ...typedRead(serving, {
      name: "eth_call",
      summary: "Return data of a contract call",
      request: Schema.Tuple([message, BlockNumberOrTag]).pipe(
        Schema.decodeTo(
          messageAt,
          SchemaTransformation.transform({
            decode: ([call, block]): typeof messageAt.Type => ({ ...call, block }),
            encode: ({ block = "latest", ...call }) => [call, block] as const
          })
        )
      ),
      response: Data,
      // the call `name()` of the contract of wrapped HYPE
      example: [{ to: "0x5555555555555555555555555555555555555555", data: "0x06fdde03" }, "latest"]
    }),
    ...state,
    failures: [...state.failures, GatewayError.CallReverted]
  })
}

const account = Schema.toType(Schema.Struct({ address: Address, block: Schema.optionalKey(BlockNumberOrTag) }))
const accountParams = Schema.Tuple([Address, BlockNumberOrTag]).pipe(
  Schema.decodeTo(
    account,
    SchemaTransformation.transform({
      decode: ([address, block]): typeof account.Type => ({ address, block }),
      encode: ({ address, block = "latest" }) => [address, block] as const
    })
  )
)

/** Declares a typed read of an account. The standard method of the table declares its summary and its block. */
const accountRead = <const Name extends "eth_getBalance" | "eth_getTransactionCount">(serving: Serving, name: Name) =>
  Operation.read({
    ...typedRead(serving, {
      name,
      summary: accountMethods[name].summary,
      request: accountParams,
      response: Quantity,
      example: ["0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", "latest"]
    }),
    ...stateAt(serving, accountMethods[name].block, accountMethods[name].alsoAt)
  })

/** The balance of an account, in wei. */
export const getBalance = (serving: Serving) => accountRead(serving, "eth_getBalance")

/** The number of transactions that an account has sent, which is the nonce of its next transaction. */
export const getTransactionCount = (serving: Serving) => accountRead(serving, "eth_getTransactionCount")

/** The param of a method that takes a transaction's hash. */
export const hashParam = Schema.Tuple([Hash]).pipe(
  Schema.decodeTo(
    Schema.toType(Schema.Struct({ hash: Hash })),
    SchemaTransformation.transform({ decode: ([hash]) => ({ hash }), encode: ({ hash }) => [hash] as const })
  )
)

/** The receipt of a transaction; `null` if the transaction is unknown or not yet in a block. */
export const getTransactionReceipt = (serving: Serving) =>
  typedRead(serving, {
    name: "eth_getTransactionReceipt",
    summary: "The receipt of a transaction; `null` if none exists",
    cheap: true,
    request: hashParam,
    response: Schema.NullOr(Receipt),
    example: [`0x${"0".repeat(64)}`]
  })

/** The typed reads, by their names in the services and the client. */
export const evmReads = {
  blockNumber,
  chainId,
  getBlockByNumber,
  getBlockByHash,
  getLogs,
  call,
  getBalance,
  getTransactionCount
} as const
