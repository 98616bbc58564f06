/**
 * The contracts of HyperEVM through which a transaction reaches the venue: CoreWriter, whose log contains
 * an action, the bridge of HYPE, and the contracts of spot tokens. The venue executes an action, and credits HYPE and
 * tokens, some seconds after the block.
 */
import type { SentAction } from "@trigate/domain/actions/Action"
import type { Address, Data, Hash } from "@trigate/domain/encoding/Encoding"
import { lowerCase } from "@trigate/domain/encoding/Encoding"
import type { SpotToken } from "@trigate/domain/info/Market"
import { printDecimal } from "../venue/Assets.ts"
import { firstSide } from "../venue/Outcomes.ts"
import type { Scheduled } from "../venue/TradingState.ts"
import { hypeBridge, systemAddress } from "../venue/Transfers.ts"
import type { Venue } from "../venue/Venue.ts"
import type { Transaction, TransactionLog } from "./EvmChain.ts"
import { outcomeDecimals } from "./ReadPrecompiles.ts"

const rawAction: Hash = "0x8c7f585fb295f7eb1e6aeb8fba61b23a4fe60beda405f0045073b185c74412e3"
const transferred: Hash = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
const received: Hash = "0x88a5966d370b9919b20f3e2c13ff65706f196a4e32cc2c12bf57088f88525874"

/** The code of CoreWriter: `sendRawAction(bytes)` emits `RawAction(address indexed user, bytes data)`. */
export const code: Data = `0x5f3560e01c6317938e13146011575f5ffd5b600436038060045f3733907f${rawAction.slice(2)}905fa200`

/** The code of the bridge of HYPE: a transfer emits `Received(address indexed user, uint256 amount)`. */
export const bridgeCode: Data = `0x345f52337f${received.slice(2)}60205fa200`

/** Milliseconds from a block to the execution of its actions by the venue. */
const delay = 2_000

/** The number of effects of a transaction that the venue executes at the same time, and the milliseconds until the next ones. */
const together = 100
const pause = 50

/** Number of EVM wei in a wei of HYPE on the venue. */
export const evmWeiPerWei = 10n ** 10n

const decimals = 8

/** A decimal number without a zero after the point, as in an action. */
const plain = (value: bigint, places = decimals): string => printDecimal(value, places).replace(/\.0$/u, "")

/** Reads the ABI words of an action's arguments. */
class Words {
  readonly #hex: string
  constructor(hex: string) {
    this.#hex = hex
  }
  number(at: number): bigint {
    return BigInt(`0x0${this.#hex.slice(64 * at, 64 * (at + 1))}`)
  }
  flag(at: number): boolean {
    return this.number(at) !== 0n
  }
  address(at: number): Address {
    return lowerCase(`0x${this.#hex.slice(64 * at + 24, 64 * (at + 1)).padStart(40, "0")}`)
  }
  text(at: number): string {
    const start = Number(this.number(at)) * 2
    const length = Number(BigInt(`0x0${this.#hex.slice(start, start + 64)}`))
    const bytes = this.#hex.slice(start + 64, start + 64 + 2 * length).match(/../gu) ?? []
    return new TextDecoder().decode(Uint8Array.from(bytes, (byte) => Number.parseInt(byte, 16)))
  }
}

const timesInForce = ["Alo", "Gtc", "Ioc"]

const cloid = (value: bigint): string => `0x${value.toString(16).padStart(32, "0")}`

/** Returns the name of a dex by its number, and `spot` for the largest number. */
const findDex = ({ dexes }: Venue["listing"], index: bigint): string | undefined =>
  index === 2n ** 32n - 1n ? "spot" : ["", ...dexes][Number(index)]

/** Formats an amount of a token. */
const plainAmount = ({ index, weiDecimals }: SpotToken, wei: bigint): string =>
  plain(wei, index < firstSide ? weiDecimals : outcomeDecimals)

const signed = { signatureChainId: "0x3e7", hyperliquidChain: "Mainnet" } as const

/** Returns the action that sends an amount of a token, in wei. */
const spotSend = (token: SpotToken, wei: bigint, destination: Address, time: number): SentAction => ({
  type: "spotSend",
  ...signed,
  destination,
  token: `${token.name}:${token.tokenId}`,
  amount: plainAmount(token, wei),
  time
})

/** The modes of `userSetAbstraction` by their number. */
const abstractions = ["", "disabled", "unifiedAccount", "portfolioMargin"]

/**
 * Reads an operation with outcomes: its kind, the question, the outcome, and an amount, which is a whole number of tokens.
 * Returns `undefined` if a member that the operation does not use is not zero. Merging an amount of zero merges all.
 */
const readOutcome = (words: Words): SentAction | undefined => {
  const [kind = 0n, question = 0n, outcome = 0n, wei = 0n] = [0, 1, 2, 3].map((at) => words.number(at))
  if (wei % 10n ** BigInt(outcomeDecimals) !== 0n) return undefined
  const amount = plain(wei, outcomeDecimals)
  const most = wei === 0n ? null : amount
  const type = "userOutcome"
  switch (kind) {
    case 0n:
      return question === 0n ? { type, splitOutcome: { outcome: Number(outcome), amount } } : undefined
    case 1n:
      return question === 0n ? { type, mergeOutcome: { outcome: Number(outcome), amount: most } } : undefined
    case 2n:
      return outcome === 0n ? { type, mergeQuestion: { question: Number(question), amount: most } } : undefined
    case 3n:
      return { type, negateOutcome: { question: Number(question), outcome: Number(outcome), amount } }
    default:
      return undefined
  }
}

/**
 * The actions by their number. Prices and sizes have eight decimals. `time` is the nonce of an action that a user would
 * sign. Returns `undefined` for arguments that name nothing.
 */
const actions = new Map<number, (words: Words, venue: Venue, time: number) => SentAction | undefined>([
  [1, (words) => ({
    type: "order",
    orders: [{
      a: Number(words.number(0)),
      b: words.flag(1),
      p: plain(words.number(2)),
      s: plain(words.number(3)),
      r: words.flag(4),
      t: { limit: { tif: timesInForce[Number(words.number(5)) - 1] } },
      ...(words.number(6) === 0n ? {} : { c: cloid(words.number(6)) })
    }],
    grouping: "na"
  })],
  [2, (words) => ({
    type: "vaultTransfer",
    vaultAddress: words.address(0),
    isDeposit: words.flag(1),
    usd: Number(words.number(2))
  })],
  [3, (words, _, nonce) => ({
    type: "tokenDelegate",
    ...signed,
    validator: words.address(0),
    wei: Number(words.number(1)),
    isUndelegate: words.flag(2),
    nonce
  })],
  [4, (words, _, nonce) => ({ type: "cDeposit", ...signed, wei: Number(words.number(0)), nonce })],
  [5, (words, _, nonce) => ({ type: "cWithdraw", ...signed, wei: Number(words.number(0)), nonce })],
  [6, (words, { listing }, time) => {
    const token = listing.tokens.get(Number(words.number(1)))
    return token === undefined ? undefined : spotSend(token, words.number(2), words.address(0), time)
  }],
  [7, (words, _, nonce) => ({
    type: "usdClassTransfer",
    ...signed,
    amount: plain(words.number(0), 6),
    toPerp: words.flag(1),
    nonce
  })],
  [8, (words) => {
    const input = [undefined, { create: { nonce: Number(words.number(2)) } }, "firstStorageSlot", "customStorageSlot"][
      Number(words.number(1))
    ]
    return input === undefined ? undefined : { type: "finalizeEvmContract", token: Number(words.number(0)), input }
  }],
  [9, (words, _, nonce) => ({
    type: "approveAgent",
    ...signed,
    agentAddress: words.address(0),
    agentName: words.text(1),
    nonce
  })],
  [10, (words) => ({ type: "cancel", cancels: [{ a: Number(words.number(0)), o: Number(words.number(1)) }] })],
  [11, (words) => ({
    type: "cancelByCloid",
    cancels: [{ asset: Number(words.number(0)), cloid: cloid(words.number(1)) }]
  })],
  [12, (words, _, nonce) => ({
    type: "approveBuilderFee",
    ...signed,
    maxFeeRate: `${plain(words.number(0), 3)}%`,
    builder: words.address(1),
    nonce
  })],
  [13, (words, { listing }, nonce) => {
    const token = listing.tokens.get(Number(words.number(4)))
    const [sourceDex, destinationDex] = [findDex(listing, words.number(2)), findDex(listing, words.number(3))]
    return token === undefined || sourceDex === undefined || destinationDex === undefined ? undefined : {
      type: "sendAsset",
      ...signed,
      destination: words.address(0),
      sourceDex,
      destinationDex,
      token: `${token.name}:${token.tokenId}`,
      amount: plainAmount(token, words.number(5)),
      fromSubAccount: words.number(1) === 0n ? "" : words.address(1),
      nonce
    }
  }],
  [15, (words, { listing }) => {
    const token = listing.tokens.get(Number(words.number(1)))
    const operation = ["supply", "withdraw"][Number(words.number(0))]
    return token === undefined || operation === undefined ? undefined : {
      type: "borrowLend",
      operation,
      token: token.index,
      amount: words.number(2) === 0n ? null : plain(words.number(2), token.weiDecimals)
    }
  }],
  [16, (words, _, nonce) => ({
    type: "userSetAbstraction",
    ...signed,
    user: words.address(0),
    abstraction: abstractions[Number(words.number(1))],
    nonce
  })],
  [17, readOutcome]
])

/**
 * Reads a transfer in a contract to the system address of its token, which then sends as much on the venue. The venue
 * refuses that if this address has less. A part of a wei is burned.
 */
const readTransfer = (
  { listing }: Venue,
  { address, data, topics: [, from = "0x", to = "0x"] }: TransactionLog,
  time: number
): { readonly user: Address; readonly action: SentAction } | undefined => {
  const user = lowerCase(`0x${to.slice(-40)}`)
  const token = listing.tokens.get(Number(`0x0${user.slice(4)}`))
  const { address: contract, evm_extra_wei_decimals: extra = 0 } = token?.evmContract ?? {}
  if (token === undefined || contract?.toLowerCase() !== address || systemAddress(token.index) !== user) {
    return undefined
  }
  const value = BigInt(`0x0${data.slice(2, 66)}`)
  const wei = extra < 0 ? value * 10n ** BigInt(-extra) : value / 10n ** BigInt(extra)
  return wei === 0n ? undefined : { user, action: spotSend(token, wei, lowerCase(`0x${from.slice(-40)}`), time) }
}

/**
 * Returns the actions and deposits that a transaction sends to the venue, with the time at which the venue executes them.
 * `minedAt` is the venue's time of the transaction's block. The venue ignores an unknown action.
 */
export const readEffects = (
  venue: Venue,
  { hash, logs }: Pick<Transaction, "hash" | "logs">,
  minedAt: number
): ReadonlyArray<Scheduled> =>
  logs.flatMap((log, index): ReadonlyArray<Scheduled> => {
    const { address, data, topics: [topic, user = "0x"] } = log
    // a contract can send thousands in a loop
    const at = minedAt + delay + Math.floor(index / together) * pause
    const entry = { hash, at, user: lowerCase(`0x${user.slice(-40)}`) } as const
    if (topic === received && address === hypeBridge) {
      const wei = BigInt(data) / evmWeiPerWei
      return wei === 0n ? [] : [{ ...entry, wei }]
    }
    if (topic === transferred) {
      const transfer = readTransfer(venue, log, entry.at)
      return transfer === undefined ? [] : [{ ...entry, ...transfer }]
    }
    if (topic !== rawAction || address !== "0x3333333333333333333333333333333333333333") return []
    // two words, then the version of the encoding, the number of the action in three bytes, and its arguments
    const length = Number(BigInt(`0x0${data.slice(66, 130)}`))
    const raw = data.slice(130, 130 + 2 * length)
    const action = raw.startsWith("01")
      ? actions.get(Number.parseInt(raw.slice(2, 8), 16))?.(new Words(raw.slice(8)), venue, entry.at)
      : undefined
    return action === undefined ? [] : [{ ...entry, action }]
  })
