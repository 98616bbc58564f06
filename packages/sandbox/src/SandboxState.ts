/**
 * The state of a sandbox's chains, from its initial content on. Tests can read and set it while the chains are in use.
 */
import { type Address, type Data, type Hash, lowerCase } from "@trigate/domain/encoding/Encoding"
import type { SpotMeta, SpotToken } from "@trigate/domain/info/Market"
import * as TonAddress from "@trigate/domain/tokens/TokenData"
import type { SandboxFaults } from "@trigate/domain/unstable/Sandbox"
import type { Network } from "@trigate/signing/VenueProfile"
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import { concat, keccak256, pad, toHex } from "viem/utils"
import * as CoreWriter from "./evm/CoreWriter.ts"
import * as EvmChain from "./evm/EvmChain.ts"
import * as Layer2Chain from "./evm/Layer2Chain.ts"
import * as VenueEvm from "./evm/VenueEvm.ts"
import { contracts, keys, tokenKey, tokens, traderStake, transactions } from "./SandboxExamples.ts"
import * as Random from "./Seed.ts"
import * as TokenServer from "./tokens/TokenServer.ts"
import { accountKey, type Contract, type Dialect, type TokenState } from "./tokens/TokenServer.ts"
import { type CandleMarket, hype, makeMarkets, spotUsdDecimals, usdc, usdDecimals, usdh } from "./venue/Assets.ts"
import type { MarketFeed, Pending } from "./venue/MarketFeed.ts"
import * as TradingControls from "./venue/TradingControls.ts"
import { ensureAccount } from "./venue/TradingState.ts"
import { depositSpot, endowUsd, hypeBridge, systemAddress } from "./venue/Transfers.ts"
import * as Venue_ from "./venue/Venue.ts"
import type { Venue, VenueLimits } from "./venue/Venue.ts"
import * as VenueInfo from "./venue/VenueInfo.ts"
import * as VenueState from "./venue/VenueState.ts"
import { type Account, empty, type InfoState, newAccount } from "./venue/VenueState.ts"

/** Multicall3 as deployed on public chains; keccak-256 0xd5c15df6…8e770891. License: MIT. */
export const multicall3: Data =
  "0x6080604052600436106100f35760003560e01c80634d2301cc1161008a578063a8b0574e11610059578063a8b0574e1461025a578063bce38bd714610275578063c3077fa914610288578063ee82ac5e1461029b57600080fd5b80634d2301cc146101ec57806372425d9d1461022157806382ad56cb1461023457806386d516e81461024757600080fd5b80633408e470116100c65780633408e47014610191578063399542e9146101a45780633e64a696146101c657806342cbb15c146101d957600080fd5b80630f28c97d146100f8578063174dea711461011a578063252dba421461013a57806327e86d6e1461015b575b600080fd5b34801561010457600080fd5b50425b6040519081526020015b60405180910390f35b61012d610128366004610a85565b6102ba565b6040516101119190610bbe565b61014d610148366004610a85565b6104ef565b604051610111929190610bd8565b34801561016757600080fd5b50437fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff0140610107565b34801561019d57600080fd5b5046610107565b6101b76101b2366004610c60565b610690565b60405161011193929190610cba565b3480156101d257600080fd5b5048610107565b3480156101e557600080fd5b5043610107565b3480156101f857600080fd5b50610107610207366004610ce2565b73ffffffffffffffffffffffffffffffffffffffff163190565b34801561022d57600080fd5b5044610107565b61012d610242366004610a85565b6106ab565b34801561025357600080fd5b5045610107565b34801561026657600080fd5b50604051418152602001610111565b61012d610283366004610c60565b61085a565b6101b7610296366004610a85565b610a1a565b3480156102a757600080fd5b506101076102b6366004610d18565b4090565b60606000828067ffffffffffffffff8111156102d8576102d8610d31565b60405190808252806020026020018201604052801561031e57816020015b6040805180820190915260008152606060208201528152602001906001900390816102f65790505b5092503660005b8281101561047757600085828151811061034157610341610d60565b6020026020010151905087878381811061035d5761035d610d60565b905060200281019061036f9190610d8f565b6040810135958601959093506103886020850185610ce2565b73ffffffffffffffffffffffffffffffffffffffff16816103ac6060870187610dcd565b6040516103ba929190610e32565b60006040518083038185875af1925050503d80600081146103f7576040519150601f19603f3d011682016040523d82523d6000602084013e6103fc565b606091505b50602080850191909152901515808452908501351761046d577f08c379a000000000000000000000000000000000000000000000000000000000600052602060045260176024527f4d756c746963616c6c333a2063616c6c206661696c656400000000000000000060445260846000fd5b5050600101610325565b508234146104e6576040517f08c379a000000000000000000000000000000000000000000000000000000000815260206004820152601a60248201527f4d756c746963616c6c333a2076616c7565206d69736d6174636800000000000060448201526064015b60405180910390fd5b50505092915050565b436060828067ffffffffffffffff81111561050c5761050c610d31565b60405190808252806020026020018201604052801561053f57816020015b606081526020019060019003908161052a5790505b5091503660005b8281101561068657600087878381811061056257610562610d60565b90506020028101906105749190610e42565b92506105836020840184610ce2565b73ffffffffffffffffffffffffffffffffffffffff166105a66020850185610dcd565b6040516105b4929190610e32565b6000604051808303816000865af19150503d80600081146105f1576040519150601f19603f3d011682016040523d82523d6000602084013e6105f6565b606091505b5086848151811061060957610609610d60565b602090810291909101015290508061067d576040517f08c379a000000000000000000000000000000000000000000000000000000000815260206004820152601760248201527f4d756c746963616c6c333a2063616c6c206661696c656400000000000000000060448201526064016104dd565b50600101610546565b5050509250929050565b43804060606106a086868661085a565b905093509350939050565b6060818067ffffffffffffffff8111156106c7576106c7610d31565b60405190808252806020026020018201604052801561070d57816020015b6040805180820190915260008152606060208201528152602001906001900390816106e55790505b5091503660005b828110156104e657600084828151811061073057610730610d60565b6020026020010151905086868381811061074c5761074c610d60565b905060200281019061075e9190610e76565b925061076d6020840184610ce2565b73ffffffffffffffffffffffffffffffffffffffff166107906040850185610dcd565b60405161079e929190610e32565b6000604051808303816000865af19150503d80600081146107db576040519150601f19603f3d011682016040523d82523d6000602084013e6107e0565b606091505b506020808401919091529015158083529084013517610851577f08c379a000000000000000000000000000000000000000000000000000000000600052602060045260176024527f4d756c746963616c6c333a2063616c6c206661696c656400000000000000000060445260646000fd5b50600101610714565b6060818067ffffffffffffffff81111561087657610876610d31565b6040519080825280602002602001820160405280156108bc57816020015b6040805180820190915260008152606060208201528152602001906001900390816108945790505b5091503660005b82811015610a105760008482815181106108df576108df610d60565b602002602001015190508686838181106108fb576108fb610d60565b905060200281019061090d9190610e42565b925061091c6020840184610ce2565b73ffffffffffffffffffffffffffffffffffffffff1661093f6020850185610dcd565b60405161094d929190610e32565b6000604051808303816000865af19150503d806000811461098a576040519150601f19603f3d011682016040523d82523d6000602084013e61098f565b606091505b506020830152151581528715610a07578051610a07576040517f08c379a000000000000000000000000000000000000000000000000000000000815260206004820152601760248201527f4d756c746963616c6c333a2063616c6c206661696c656400000000000000000060448201526064016104dd565b506001016108c3565b5050509392505050565b6000806060610a2b60018686610690565b919790965090945092505050565b60008083601f840112610a4b57600080fd5b50813567ffffffffffffffff811115610a6357600080fd5b6020830191508360208260051b8501011115610a7e57600080fd5b9250929050565b60008060208385031215610a9857600080fd5b823567ffffffffffffffff811115610aaf57600080fd5b610abb85828601610a39565b90969095509350505050565b6000815180845260005b81811015610aed57602081850181015186830182015201610ad1565b81811115610aff576000602083870101525b50601f017fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0169290920160200192915050565b600082825180855260208086019550808260051b84010181860160005b84811015610bb1578583037fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe001895281518051151584528401516040858501819052610b9d81860183610ac7565b9a86019a9450505090830190600101610b4f565b5090979650505050505050565b602081526000610bd16020830184610b32565b9392505050565b600060408201848352602060408185015281855180845260608601915060608160051b870101935082870160005b82811015610c52577fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffa0888703018452610c40868351610ac7565b95509284019290840190600101610c06565b509398975050505050505050565b600080600060408486031215610c7557600080fd5b83358015158114610c8557600080fd5b9250602084013567ffffffffffffffff811115610ca157600080fd5b610cad86828701610a39565b9497909650939450505050565b838152826020820152606060408201526000610cd96060830184610b32565b95945050505050565b600060208284031215610cf457600080fd5b813573ffffffffffffffffffffffffffffffffffffffff81168114610bd157600080fd5b600060208284031215610d2a57600080fd5b5035919050565b7f4e487b7100000000000000000000000000000000000000000000000000000000600052604160045260246000fd5b7f4e487b7100000000000000000000000000000000000000000000000000000000600052603260045260246000fd5b600082357fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff81833603018112610dc357600080fd5b9190910192915050565b60008083357fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe1843603018112610e0257600080fd5b83018035915067ffffffffffffffff821115610e1d57600080fd5b602001915036819003821315610a7e57600080fd5b8183823760009101908152919050565b600082357fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc1833603018112610dc357600080fd5b600082357fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffa1833603018112610dc357600080fdfea2646970667358221220bb2b5c71a328032f97c676ae39a1ec2148d3e5d6f73d95e9b17910152d61f16264736f6c634300080c0033"

/**
 * An ERC-20 token that wraps the native coin: `packages/sandbox/test/fixtures/WrappedToken.sol`.
 *
 * Its name, symbol and decimals are in storage slots 0 to 2.
 */
export const wrappedToken: Data =
  "0x60806040526004361061009d575f3560e01c8063313ce56711610062578063313ce5671461016357806370a082311461018e57806395d89b41146101b9578063a9059cbb146101cd578063d0e30db0146101ec578063dd62ed3e146101f4575f5ffd5b806306fdde03146100b0578063095ea7b3146100da57806318160ddd1461010957806323b872dd146101255780632e1a7d4d14610144575f5ffd5b366100ac576100aa61022a565b005b5f5ffd5b3480156100bb575f5ffd5b506100c4610284565b6040516100d1919061069b565b60405180910390f35b3480156100e5575f5ffd5b506100f96100f43660046106eb565b61030f565b60405190151581526020016100d1565b348015610114575f5ffd5b50475b6040519081526020016100d1565b348015610130575f5ffd5b506100f961013f366004610713565b61037b565b34801561014f575f5ffd5b506100aa61015e36600461074d565b610540565b34801561016e575f5ffd5b5060025461017c9060ff1681565b60405160ff90911681526020016100d1565b348015610199575f5ffd5b506101176101a8366004610764565b60036020525f908152604090205481565b3480156101c4575f5ffd5b506100c461067b565b3480156101d8575f5ffd5b506100f96101e73660046106eb565b610688565b6100aa61022a565b3480156101ff575f5ffd5b5061011761020e36600461077d565b600460209081525f928352604080842090915290825290205481565b335f90815260036020526040812080543492906102489084906107c2565b909155505060405134815233907fe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c9060200160405180910390a2565b5f8054610290906107d5565b80601f01602080910402602001604051908101604052809291908181526020018280546102bc906107d5565b80156103075780601f106102de57610100808354040283529160200191610307565b820191905f5260205f20905b8154815290600101906020018083116102ea57829003601f168201915b505050505081565b335f8181526004602090815260408083206001600160a01b038716808552925280832085905551919290917f8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925906103699086815260200190565b60405180910390a35060015b92915050565b6001600160a01b0383165f908152600360205260408120548211156103de5760405162461bcd60e51b8152602060048201526014602482015273696e73756666696369656e742062616c616e636560601b60448201526064015b60405180910390fd5b6001600160a01b0384165f81815260046020908152604080832033808552925290912054911480159061041257505f198114155b1561048e57828110156104605760405162461bcd60e51b8152602060048201526016602482015275696e73756666696369656e7420616c6c6f77616e636560501b60448201526064016103d5565b61046a838261080d565b6001600160a01b0386165f9081526004602090815260408083203384529091529020555b6001600160a01b0385165f90815260036020526040812080548592906104b590849061080d565b90915550506001600160a01b0384165f90815260036020526040812080548592906104e19084906107c2565b92505081905550836001600160a01b0316856001600160a01b03167fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef8560405161052d91815260200190565b60405180910390a3506001949350505050565b335f908152600360205260409020548111156105955760405162461bcd60e51b8152602060048201526014602482015273696e73756666696369656e742062616c616e636560601b60448201526064016103d5565b335f90815260036020526040812080548392906105b390849061080d565b90915550506040515f90339083908381818185875af1925050503d805f81146105f7576040519150601f19603f3d011682016040523d82523d5f602084013e6105fc565b606091505b50509050806106425760405162461bcd60e51b81526020600482015260126024820152711dda5d1a191c985dd85b081c99599d5cd95960721b60448201526064016103d5565b60405182815233907f7fcf532c15f0a6db0bd6d0e038bea71d30d808c7d98cb3bf7268a95bf5081b659060200160405180910390a25050565b60018054610290906107d5565b5f61069433848461037b565b9392505050565b602081525f82518060208401528060208501604085015e5f604082850101526040601f19601f83011684010191505092915050565b80356001600160a01b03811681146106e6575f5ffd5b919050565b5f5f604083850312156106fc575f5ffd5b610705836106d0565b946020939093013593505050565b5f5f5f60608486031215610725575f5ffd5b61072e846106d0565b925061073c602085016106d0565b929592945050506040919091013590565b5f6020828403121561075d575f5ffd5b5035919050565b5f60208284031215610774575f5ffd5b610694826106d0565b5f5f6040838503121561078e575f5ffd5b610797836106d0565b91506107a5602084016106d0565b90509250929050565b634e487b7160e01b5f52601160045260245ffd5b80820180821115610375576103756107ae565b600181811c908216806107e957607f821691505b60208210810361080757634e487b7160e01b5f52602260045260245ffd5b50919050565b81810381811115610375576103756107ae56"

const cosigners = [keys.leader, keys.cosigner, keys.thirdCosigner, keys.fourthCosigner, keys.fifthCosigner]
  .map(({ address }) => address)

const staked: Account = { ...newAccount, stake: traderStake }

/**
 * The initial deposits of each trading account: US dollars for perpetuals, USDC in the spot balance, and HYPE in the
 * spot balance.
 */
export const deposits = { usd: 10_000, spotUsdc: 10_000, spotHype: 100 } as const

/**
 * The volume in whole dollars that each trading account has traded before. It is sufficient for sub-accounts, referral
 * codes and scheduled cancellations.
 */
const tradedBefore = 1_000_000

/** The accounts with initial deposits. */
export const traders: ReadonlyArray<Address> = [keys.trader.address, keys.multiSigUser.address, keys.treasury.address]

/** Makes the initial state of trading, with the initial deposits of the trading accounts. */
export const genesisTrading = (seed: Random.Seed, listed: InfoState, now: number, limits?: VenueLimits): Venue => {
  const made = Venue_.make(seed, listed, now, limits)
  for (const trader of traders) {
    endowUsd(made, trader, BigInt(deposits.usd) * 10n ** BigInt(usdDecimals))
    depositSpot(made, trader, usdc, BigInt(deposits.spotUsdc) * 10n ** BigInt(spotUsdDecimals))
    ensureAccount(made.state, trader).earlierVolume = BigInt(tradedBefore) * 10n ** BigInt(usdDecimals)
    depositSpot(made, trader, made.listing.hype, BigInt(deposits.spotHype) * 10n ** 8n)
  }
  return made
}

/** The initial accounts, API wallets and validators. */
export const genesisVenue: VenueState.VenueState = {
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
export const genesisInfo = (seed: Random.Seed, spotMeta: SpotMeta): InfoState => ({
  spotMeta,
  markets: new Map(makeMarkets(seed, spotMeta).map((market) => [market.coin, market]))
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
const accounts: ReadonlyArray<readonly [Address, Partial<EvmChain.Account>]> = [
  ...Object.values(keys).flatMap(({ address }) =>
    address === keys.stranger.address ? [] : [[address, { balance: 10n ** 22n }] as const]
  ),
  [contracts.multicall, { nonce: 1n, code: multicall3 }]
]

/** The number of initialized storage slots of a token contract. All other slots are zero. */
const usedSlots = 16n

interface Erc20 {
  readonly address: Address
  readonly name: string
  readonly symbol: string
  readonly decimals: number
  /** The initial owner of all tokens, and their amount. */
  readonly system?: { readonly address: Address; readonly balance: bigint }
}

/** The largest supply of a spot token, in wei of the venue. */
const mostSupply = 2n ** 63n - 1n

const listTokens = ({ tokens: known }: SpotMeta): ReadonlyArray<Erc20> => [
  { address: contracts.wrapped, name: "Wrapped HYPE", symbol: "WHYPE", decimals: 18 },
  ...known.flatMap(({ evmContract, fullName, index, name, weiDecimals }) =>
    evmContract === null || evmContract === undefined ? [] : [{
      address: lowerCase(evmContract.address),
      name: fullName ?? name,
      symbol: name,
      decimals: weiDecimals + evmContract.evm_extra_wei_decimals,
      system: {
        address: systemAddress(index),
        balance: VenueEvm.toEvmWei(mostSupply, evmContract.evm_extra_wei_decimals)
      }
    }]
  )
]

const toWord = (value: bigint): Hash => pad(toHex(value))

const tokenWords = ({ decimals, name, symbol }: Erc20): ReadonlyArray<Hash> => [
  textWord(name),
  textWord(symbol),
  toWord(BigInt(decimals))
]

/** Returns the storage slot with the balance of an account in a token contract. */
const balanceSlot = (address: Address): bigint => BigInt(keccak256(concat([pad(address), pad("0x3")])))

/**
 * Returns the initial storage words of a token contract: first the metadata, then pseudo-random words that the
 * contract's code never reads. The token's system address has all tokens.
 */
const unwritten = (seed: Random.Seed, erc20s: ReadonlyArray<Erc20>): EvmChain.World["unwritten"] => {
  const known = new Map(erc20s.map((erc20) => [erc20.address, erc20]))
  return (address, slot) => {
    const erc20 = known.get(address)
    if (erc20 === undefined) return EvmChain.zeroWord
    if (slot >= usedSlots) {
      const { system } = erc20
      return system !== undefined && slot === balanceSlot(system.address) ? toWord(system.balance) : EvmChain.zeroWord
    }
    return tokenWords(erc20)[Number(slot)] ?? Random.hex(seed, `evm/${EvmChain.wordKey(address, slot)}`, 64)
  }
}

/**
 * Makes the initial EVM state of the venue, with the wrapped token and the contracts that are linked to spot
 * tokens. The chain starts at `startedAt` (milliseconds).
 */
export const evm = (seed: Random.Seed, spotMeta: SpotMeta, startedAt: number): VenueEvm.EvmState => {
  const erc20s = listTokens(spotMeta)
  const code = { nonce: 1n, code: wrappedToken }
  const world = EvmChain.make(
    [
      ...accounts,
      [contracts.coreWriter, { nonce: 1n, code: CoreWriter.code }],
      ...erc20s.map(({ address }) => [address, code] as const),
      // the contract that is linked to HYPE itself
      [hypeBridge, { nonce: 1n, code: CoreWriter.bridgeCode }]
    ],
    unwritten(seed, erc20s)
  )
  return { ...EvmChain.genesis(world), startedAt, fees: {} }
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

const transfer: Layer2Chain.NewTransaction["logs"] = [{
  address: "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
  topics: [
    "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
    `0x${"f44938b0125a6662f9536281ad2cd6c499f22004".padStart(64, "0")}`,
    `0x${"17281460228691b044e080a5f5257dce8e47f79c".padStart(64, "0")}`
  ],
  data: `0x${"7a1b6de237e5e8c9".padStart(64, "0")}`
}]

const sent: ReadonlyArray<Layer2Chain.NewTransaction> = [
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
export const layer2 = (seed: Random.Seed, startedAt: number): Layer2Chain.Layer2State =>
  Layer2Chain.make(seed, startedAt, EvmChain.make(accounts), sent)

/** A copy of the venue: trading, accounts and listings, without the EVM chains and the token chain. */
export interface VenueSnapshot {
  readonly trading: TradingControls.TradingSnapshot
  readonly venue: VenueState.VenueState
  readonly info: InfoState
}

/**
 * The state of the chains.
 *
 * A change of this state applies to all later calls. Data that is not listed here (prices, blocks) is derived from the
 * seed and the `Clock`.
 *
 * Provided by `SandboxState.layer` or `Sandbox.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { SandboxState } from "@trigate/sandbox"
 * import { Console, Effect } from "effect"
 *
 * const program = SandboxState.SandboxState.use(({ seed }) => Console.log(seed))
 *
 * await Effect.runPromise(Effect.provide(program, SandboxState.layer()))
 * ```
 * ```text
 * trigate
 * ```
 */
export class SandboxState extends Context.Service<SandboxState, {
  readonly seed: Random.Seed
  /** The venue's accounts, validators and nonces. */
  readonly venue: VenueState.VenueControls
  /** Markets with their books; the balances, positions and orders of accounts; the venue's time. */
  readonly trading: TradingControls.TradingControls
  /** The spot metadata, and the coins that have candles. */
  readonly info: VenueInfo.InfoControls
  /** The injected faults of the venue. */
  readonly faults: TradingControls.VenueFaults
  /** The market of another venue that the sandbox follows; `undefined` if it follows none. */
  readonly feed: MarketFeed | undefined
  /** Returns a copy of the venue. */
  readonly snapshot: Effect.Effect<VenueSnapshot>
  /** Restores a copy of the venue, and the time of a stopped clock. The injected faults do not change. */
  readonly restore: (snapshot: VenueSnapshot) => Effect.Effect<void>
  /** Restores the initial state of the venue, and the time of a stopped clock. The injected faults do not change. */
  readonly reset: Effect.Effect<void>
  /** Accounts, contracts and gas prices of the EVM. */
  readonly evm: VenueEvm.EvmControls
  /** Contracts of the token chain. */
  readonly tokens: TokenServer.TokenControls & {
    /** Serves the methods of the token chain. The results of messages are part of the state. */
    readonly answer: TokenServer.Answering
  }
  /** Transactions and finality of the layer 2. */
  readonly layer2: Layer2Chain.Layer2Controls
}>()("@trigate/sandbox/SandboxState") {}

/** The initial state of the chains. */
export interface Options {
  /** The network whose names the venue has. Default: mainnet. */
  readonly network?: Network | undefined
  /** The seed. Together with the `Clock`, it determines all generated data. Default: `"trigate"`. */
  readonly seed?: Random.Seed | undefined
  /**
   * Fixes the venue's clock at this time, in milliseconds; after that, only `trading.advance` advances it. With a fixed
   * time and a given seed, a sequence of actions has the same results in every run. Default: the clock runs.
   */
  readonly stoppedAt?: number | undefined
  /** The speed of the prices relative to real time. Default: 1. */
  readonly speed?: number | undefined
  /** Price points to replay, by coin. They replace the prices generated from the seed. */
  readonly prices?: ReadonlyMap<string, ReadonlyArray<TradingControls.PricePoint>> | undefined
  readonly faults?: Partial<SandboxFaults> | undefined
  /** The market of another venue to follow. Its prices replace those of the seed, at real speed. */
  readonly feed?: Pending | undefined
  /** The maximum number of accounts, and the number of stored fills for each account. */
  readonly limits?: VenueLimits | undefined
}

const make = Effect.fnUntraced(
  function*(
    { faults, feed, limits, network, prices = new Map(), seed = Random.defaultSeed, speed = 1, stoppedAt }: Options
  ) {
    const startedAt = yield* Clock.currentTimeMillis
    const beginsAt = stoppedAt ?? startedAt
    const mainnet = genesisInfo(seed, TradingControls.makeSpotMeta(seed))
    const generated = network === "testnet" ? toTestnet(mainnet) : mainnet
    const listed = feed === undefined ? generated : yield* feed.listing(seed, beginsAt, generated)
    const { spotMeta } = listed
    const info = yield* Ref.make(listed)
    const identity = yield* Ref.make(genesisVenue)
    const venue = genesisTrading(seed, listed, beginsAt, limits)
    venue.hasRecurringOutcomes = feed === undefined
    venue.path = feed === undefined ? TradingControls.faster(venue.path, beginsAt, speed) : feed.path(venue.path)
    const failing = TradingControls.makeFaults(seed, faults)
    venue.rejectsOrder = () => failing.happens("rejectedLegs")
    const chain = yield* Ref.make(evm(seed, spotMeta, startedAt))
    venue.readStorage = (address, slot) =>
      EvmChain.readWord(Arr.lastNonEmpty(Ref.getUnsafe(chain).worlds).world, address, slot)
    const trading = TradingControls.make(venue, { stoppedAt, identity, info })
    const playPrices = Effect.forEach(prices, ([coin, points]) => trading.playPrices(coin, points, speed), {
      discard: true
    })
    yield* playPrices
    const restore = (snapshot: VenueSnapshot) =>
      Ref.set(identity, snapshot.venue).pipe(
        Effect.andThen(Ref.set(info, snapshot.info)),
        Effect.andThen(trading.restore(snapshot.trading))
      )
    const tokens = yield* Ref.make(tokenChain)
    return SandboxState.of({
      seed,
      venue: VenueState.controls(identity),
      trading,
      info: VenueInfo.controls(info, trading.now),
      faults: failing,
      feed: yield* feed?.start(venue, trading) ?? Effect.undefined,
      snapshot: Effect.all({ trading: trading.snapshot, venue: Ref.get(identity), info: Ref.get(info) }),
      restore,
      reset: Effect.flatMap(trading.now, (now) =>
        restore({
          trading: { state: genesisTrading(seed, listed, stoppedAt ?? now).state, played: new Map(), ahead: 0 },
          venue: genesisVenue,
          info: listed
        })).pipe(Effect.andThen(playPrices)),
      evm: VenueEvm.controls(chain),
      tokens: { ...TokenServer.controls(tokens), answer: yield* TokenServer.make(seed, tokens) },
      layer2: Layer2Chain.controls(seed, yield* Ref.make(layer2(seed, startedAt)))
    })
  }
)

/**
 * Provides the initial state.
 *
 * Each call returns a new layer with separate state.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options = {}): Layer.Layer<SandboxState> => Layer.effect(SandboxState, make(options))

/** The indexes of HYPE among the testnet's tokens, and of its pair with USDC. */
const testnetHype = { token: 1_105, pair: 1_035 }

/** The IDs of known tokens on testnet, by index, from its `spotMeta`. */
const tokenIds: ReadonlyMap<number, string> = new Map([
  [0, "0xeb62eee3685fc4c43992febcd9e75443"],
  [1, "0xc4bf3f870c0e9465323c0b6ed28096c2"],
  [testnetHype.token, "0x7317beb7cceed72ef0b346074cc8e7ab"]
])

/** The names of the testnet's first tokens after USDC and PURR. */
const tokenNames = ["TEST", "JPL ", "BREAD", "P", "KOGU", "TestPascal1", "KORILA"]

/** The index of KORILA, and the pair that trades it there. */
const korila = { token: 8, pair: "@8", szDecimals: 1, weiDecimals: 1 }

const renameToken = (token: SpotToken, index: number): SpotToken => ({
  ...token,
  index,
  name: tokenNames[index - 2] ?? token.name,
  tokenId: tokenIds.get(index) ?? token.tokenId,
  ...(index === korila.token ? { szDecimals: korila.szDecimals, weiDecimals: korila.weiDecimals } : {})
})

/** Makes the token of an index that mainnet's list does not have, or has for HYPE or USDH. */
const fillToken = (index: number): SpotToken => ({
  name: `TEST${index}`,
  szDecimals: 2,
  weiDecimals: 8,
  index,
  tokenId: `0x${index.toString(16).padStart(32, "0")}`,
  isCanonical: false,
  evmContract: null,
  fullName: null,
  deployerTradingFeeShare: "0.0"
})

const renamePairs = ({ tokens, universe }: SpotMeta): SpotMeta => {
  const known = new Map(tokens.map((token) => [token.index, token]))
  return {
    tokens: Array.from({ length: testnetHype.token + 1 }, (_, index) => {
      const source = index === testnetHype.token ? hype : index
      const token = index === hype || index === usdh ? undefined : known.get(source)
      return token === undefined ? fillToken(index) : renameToken(token, index)
    }),
    universe: universe.flatMap((pair) => {
      const [listedBase, quote] = pair.tokens
      const base = pair.name === korila.pair ? korila.token : listedBase
      if (base === usdh) return []
      const toTestnet = (token: number) => token === hype ? testnetHype.token : token
      const tokens: readonly [number, number] = [toTestnet(base), toTestnet(quote)]
      return base === hype
        ? [{ ...pair, tokens, name: `@${testnetHype.pair}`, index: testnetHype.pair }]
        : [{ ...pair, tokens }]
    })
  }
}

/** The first perpetuals of the testnet, whose asset numbers are those positions. */
const firstPerpetuals = ["SOL", "APT", "ATOM", "BTC", "ETH"]

/**
 * Prices that differ from mainnet's. The venue's Python examples for testnet place orders that should rest, at half of
 * these prices.
 */
const prices: ReadonlyMap<string, number> = new Map([["PURR/USDC", 1], [korila.pair, 24], ["OP", 2.4], ["test:ABC", 2]])

/** The testnet's names of coins that have others on mainnet. The coins of a dex without a name do not exist there. */
const renameCoin = (coin: string): string | undefined => {
  if (coin === `@107`) return `@${testnetHype.pair}`
  if (coin === "@230" || coin.startsWith("km:")) return undefined
  return coin === "xyz:XYZ100" ? "test:ABC" : coin.replace("xyz:", "test:")
}

/** Returns the testnet's tokens, pairs and perpetuals, made from mainnet's. */
const toTestnet = ({ markets, spotMeta }: InfoState): InfoState => {
  const renamed = new Map<string, CandleMarket>()
  for (const [coin, market] of markets) {
    const name = renameCoin(coin)
    if (name === undefined) continue
    const price = prices.get(name)
    renamed.set(name, { ...market, coin: name, ...(price === undefined ? {} : { asset: name, price }) })
  }
  const first = firstPerpetuals.flatMap((coin) => {
    const market = renamed.get(coin)
    return market === undefined ? [] : [[coin, market] as const]
  })
  return { spotMeta: renamePairs(spotMeta), markets: new Map([...first, ...renamed]) }
}
