/** What transactions of a sandbox's EVM chain use and cost. */
import type { Address, Data } from "@trigate/domain/Hex"
import * as Result from "effect/Result"
import type { Block } from "./EvmBlocks.ts"
import { numberOf } from "./EvmBlocks.ts"
import { codeAt } from "./EvmCalls.ts"
import type { EvmChain } from "./EvmChain.ts"
import { nextBlock } from "./EvmChain.ts"
import type { Reply } from "./EvmReply.ts"
import { refused } from "./EvmReply.ts"
import { quantity } from "./Layer2Family.ts"
import { lower } from "./VenueState.ts"

/** Gas of a transfer with some bytes beside it (EIP-2028). */
const intrinsicGas = (input: Data): bigint =>
  (input.slice(2).match(/../gu) ?? []).reduce((gas, byte) => gas + (byte === "00" ? 4n : 16n), 21_000n)

/** Gas of a transaction to somebody; none where that is a contract, or is to become one. */
export const gasOf = (chain: EvmChain, to: Address | null | undefined, input: Data): bigint | undefined =>
  to === null || to === undefined || codeAt(chain, lower(to)) !== "0x" ? undefined : intrinsicGas(input)

/** Base fee of the next block and what is proposed to be added, in wei. */
export const gasPrice = (chain: EvmChain): bigint => chain.baseFee(nextBlock(chain)) + chain.priorityFee

const maxHistory = 1_024

/** The fees of past blocks and of the next one. */
export const feeHistory = (
  chain: EvmChain,
  count: number,
  newest: Block,
  percentiles: ReadonlyArray<number> | null = null
): Reply => {
  const last = numberOf(chain, newest)
  if (last > chain.heads.latest) {
    return Result.fail(refused(`request beyond head block: requested ${last}, head ${chain.heads.latest}`))
  }
  const blocks = Math.min(count, maxHistory, last + 1)
  const numbers = Array.from({ length: blocks }, (_, index) => last - blocks + 1 + index)
  return Result.succeed({
    oldestBlock: quantity(numbers[0] ?? last),
    baseFeePerGas: [...numbers, last + 1].map((number) => quantity(chain.baseFee(number))),
    gasUsedRatio: numbers.map(() => 0),
    ...(percentiles === null ? {} : { reward: numbers.map(() => percentiles.map(() => quantity(chain.priorityFee))) })
  })
}
