/** Takes signed transactions into a sandbox's EVM chain, or refuses them in the words of common nodes. */
import type { Address, Hash } from "@trigate/domain/Hex"
import { Data } from "@trigate/domain/Hex"
import type { RpcAnswer } from "@trigate/domain/JsonRpc"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { TransactionSerializable, TransactionSerialized } from "viem"
import { keccak256, pad, parseTransaction, recoverAddress, serializeTransaction } from "viem/utils"
import { withEntry } from "./Entries.ts"
import type { EvmChain, Ledger } from "./EvmChain.ts"
import * as Chain from "./EvmChain.ts"
import * as Gas from "./EvmGas.ts"
import type { Refusal } from "./EvmReply.ts"
import { answerOf, invalidParams, noCode, refused } from "./EvmReply.ts"
import type { Before, Envelope, Transaction } from "./EvmTransaction.ts"
import { lower } from "./VenueState.ts"

/** A transaction whose bytes were read and whose sender is known. */
interface Signed {
  readonly hash: Hash
  readonly from: Address
  readonly fields: TransactionSerializable
}

/** A legacy one is an RLP list; of the typed ones those that every chain takes. */
const isTransaction = (bytes: Data): bytes is Data & TransactionSerialized => /^0x(?:0[12]|[c-f])/iu.test(bytes)

const signatureOf = ({ r = "0x0", s = "0x0", v, yParity }: TransactionSerializable): Envelope["signature"] => ({
  r: pad(r),
  s: pad(s),
  // of the old type: 27 or 28, or the chain's id doubled and 35 or 36 (EIP-155)
  yParity: yParity ?? (Number(v) + 1) % 2
})

/** Reads the bytes of a signed transaction and recovers its sender. */
const read = Effect.fnUntraced(function*(bytes: Data) {
  if (!isTransaction(bytes)) return yield* Effect.fail(refused("transaction type not supported"))
  const fields = yield* Effect.try({
    try: (): TransactionSerializable => parseTransaction(bytes),
    catch: () => refused("rlp: the transaction cannot be read")
  })
  const from = yield* Effect.tryPromise({
    try: () => {
      const { r: _, s: __, v: ___, yParity: ____, ...unsigned } = fields
      return recoverAddress({ hash: keccak256(serializeTransaction(unsigned)), signature: signatureOf(fields) })
    },
    catch: () => refused("invalid sender")
  })
  const signed: Signed = { hash: keccak256(bytes), from: lower(from), fields }
  return signed
})

const pricingOf = ({ accessList, gasPrice = 0n, maxFeePerGas, maxPriorityFeePerGas = 0n }: TransactionSerializable) =>
  maxFeePerGas === undefined
    ? { type: accessList === undefined ? "0x0" as const : "0x1" as const, gasPrice }
    : { type: "0x2" as const, maxFeePerGas, maxPriorityFeePerGas }

const least = (one: bigint, other: bigint): bigint => one < other ? one : other

const envelopeOf = ({ fields }: Signed, baseFee: bigint): Envelope => {
  const pricing = pricingOf(fields)
  return {
    nonce: fields.nonce ?? 0,
    value: fields.value ?? 0n,
    gas: fields.gas ?? 0n,
    input: fields.data ?? "0x",
    signature: signatureOf(fields),
    pricing,
    paid: pricing.type === "0x2"
      ? least(pricing.maxFeePerGas, baseFee + pricing.maxPriorityFeePerGas)
      : pricing.gasPrice
  }
}

const mostPaid = ({ gas, pricing, value }: Envelope): bigint =>
  gas * (pricing.type === "0x2" ? pricing.maxFeePerGas : pricing.gasPrice) + value

const refusalOf = (
  chain: EvmChain,
  { fields, from, hash }: Signed,
  envelope: Envelope,
  used: bigint,
  baseFee: bigint
): Refusal | undefined => {
  const { gas, nonce, paid } = envelope
  const next = Chain.nonceAt(chain, from, Number.POSITIVE_INFINITY)
  const balance = Chain.balanceAt(chain, from, Number.POSITIVE_INFINITY)
  const most = mostPaid(envelope)
  if (chain.ledger.transactions.has(hash)) return refused("already known")
  if (fields.chainId === undefined) return refused("only replay-protected (EIP-155) transactions allowed over RPC")
  if (fields.chainId !== chain.chainId) {
    return refused(`invalid chain id for signer: have ${fields.chainId} want ${chain.chainId}`)
  }
  if (nonce < next) return refused(`nonce too low: next nonce ${next}, tx nonce ${nonce}`)
  if (nonce > next) return refused(`nonce too high: next nonce ${next}, tx nonce ${nonce}`)
  if (gas < used) return refused(`intrinsic gas too low: have ${gas}, want ${used}`)
  if (paid < baseFee) return refused("max fee per gas less than block base fee")
  return balance < most
    ? refused(
      `insufficient funds for gas * price + value: balance ${balance}, tx cost ${most}, overshot ${most - balance}`
    )
    : undefined
}

const beforeIn = (chain: EvmChain, block: number): Before => {
  const others = Chain.transactionsIn(chain, block)
  return { count: others.length, gasUsed: others.reduce((sum, { gasUsed }) => sum + gasUsed, 0n) }
}

/** The transaction as the next block holds it, or why it is not taken. */
const accept = (chain: EvmChain, signed: Signed): Result.Result<Transaction, Refusal> => {
  const block = chain.heads.latest + 1
  const baseFee = chain.baseFee(block)
  const envelope = envelopeOf(signed, baseFee)
  const to = signed.fields.to ?? null
  const gasUsed = Gas.gasOf(chain, to, envelope.input)
  if (gasUsed === undefined || to === null) return Result.fail(noCode)
  const refusal = refusalOf(chain, signed, envelope, gasUsed, baseFee)
  return refusal === undefined
    ? Result.succeed({
      hash: signed.hash,
      fields: chain.fields,
      from: signed.from,
      to: lower(to),
      contractAddress: null,
      status: "success",
      gasUsed,
      logs: [],
      extras: {},
      block,
      before: beforeIn(chain, block),
      promisedFrom: undefined,
      envelope
    })
    : Result.fail(refusal)
}

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Tuple([Data])))

/** Sends a transaction, whose params are raw JSON text, to the chain that some state is at an instant. */
export const submit = <State extends Ledger>(
  state: Ref.Ref<State>,
  chainAt: (known: State, now: number) => EvmChain,
  params: string
): Effect.Effect<RpcAnswer> =>
  Effect.gen(function*() {
    const [bytes] = yield* Effect.mapError(decode(params), () => invalidParams)
    const signed = yield* read(bytes)
    const now = yield* Clock.currentTimeMillis
    const accepted = yield* Ref.modify(state, (known) => {
      const result = accept(chainAt(known, now), signed)
      return [
        result,
        Result.isSuccess(result)
          ? { ...known, transactions: withEntry(known.transactions, signed.hash, result.success) }
          : known
      ]
    })
    return yield* Effect.map(Effect.fromResult(accepted), ({ hash }) => hash)
  }).pipe(Effect.result, Effect.map(answerOf))
