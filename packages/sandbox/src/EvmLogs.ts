/** Finds the events of a sandbox's EVM chain by block, address and topics. */
import { Address, Hash } from "@trigate/domain/Hex"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Block, numberOf } from "./EvmBlocks.ts"
import type { EvmChain } from "./EvmChain.ts"
import * as Chain from "./EvmChain.ts"
import type { Method } from "./EvmReply.ts"
import { method } from "./EvmReply.ts"
import { wireLogs } from "./EvmTransaction.ts"
import { lower } from "./VenueState.ts"

const Filter = Schema.Struct({
  fromBlock: Schema.optionalKey(Schema.NullOr(Block)),
  toBlock: Schema.optionalKey(Schema.NullOr(Block)),
  blockHash: Schema.optionalKey(Hash),
  address: Schema.optionalKey(Schema.NullOr(Schema.Union([Address, Schema.Array(Address)]))),
  topics: Schema.optionalKey(
    Schema.NullOr(Schema.Array(Schema.NullOr(Schema.Union([Hash, Schema.Array(Hash)]))))
  )
})

type Wanted = string | ReadonlyArray<string> | null | undefined

const isWanted = (wanted: Wanted, found: string | undefined): boolean => {
  if (wanted === null || wanted === undefined || wanted.length === 0) return true
  const all = typeof wanted === "string" ? [wanted] : wanted
  return found !== undefined && all.some((each) => each.toLowerCase() === found.toLowerCase())
}

const rangeOf = (chain: EvmChain, { blockHash, fromBlock, toBlock }: typeof Filter.Type) => {
  if (blockHash === undefined) return { from: numberOf(chain, fromBlock), to: numberOf(chain, toBlock) }
  const block = Chain.blockOf(chain, blockHash) ?? -1
  return { from: block, to: block }
}

/** `eth_getLogs`. */
export const getLogs: Method<EvmChain> = method(Schema.Tuple([Filter]), (chain, [filter]) => {
  const { from, to } = rangeOf(chain, filter)
  const transactions = [...chain.ledger.transactions.values()].filter(({ block }) =>
    block >= from && block <= Math.min(to, chain.heads.latest)
  )
  return Result.succeed(
    transactions.toSorted((a, b) => a.block - b.block).flatMap((transaction) =>
      wireLogs(transaction, Chain.placeOf(chain, transaction)).filter((_, index) => {
        const log = transaction.logs[index]
        return log !== undefined && isWanted(filter.address, lower(log.address)) &&
          (filter.topics ?? []).every((topic, position) => isWanted(topic, log.topics[position]))
      })
    )
  )
})
