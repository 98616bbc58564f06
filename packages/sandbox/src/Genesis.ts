/**
 * The initial state of every sandbox. `SandboxExamples` lists the addresses, keys, contracts and transactions in this
 * state.
 */
import { type Address, type Hash, lowerCase } from "@trigate/domain/encoding/Hex"
import type { SpotMeta } from "@trigate/domain/info/SpotMeta"
import * as TonAddress from "@trigate/domain/tokens/TonAddress"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { genesis } from "./evm/EvmChain.ts"
import * as EvmContracts from "./evm/EvmContracts.ts"
import type { Account as EvmAccount, World } from "./evm/EvmWorld.ts"
import * as EvmWorld from "./evm/EvmWorld.ts"
import type { Layer2State, NewTransaction } from "./evm/Layer2Chain.ts"
import * as Layer2Chain from "./evm/Layer2Chain.ts"
import type { EvmState } from "./evm/VenueEvm.ts"
import { contracts, keys, tokenKey, tokens, traderStake, transactions } from "./SandboxExamples.ts"
import type { Seed } from "./Seed.ts"
import * as Random from "./Seed.ts"
import { accountKey, type Contract, type Dialect, type TokenState } from "./tokens/TokenState.ts"
import { hype, spotUsdDecimals, usdc, usdDecimals } from "./venue/Assets.ts"
import { makeMarkets } from "./venue/CandleMarket.ts"
import { depositSpot, endowUsd } from "./venue/Transfers.ts"
import type { Venue, VenueLimits } from "./venue/Venue.ts"
import * as Venue_ from "./venue/Venue.ts"
import type { InfoState } from "./venue/VenueAnswer.ts"
import { type Account, empty, newAccount, type VenueState } from "./venue/VenueState.ts"

const cosigners = [keys.leader, keys.cosigner, keys.thirdCosigner, keys.fourthCosigner, keys.fifthCosigner]
  .map(({ address }) => address)

const staked: Account = { ...newAccount, stake: traderStake }

/**
 * The initial deposits of each trading account: US dollars for perpetuals, USDC in the spot balance, and HYPE in the
 * spot balance.
 */
export const deposits = { usd: 10_000, spotUsdc: 10_000, spotHype: 100 } as const

/** The accounts with initial deposits. */
export const traders: ReadonlyArray<Address> = [keys.trader.address, keys.multiSigUser.address, keys.treasury.address]

/** Makes the initial state of trading, with the initial deposits of the trading accounts. */
export const trading = (seed: Seed, listed: InfoState, now: number, limits?: VenueLimits): Venue => {
  const made = Venue_.make(seed, listed, now, limits)
  for (const trader of traders) {
    endowUsd(made, trader, BigInt(deposits.usd) * 10n ** BigInt(usdDecimals))
    depositSpot(made, trader, usdc, BigInt(deposits.spotUsdc) * 10n ** BigInt(spotUsdDecimals))
    depositSpot(made, trader, hype, BigInt(deposits.spotHype) * 10n ** 8n)
  }
  return made
}

/** The initial accounts, API wallets and validators. */
export const venue: VenueState = {
  ...empty,
  accounts: new Map<Address, Account>([
    [keys.trader.address, staked],
    [keys.validator.address, newAccount],
    [keys.jailedValidator.address, newAccount],
    [keys.multiSigUser.address, { ...staked, multiSig: { authorizedUsers: cosigners.slice(0, 3), threshold: 2 } }],
    [keys.treasury.address, { ...staked, multiSig: { authorizedUsers: cosigners, threshold: 3 } }],
    ...cosigners.map((address) => [address, newAccount] as const)
  ]),
  agents: new Map([[keys.agent.address, keys.trader.address]]),
  validators: new Map([
    [keys.validator.address, { name: "Sandbox One", jailed: false, stake: 0n }],
    [keys.jailedValidator.address, { name: "Sandbox Two", jailed: true, stake: 0n }]
  ])
}

/** Makes the initial data for queries: the spot metadata, and the market of each coin that has candles. */
export const info = (seed: Seed, spotMeta: SpotMeta): InfoState => ({
  spotMeta,
  markets: new Map(makeMarkets(seed, spotMeta).map((market) => [market.coin, market])),
  outcomeMeta: { outcomes: [], questions: [] }
})

/**
 * Encodes a short ASCII string as one storage word, as Solidity stores it. The word begins with the bytes of the
 * string. Its last byte is twice the string's length.
 */
const textWord = (text: string): Hash => {
  const hex = Array.from(text, (character) => character.charCodeAt(0).toString(16)).join("")
  return `0x${hex.padEnd(62, "0")}${(text.length * 2).toString(16).padStart(2, "0")}`
}

/**
 * The initial accounts of both EVM chains: each test key except `stranger` has 10000 of the native coin, and Multicall3
 * is deployed.
 */
const accounts: ReadonlyArray<readonly [Address, Partial<EvmAccount>]> = [
  ...Object.values(keys).flatMap(({ address }) =>
    address === keys.stranger.address ? [] : [[address, { balance: 10n ** 22n }] as const]
  ),
  [contracts.multicall, { nonce: 1n, code: EvmContracts.multicall3 }]
]

/** The number of initialized storage slots of a token contract. All other slots are zero. */
const usedSlots = 16n

interface Erc20 {
  readonly address: Address
  readonly name: string
  readonly symbol: string
  readonly decimals: number
}

const listTokens = ({ tokens: known }: SpotMeta): ReadonlyArray<Erc20> => [
  { address: contracts.wrapped, name: "Wrapped HYPE", symbol: "WHYPE", decimals: 18 },
  ...known.flatMap(({ evmContract, fullName, name, weiDecimals }) =>
    evmContract === null || evmContract === undefined ? [] : [{
      address: lowerCase(evmContract.address),
      name: fullName ?? name,
      symbol: name,
      decimals: weiDecimals + evmContract.evm_extra_wei_decimals
    }]
  )
]

const tokenWords = ({ decimals, name, symbol }: Erc20): ReadonlyArray<Hash> => [
  textWord(name),
  textWord(symbol),
  `0x${decimals.toString(16).padStart(64, "0")}`
]

/**
 * Returns the initial storage words of a token contract: first the metadata, then pseudo-random words that the
 * contract's code never reads.
 */
const unwritten = (seed: Seed, erc20s: ReadonlyArray<Erc20>): World["unwritten"] => {
  const words = new Map(erc20s.map((erc20) => [erc20.address, tokenWords(erc20)]))
  return (address, slot) => {
    const known = words.get(address)
    if (known === undefined || slot >= usedSlots) return EvmWorld.zeroWord
    return known[Number(slot)] ?? Random.hex(seed, `evm/${EvmWorld.wordKey(address, slot)}`, 64)
  }
}

/**
 * Makes the initial EVM state of the trading chain, with the wrapped token and the contracts that are linked to spot
 * tokens. The chain starts at `startedAt` (milliseconds).
 */
export const evm = (seed: Seed, spotMeta: SpotMeta, startedAt: number): EvmState => {
  const erc20s = listTokens(spotMeta)
  const code = { nonce: 1n, code: EvmContracts.wrappedToken }
  const world = EvmWorld.make(
    // code that a contract's call finds; the sandbox refuses the call
    [
      ...accounts,
      [contracts.coreWriter, { nonce: 1n, code: "0xfe" }],
      ...erc20s.map(({ address }) => [address, code] as const)
    ],
    unwritten(seed, erc20s)
  )
  return { ...genesis(world), startedAt, fees: {} }
}

/** URIs of documents with token metadata. The host name in these URIs never resolves. */
const documents = {
  semichain: "https://metadata.sandbox.invalid/usdt.json",
  offchain: "https://metadata.sandbox.invalid/offchain.json",
  missing: "https://metadata.sandbox.invalid/bridged.json"
} as const

const onchain = (data: { readonly [attribute: string]: string }) => ({ type: "onchain", data }) as const

const deployed: ReadonlyArray<readonly [address: string, contract: Contract, dialect: Dialect]> = [
  [tokens.onchain, {
    kind: "jetton_master",
    supply: 1_180_591_620_717_411_303_424_123n,
    mintable: true,
    admin: tokens.admin,
    content: onchain({ name: "Trigate Sandbox", symbol: "TRIG", decimals: "9", description: "A jetton for examples" })
  }, "cpp"],
  [tokens.number, {
    kind: "jetton_master",
    supply: 9_007_199_254_740_993_001n,
    mintable: false,
    content: onchain({ name: "Sandbox Number", symbol: "NUM", decimals: "18" })
  }, "python"],
  [tokens.semichain, {
    kind: "jetton_master",
    supply: 1_030_000_002_000_000n,
    mintable: true,
    admin: tokens.admin,
    content: onchain({ uri: documents.semichain, decimals: "6" })
  }, "python"],
  [tokens.semichainCpp, {
    kind: "jetton_master",
    supply: 1_256_732_342_639n,
    mintable: true,
    content: onchain({ uri: documents.missing, decimals: "6" })
  }, "cpp"],
  [tokens.offchain, {
    kind: "jetton_master",
    supply: 21_000_000_000_000_000n,
    mintable: false,
    content: { type: "offchain", data: documents.offchain }
  }, "cpp"],
  [tokens.jettonWallet, {
    kind: "jetton_wallet",
    balance: 110_294_396_653_795_195_302_063n,
    owner: tokens.admin,
    jetton: tokens.onchain
  }, "cpp"],
  [tokens.nftCollection, {
    kind: "nft_collection",
    nextItemIndex: -1n,
    owner: tokens.admin,
    content: { type: "offchain", data: "https://metadata.sandbox.invalid/collection.json" }
  }, "cpp"],
  [tokens.nftItem, {
    kind: "nft_item",
    index: 17_026_683_442_852_985_036_293_000_817_890_672_620_529_067_535_828_542_797_724_775_561_309_021_470_835n,
    collection: tokens.nftCollection,
    owner: tokens.admin,
    content: { type: "offchain", data: "https://metadata.sandbox.invalid/item.json" }
  }, "cpp"],
  [tokens.wallet, { kind: "wallet", balance: 14_020_735n, seqno: 2 }, "cpp"],
  [tokens.admin, { kind: "wallet", balance: 7_250_000_000n, seqno: 41 }, "python"],
  [tokenKey.wallet, { kind: "account", balance: 100_000_000_000n }, "cpp"],
  [tokenKey.jettonWallet, {
    kind: "jetton_wallet",
    balance: 1_000_000_000_000n,
    owner: tokenKey.wallet,
    jetton: tokens.onchain
  }, "cpp"]
]

/** The initial contracts of the token chain. */
export const tokenChain: TokenState = {
  contracts: new Map(
    deployed.flatMap(([address, contract, dialect]) =>
      Option.match(Result.getSuccess(TonAddress.parse(address)), {
        onNone: () => [],
        onSome: (parsed) => [[accountKey(parsed), { contract, dialect }] as const]
      })
    )
  ),
  dialect: "cpp",
  documents: new Map<string, unknown>([
    [documents.semichain, { name: "Sandbox Dollar", symbol: "USD₮", decimals: "6" }],
    [documents.offchain, { name: "Sandbox Offchain", symbol: "OFF", decimals: 3 }]
  ])
}

const transfer: NewTransaction["logs"] = [{
  address: "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
  topics: [
    "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
    `0x${"f44938b0125a6662f9536281ad2cd6c499f22004".padStart(64, "0")}`,
    `0x${"17281460228691b044e080a5f5257dce8e47f79c".padStart(64, "0")}`
  ],
  data: `0x${"7a1b6de237e5e8c9".padStart(64, "0")}`
}]

const sent: ReadonlyArray<NewTransaction> = [
  { hash: transactions.opStack, logs: transfer, gasUsed: 142_342n, inBlocks: -90 },
  { hash: transactions.opLegacy, family: "op-legacy", logs: transfer, gasUsed: 142_342n, inBlocks: -9_000 },
  {
    hash: transactions.opDeposit,
    family: "op-deposit",
    from: "0xdeaddeaddeaddeaddeaddeaddeaddeaddead0001",
    to: "0x4200000000000000000000000000000000000015",
    gasUsed: 46_865n,
    inBlocks: -50
  },
  { hash: transactions.arbitrum, family: "arbitrum", logs: transfer, gasUsed: 96_113n, inBlocks: -40 },
  { hash: transactions.zksync, family: "zksync", logs: transfer, gasUsed: 1_135_922n, inBlocks: -300 },
  { hash: transactions.linea, family: "linea", logs: transfer, gasUsed: 74_208n, inBlocks: -35 },
  { hash: transactions.failed, status: "failure", gasUsed: 48_211n, inBlocks: -70 },
  {
    hash: transactions.creation,
    to: null,
    contractAddress: "0x4d11a23e4408ef08ae1216b3917560e0001cd000",
    gasUsed: 892_511n,
    inBlocks: -60
  },
  { hash: transactions.pending, logs: transfer, gasUsed: 51_204n, inBlocks: 5 },
  { hash: transactions.preconfirmed, logs: transfer, gasUsed: 51_204n, inBlocks: 5, preconfirmed: true }
]

/** Makes a layer 2 with the example transactions. The chain starts at `startedAt` (milliseconds). */
export const layer2 = (seed: Seed, startedAt: number): Layer2State =>
  Layer2Chain.make(seed, startedAt, EvmWorld.make(accounts), sent)
