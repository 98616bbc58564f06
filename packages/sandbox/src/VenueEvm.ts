/** The trading chain's EVM: a block a second, storage of a few contracts, two gas prices, the big-block flags. */
import { evmOperations } from "@trigate/domain/EvmOperations"
import type { Address, Data, Hash } from "@trigate/domain/Hex"
import type { RpcAnswer } from "@trigate/domain/JsonRpc"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Result from "effect/Result"
import { encodeAbiParameters, fromHex } from "viem/utils"
import type { BlockClock, EvmChain, Ledger } from "./EvmChain.ts"
import { latestAt, zeroWord } from "./EvmChain.ts"
import * as EvmNode from "./EvmNode.ts"
import type { Method } from "./EvmReply.ts"
import { answerOf, method } from "./EvmReply.ts"
import { plain, quantity } from "./Layer2Family.ts"
import { chainIds, contracts } from "./SandboxExamples.ts"
import type { Seed } from "./Seed.ts"
import * as Random from "./Seed.ts"
import type { VenueState } from "./VenueState.ts"
import { accountOf, lower } from "./VenueState.ts"

/** What the EVM remembers beside the venue's accounts. */
export interface EvmState extends Ledger {
  /** Instant of block {@link firstBlock}, in milliseconds. */
  readonly startedAt: number
  /** Contracts whose first slots hold made up words; addresses are lower case. */
  readonly contracts: ReadonlySet<Address>
  /** Words that were put, by {@link wordKey}. */
  readonly words: ReadonlyMap<string, Hash>
  /** Base fees that were set, in wei; absent ones move by themselves. */
  readonly fees: { readonly small?: bigint; readonly big?: bigint }
}

/** Where a word is kept: an address and a slot, whatever their spelling. */
export const wordKey = (address: Address, slot: string): string => `${lower(address)}/${BigInt(slot).toString(16)}`

/** Slots of a known contract that hold a word; the rest of its storage is empty. */
const usedSlots = 16n

const wordAt = (seed: Seed, state: EvmState, address: Address, slot: string): Hash => {
  const put = state.words.get(wordKey(address, slot))
  if (put !== undefined) return put
  return state.contracts.has(lower(address)) && BigInt(slot) < usedSlots
    ? Random.hex(seed, `evm/${wordKey(address, slot)}`, 64)
    : zeroWord
}

const gwei = 1_000_000_000

/** Blocks of one kind: how often they come, in milliseconds, and around which base fee, in wei. */
const blockKinds = {
  small: { every: 1_000, fee: 0.1 * gwei },
  big: { every: 60_000, fee: 0.6 * gwei }
} as const

/** Base fee of the next block of a kind at an instant, in wei. */
export const baseFee = (seed: Seed, state: EvmState, kind: keyof typeof blockKinds, now: number): bigint => {
  const { every, fee } = blockKinds[kind]
  const block = Math.floor(now / every) + 1
  const walk = 0.5 * Random.noise(Random.series(seed, `evm/${kind}/trend`), 40, block) +
    0.12 * Random.noise(Random.series(seed, `evm/${kind}/block`), 1, block)
  return state.fees[kind] ?? BigInt(Math.round(fee * Math.exp(walk)))
}

/** What the chain is at an instant. */
export interface EvmMoment {
  readonly seed: Seed
  readonly profile: VenueProfile
  readonly evm: EvmState
  readonly now: number
}

/** What a call is answered from. */
export interface EvmView extends EvmMoment {
  readonly venue: VenueState
}

/** Number of the newest block when the chain starts. */
export const firstBlock = 40_000_000

const clockOf = ({ startedAt }: EvmState): BlockClock => ({
  first: firstBlock,
  startedAt: Math.floor(startedAt / blockKinds.small.every) * blockKinds.small.every,
  every: blockKinds.small.every
})

/** The code of every contract: one that cannot be run. */
const invalid: Data = "0xfe"

const textOf = (word: Hash): string => fromHex(`0x${word.slice(2, 2 + Number.parseInt(word.slice(-2), 16))}`, "string")

/** What the wrapped token says of itself, by the selector of the function: it keeps that in its first slots. */
const metadata: { readonly [selector: string]: (word: (slot: string) => Hash) => Data } = {
  // name()
  "0x06fdde03": (word) => encodeAbiParameters([{ type: "string" }], [textOf(word("0x0"))]),
  // symbol()
  "0x95d89b41": (word) => encodeAbiParameters([{ type: "string" }], [textOf(word("0x1"))]),
  // decimals()
  "0x313ce567": (word) => word("0x2")
}

/** The chain at an instant; its nodes know no other degree of certainty than the newest block. */
export const at = ({ evm, now, profile, seed }: EvmMoment): EvmChain => {
  const clock = clockOf(evm)
  const latest = latestAt(clock, now)
  return {
    seed,
    name: "evm",
    chainId: chainIds[profile.name],
    clock,
    heads: { latest, safe: latest, finalized: latest },
    ledger: evm,
    fields: plain,
    baseFee: (block) => baseFee(seed, evm, "small", clock.startedAt + (block - 1 - firstBlock) * clock.every),
    priorityFee: 0n,
    dataFee: () => 0n,
    code: (address) => evm.contracts.has(address) ? invalid : "0x",
    word: (address, slot) => wordAt(seed, evm, address, slot),
    call: (to, data) =>
      to === contracts.wrapped ? metadata[data.slice(0, 10)]?.((slot) => wordAt(seed, evm, to, slot)) : undefined
  }
}

const { bigBlockGasPrice, gasPrice, usingBigBlocks } = evmOperations

const fee = (kind: keyof typeof blockKinds) => ({ evm, now, seed }: EvmView) =>
  Result.succeed(quantity(baseFee(seed, evm, kind, now)))

/** Methods that only this chain has, or answers in its own way. */
const methods: ReadonlyMap<string, Method<EvmView>> = new Map(Object.entries({
  eth_gasPrice: method(gasPrice.request, fee("small")),
  eth_bigBlockGasPrice: method(bigBlockGasPrice.request, fee("big")),
  eth_usingBigBlocks: method(
    usingBigBlocks.request,
    ({ venue }: EvmView, { address }) => Result.succeed(accountOf(venue, address).usingBigBlocks)
  )
}))

/** Answers a read, whose params are raw JSON text. */
export const answer = (view: EvmView, name: string, params: string): RpcAnswer => {
  const own = methods.get(name)
  return own === undefined ? EvmNode.answer(at(view), name, params) : answerOf(own(view, params))
}
