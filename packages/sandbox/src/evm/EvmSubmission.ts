/** Accepts signed transactions on a sandbox's EVM chain, or refuses them with the messages of common nodes. */
import { type Data, type Hash, lowerCase } from "@trigate/domain/encoding/Hex"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type { TransactionSerializable, TransactionSerialized } from "viem"
import { keccak256, pad, parseTransaction, recoverAddress, serializeTransaction } from "viem/utils"
import type { Envelope, EvmChain, Ledger, Machine, Sent, Transaction } from "./EvmChain.ts"
import * as Chain from "./EvmChain.ts"
import { refused, type RpcRefusal } from "./EvmWire.ts"
import type { World } from "./EvmWorld.ts"
import * as EvmWorld from "./EvmWorld.ts"

/** Returns whether bytes are a legacy transaction (an RLP list) or a transaction of type 1 or 2. */
const isTransaction = (bytes: Data): bytes is Data & TransactionSerialized => /^0x(?:0[12]|[c-f])/iu.test(bytes)

const toSignature = ({ r = "0x0", s = "0x0", v, yParity }: TransactionSerializable): Envelope["signature"] => ({
  r: pad(r),
  s: pad(s),
  // in a legacy transaction, `v` is 27 or 28, or twice the chain ID plus 35 or 36 (EIP-155)
  yParity: yParity ?? (Number(v) + 1) % 2
})

const toPricing = (
  { accessList, gasPrice = 0n, maxFeePerGas, maxPriorityFeePerGas = 0n }: TransactionSerializable
): Envelope["pricing"] => {
  if (maxFeePerGas !== undefined) {
    return { type: "0x2", maxFeePerGas, maxPriorityFeePerGas, accessList: accessList ?? [] }
  }
  return accessList === undefined ? { type: "0x0", gasPrice } : { type: "0x1", gasPrice, accessList }
}

const recoverSender = (fields: TransactionSerializable) => {
  const { r: _, s: __, v: ___, yParity: ____, ...unsigned } = fields
  return recoverAddress({ hash: keccak256(serializeTransaction(unsigned)), signature: toSignature(fields) })
}

/** Decodes a signed transaction for a chain and recovers its sender. */
const read = Effect.fnUntraced(function*(chainId: number, bytes: Data) {
  if (!isTransaction(bytes)) return yield* Effect.fail(refused("transaction type not supported"))
  const fields = yield* Effect.try({
    try: (): TransactionSerializable => parseTransaction(bytes),
    catch: () => refused("rlp: the transaction cannot be read")
  })
  const from = yield* Effect.tryPromise({ try: () => recoverSender(fields), catch: () => refused("invalid sender") })
  if (fields.chainId === undefined) {
    return yield* Effect.fail(refused("only replay-protected (EIP-155) transactions allowed over RPC"))
  }
  if (fields.chainId !== chainId) {
    return yield* Effect.fail(refused(`invalid chain id for signer: have ${fields.chainId} want ${chainId}`))
  }
  const { data = "0x", gas = 0n, nonce = 0, to, value = 0n } = fields
  const sent: Sent = {
    hash: keccak256(bytes),
    from: lowerCase(from),
    to: to === undefined || to === null ? null : lowerCase(to),
    envelope: { nonce, value, gas, input: data, signature: toSignature(fields), pricing: toPricing(fields) },
    bytes
  }
  return sent
})

const splitBytes = (input: Data): ReadonlyArray<string> => input.slice(2).match(/../gu) ?? []

/** Returns the gas that a transaction uses before its code runs (EIP-2028, 2930, 3860). */
const intrinsicGas = ({ envelope: { input, pricing }, to }: Sent): bigint => {
  const bytes = splitBytes(input)
  const data = bytes.reduce((gas, byte) => gas + (byte === "00" ? 4n : 16n), 0n)
  const creation = to === null ? 32_000n + 2n * BigInt(Math.ceil(bytes.length / 32)) : 0n
  const listed = pricing.type === "0x0" ? [] : pricing.accessList
  const access = listed.reduce((gas, { storageKeys }) => gas + 2_400n + 1_900n * BigInt(storageKeys.length), 0n)
  return 21_000n + data + creation + access
}

const offers = (pricing: Envelope["pricing"]): readonly [bigint, bigint] =>
  pricing.type === "0x2" ? [pricing.maxFeePerGas, pricing.maxPriorityFeePerGas] : [pricing.gasPrice, pricing.gasPrice]

/**
 * Returns whether each fee that `later` offers is at least 10 % higher than the same fee in `earlier`. Nodes require
 * this of a transaction that replaces another one.
 */
const outbids = (later: Sent, earlier: Pick<Sent, "envelope">): boolean => {
  const [fee, tip] = offers(later.envelope.pricing)
  const [earlierFee, earlierTip] = offers(earlier.envelope.pricing)
  return fee * 10n >= earlierFee * 11n && tip * 10n >= earlierTip * 11n
}

/** Returns the maximum cost of a transaction, in wei. */
const maxPaid = (chain: EvmChain, { envelope: { gas, pricing, value }, hash }: Sent): bigint =>
  gas * offers(pricing)[0] + value + chain.dataFee(hash)

/** Maximum distance of a transaction's nonce from the sender's next nonce. */
const furthest = 64

const numberRefusal = (next: number, nonce: number): RpcRefusal | undefined => {
  if (nonce < next) return refused(`nonce too low: next nonce ${next}, tx nonce ${nonce}`)
  return nonce < next + furthest ? undefined : refused(`nonce too high: next nonce ${next}, tx nonce ${nonce}`)
}

const balanceRefusal = (balance: bigint, most: bigint): RpcRefusal | undefined =>
  balance < most
    ? refused(
      `insufficient funds for gas * price + value: balance ${balance}, tx cost ${most}, overshot ${most - balance}`
    )
    : undefined

/** Returns the submitted transactions in the next block, without the generated ones. */
const pendingIn = (chain: EvmChain): ReadonlyArray<Transaction> =>
  Chain.transactionsIn(chain.ledger, Chain.nextBlock(chain)).filter(({ bytes }) => bytes !== undefined)

const findRefusal = (
  chain: EvmChain,
  sent: Sent,
  earlier: Pick<Sent, "envelope" | "hash"> | undefined
): RpcRefusal | undefined => {
  const { envelope: { gas, nonce, pricing }, from, hash } = sent
  const { ledger } = chain
  const isKnown = ledger.transactions.has(hash) || ledger.waiting.some((each) => each.hash === hash)
  if (isKnown) return refused("already known")
  const unplayed = sent.to === null ? undefined : chain.refuseMessage(sent.to, sent.envelope.value)
  if (unplayed !== undefined) return refused(unplayed)
  const needed = intrinsicGas(sent)
  if (gas < needed) return refused(`intrinsic gas too low: have ${gas}, want ${needed}`)
  const most = chain.transactionGas(from)
  if (gas > most) {
    const why = most < Chain.gasLimit ? `: ${gas} > ${most}, the limit of small blocks` : ""
    return refused(`exceeds block gas limit${why}`)
  }
  const next = Chain.nextBlock(chain)
  if (Chain.paidAt(pricing, chain.baseFee(next)) < chain.baseFee(next)) {
    return refused("max fee per gas less than block base fee")
  }
  const cost = maxPaid(chain, sent)
  const pending = EvmWorld.readAccount(Chain.worldAt(chain, next), from)
  if (earlier === undefined) return numberRefusal(Number(pending.nonce), nonce) ?? balanceRefusal(pending.balance, cost)
  if (!outbids(sent, earlier)) return refused("replacement transaction underpriced")
  return balanceRefusal(EvmWorld.readAccount(Chain.worldAt(chain, chain.heads.latest), from).balance, cost)
}

interface Filling {
  readonly world: World
  readonly mined: ReadonlyArray<Transaction>
  readonly waiting: ReadonlyArray<Sent>
  /** The executed transactions that made a call which the sandbox cannot execute, with the reason. */
  readonly unplayed: ReadonlyMap<Hash, string>
}

const least = (one: bigint, other: bigint): bigint => one < other ? one : other

const run = Effect.fnUntraced(function*(
  chain: EvmChain,
  machine: Machine,
  { mined, unplayed, waiting, world }: Filling,
  sent: Sent
) {
  const { bytes, envelope: { pricing }, from, hash } = sent
  const block = Chain.evmBlock(chain, Chain.nextBlock(chain))
  // the base fee can have risen after the transaction was accepted, so it is limited to the fee that the transaction
  // offers
  const baseFee = least(block.baseFee, offers(pricing)[0])
  const outcome = yield* Effect.promise(() => machine.execute(world, { ...block, baseFee }, bytes))
  const { balance } = EvmWorld.readAccount(outcome.world, from)
  const last = mined.at(-1)
  const transaction: Transaction = {
    ...sent,
    block: block.number,
    index: mined.length,
    gasUsed: outcome.gasUsed,
    cumulativeGasUsed: (last?.cumulativeGasUsed ?? 0n) + outcome.gasUsed,
    firstLog: last === undefined ? 0 : last.firstLog + last.logs.length,
    logs: outcome.logs,
    contractAddress: outcome.created,
    status: outcome.failure === undefined && outcome.unplayed === undefined ? "success" : "failure",
    type: pricing.type,
    paid: Chain.paidAt(pricing, baseFee),
    fields: chain.fields,
    extras: {},
    promisedFrom: undefined
  }
  return {
    world: EvmWorld.withAccount(outcome.world, from, { balance: balance - chain.dataFee(hash) }),
    mined: [...mined, transaction],
    waiting: waiting.filter((each) => each !== sent),
    unplayed: outcome.unplayed === undefined ? unplayed : new Map([...unplayed, [hash, outcome.unplayed]])
  }
})

/**
 * Moves waiting transactions into the next block, in order, until none of the remaining transactions can be executed.
 */
const fill = (chain: EvmChain, machine: Machine, filling: Filling): Effect.Effect<Filling> => {
  const next = filling.waiting.find((sent) => {
    const { balance, nonce } = EvmWorld.readAccount(filling.world, sent.from)
    return BigInt(sent.envelope.nonce) === nonce && maxPaid(chain, sent) <= balance
  })
  return next === undefined
    ? Effect.succeed(filling)
    : Effect.flatMap(run(chain, machine, filling, next), (filled) => fill(chain, machine, filled))
}

const isMade = ({ bytes }: Transaction): boolean => bytes === undefined

const asSent = ({ bytes, envelope, from, hash, to }: Transaction): ReadonlyArray<Sent> =>
  bytes === undefined ? [] : [{ hash, from, to, envelope, bytes }]

/** Returns the chain's data after the executed transactions have been added to the next block. */
const sealed = (chain: EvmChain, { mined, waiting, world }: Filling): Ledger => {
  const next = Chain.nextBlock(chain)
  const others = [...chain.ledger.transactions].filter(([, each]) => each.block !== next || isMade(each))
  const [first, ...worlds] = chain.ledger.worlds
  return {
    transactions: new Map([...others, ...mined.map((each) => [each.hash, each] as const)]),
    waiting,
    worlds: [first, ...worlds.filter(({ block }) => block < next), { block: next, world }]
  }
}

/**
 * Accepts a transaction. It is executed in the next block, or waits for an earlier transaction of the same sender.
 *
 * If an earlier transaction of the sender with the same nonce is waiting or in the next block, the new transaction
 * replaces it. The next block is then executed again.
 */
export const accept = Effect.fnUntraced(function*(chain: EvmChain, machine: Machine, bytes: Data): Effect.fn.Return<
  { readonly hash: Hash; readonly ledger: Ledger },
  RpcRefusal
> {
  const sent = yield* read(chain.chainId, bytes)
  const mined = pendingIn(chain)
  const { waiting } = chain.ledger
  const isSame = ({ envelope, from }: Pick<Sent, "envelope" | "from">) =>
    from === sent.from && envelope.nonce === sent.envelope.nonce
  const replaced = mined.find(isSame)
  const earlier = replaced ?? waiting.find(isSame)
  const refusal = findRefusal(chain, sent, earlier)
  if (refusal !== undefined) return yield* Effect.fail(refusal)
  const replacing = (queue: ReadonlyArray<Sent>) => queue.map((each) => isSame(each) ? sent : each)
  const filled = yield* fill(
    chain,
    machine,
    replaced === undefined
      ? {
        world: Chain.worldAt(chain, Chain.nextBlock(chain)),
        mined,
        unplayed: new Map(),
        waiting: earlier === undefined ? [sent, ...waiting] : replacing(waiting)
      }
      : {
        world: Chain.worldAt(chain, chain.heads.latest),
        mined: [],
        unplayed: new Map(),
        waiting: [...replacing(Arr.flatMap(mined, asSent)), ...waiting]
      }
  )
  // a transaction that was accepted earlier, and waited for this one, fails instead
  const unplayed = filled.unplayed.get(sent.hash)
  return unplayed === undefined
    ? { hash: sent.hash, ledger: sealed(chain, filled) }
    : yield* Effect.fail(refused(unplayed))
})
