/** A node of a sandbox's EVM chain: the standard JSON-RPC methods. */
import { Address, Data, Hash, Quantity, StorageSlot } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import type { EvmBackend } from "@trigate/domain/evm/EvmProtocol"
import type { layer2Operations } from "@trigate/domain/evm/Layer2Operations"
import { methodNotFound, type RpcAnswer } from "@trigate/domain/operations/JsonRpc"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { decodeErrorResult, keccak256 } from "viem/utils"
import * as StrictDecoder from "../internal/StrictDecoder.ts"
import * as Chain from "./EvmChain.ts"
import type { EvmBlock, EvmCall, EvmChain, EvmOutcome, Ledger, Machine } from "./EvmChain.ts"
import * as EvmSubmission from "./EvmSubmission.ts"
import * as Wire from "./EvmWire.ts"
import { type Block, quantity, refused, type RpcRefusal } from "./EvmWire.ts"
import * as EvmWorld from "./EvmWorld.ts"
import type { World } from "./EvmWorld.ts"

type Reply = Effect.Effect<unknown, RpcRefusal>

/** Runs `use` with exclusive access to the chain's EVM, which runs one execution at a time. */
export type WithMachine = <A, E>(use: (machine: Machine) => Effect.Effect<A, E>) => Effect.Effect<A, E>

/** Serves a JSON-RPC method from a view of the chain; the params are raw JSON text. */
export type Method<View> = (view: View, params: string) => Reply

const invalidParams = (unread: StrictDecoder.Unread): RpcRefusal => ({
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
export const toRpcAnswer = (reply: Reply): Effect.Effect<RpcAnswer> =>
  Effect.match(reply, {
    onFailure: (error): RpcAnswer => ({
      _tag: "Error",
      code: error.code,
      message: error.message,
      error: Json.write(error)
    }),
    onSuccess: (value): RpcAnswer => ({ _tag: "Result", result: Json.write(value) })
  })

/** The chain and the EVM that a read method uses. */
export interface View {
  readonly chain: EvmChain
  readonly withMachine: WithMachine
}

const nullable = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const StateBlock = nullable(Wire.StateBlock)

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
): EvmCall => {
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
  chain: EvmChain,
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

const overridden = (world: World, overrides: typeof Overrides.Type): World =>
  Object.entries(overrides).reduce((changed, [key, { state, stateDiff, ...fields }]) => {
    const address: Address = `0x${key.slice(2)}`
    const kept = state === undefined ? changed : EvmWorld.withoutWords(changed, address)
    return Object.entries({ ...state, ...stateDiff }).reduce(
      (next, [slot, word]) => EvmWorld.withWord(next, address, BigInt(slot), word),
      EvmWorld.withAccount(kept, address, fields)
    )
  }, world)

/** Returns the state and the block in which a call runs. */
const callContext = (chain: EvmChain, [, block, overrides]: CallParams) =>
  Result.map(Wire.stateAt(chain, block), (number) => ({
    block: Chain.evmBlock(chain, number),
    world: overridden(Chain.worldAt(chain, number), overrides ?? {})
  }))

const reasonIn = Option.liftThrowable((data: Data) => decodeErrorResult({ data }))

const exceedsAllowance = (gas: bigint): RpcRefusal => refused(`gas required exceeds allowance (${gas})`)

/** `allowance` is the gas with which an estimate was tried. */
const callFailure = (
  { failure, returned, unplayed }: EvmOutcome,
  allowance: bigint | undefined
): RpcRefusal | undefined => {
  if (unplayed !== undefined) return refused(unplayed)
  if (allowance !== undefined && failure?.includes("out of gas") === true) return exceedsAllowance(allowance)
  if (failure !== "revert") return failure === undefined ? undefined : refused(failure)
  const reason = Option.match(reasonIn(returned), {
    onNone: () => "",
    onSome: ({ args, errorName }) => errorName === "Error" ? `: ${String(args?.[0])}` : ""
  })
  return { code: 3, message: `execution reverted${reason}`, data: returned }
}

/** A call, with the state and the block in which it is executed. */
interface Execution {
  readonly machine: Machine
  readonly world: World
  readonly block: EvmBlock
  readonly call: EvmCall
}

const attempt = (how: "call" | "estimate") =>
  Effect.fnUntraced(function*({ block, call, machine, world }: Execution) {
    const outcome = yield* Effect.tryPromise({
      try: () => machine[how](world, block, call),
      catch: (cause) => {
        const message = Predicate.isError(cause) ? cause.message : String(cause)
        return message.startsWith("INTRINSIC_GAS_TOO_LOW") ? exceedsAllowance(call.gas) : refused(message)
      }
    })
    const failure = callFailure(outcome, how === "estimate" ? call.gas : undefined)
    return failure === undefined ? outcome : yield* Effect.fail(failure)
  })

const runEstimate = attempt("estimate")

const running = <A>(
  answer: (execution: Execution) => Effect.Effect<A, RpcRefusal>,
  mostGas: (chain: EvmChain, from: Address) => bigint = ({ transactionGas }, from) => transactionGas(from)
) =>
  Effect.fnUntraced(function*({ chain, withMachine }: View, params: CallParams) {
    const [terms] = params
    const refusal = termsRefusal(chain, terms)
    if (refusal !== undefined) return yield* Effect.fail(refused(refusal))
    const context = yield* Effect.fromResult(callContext(chain, params))
    const { balance } = EvmWorld.readAccount(context.world, terms.from ?? nobody)
    if (balance < (terms.value ?? 0n)) return yield* Effect.fail(refused("insufficient funds for transfer"))
    const call = toCall(terms, mostGas(chain, terms.from ?? nobody), balance)
    return yield* withMachine((machine) => answer({ ...context, machine, call }))
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
    onFailure: () => Effect.map(leastGas(execution, gasUsed), quantity),
    onSuccess: () => Effect.succeed(quantity(gasUsed))
  })
}))

const createAccessList = running((execution) =>
  Effect.map(runEstimate(execution), ({ accessList, gasUsed }) => ({ accessList, gasUsed: quantity(gasUsed) }))
)

const ethCall = running(
  (execution) => Effect.map(attempt("call")(execution), ({ returned }) => returned),
  () => Chain.gasLimit
)

const value = <Request>(
  params: Schema.ConstraintCodec<Request, unknown>,
  answer: (chain: EvmChain, request: Request) => unknown
): Method<View> => method(params, ({ chain }, request) => Effect.succeed(answer(chain, request)))

const always = (answer: (chain: EvmChain) => unknown): Method<View> => value(Schema.Unknown, answer)

const worldAt = (chain: EvmChain, block: typeof StateBlock.Type | undefined) =>
  Effect.map(Effect.fromResult(Wire.stateAt(chain, block)), (number) => Chain.worldAt(chain, number))

const account = (answer: (account: EvmWorld.Account) => unknown): Method<View> =>
  method(
    Schema.Tuple([Address, StateBlock]),
    ({ chain }, [address, block]) =>
      Effect.map(worldAt(chain, block), (world) => answer(EvmWorld.readAccount(world, address)))
  )

const byNumber = (answer: (chain: EvmChain, number: number) => unknown) =>
  value(Schema.Tuple([Wire.Block]), (chain, [block]) => answer(chain, Wire.blockNumber(chain, block)))

const byHash = (answer: (chain: EvmChain, number: number | undefined) => unknown) =>
  value(Schema.Tuple([Hash]), (chain, [hash]) => answer(chain, Chain.findBlock(chain, hash)))

const gasPrice = (chain: EvmChain): bigint => chain.baseFee(Chain.nextBlock(chain)) + chain.priorityFee

const maxHistory = 1_024

// at most 100 percentiles, the limit of common nodes: the response contains each percentile for each block
const Percentiles = Schema.NullOr(Schema.Array(Schema.Finite).check(Schema.isMaxLength(100)))

const feeHistory = (
  chain: EvmChain,
  count: number,
  newest: Block,
  percentiles: ReadonlyArray<number> | null = null
): Reply => {
  const last = Wire.blockNumber(chain, newest)
  if (last > chain.heads.latest) {
    return Effect.fail(refused(`request beyond head block: requested ${last}, head ${chain.heads.latest}`))
  }
  const blocks = Math.min(count, maxHistory, last + 1)
  const numbers = Array.from({ length: blocks }, (_, index) => last - blocks + 1 + index)
  return Effect.succeed({
    oldestBlock: quantity(numbers[0] ?? last),
    baseFeePerGas: [...numbers, last + 1].map((number) => quantity(chain.baseFee(number))),
    gasUsedRatio: numbers.map(() => 0),
    ...(percentiles === null ? {} : { reward: numbers.map(() => percentiles.map(() => quantity(chain.priorityFee))) })
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
  eth_chainId: always(({ chainId }) => quantity(chainId)),
  eth_syncing: always(() => false),
  eth_accounts: always(() => []),
  eth_blockNumber: always(({ heads }) => quantity(heads.latest)),
  eth_gasPrice: always((chain) => quantity(gasPrice(chain))),
  eth_maxPriorityFeePerGas: always(({ priorityFee }) => quantity(priorityFee)),
  eth_feeHistory: method(
    Schema.Tuple([Schema.Union([Quantity, Schema.Natural]), Wire.Block, Schema.optionalKey(Percentiles)]),
    ({ chain }, [count, newest, percentiles]) => feeHistory(chain, Number(count), newest, percentiles)
  ),
  eth_getBalance: account(({ balance }) => quantity(balance)),
  eth_getTransactionCount: account(({ nonce }) => quantity(nonce)),
  eth_getCode: account(({ code }) => code),
  eth_getStorageAt: method(
    Schema.Tuple([Address, StorageSlot, StateBlock]),
    ({ chain }, [address, slot, block]) =>
      Effect.map(worldAt(chain, block), (world) => EvmWorld.readWord(world, address, BigInt(slot)))
  ),
  eth_call: method(CallParams, ethCall),
  eth_estimateGas: method(CallParams, estimateGas),
  eth_createAccessList: method(CallParams, createAccessList),
  eth_getBlockByNumber: value(
    Schema.Tuple([Wire.Block, Schema.Boolean]),
    (chain, [block, isFull]) => Wire.blockAt(chain, Wire.blockNumber(chain, block), isFull)
  ),
  eth_getBlockByHash: value(
    Schema.Tuple([Hash, Schema.Boolean]),
    (chain, [hash, isFull]) => Wire.blockAt(chain, Chain.findBlock(chain, hash), isFull)
  ),
  eth_getBlockTransactionCountByNumber: byNumber(Wire.countAt),
  eth_getBlockTransactionCountByHash: byHash(Wire.countAt),
  eth_getUncleCountByBlockNumber: byNumber(Wire.unclesAt),
  eth_getUncleCountByBlockHash: byHash(Wire.unclesAt),
  eth_getUncleByBlockNumberAndIndex: always(() => null),
  eth_getUncleByBlockHashAndIndex: always(() => null),
  eth_getBlockReceipts: byNumber(Wire.receiptsAt),
  eth_getTransactionByBlockNumberAndIndex: value(
    Schema.Tuple([Wire.Block, Quantity]),
    (chain, [block, index]) => Wire.transactionAt(chain, Wire.blockNumber(chain, block), index)
  ),
  eth_getTransactionByBlockHashAndIndex: value(
    Schema.Tuple([Hash, Quantity]),
    (chain, [hash, index]) => Wire.transactionAt(chain, Chain.findBlock(chain, hash), index)
  ),
  eth_getTransactionByHash: value(Schema.Tuple([Hash]), (chain, [hash]) => Wire.encodeTransaction(chain, hash)),
  eth_getTransactionReceipt: value(Schema.Tuple([Hash]), (chain, [hash]) => Wire.encodeReceipt(chain, hash)),
  eth_getLogs: value(Schema.Tuple([Wire.Filter]), (chain, [filter]) => Wire.findLogs(chain, filter))
} satisfies Methods<WireName<typeof layer2Operations>, View>

const known: ReadonlyMap<string, Method<View>> = new Map(Object.entries(methods))

/** The names of the methods that both EVM chains of the sandbox support. */
export type Name = keyof typeof methods

/** Serves a JSON-RPC method that reads the chain. Its params are raw JSON text. */
export const answer = (view: View, name: string, params: string): Effect.Effect<RpcAnswer> => {
  const method = known.get(name)
  return method === undefined ? Effect.succeed(methodNotFound(name)) : toRpcAnswer(method(view, params))
}

/** Makes the EVM of a chain with the given ID. The EVM library is loaded on first use. */
export const makeMachine = Effect.fnUntraced(function*(chainId: number): Effect.fn.Return<WithMachine> {
  const lock = yield* Semaphore.make(1)
  const machine = yield* Effect.cached(
    Effect.promise(() => import("./EvmMachine.ts").then(({ make }) => make(chainId)))
  )
  // a promise cannot be cancelled, so after an interruption the EVM remains locked until the promise settles
  return (use) => lock.withPermit(Effect.uninterruptible(Effect.flatMap(machine, use)))
})

/**
 * Accepts transactions for a chain. Supports only `eth_sendRawTransaction`, not `eth_sendRawTransactionSync`, which
 * waits for a receipt.
 */
export const submit = <State extends Ledger>(
  withMachine: WithMachine,
  state: Ref.Ref<State>,
  chainAt: (known: State, now: number) => EvmChain
): EvmBackend["once"] => {
  const sendRaw = method(
    Schema.Tuple([Data]),
    (_: undefined, [bytes]) =>
      withMachine(Effect.fnUntraced(function*(machine) {
        const now = yield* Clock.currentTimeMillis
        const chain = chainAt(yield* Ref.get(state), now)
        const { hash, ledger } = yield* EvmSubmission.accept(chain, machine, bytes)
        return yield* Effect.as(Ref.update(state, (known) => ({ ...known, ...ledger })), hash)
      }))
  )
  return ({ operation: { name }, params }) =>
    name === "eth_sendRawTransaction"
      ? toRpcAnswer(sendRaw(undefined, params.text))
      : Effect.succeed(methodNotFound(name))
}
