/** The standard methods of an EVM node, answered from a sandbox's chain. */
import { Address, Data, Hash, Quantity, StorageSlot } from "@trigate/domain/Hex"
import type { RpcAnswer } from "@trigate/domain/JsonRpc"
import { methodNotFound } from "@trigate/domain/JsonRpc"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { keccak256 } from "viem/utils"
import * as Blocks from "./EvmBlocks.ts"
import { Block, numberOf } from "./EvmBlocks.ts"
import * as Calls from "./EvmCalls.ts"
import type { EvmChain } from "./EvmChain.ts"
import * as Chain from "./EvmChain.ts"
import * as Gas from "./EvmGas.ts"
import { getLogs } from "./EvmLogs.ts"
import type { Method, Reply } from "./EvmReply.ts"
import { answerOf, method, noCode, refused } from "./EvmReply.ts"
import { quantity } from "./Layer2Family.ts"
import { lower } from "./VenueState.ts"

const Call = Schema.TupleWithRest(
  Schema.Tuple([Schema.Struct({
    from: Schema.optionalKey(Schema.NullOr(Address)),
    value: Schema.optionalKey(Schema.NullOr(Quantity)),
    to: Schema.optionalKey(Schema.NullOr(Address)),
    data: Schema.optionalKey(Data),
    input: Schema.optionalKey(Data)
  })]),
  [Schema.Unknown]
)

const call = (chain: EvmChain, [{ data = "0x", input = data, to }]: typeof Call.Type): Reply => {
  if (to === null || to === undefined) return Result.fail(noCode)
  const returned = Calls.returned(chain, lower(to), input)
  return returned === undefined ? Result.fail(noCode) : Result.succeed(returned)
}

const gasOf = (chain: EvmChain, [{ data = "0x", from, input = data, to, value }]: typeof Call.Type) => {
  const gas = Gas.gasOf(chain, to, input)
  const balance = (account: Address) => Chain.balanceAt(chain, lower(account), Chain.nextBlock(chain))
  if (gas === undefined) return Result.fail(noCode)
  return typeof from === "string" && typeof value === "bigint" && balance(from) < value
    ? Result.fail(refused("insufficient funds for transfer"))
    : Result.succeed(quantity(gas))
}

const value = <Request>(
  params: Schema.ConstraintCodec<Request, unknown>,
  answer: (chain: EvmChain, request: Request) => unknown
): Method<EvmChain> => method(params, (chain, request) => Result.succeed(answer(chain, request)))

const always = (answer: (chain: EvmChain) => unknown): Method<EvmChain> => value(Schema.Unknown, answer)

const StateBlock = Schema.optionalKey(Schema.NullOr(Blocks.StateBlock))

const account = (answer: (chain: EvmChain, account: Address, block: number) => unknown): Method<EvmChain> =>
  method(
    Schema.Tuple([Address, StateBlock]),
    (chain, [address, block]) =>
      Result.map(Blocks.stateAt(chain, block), (number) => answer(chain, lower(address), number))
  )

const byNumber = (answer: (chain: EvmChain, number: number) => unknown) =>
  value(Schema.Tuple([Block]), (chain, [block]) => answer(chain, numberOf(chain, block)))

const byHash = (answer: (chain: EvmChain, number: number | undefined) => unknown) =>
  value(Schema.Tuple([Hash]), (chain, [hash]) => answer(chain, Chain.blockOf(chain, hash)))

const fullBlock = <B extends Schema.ConstraintCodec<unknown, unknown>>(block: B) =>
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
  eth_feeHistory: method(
    Schema.Tuple([Schema.Union([Quantity, Schema.Natural]), Block, Schema.optionalKey(Percentiles)]),
    (chain, [count, newest, percentiles]) => Gas.feeHistory(chain, Number(count), newest, percentiles)
  ),
  eth_getBalance: account((chain, address, block) => quantity(Chain.balanceAt(chain, address, block))),
  eth_getTransactionCount: account((chain, address, block) => quantity(Chain.nonceAt(chain, address, block))),
  eth_getCode: account((chain, address) => Calls.codeAt(chain, address)),
  eth_getStorageAt: method(
    Schema.Tuple([Address, StorageSlot, StateBlock]),
    (chain, [address, slot, block]) => Result.map(Blocks.stateAt(chain, block), () => chain.word(lower(address), slot))
  ),
  eth_call: method(Call, call),
  eth_estimateGas: method(Call, gasOf),
  eth_createAccessList: method(
    Call,
    (chain, request) => Result.map(gasOf(chain, request), (gasUsed) => ({ accessList: [], gasUsed }))
  ),
  eth_getBlockByNumber: value(
    fullBlock(Block),
    (chain, [block, isFull]) => Blocks.blockAt(chain, numberOf(chain, block), isFull)
  ),
  eth_getBlockByHash: value(
    fullBlock(Hash),
    (chain, [hash, isFull]) => Blocks.blockAt(chain, Chain.blockOf(chain, hash), isFull)
  ),
  eth_getBlockTransactionCountByNumber: byNumber(Blocks.countAt),
  eth_getBlockTransactionCountByHash: byHash(Blocks.countAt),
  eth_getUncleCountByBlockNumber: byNumber(Blocks.unclesAt),
  eth_getUncleCountByBlockHash: byHash(Blocks.unclesAt),
  eth_getUncleByBlockNumberAndIndex: always(() => null),
  eth_getUncleByBlockHashAndIndex: always(() => null),
  eth_getBlockReceipts: byNumber(Blocks.receiptsAt),
  eth_getTransactionByBlockNumberAndIndex: value(
    Schema.Tuple([Block, Quantity]),
    (chain, [block, index]) => Blocks.transactionAt(chain, numberOf(chain, block), index)
  ),
  eth_getTransactionByBlockHashAndIndex: value(
    Schema.Tuple([Hash, Quantity]),
    (chain, [hash, index]) => Blocks.transactionAt(chain, Chain.blockOf(chain, hash), index)
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
