/**
 * The methods of an EVM node that stock clients call: reads that are relayed as they are, and the sending of a raw
 * transaction.
 *
 * They are the same on every chain, so that each is declared once and made an operation of the chain that serves it.
 * Filters and subscriptions are no part of them: those live in one node, and the next call may reach another one.
 */
import * as Schema from "effect/Schema"
import { Data, Hash, Quantity } from "./Hex.ts"
import * as Operation from "./Operation.ts"
import { Receipt } from "./Receipt.ts"
import { type StateBlock, UnsupportedBlock } from "./RequestError.ts"
import { OutcomeUnknown } from "./UpstreamError.ts"

/** A relayed read: what it does, and at which position of its params the block is whose state it reads. */
interface Method {
  readonly summary: string
  readonly block?: number
  /** Whether it is answered quickly whatever it asks for: no block of the caller's choice, nothing that runs. */
  readonly cheap?: true
  /** Blocks besides `latest` that are relayed to nodes which know the latest state only. */
  readonly alsoAt?: ReadonlyArray<StateBlock>
}

/**
 * What a wallet asks before it sends its next transaction, and which libraries ask at `pending`: its number, its gas, and
 * whether there is a contract to call. Refused, none of them could send.
 */
const beforeSending = { alsoAt: ["pending"] } as const

/** Methods that the common nodes have. */
export const standardMethods: { readonly [name: string]: Method } = {
  web3_clientVersion: { summary: "Name and version of the node", cheap: true },
  web3_sha3: { summary: "Keccak-256 of some bytes" },
  net_version: { summary: "Network id, as a decimal number", cheap: true },
  net_listening: { summary: "Whether the node listens for others", cheap: true },
  net_peerCount: { summary: "Number of the node's peers" },
  eth_protocolVersion: { summary: "Version of the protocol that the node speaks" },
  eth_chainId: { summary: "Chain id", cheap: true },
  eth_syncing: { summary: "Whether the node is still catching up", cheap: true },
  eth_accounts: { summary: "Accounts that the node itself holds, as a rule none", cheap: true },
  eth_blockNumber: { summary: "Number of the newest block", cheap: true },
  eth_gasPrice: { summary: "Gas price that the node proposes, in wei", cheap: true },
  eth_maxPriorityFeePerGas: { summary: "Priority fee that the node proposes, in wei", cheap: true },
  eth_blobBaseFee: { summary: "Base fee of a blob in the next block, in wei", cheap: true },
  eth_feeHistory: { summary: "Base fees and priority fees of past blocks", block: 1 },
  eth_getBalance: { summary: "Balance of an account, in wei", block: 1 },
  eth_getTransactionCount: { summary: "Number of transactions that an account has sent", block: 1, ...beforeSending },
  eth_getCode: { summary: "Code of a contract", block: 1, ...beforeSending },
  eth_getStorageAt: { summary: "One storage word of a contract", block: 2 },
  eth_getProof: { summary: "An account and storage words with their Merkle proofs", block: 2 },
  eth_call: { summary: "What a call would return", block: 1 },
  eth_estimateGas: { summary: "Gas that a transaction would use", block: 1, ...beforeSending },
  eth_createAccessList: { summary: "Access list of a transaction", block: 1 },
  eth_simulateV1: { summary: "What some blocks of calls would return", block: 1 },
  eth_getBlockByHash: { summary: "A block" },
  eth_getBlockByNumber: { summary: "A block" },
  eth_getBlockTransactionCountByHash: { summary: "Number of a block's transactions" },
  eth_getBlockTransactionCountByNumber: { summary: "Number of a block's transactions" },
  eth_getUncleCountByBlockHash: { summary: "Number of a block's uncles" },
  eth_getUncleCountByBlockNumber: { summary: "Number of a block's uncles" },
  eth_getUncleByBlockHashAndIndex: { summary: "An uncle of a block" },
  eth_getUncleByBlockNumberAndIndex: { summary: "An uncle of a block" },
  eth_getBlockReceipts: { summary: "Receipts of all transactions of a block" },
  eth_getTransactionByHash: { summary: "A transaction", cheap: true },
  eth_getTransactionByBlockHashAndIndex: { summary: "A transaction of a block" },
  eth_getTransactionByBlockNumberAndIndex: { summary: "A transaction of a block" },
  eth_getTransactionReceipt: { summary: "The receipt of a transaction", cheap: true },
  eth_getLogs: { summary: "Logs of a range of blocks" }
}

/** Params that are told to be a list of at most so many, and are otherwise the node's to judge. */
export const Params = Schema.Array(Schema.Unknown).check(Schema.isMaxLength(4))

/** Which route takes the methods, and whether its nodes know the state of the latest block only. */
export interface Serving {
  readonly chain: Operation.Chain
  readonly protocol: Operation.Protocol
  readonly latestOnly: boolean
}

/** What all calls of a route share. */
export const served = ({ chain, protocol }: Serving) => ({
  chain,
  protocol,
  sources: ["node"],
  cost: { weight: 0, requestUnits: 1 }
} as const)

/** A pass-through read: neither its request nor its answer is decoded. */
export type RelayedRead = Operation.Operation<string, "read">

/** The relayed reads of a table. */
export const relayedReads = (
  methods: { readonly [name: string]: Method },
  serving: Serving
): ReadonlyArray<RelayedRead> =>
  Object.entries(methods).map(([name, { alsoAt = [], block, cheap, summary }]) =>
    Operation.read({
      ...served(serving),
      name,
      summary,
      ...(cheap === undefined ? {} : { cheap }),
      request: Params,
      response: Schema.Unknown,
      failures: serving.latestOnly && block !== undefined ? [UnsupportedBlock] : [],
      verbatim: true,
      ...(serving.latestOnly && block !== undefined
        ? { blockParam: { position: block, supported: ["latest", ...alsoAt] } }
        : {})
    })
  )

/** A pass-through method from the settings; it may have any params. */
export const configuredRead = (name: string, serving: Serving): RelayedRead =>
  Operation.read({
    ...served(serving),
    name,
    summary: "A method of the configuration",
    request: Schema.Unknown,
    response: Schema.Unknown,
    failures: [],
    verbatim: true
  })

/** What to do when it is not known what became of a raw transaction. */
export const transactionAdvice =
  "Resend the identical bytes: \"already known\" or \"nonce too low\" then means that the first one landed. " +
  "Do not sign the transaction again under another nonce before you know"

/** Sends a signed transaction. */
export const rawTransaction = (serving: Serving) =>
  Operation.once({
    ...served(serving),
    name: "eth_sendRawTransaction",
    summary: "Send a signed transaction, at most once",
    request: Schema.Tuple([Data]),
    response: Hash,
    failures: [OutcomeUnknown],
    advice: transactionAdvice
  })

/** Sends a signed transaction and waits, for so many milliseconds at most, until its receipt is there (EIP-7966). */
export const rawTransactionSync = (serving: Serving) =>
  Operation.once({
    ...rawTransaction(serving),
    name: "eth_sendRawTransactionSync",
    summary: "Send a signed transaction, at most once, and tell its receipt",
    request: Schema.Tuple([Data, Schema.optionalKey(Schema.Union([Quantity, Schema.Natural]))]),
    response: Receipt
  })
