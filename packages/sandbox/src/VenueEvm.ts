/** The trading chain's EVM: storage of a few contracts, two gas prices that move with their blocks, the big-block flags. */
import { evmOperations } from "@trigate/domain/EvmOperations"
import type { Address, Hash } from "@trigate/domain/Hex"
import type { RpcAnswer } from "@trigate/domain/JsonRpc"
import * as JsonText from "@trigate/domain/JsonText"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as ChainHead from "./ChainHead.ts"
import type { Seed } from "./Seed.ts"
import * as Random from "./Seed.ts"
import type { VenueState } from "./VenueState.ts"
import { accountOf, lower } from "./VenueState.ts"

/** What the EVM remembers beside the venue's accounts. */
export interface EvmState {
  /** Contracts whose first slots hold made up words; addresses are lower case. */
  readonly contracts: ReadonlySet<Address>
  /** Words that were put, by {@link wordKey}. */
  readonly words: ReadonlyMap<string, Hash>
  /** Base fees that were set, in wei; absent ones move by themselves. */
  readonly fees: { readonly small?: bigint; readonly big?: bigint }
}

/** Where a word is kept: an address and a slot, whatever their spelling. */
export const wordKey = (address: Address, slot: string): string => `${lower(address)}/${BigInt(slot).toString(16)}`

const zeroWord = `0x${"0".repeat(64)}`

/** Slots of a known contract that hold a word; the rest of its storage is empty. */
const usedSlots = 16n

const wordAt = (seed: Seed, state: EvmState, address: Address, slot: string): string => {
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

const invalidParams: RpcAnswer = {
  _tag: "Error",
  code: -32602,
  message: "invalid params",
  error: "{\"code\":-32602,\"message\":\"invalid params\"}"
}

/** What a call is answered from. */
export interface EvmView {
  readonly seed: Seed
  readonly chainId: number
  readonly evm: EvmState
  readonly venue: VenueState
  readonly now: number
}

/** Reads the params of a method, then answers from them; none for params of another shape. */
const method = <Request>(
  schema: Schema.ConstraintCodec<Request, unknown>,
  answer: (view: EvmView, request: Request) => unknown
) => {
  const decode = Schema.decodeUnknownOption(schema)
  return (view: EvmView, params: unknown): Option.Option<unknown> =>
    Option.map(decode(params), (request) => answer(view, request))
}

const fee = (kind: keyof typeof blockKinds) => ({ evm, now, seed }: EvmView): string =>
  `0x${baseFee(seed, evm, kind, now).toString(16)}`

const { bigBlockGasPrice, gasPrice, getStorageAt, usingBigBlocks } = evmOperations

const methods = {
  eth_getStorageAt: method(
    getStorageAt.request,
    ({ evm, seed }, { address, slot }) => wordAt(seed, evm, address, slot)
  ),
  eth_gasPrice: method(gasPrice.request, fee("small")),
  eth_bigBlockGasPrice: method(bigBlockGasPrice.request, fee("big")),
  eth_usingBigBlocks: method(
    usingBigBlocks.request,
    ({ venue }, { address }) => accountOf(venue, address).usingBigBlocks
  )
}

const isKnown = (name: string): name is keyof typeof methods => Object.hasOwn(methods, name)

/** Answers a method, whose params are raw JSON text; only the latest state can be read, and of that what is made up here. */
export const answer = (view: EvmView, name: string, params: string): RpcAnswer => {
  if (!isKnown(name)) {
    return ChainHead.answer({ chainId: view.chainId, block: Math.floor(view.now / blockKinds.small.every) }, name)
  }
  const parsed = Result.getSuccess(JsonText.parse(params))
  return Option.match(Option.flatMap(parsed, (value) => methods[name](view, value)), {
    onNone: () => invalidParams,
    onSome: (value): RpcAnswer => ({ _tag: "Result", result: JSON.stringify(value) })
  })
}
