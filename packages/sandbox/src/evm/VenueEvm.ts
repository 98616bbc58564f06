/**
 * HyperEVM: one block per second, gas prices of small and big blocks, and the big-block flags of
 * accounts.
 */
import type { Address, Hash } from "@trigate/domain/encoding/Encoding"
import * as Json from "@trigate/domain/encoding/Encoding"
import { lowerCase } from "@trigate/domain/encoding/Encoding"
import { error, evmOperations, result, type RpcResponse } from "@trigate/domain/evm/EvmProtocol"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import { concat, pad, toHex } from "viem/utils"
import { chainIds } from "../SandboxExamples.ts"
import * as Random from "../Seed.ts"
import { systemAddress } from "../venue/Transfers.ts"
import type { Venue } from "../venue/Venue.ts"
import { accountOrNew, type VenueState } from "../venue/VenueState.ts"
import * as CoreWriter from "./CoreWriter.ts"
import {
  blockTimestamp,
  gasLimit,
  latestAt,
  mapWorlds,
  quantity,
  readAccount,
  withAccount,
  withWord
} from "./EvmChain.ts"
import type { BlockClock, EvmCall, EvmChain, Ledger, RefuseMessage } from "./EvmChain.ts"
import * as EvmNode from "./EvmNode.ts"
import * as ReadPrecompiles from "./ReadPrecompiles.ts"

/** The state of the EVM. */
export interface EvmState extends Ledger {
  /** Time of block {@link firstBlock}, in milliseconds. */
  readonly startedAt: number
  /** Fixed base fees, in wei. A base fee that is absent changes from block to block. */
  readonly fees: { readonly small?: bigint; readonly big?: bigint }
}

const gwei = 1_000_000_000

/** The block kinds, with their interval in milliseconds, their typical base fee in wei, and their gas limit. */
const blockKinds = {
  small: { every: 1_000, fee: 0.1 * gwei, gas: 3_000_000n },
  big: { every: 60_000, fee: 0.6 * gwei, gas: gasLimit }
} as const

/**
 * Returns the base fee, in wei, of the next small or big block at the given time. As EIP-1559 prescribes, it changes by
 * less than an eighth from block to block. It rises by less than a fifth in 20 blocks, because wallets such as viem
 * offer 1.2 times the base fee that they read.
 */
export const baseFee = (
  seed: Random.Seed,
  { fees }: Pick<EvmState, "fees">,
  kind: keyof typeof blockKinds,
  now: number
): bigint => {
  const { every, fee } = blockKinds[kind]
  const block = Math.floor(now / every) + 1
  const walk = 0.5 * Random.noise(Random.series(seed, `evm/${kind}/trend`), 400, block) +
    0.04 * Random.noise(Random.series(seed, `evm/${kind}/block`), 1, block)
  return fees[kind] ?? BigInt(Math.round(fee * Math.exp(walk)))
}

/** The data from which the chain at the time `now` is computed. */
export interface EvmView {
  readonly seed: Random.Seed
  readonly profile: VenueProfile
  readonly evm: EvmState
  readonly venue: VenueState
  readonly now: number
  /** Returns the current trading state, which the precompiles read. */
  readonly trading: () => Venue
}

const played: ReadonlySet<Address> = new Set(ReadPrecompiles.addresses)

/** Refuses calls of read precompiles that the sandbox does not have, and of all in an earlier block. */
const refuseMessage: RefuseMessage = (to, isPast) =>
  ReadPrecompiles.address.test(to) && (isPast || !played.has(to))
    ? `the sandbox does not support the read precompile ${to}${isPast ? " in an earlier block" : ""}: see ${section}`
    : undefined

/** The section of the documentation that lists what the EVM does. */
const section = "docs/sandbox.md#what-the-evm-chains-do"

/** Number of the newest block when the chain starts. */
export const firstBlock = 40_000_000

const blockClock = ({ startedAt }: EvmState): BlockClock => ({
  first: firstBlock,
  startedAt: Math.floor(startedAt / blockKinds.small.every) * blockKinds.small.every,
  every: blockKinds.small.every
})

/** Returns the chain at the given time. The latest block is also the latest safe and the latest finalized block. */
export const at = ({ evm, now, profile, seed, trading, venue }: EvmView): EvmChain => {
  const clock = blockClock(evm)
  const latest = latestAt(clock, now)
  return {
    seed,
    name: "evm",
    chainId: chainIds[profile.name],
    clock,
    heads: { latest, safe: latest, finalized: latest },
    ledger: evm,
    fields: { receipt: () => ({}), log: () => ({}) },
    baseFee: (block) => baseFee(seed, evm, "small", clock.startedAt + (block - 1 - firstBlock) * clock.every),
    priorityFee: 0n,
    dataFee: () => 0n,
    blockGas: blockKinds.small.gas,
    transactionGas: (from) => blockKinds[accountOrNew(venue, from).usingBigBlocks ? "big" : "small"].gas,
    refuseMessage,
    precompile: (to, data) => ReadPrecompiles.call({ trading: trading(), venue }, to, data) ?? "failed"
  }
}

const { bigBlockGasPrice, gasPrice, usingBigBlocks } = evmOperations

const fee = (kind: keyof typeof blockKinds) => ({ evm, now, seed }: EvmView) =>
  Effect.succeed(quantity(baseFee(seed, evm, kind, now)))

/** Methods of HyperEVM that {@link EvmNode} does not implement. */
const own = {
  eth_gasPrice: EvmNode.method(gasPrice.request, fee("small")),
  eth_bigBlockGasPrice: EvmNode.method(bigBlockGasPrice.request, fee("big")),
  eth_usingBigBlocks: EvmNode.method(
    usingBigBlocks.request,
    ({ venue }: EvmView, { address }) => Effect.succeed(accountOrNew(venue, address).usingBigBlocks)
  )
} satisfies EvmNode.Methods<Exclude<EvmNode.WireName<typeof evmOperations>, EvmNode.Name>, EvmView>

const methods: ReadonlyMap<string, EvmNode.Method<EvmView>> = new Map(Object.entries(own))

const DirectCall = Schema.fromJsonString(Schema.Union([
  Schema.Tuple([Schema.Struct({ to: Schema.String, data: Schema.String })]),
  Schema.Tuple([Schema.Struct({ to: Schema.String, data: Schema.String }), Schema.Literal("latest")])
]))
const decodeDirectCall = Schema.decodeUnknownOption(DirectCall)

/** Serves a call of a precompile itself, in the latest block. Returns `undefined` for any other call. */
const callPrecompile = ({ trading, venue }: EvmView, name: string, params: string): RpcResponse | undefined => {
  if (name !== "eth_call") return undefined
  const direct = decodeDirectCall(params)
  if (Option.isNone(direct)) return undefined
  const [{ data, to }] = direct.value
  if (!ReadPrecompiles.address.test(to)) return undefined
  const called = ReadPrecompiles.call({ trading: trading(), venue }, to, data)
  if (called === undefined) return undefined
  return called === "failed" ? error(-32000, "precompile failed") : result(Json.write(called))
}

/** Serves a JSON-RPC method that reads the chain. Its params are raw JSON text. */
export const answer = (
  view: EvmView,
  withMachine: EvmNode.WithMachine,
  name: string,
  params: string
): Effect.Effect<RpcResponse> => {
  const read = callPrecompile(view, name, params)
  if (read !== undefined) return Effect.succeed(read)
  const own = methods.get(name)
  return own === undefined
    ? EvmNode.answer({ chain: at(view), withMachine }, name, params)
    : EvmNode.toRpcAnswer(own(view, params))
}

/**
 * Returns the actions and deposits that the transactions of `after` send to the venue and those of `before` do not. `ahead`
 * is the venue's time minus the chain's time.
 */
export const newEffects = (venue: Venue, before: EvmState, after: EvmState, ahead: number) =>
  [...after.transactions.values()].filter(({ hash }) => !before.transactions.has(hash)).flatMap((transaction) =>
    CoreWriter.readEffects(venue, transaction, blockTimestamp(blockClock(after), transaction.block) * 1_000 + ahead)
  )

type Bridged = Venue["state"]["bridged"]

/** Converts wei of a token on the venue to units of its contract. */
export const toEvmWei = (wei: bigint, extra: number): bigint =>
  extra < 0 ? wei / 10n ** BigInt(-extra) : wei * 10n ** BigInt(extra)

/** Credits HYPE that accounts sent from the venue. */
export const credit = ({ listing }: Venue, state: EvmState, sent: Bridged): EvmState =>
  sent.filter(({ token }) => token === listing.hype).reduce(
    (known, { user, wei }) =>
      mapWorlds(
        known,
        (world) =>
          withAccount(world, user, { balance: readAccount(world, user).balance + wei * CoreWriter.evmWeiPerWei })
      ),
    state
  )

/** The gas of a transfer that credits tokens on the EVM, as the venue documents it. */
const creditGas = 200_000n

/** Returns the calls that credit tokens other than HYPE: the system address of each transfers them in its contract. */
export const creditCalls = ({ listing }: Venue, sent: Bridged): ReadonlyArray<EvmCall> =>
  sent.flatMap(({ token, user, wei }) => {
    const contract = listing.tokens.get(token)?.evmContract
    if (token === listing.hype || contract === undefined || contract === null) return []
    const amount = pad(toHex(toEvmWei(wei, contract.evm_extra_wei_decimals)))
    return [{
      from: systemAddress(token),
      to: lowerCase(contract.address),
      data: concat(["0xa9059cbb", pad(user), amount]),
      value: 0n,
      gas: creditGas,
      gasPrice: 0n
    }]
  })

/** Makes the controls of HyperEVM. */
export const controls = (state: Ref.Ref<EvmState>) => ({
  /** Accounts, contracts, storage words, transactions and fees. */
  state,
  /** Sets a storage word of any contract, in the stored states of all blocks. */
  putStorageWord: (address: Address, slot: `0x${string}`, word: Hash) =>
    Ref.update(state, (known) => mapWorlds(known, (world) => withWord(world, address, BigInt(slot), word))),
  /**
   * Sets the base fees of small and big blocks, in wei. A base fee that is omitted changes from block to block again.
   */
  setGasPrices: (fees: EvmState["fees"]) => Ref.update(state, (known) => ({ ...known, fees }))
})

/** Reads and sets the state of HyperEVM. Addresses can have any letter case. */
export type EvmControls = ReturnType<typeof controls>
