/** The standard methods of an EVM node, answered from a sandbox's chain. */
import { Address, Data, Hash, Quantity, StorageSlot } from "@trigate/domain/Hex"
import type { RpcAnswer } from "@trigate/domain/JsonRpc"
import { methodNotFound } from "@trigate/domain/JsonRpc"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { keccak256 } from "viem/utils"
import * as Blocks from "./EvmBlocks.ts"
import { Block, numberOf } from "./EvmBlocks.ts"
import type { EvmChain } from "./EvmChain.ts"
import * as Chain from "./EvmChain.ts"
import * as Gas from "./EvmGas.ts"
import { getLogs } from "./EvmLogs.ts"
import type { Method, Reply } from "./EvmReply.ts"
import { answerOf, method, noCode } from "./EvmReply.ts"
import { quantity } from "./Layer2Family.ts"
import { lower } from "./VenueState.ts"

const Call = Schema.TupleWithRest(
  Schema.Tuple([Schema.Struct({
    to: Schema.optionalKey(Schema.NullOr(Address)),
    data: Schema.optionalKey(Data),
    input: Schema.optionalKey(Data)
  })]),
  [Schema.Unknown]
)

const call = (chain: EvmChain, [{ data = "0x", input = data, to }]: typeof Call.Type): Reply => {
  if (to === null || to === undefined) return Result.fail(noCode)
  const returned = chain.code(lower(to)) === "0x" ? "0x" : chain.call(lower(to), lower(input))
  return returned === undefined ? Result.fail(noCode) : Result.succeed(returned)
}

const estimateGas = (chain: EvmChain, [{ data = "0x", input = data, to }]: typeof Call.Type): Reply => {
  const gas = Gas.gasOf(chain, to, input)
  return gas === undefined ? Result.fail(noCode) : Result.succeed(quantity(gas))
}

const value = <Request>(
  params: Schema.ConstraintCodec<Request, unknown>,
  answer: (chain: EvmChain, request: Request) => unknown
): Method<EvmChain> => method(params, (chain, request) => Result.succeed(answer(chain, request)))

const always = (answer: (chain: EvmChain) => unknown): Method<EvmChain> => value(Schema.Unknown, answer)

const StateBlock = Schema.optionalKey(Schema.NullOr(Block))
const Account = Schema.Tuple([Address, StateBlock])
const FullBlock = <B extends Schema.ConstraintCodec<unknown, unknown>>(block: B) =>
  Schema.Tuple([block, Schema.Boolean])
// as many as common nodes take: each is told of each block
const Percentiles = Schema.NullOr(Schema.Array(Schema.Finite).check(Schema.isMaxLength(100)))

const methods: ReadonlyMap<string, Method<EvmChain>> = new Map(Object.entries({
  web3_clientVersion: always(() => "trigate-sandbox"),
  web3_sha3: value(Schema.Tuple([Data]), (_, [data]) => keccak256(data)),
  net_version: always(({ chainId }) => String(chainId)),
  net_listening: always(() => true),
  net_peerCount: always(() => "0x0"),
  eth_chainId: always(({ chainId }) => quantity(chainId)),
  eth_syncing: always(() => false),
  eth_accounts: always(() => []),
  eth_blockNumber: always(({ heads }) => quantity(heads.latest)),
  eth_gasPrice: always((chain) => quantity(Gas.gasPrice(chain))),
  eth_maxPriorityFeePerGas: always(({ priorityFee }) => quantity(priorityFee)),
  eth_feeHistory: value(
    Schema.Tuple([Schema.Union([Quantity, Schema.Natural]), Block, Schema.optionalKey(Percentiles)]),
    (chain, [count, newest, percentiles]) => Gas.feeHistory(chain, Number(count), newest, percentiles)
  ),
  eth_getBalance: value(
    Account,
    (chain, [address, block]) => quantity(Chain.balanceAt(chain, lower(address), numberOf(chain, block)))
  ),
  eth_getTransactionCount: value(Account, (chain, [address, block]) => {
    const upTo = block === "pending" ? Number.POSITIVE_INFINITY : numberOf(chain, block)
    return quantity(Chain.nonceAt(chain, lower(address), upTo))
  }),
  eth_getCode: value(Account, (chain, [address]) => chain.code(lower(address))),
  eth_getStorageAt: value(
    Schema.Tuple([Address, StorageSlot, StateBlock]),
    (chain, [address, slot]) => chain.word(lower(address), slot)
  ),
  eth_call: method(Call, call),
  eth_estimateGas: method(Call, estimateGas),
  eth_getBlockByNumber: value(
    FullBlock(Block),
    (chain, [block, isFull]) => Blocks.blockAt(chain, numberOf(chain, block), isFull)
  ),
  eth_getBlockByHash: value(
    FullBlock(Hash),
    (chain, [hash, isFull]) => Blocks.blockAt(chain, Chain.blockOf(chain, hash), isFull)
  ),
  eth_getBlockTransactionCountByNumber: value(
    Schema.Tuple([Block]),
    (chain, [block]) => Blocks.countAt(chain, numberOf(chain, block))
  ),
  eth_getBlockTransactionCountByHash: value(
    Schema.Tuple([Hash]),
    (chain, [hash]) => Blocks.countAt(chain, Chain.blockOf(chain, hash))
  ),
  eth_getBlockReceipts: value(
    Schema.Tuple([Block]),
    (chain, [block]) => Blocks.receiptsAt(chain, numberOf(chain, block))
  ),
  eth_getTransactionByHash: value(Schema.Tuple([Hash]), (chain, [hash]) => Blocks.transactionOf(chain, hash)),
  eth_getTransactionReceipt: value(Schema.Tuple([Hash]), (chain, [hash]) => Blocks.receiptOf(chain, hash)),
  eth_getLogs: getLogs
}))

/** Answers a read, whose params are raw JSON text. */
export const answer = (chain: EvmChain, name: string, params: string): RpcAnswer => {
  const known = methods.get(name)
  return known === undefined ? methodNotFound(name) : answerOf(known(chain, params))
}
