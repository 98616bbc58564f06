/** A node of a sandbox's EVM chain: the standard JSON-RPC methods, and the acceptance of signed transactions. */
import * as Json from "@trigate/domain/encoding/Encoding"
import { Address, Data, Hash, lowerCase, Quantity, StorageSlot } from "@trigate/domain/encoding/Encoding"
import { type EvmBackend, methodNotFound, type RpcResponse } from "@trigate/domain/evm/EvmProtocol"
import type { layer2Operations } from "@trigate/domain/evm/Layer2Operations"
import * as EvmTransaction from "@trigate/signing/unstable/EvmTransaction"
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { TransactionSerializable, TransactionSerialized } from "viem"
import { decodeErrorResult, keccak256, parseTransaction } from "viem/utils"
import * as CallerTurns from "../internal/CallerTurns.ts"
import * as StrictDecoder from "../internal/StrictDecoder.ts"
import * as Chain from "./EvmChain.ts"

/** Returns whether bytes are a legacy transaction (an RLP list) or a transaction of type 1 or 2. */
const isTransaction = (bytes: Data): bytes is Data & TransactionSerialized => /^0x(?:0[12]|[c-f])/iu.test(bytes)

const toPricing = (
  { accessList, gasPrice = 0n, maxFeePerGas, maxPriorityFeePerGas = 0n }: TransactionSerializable
): Chain.Envelope["pricing"] => {
  if (maxFeePerGas !== undefined) {
    return { type: "0x2", maxFeePerGas, maxPriorityFeePerGas, accessList: accessList ?? [] }
  }
  return accessList === undefined ? { type: "0x0", gasPrice } : { type: "0x1", gasPrice, accessList }
}

/** The length of a slice of an execution: 3 milliseconds, or 4 096 pauses that were possible. */
const slice = { millis: 3, pauses: 4_096 } as const

/** Runs code, and other fibers between its slices. Fails with the message of a rejection. An interruption ends the execution at its next pause. */
const runCode = <A>(run: (pause: Chain.Pause) => Promise<A>): Effect.Effect<A, string> =>
  Effect.contextWith((context: Context.Context<never>) => {
    const clock = Context.get(context, Clock.Clock)
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    const yielding = Effect.runPromiseWith(context)
    return Effect.tryPromise({
      try: (signal) => {
        let until = now() + slice.millis
        let passed = 0
        return run(() => {
          if (signal.aborted) return Promise.reject(new Error("The execution was interrupted"))
          passed += 1
          if (passed < slice.pauses && now() < until) return undefined
          return yielding(Effect.map(Effect.yieldNow, () => {
            until = now() + slice.millis
            passed = 0
          }))
        })
      },
      catch: (cause) => Predicate.isError(cause) ? cause.message : String(cause)
    })
  })

/** Decodes a signed transaction for a chain and recovers its sender. */
const read = Effect.fnUntraced(function*(chainId: number, bytes: Data) {
  if (!isTransaction(bytes)) return yield* Effect.fail(Chain.refused("transaction type not supported"))
  const fields = yield* Effect.try({
    try: (): TransactionSerializable => parseTransaction(bytes),
    catch: () => Chain.refused("rlp: the transaction cannot be read")
  })
  const from = yield* Effect.tryPromise({
    try: () => EvmTransaction.recoverSender(fields),
    catch: () => Chain.refused("invalid sender")
  })
  if (fields.chainId === undefined) {
    return yield* Effect.fail(Chain.refused("only replay-protected (EIP-155) transactions allowed over RPC"))
  }
  if (fields.chainId !== chainId) {
    return yield* Effect.fail(Chain.refused(`invalid chain id for signer: have ${fields.chainId} want ${chainId}`))
  }
  const { data = "0x", gas = 0n, nonce = 0, to, value = 0n } = fields
  const sent: Chain.Sent = {
    hash: keccak256(bytes),
    from: lowerCase(from),
    to: to === undefined || to === null ? null : lowerCase(to),
    envelope: {
      nonce,
      value,
      gas,
      input: data,
      signature: EvmTransaction.readSignature(fields),
      pricing: toPricing(fields)
    },
    bytes
  }
  return sent
})

const splitBytes = (input: Data): ReadonlyArray<string> => input.slice(2).match(/../gu) ?? []

/** Returns the gas that a transaction uses before its code runs (EIP-2028, 2930, 3860). */
const intrinsicGas = ({ envelope: { input, pricing }, to }: Chain.Sent): bigint => {
  const bytes = splitBytes(input)
  const data = bytes.reduce((gas, byte) => gas + (byte === "00" ? 4n : 16n), 0n)
  const creation = to === null ? 32_000n + 2n * BigInt(Math.ceil(bytes.length / 32)) : 0n
  const listed = pricing.type === "0x0" ? [] : pricing.accessList
  const access = listed.reduce((gas, { storageKeys }) => gas + 2_400n + 1_900n * BigInt(storageKeys.length), 0n)
  return 21_000n + data + creation + access
}

const offers = (pricing: Chain.Envelope["pricing"]): readonly [bigint, bigint] =>
  pricing.type === "0x2" ? [pricing.maxFeePerGas, pricing.maxPriorityFeePerGas] : [pricing.gasPrice, pricing.gasPrice]

/**
 * Returns whether each fee that `later` offers is at least 10 % higher than the same fee in `earlier`. Nodes require
 * this of a transaction that replaces another one.
 */
const outbids = (later: Chain.Sent, earlier: Pick<Chain.Sent, "envelope">): boolean => {
  const [fee, tip] = offers(later.envelope.pricing)
  const [earlierFee, earlierTip] = offers(earlier.envelope.pricing)
  return fee * 10n >= earlierFee * 11n && tip * 10n >= earlierTip * 11n
}

/** Returns the maximum cost of a transaction, in wei. */
const maxPaid = (chain: Chain.EvmChain, { envelope: { gas, pricing, value }, hash }: Chain.Sent): bigint =>
  gas * offers(pricing)[0] + value + chain.dataFee(hash)

/** Maximum distance of a transaction's nonce from the sender's next nonce. */
const furthest = 64

const numberRefusal = (next: number, nonce: number): Chain.RpcRefusal | undefined => {
  if (nonce < next) return Chain.refused(`nonce too low: next nonce ${next}, tx nonce ${nonce}`)
  return nonce < next + furthest ? undefined : Chain.refused(`nonce too high: next nonce ${next}, tx nonce ${nonce}`)
}

const balanceRefusal = (balance: bigint, most: bigint): Chain.RpcRefusal | undefined =>
  balance < most
    ? Chain.refused(
      `insufficient funds for gas * price + value: balance ${balance}, tx cost ${most}, overshot ${most - balance}`
    )
    : undefined

/** Returns the submitted transactions in the next block, without the generated ones. */
const pendingIn = (chain: Chain.EvmChain): ReadonlyArray<Chain.Transaction> =>
  Chain.transactionsIn(chain.ledger, Chain.nextBlock(chain)).filter(({ bytes }) => bytes !== undefined)

const findRefusal = (
  chain: Chain.EvmChain,
  sent: Chain.Sent,
  earlier: Pick<Chain.Sent, "envelope" | "hash"> | undefined
): Chain.RpcRefusal | undefined => {
  const { envelope: { gas, nonce, pricing }, from, hash } = sent
  const { ledger } = chain
  const isKnown = ledger.transactions.has(hash) || ledger.waiting.some((each) => each.hash === hash)
  if (isKnown) return Chain.refused("already known")
  const unplayed = sent.to === null ? undefined : chain.refuseMessage(sent.to, false)
  if (unplayed !== undefined) return Chain.refused(unplayed)
  const needed = intrinsicGas(sent)
  if (gas < needed) return Chain.refused(`intrinsic gas too low: have ${gas}, want ${needed}`)
  const most = chain.transactionGas(from)
  if (gas > most) {
    const why = most < Chain.gasLimit ? `: ${gas} > ${most}, the limit of small blocks` : ""
    return Chain.refused(`exceeds block gas limit${why}`)
  }
  const next = Chain.nextBlock(chain)
  if (Chain.paidAt(pricing, chain.baseFee(next)) < chain.baseFee(next)) {
    return Chain.refused("max fee per gas less than block base fee")
  }
  const cost = maxPaid(chain, sent)
  const pending = Chain.readAccount(Chain.worldAt(chain, next), from)
  if (earlier === undefined) return numberRefusal(Number(pending.nonce), nonce) ?? balanceRefusal(pending.balance, cost)
  if (!outbids(sent, earlier)) return Chain.refused("replacement transaction underpriced")
  return balanceRefusal(Chain.readAccount(Chain.worldAt(chain, chain.heads.latest), from).balance, cost)
}

interface Filling {
  readonly world: Chain.World
  readonly mined: ReadonlyArray<Chain.Transaction>
  readonly waiting: ReadonlyArray<Chain.Sent>
  /** The executed transactions that made a call which the sandbox cannot execute, with the reason. */
  readonly unplayed: ReadonlyMap<Hash, string>
}

const least = (one: bigint, other: bigint): bigint => one < other ? one : other

const run = Effect.fnUntraced(function*(
  chain: Chain.EvmChain,
  machine: Chain.Machine,
  { mined, unplayed, waiting, world }: Filling,
  sent: Chain.Sent
) {
  const { bytes, envelope: { pricing }, from, hash } = sent
  const block = Chain.evmBlock(chain, Chain.nextBlock(chain))
  // the base fee can have risen after the transaction was accepted, so it is limited to the fee that the transaction
  // offers
  const baseFee = least(block.baseFee, offers(pricing)[0])
  const outcome = yield* Effect.orDie(
    runCode((pause) => machine.execute(world, { ...block, baseFee }, pause, bytes))
  )
  const { balance } = Chain.readAccount(outcome.world, from)
  const last = mined.at(-1)
  const transaction: Chain.Transaction = {
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
    world: Chain.withAccount(outcome.world, from, { balance: balance - chain.dataFee(hash) }),
    mined: [...mined, transaction],
    waiting: waiting.filter((each) => each !== sent),
    unplayed: outcome.unplayed === undefined ? unplayed : new Map([...unplayed, [hash, outcome.unplayed]])
  }
})

/**
 * Moves waiting transactions into the next block, in order, until none of the remaining transactions can be executed.
 */
const fill = (chain: Chain.EvmChain, machine: Chain.Machine, filling: Filling): Effect.Effect<Filling> => {
  const next = filling.waiting.find((sent) => {
    const { balance, nonce } = Chain.readAccount(filling.world, sent.from)
    return BigInt(sent.envelope.nonce) === nonce && maxPaid(chain, sent) <= balance
  })
  return next === undefined
    ? Effect.succeed(filling)
    : Effect.flatMap(run(chain, machine, filling, next), (filled) => fill(chain, machine, filled))
}

const isMade = ({ bytes }: Chain.Transaction): boolean => bytes === undefined

const asSent = ({ bytes, envelope, from, hash, to }: Chain.Transaction): ReadonlyArray<Chain.Sent> =>
  bytes === undefined ? [] : [{ hash, from, to, envelope, bytes }]

/** Returns the chain's data after the executed transactions have been added to the next block. */
const sealed = (chain: Chain.EvmChain, { mined, waiting, world }: Filling): Chain.Ledger => {
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
export const accept = Effect.fnUntraced(
  function*(chain: Chain.EvmChain, machine: Chain.Machine, bytes: Data): Effect.fn.Return<
    { readonly hash: Hash; readonly ledger: Chain.Ledger },
    Chain.RpcRefusal
  > {
    const sent = yield* read(chain.chainId, bytes)
    const mined = pendingIn(chain)
    const { waiting } = chain.ledger
    const isSame = ({ envelope, from }: Pick<Chain.Sent, "envelope" | "from">) =>
      from === sent.from && envelope.nonce === sent.envelope.nonce
    const replaced = mined.find(isSame)
    const earlier = replaced ?? waiting.find(isSame)
    const refusal = findRefusal(chain, sent, earlier)
    if (refusal !== undefined) return yield* Effect.fail(refusal)
    const replacing = (queue: ReadonlyArray<Chain.Sent>) => queue.map((each) => isSame(each) ? sent : each)
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
      : yield* Effect.fail(Chain.refused(unplayed))
  }
)

type Reply = Effect.Effect<unknown, Chain.RpcRefusal>

/**
 * Runs `use` with an EVM of its own, for at most five seconds, which include waiting for the EVM. A caller runs one
 * execution at a time.
 */
export type WithMachine = <A>(
  use: (machine: Chain.Machine) => Effect.Effect<A, Chain.RpcRefusal>
) => Effect.Effect<A, Chain.RpcRefusal>

/** Serves a JSON-RPC method from a view of the chain; the params are raw JSON text. */
export type Method<View> = (view: View, params: string) => Reply

const invalidParams = (unread: StrictDecoder.Unread): Chain.RpcRefusal => ({
  code: -32602,
  message: `invalid params${StrictDecoder.formatUnread(unread)}`
})

/** Makes a JSON-RPC method that decodes its params, and then calls `answer` with them. */
export const method = <View, Request>(
  schema: Schema.ConstraintCodec<Request, unknown>,
  answer: (view: View, request: Request) => Reply
): Method<View> => {
  const decode = StrictDecoder.makeTransformed(schema)
  return (view, params) =>
    Effect.fromResult(Result.mapError(Json.parse(params), (): StrictDecoder.Unread => [])).pipe(
      Effect.flatMap((value) => Effect.fromResult(decode(value))),
      Effect.mapError(invalidParams),
      Effect.flatMap((request) => answer(view, request))
    )
}

/** Converts a method's reply to a node's JSON-RPC response. */
export const toRpcAnswer = (reply: Reply): Effect.Effect<RpcResponse> =>
  Effect.match(reply, {
    onFailure: (error): RpcResponse => ({
      _tag: "Error",
      code: error.code,
      message: error.message,
      error: Json.write(error)
    }),
    onSuccess: (value): RpcResponse => ({ _tag: "Result", result: Json.write(value) })
  })

/** The chain and the EVM that a read method uses. */
export interface View {
  readonly chain: Chain.EvmChain
  readonly withMachine: WithMachine
}

const nullable = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const StateBlock = nullable(Chain.StateBlock)

const Override = Schema.Struct({
  balance: Schema.optionalKey(Quantity),
  nonce: Schema.optionalKey(Quantity),
  code: Schema.optionalKey(Data),
  state: Schema.optionalKey(Schema.Record(Hash, Hash)),
  stateDiff: Schema.optionalKey(Schema.Record(Hash, Hash))
})

const Overrides = Schema.Record(Address, Override)

const CallParams = Schema.Tuple([
  Schema.Struct({
    from: nullable(Address),
    to: nullable(Address),
    gas: nullable(Quantity),
    gasPrice: nullable(Quantity),
    maxFeePerGas: nullable(Quantity),
    maxPriorityFeePerGas: nullable(Quantity),
    value: nullable(Quantity),
    data: Schema.optionalKey(Data),
    input: Schema.optionalKey(Data),
    chainId: nullable(Quantity),
    accessList: nullable(Schema.Array(Schema.Unknown)),
    // nodes ignore the nonce and the type of a call
    nonce: nullable(Quantity),
    type: nullable(Quantity)
  }),
  StateBlock,
  nullable(Overrides)
])

type CallParams = typeof CallParams.Type

const nobody: Address = `0x${"0".repeat(40)}`

/** Returns a call that can use at most the gas that `payable` wei pay. */
const toCall = (
  { data = "0x", from, gas, gasPrice, input = data, maxFeePerGas, to, value }: CallParams[0],
  most: bigint,
  balance: bigint
): Chain.EvmCall => {
  const price = gasPrice ?? maxFeePerGas ?? 0n
  const payable = price === 0n ? most : (balance - (value ?? 0n)) / price
  return {
    from: from ?? nobody,
    to: to ?? null,
    data: input,
    value: value ?? 0n,
    gas: [gas ?? most, payable].reduce((least, each) => each < least ? each : least, most),
    gasPrice: price
  }
}

/** Returns why a node refuses the terms of a call. */
const termsRefusal = (
  chain: Chain.EvmChain,
  { accessList, chainId, data, gasPrice, input, maxFeePerGas, maxPriorityFeePerGas }: CallParams[0]
): string | undefined => {
  const has = (value: unknown) => value !== undefined && value !== null
  if (has(gasPrice) && (has(maxFeePerGas) || has(maxPriorityFeePerGas))) {
    return "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified"
  }
  if ((accessList ?? []).length > 0) return "the sandbox does not support an accessList in a call"
  if (data !== undefined && input !== undefined && data.toLowerCase() !== input.toLowerCase()) {
    return "both \"data\" and \"input\" are set and not equal"
  }
  return typeof chainId === "bigint" && chainId !== BigInt(chain.chainId)
    ? `chainId does not match node's (have=${chainId}, want=${chain.chainId})`
    : undefined
}

const overridden = (world: Chain.World, overrides: typeof Overrides.Type): Chain.World =>
  Object.entries(overrides).reduce((changed, [key, { state, stateDiff, ...fields }]) => {
    const address: Address = `0x${key.slice(2)}`
    const kept = state === undefined ? changed : Chain.withoutWords(changed, address)
    return Object.entries({ ...state, ...stateDiff }).reduce(
      (next, [slot, word]) => Chain.withWord(next, address, BigInt(slot), word),
      Chain.withAccount(kept, address, fields)
    )
  }, world)

const reasonIn = Option.liftThrowable((data: Data) => decodeErrorResult({ data }))

const exceedsAllowance = (gas: bigint): Chain.RpcRefusal => Chain.refused(`gas required exceeds allowance (${gas})`)

/** `allowance` is the gas with which an estimate was tried. */
const callFailure = (
  { failure, returned, unplayed }: Chain.EvmOutcome,
  allowance: bigint | undefined
): Chain.RpcRefusal | undefined => {
  if (unplayed !== undefined) return Chain.refused(unplayed)
  if (allowance !== undefined && failure?.includes("out of gas") === true) return exceedsAllowance(allowance)
  if (failure !== "revert") return failure === undefined ? undefined : Chain.refused(failure)
  const reason = Option.match(reasonIn(returned), {
    onNone: () => "",
    onSome: ({ args, errorName }) => errorName === "Error" ? `: ${String(args?.[0])}` : ""
  })
  return { code: 3, message: `execution reverted${reason}`, data: returned }
}

/** A call, with the state and the block in which it is executed. */
interface Execution {
  readonly machine: Chain.Machine
  readonly world: Chain.World
  readonly block: Chain.EvmBlock
  readonly call: Chain.EvmCall
}

const attempt = (how: "call" | "estimate") =>
  Effect.fnUntraced(function*({ block, call, machine, world }: Execution) {
    const outcome = yield* Effect.mapError(
      runCode((pause) => machine[how](world, block, pause, call)),
      (message) => message.startsWith("INTRINSIC_GAS_TOO_LOW") ? exceedsAllowance(call.gas) : Chain.refused(message)
    )
    const failure = callFailure(outcome, how === "estimate" ? call.gas : undefined)
    return failure === undefined ? outcome : yield* Effect.fail(failure)
  })

const runEstimate = attempt("estimate")

const running = <A>(
  answer: (execution: Execution) => Effect.Effect<A, Chain.RpcRefusal>,
  mostGas: (chain: Chain.EvmChain, from: Address) => bigint = ({ transactionGas }, from) => transactionGas(from)
) =>
  Effect.fnUntraced(function*({ chain, withMachine }: View, [terms, at, overrides]: CallParams) {
    const refusal = termsRefusal(chain, terms)
    if (refusal !== undefined) return yield* Effect.fail(Chain.refused(refusal))
    const number = yield* Effect.fromResult(Chain.stateAt(chain, at))
    const world = overridden(Chain.worldAt(chain, number), overrides ?? {})
    const { balance } = Chain.readAccount(world, terms.from ?? nobody)
    if (balance < (terms.value ?? 0n)) return yield* Effect.fail(Chain.refused("insufficient funds for transfer"))
    const call = toCall(terms, mostGas(chain, terms.from ?? nobody), balance)
    return yield* withMachine((machine) => answer({ machine, world, block: Chain.evmBlock(chain, number), call }))
  })

const withGas = (execution: Execution, gas: bigint): Execution => ({ ...execution, call: { ...execution.call, gas } })

/** Finds the minimum gas with which a call succeeds. The result is at most 1/64 too high. */
const leastGas = (execution: Execution, tooLittle: bigint): Effect.Effect<bigint> => {
  const { gas: enough } = execution.call
  if ((enough - tooLittle) * 64n <= enough) return Effect.succeed(enough)
  const gas = (tooLittle + enough) / 2n
  const tried = withGas(execution, gas)
  return Effect.matchEffect(runEstimate(tried), {
    onFailure: () => leastGas(execution, gas),
    onSuccess: () => leastGas(tried, tooLittle)
  })
}

const estimateGas = running(Effect.fnUntraced(function*(execution) {
  const { gasUsed } = yield* runEstimate(execution)
  // a call that receives refunds, or that forwards only part of its gas, needs more gas than it uses
  return yield* Effect.matchEffect(runEstimate(withGas(execution, gasUsed)), {
    onFailure: () => Effect.map(leastGas(execution, gasUsed), Chain.quantity),
    onSuccess: () => Effect.succeed(Chain.quantity(gasUsed))
  })
}))

const createAccessList = running((execution) =>
  Effect.map(runEstimate(execution), ({ accessList, gasUsed }) => ({ accessList, gasUsed: Chain.quantity(gasUsed) }))
)

const ethCall = running(
  (execution) => Effect.map(attempt("call")(execution), ({ returned }) => returned),
  () => Chain.gasLimit
)

const value = <Request>(
  params: Schema.ConstraintCodec<Request, unknown>,
  answer: (chain: Chain.EvmChain, request: Request) => unknown
): Method<View> => method(params, ({ chain }, request) => Effect.succeed(answer(chain, request)))

const always = (answer: (chain: Chain.EvmChain) => unknown): Method<View> => value(Schema.Unknown, answer)

const worldAt = (chain: Chain.EvmChain, block: typeof StateBlock.Type | undefined) =>
  Effect.map(Effect.fromResult(Chain.stateAt(chain, block)), (number) => Chain.worldAt(chain, number))

const account = (answer: (account: Chain.Account) => unknown): Method<View> =>
  method(
    Schema.Tuple([Address, StateBlock]),
    ({ chain }, [address, block]) =>
      Effect.map(worldAt(chain, block), (world) => answer(Chain.readAccount(world, address)))
  )

type AtBlock<More> = (chain: Chain.EvmChain, number: number | undefined, more: More) => unknown

const byNumber = (answer: AtBlock<void>) =>
  value(Schema.Tuple([Chain.Block]), (chain, [block]) => answer(chain, Chain.blockNumber(chain, block)))

const byHash = (answer: AtBlock<void>) =>
  value(Schema.Tuple([Hash]), (chain, [hash]) => answer(chain, Chain.findBlock(chain, hash)))

const byNumberAnd = <More>(schema: Schema.ConstraintCodec<More, unknown>, answer: AtBlock<More>) =>
  value(
    Schema.Tuple([Chain.Block, schema]),
    (chain, [block, more]) => answer(chain, Chain.blockNumber(chain, block), more)
  )

const byHashAnd = <More>(schema: Schema.ConstraintCodec<More, unknown>, answer: AtBlock<More>) =>
  value(Schema.Tuple([Hash, schema]), (chain, [hash, more]) => answer(chain, Chain.findBlock(chain, hash), more))

const gasPrice = (chain: Chain.EvmChain): bigint => chain.baseFee(Chain.nextBlock(chain)) + chain.priorityFee

const maxHistory = 1_024

// at most 100 percentiles, the limit of common nodes: the response contains each percentile for each block
const Percentiles = Schema.NullOr(Schema.Array(Schema.Finite).check(Schema.isMaxLength(100)))

const feeHistory = (
  chain: Chain.EvmChain,
  count: number,
  newest: Chain.Block,
  percentiles: ReadonlyArray<number> | null = null
): Reply => {
  const last = Chain.blockNumber(chain, newest)
  if (last > chain.heads.latest) {
    return Effect.fail(Chain.refused(`request beyond head block: requested ${last}, head ${chain.heads.latest}`))
  }
  const blocks = Math.min(count, maxHistory, last + 1)
  const numbers = Array.from({ length: blocks }, (_, index) => last - blocks + 1 + index)
  return Effect.succeed({
    oldestBlock: Chain.quantity(numbers[0] ?? last),
    baseFeePerGas: [...numbers, last + 1].map((number) => Chain.quantity(chain.baseFee(number))),
    gasUsedRatio: numbers.map(() => 0),
    ...(percentiles === null
      ? {}
      : { reward: numbers.map(() => percentiles.map(() => Chain.quantity(chain.priorityFee))) })
  })
}

/** A record with an entry for each method name in `Names`, and possibly for more methods. */
export type Methods<Names extends string, V> = { readonly [Name in Names]: Method<V> } & {
  readonly [name: string]: Method<V>
}

/** The JSON-RPC method names in a record of operations. */
export type WireName<Operations extends { readonly [name: string]: { readonly name: string } }> = Operations[
  keyof Operations
]["name"]

const methods = {
  web3_clientVersion: always(() => "trigate-sandbox"),
  web3_sha3: value(Schema.Tuple([Data]), (_, [data]) => keccak256(data)),
  net_version: always(({ chainId }) => String(chainId)),
  net_listening: always(() => true),
  net_peerCount: always(() => "0x0"),
  eth_chainId: always(({ chainId }) => Chain.quantity(chainId)),
  eth_syncing: always(() => false),
  eth_accounts: always(() => []),
  eth_blockNumber: always(({ heads }) => Chain.quantity(heads.latest)),
  eth_gasPrice: always((chain) => Chain.quantity(gasPrice(chain))),
  eth_maxPriorityFeePerGas: always(({ priorityFee }) => Chain.quantity(priorityFee)),
  eth_feeHistory: method(
    Schema.Tuple([Schema.Union([Quantity, Schema.Natural]), Chain.Block, Schema.optionalKey(Percentiles)]),
    ({ chain }, [count, newest, percentiles]) => feeHistory(chain, Number(count), newest, percentiles)
  ),
  eth_getBalance: account(({ balance }) => Chain.quantity(balance)),
  eth_getTransactionCount: account(({ nonce }) => Chain.quantity(nonce)),
  eth_getCode: account(({ code }) => code),
  eth_getStorageAt: method(
    Schema.Tuple([Address, StorageSlot, StateBlock]),
    ({ chain }, [address, slot, block]) =>
      Effect.map(worldAt(chain, block), (world) => Chain.readWord(world, address, BigInt(slot)))
  ),
  eth_call: method(CallParams, ethCall),
  eth_estimateGas: method(CallParams, estimateGas),
  eth_createAccessList: method(CallParams, createAccessList),
  eth_getBlockByNumber: byNumberAnd(Schema.Boolean, Chain.blockAt),
  eth_getBlockByHash: byHashAnd(Schema.Boolean, Chain.blockAt),
  eth_getBlockTransactionCountByNumber: byNumber(Chain.countAt),
  eth_getBlockTransactionCountByHash: byHash(Chain.countAt),
  eth_getUncleCountByBlockNumber: byNumber(Chain.unclesAt),
  eth_getUncleCountByBlockHash: byHash(Chain.unclesAt),
  eth_getUncleByBlockNumberAndIndex: always(() => null),
  eth_getUncleByBlockHashAndIndex: always(() => null),
  eth_getBlockReceipts: byNumber(Chain.receiptsAt),
  eth_getTransactionByBlockNumberAndIndex: byNumberAnd(Quantity, Chain.transactionAt),
  eth_getTransactionByBlockHashAndIndex: byHashAnd(Quantity, Chain.transactionAt),
  eth_getTransactionByHash: value(Schema.Tuple([Hash]), (chain, [hash]) => Chain.encodeTransaction(chain, hash)),
  eth_getTransactionReceipt: value(Schema.Tuple([Hash]), (chain, [hash]) => Chain.encodeReceipt(chain, hash)),
  eth_getLogs: value(Schema.Tuple([Chain.Filter]), (chain, [filter]) => Chain.findLogs(chain, filter))
} satisfies Methods<WireName<typeof layer2Operations>, View>

const known: ReadonlyMap<string, Method<View>> = new Map(Object.entries(methods))

/** The names of the methods that both EVM chains of the sandbox support. */
export type Name = keyof typeof methods

/** Serves a JSON-RPC method that reads the chain. Its params are raw JSON text. */
export const answer = (view: View, name: string, params: string): Effect.Effect<RpcResponse> => {
  const method = known.get(name)
  return method === undefined ? Effect.succeed(methodNotFound(name)) : toRpcAnswer(method(view, params))
}

/** Maximum seconds of a call or a transaction of the sandbox's EVM chains. */
const maxSeconds = 5

/** Number of callers whose executions run at the same time, in turns. */
const maxRunning = 4

/** Makes the EVMs of a chain with the given ID and precompiles of its own. The EVM library is loaded on first use. */
export const makeMachine = Effect.fnUntraced(function*(
  chainId: number,
  precompiles: ReadonlyArray<Address> = []
): Effect.fn.Return<WithMachine> {
  const inTurn = yield* CallerTurns.make(maxRunning)
  const library = yield* Effect.cached(Effect.promise(() => import("./EvmMachine.ts")))
  const idle: Array<Chain.Machine> = []

  return Effect.fnUntraced(function*(use) {
    const { make } = yield* Effect.uninterruptible(library)
    const execution = Effect.acquireUseRelease(
      Effect.suspend(() => {
        const machine = idle.pop()
        return machine === undefined ? Effect.promise(() => make(chainId, precompiles)) : Effect.succeed(machine)
      }),
      use,
      // the execution of an interrupted call ends only at its next pause
      (machine, exit) => Effect.sync(() => Exit.hasInterrupts(exit) ? undefined : idle.push(machine))
    )
    return yield* Effect.timeoutOrElse(inTurn(execution), {
      duration: `${maxSeconds} seconds`,
      orElse: () => Effect.fail(Chain.refused(`execution aborted (timeout = ${maxSeconds}s)`))
    })
  })
})

/**
 * Accepts transactions for a chain. Supports only `eth_sendRawTransaction`, not `eth_sendRawTransactionSync`, which
 * waits for a receipt.
 */
export const submit = <State extends Chain.Ledger>(
  withMachine: WithMachine,
  state: Ref.Ref<State>,
  chainAt: (known: State, now: number) => Chain.EvmChain
): EvmBackend["once"] => {
  const run = (machine: Chain.Machine, bytes: Data): Effect.Effect<Hash, Chain.RpcRefusal> =>
    Effect.gen(function*() {
      const before = yield* Ref.get(state)
      const chain = chainAt(before, yield* Clock.currentTimeMillis)
      const { hash, ledger } = yield* accept(chain, machine, bytes)
      const isCurrent = yield* Ref.modify(
        state,
        (known) => known === before ? [true, { ...known, ...ledger }] : [false, known]
      )
      // another transaction was accepted during the execution
      return isCurrent ? hash : yield* run(machine, bytes)
    })
  const sendRaw = method(Schema.Tuple([Data]), (_: undefined, [bytes]) => withMachine((machine) => run(machine, bytes)))
  return ({ operation: { name }, params }) =>
    name === "eth_sendRawTransaction"
      ? toRpcAnswer(sendRaw(undefined, params.text))
      : Effect.succeed(methodNotFound(name))
}

/**
 * Runs calls that the chain itself sends. They change the newest block and the pending one, and are not listed as
 * transactions. A call that fails changes nothing.
 */
export const runSystemCalls = <State extends Chain.Ledger>(
  withMachine: WithMachine,
  state: Ref.Ref<State>,
  chainAt: (known: State, now: number) => Chain.EvmChain
) => {
  const change = (chain: Chain.EvmChain, machine: Chain.Machine, number: number, calls: ReadonlyArray<Chain.EvmCall>) =>
    Effect.reduce(
      calls,
      () => Chain.worldAt(chain, number),
      (world, call) =>
        Effect.match(runCode((pause) => machine.call(world, Chain.evmBlock(chain, number), pause, call)), {
          onFailure: () => world,
          onSuccess: (outcome) =>
            outcome.failure === undefined && outcome.unplayed === undefined ? outcome.world : world
        })
    )
  const run = (machine: Chain.Machine, calls: ReadonlyArray<Chain.EvmCall>): Effect.Effect<void> =>
    Effect.gen(function*() {
      const before = yield* Ref.get(state)
      const chain = chainAt(before, yield* Clock.currentTimeMillis)
      const { latest } = chain.heads
      const [first, ...others] = before.worlds
      const pending = others.filter(({ block }) => block > latest)
      const changed = yield* Effect.forEach(
        [{ block: latest }, ...pending],
        ({ block }) => Effect.map(change(chain, machine, block, calls), (world) => ({ block, world }))
      )
      const worlds = Arr.make(first, ...others.filter(({ block }) => block < latest), ...changed)
      const isCurrent = yield* Ref.modify(
        state,
        (known) => known === before ? [true, { ...known, worlds }] : [false, known]
      )
      // a transaction was accepted during the execution
      return isCurrent ? undefined : yield* run(machine, calls)
    })
  return (calls: ReadonlyArray<Chain.EvmCall>): Effect.Effect<void> =>
    calls.length === 0 ? Effect.void : Effect.ignore(withMachine((machine) => run(machine, calls)), {
      log: "Warn",
      message: "The EVM did not run the transfers of the venue"
    })
}
