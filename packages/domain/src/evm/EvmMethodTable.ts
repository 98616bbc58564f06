/**
 * The table of the EVM read methods that the gateway relays unchanged.
 *
 * The methods are the same on every chain, so each method is declared once and becomes an operation of each chain that
 * serves it. Filters and subscriptions are not included: they exist only on the node that created them, and the next
 * call may use a different node. The gateway implements filters and subscriptions itself.
 */
import type { StateBlock } from "../errors/RequestError.ts"

/**
 * The setting that declares the nodes of the trading chain to be archive nodes. The error message for an unsupported
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
  readonly alsoAt?: ReadonlyArray<StateBlock>
}

/**
 * Allows block `pending` for the reads that wallets send before a transaction: the nonce, the gas estimate, and the
 * code. If such a read fails at `pending`, some client libraries cannot send the transaction.
 */
const beforeSending = { alsoAt: ["pending"] } as const

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
  eth_getBalance: { summary: "Balance of an account, in wei", block: 1 },
  eth_getTransactionCount: { summary: "Number of transactions that an account has sent", block: 1, ...beforeSending },
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
