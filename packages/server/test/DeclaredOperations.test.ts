/**
 * What a declared operation has to have everywhere, for each of them alike: its route observes it under its own name, the
 * typed client calls it, the sandbox answers it from its state, and the memory layer as a test has set.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { evmOperations } from "@trigate/domain/evm/EvmProtocol"
import { layer2Operations } from "@trigate/domain/evm/Layer2Operations"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import type { Operation } from "@trigate/domain/operations/Operation"
import * as Layer2 from "@trigate/evm/Layer2"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { keys, transactions } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as EvmChain from "@trigate/sandbox/unstable/evm/EvmChain"
import { makeClient } from "@trigate/testing/Client"
import { gateway, get, post } from "@trigate/testing/Gateway"
import * as Info from "@trigate/trading/Info"
import * as TradingEvm from "@trigate/trading/TradingEvm"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { evmAnswers, infoAnswers, layer2Answers, methodIn } from "../../domain/test/answers.ts"

type Read = Operation<string, "read">

const groups = {
  info: { path: "/info", operations: infoOperations, answers: infoAnswers },
  evm: { path: "/evm", operations: evmOperations, answers: evmAnswers },
  layer2: { path: "/l2", operations: layer2Operations, answers: layer2Answers }
} as const
type Group = keyof typeof groups

interface Declared {
  readonly group: Group
  readonly name: string
  readonly label: string
  readonly operation: Read
  readonly answer: string
}

const declaredIn = (group: Group): ReadonlyArray<Declared> =>
  Object.entries<Read>(groups[group].operations).map(([name, operation]) => {
    const answers: { readonly [name: string]: { readonly texts: readonly [string, ...ReadonlyArray<string>] } } =
      groups[group].answers
    return { group, name, label: `${group}.${name}`, operation, answer: answers[name]?.texts[0] ?? "" }
  })

const declared = [...declaredIn("info"), ...declaredIn("evm"), ...declaredIn("layer2")]

/** Calls an operation's method of a service or of the client. */
const call = (group: object, { label, name, operation }: Declared, example: unknown = operation.example) =>
  Effect.mapError(
    methodIn(group, name)(Schema.decodeUnknownSync(operation.request)(example)),
    ({ message }) => `${label}: ${message}`
  )

const body = ({ group, operation: { example, name } }: Declared) =>
  group === "info"
    ? { type: name, ...Predicate.isObject(example) ? example : {} }
    : { jsonrpc: "2.0", id: 1, method: name, params: example }

const services = Effect.gen(function*() {
  return { info: yield* Info.Info, evm: yield* TradingEvm.TradingEvm, layer2: yield* Layer2.Layer2 }
})

/** The mistakes of all operations, each in a sentence. */
const mistakesIn = <E, R>(check: (one: Declared) => Effect.Effect<unknown, E, R>) =>
  Effect.map(
    Effect.forEach(declared, (one) => Effect.result(check(one))),
    (results) => results.flatMap((result) => Result.isFailure(result) ? [result.failure] : [])
  )

const builder = "abc:NEW"
const sent = `0x${"7".repeat(64)}` as const
const stranger = `0x${"5".repeat(40)}` as const

/** Makes the sandbox another one, in whatever an operation reads. */
const change = Effect.gen(function*() {
  const { evm, info, layer2, trading, venue } = yield* SandboxState
  const { address } = keys.trader
  const { markets } = yield* Ref.get(info.state)
  const market = markets.get("ETH") ?? assert.fail()
  yield* info.delistCoin("BTC")
  yield* info.listCoin({ ...market, coin: builder })
  yield* Ref.update(info.state, (state) => ({
    ...state,
    spotMeta: { universe: [], tokens: [] },
    outcomeMeta: { outcomes: [{ outcome: 5, name: "", description: "", sideSpecs: [] }] }
  }))
  const read = (text: string) => Effect.fromResult(Json.parse(text))
  const decode = <S extends Schema.ConstraintCodec<unknown, unknown>>(schema: S, text: string) =>
    Effect.flatMap(read(text), Schema.decodeUnknownEffect(schema))
  yield* venue.addVault(address, stranger)
  yield* venue.setAccount(address, {
    // an expired one is not listed
    extraAgents: (yield* decode(infoOperations.extraAgents.response, infoAnswers.extraAgents.texts[0])).map(
      ({ address, name }) => ({ address, name, validUntil: 2_000_000_000_000 })
    )
  })
  const copy = yield* trading.snapshot
  yield* trading.restore({ ...copy, state: Object.assign(structuredClone(copy.state), { nextOid: 1 }) })
  yield* trading.depositUsd(address, "5")
  yield* trading.act(address, {
    type: "order",
    orders: [
      { a: 1, b: true, p: "1500", s: "1", r: false, t: { limit: { tif: "Gtc" } } },
      { a: 1, b: true, p: "4000", s: "1", r: false, t: { limit: { tif: "Ioc" } } }
    ],
    grouping: "na"
  })
  yield* trading.act(address, {
    type: "usdClassTransfer",
    signatureChainId: "0x66eee",
    hyperliquidChain: "Mainnet",
    amount: "5",
    toPerp: false,
    nonce: 1
  })
  yield* trading.act(address, { type: "agentSetAbstraction", abstraction: "u" })
  yield* venue.setBigBlocks(address, true)
  yield* evm.setGasPrices({ small: 1n, big: 2n })
  const contract = "0x5555555555555555555555555555555555555555"
  yield* evm.putStorageWord(contract, "0x0", `0x${"61".padEnd(62, "0")}02`)
  yield* evm.putStorageWord(contract, "0x2", `0x${"1".repeat(64)}`)
  // a contract that returns a word: PUSH1 32, PUSH1 0, RETURN
  yield* Ref.update(
    layer2.state,
    (known) => EvmChain.mapWorlds(known, (world) => EvmChain.withAccount(world, contract, { code: "0x60206000f3" }))
  )
  const spent = (world: EvmChain.World) => EvmChain.withAccount(world, address, { balance: 7n, nonce: 7n })
  yield* Ref.update(evm.state, (known) => EvmChain.mapWorlds(known, spent))
  yield* Ref.update(layer2.state, (known) => EvmChain.mapWorlds(known, spent))
  yield* layer2.dropTransaction(transactions.opStack)
  yield* layer2.pushTransaction({
    hash: sent,
    inBlocks: 0,
    logs: [{ address: contract, topics: [], data: "0x" }]
  })
  const [last] = [...(yield* Ref.get(layer2.state)).transactions.values()].slice(-1)
  const { number } = yield* Effect.flatMap(
    TradingEvm.TradingEvm.use((service) => service.getBlockByNumber({ block: "latest" })),
    (block) => Effect.fromNullishOr(block)
  )
  if (last === undefined) return assert.fail()
  yield* Ref.update(evm.state, (known) => ({
    ...known,
    transactions: new Map([[last.hash, { ...last, block: Number(number) }]])
  }))
})

const day = 86_400_000

/** What each operation answers in a sandbox; `requests` has those whose example says nothing. */
const answers = (requests: { readonly [label: string]: unknown }) =>
  Effect.gen(function*() {
    const known = yield* services
    return new Map(
      yield* Effect.forEach(declared, (one) =>
        Effect.map(
          Effect.result(call(known[one.group], one, requests[one.label])),
          (answer) => [one.label, Result.match(answer, { onFailure: (why) => why, onSuccess: Json.stringify })] as const
        ))
    )
  })

describe("each declared operation", () => {
  it.live("answers on its route under its own name, and is a method of the typed client", () =>
    Effect.gen(function*() {
      const { adminUrl, url } = yield* gateway({})
      const client = yield* makeClient(url)
      const mistakes = yield* mistakesIn(Effect.fnUntraced(function*(one) {
        const { group, label, operation } = one
        const answer = yield* post(`${url}${groups[group].path}`, JSON.stringify(body(one)))
        const wire = group === "info" ? answer.json : Predicate.hasProperty(answer.json, "result") && answer.json.result
        if (Result.isFailure(Schema.decodeUnknownResult(operation.response)(wire))) {
          return yield* Effect.fail(`${label}: the sandbox answers ${answer.status} ${answer.text.slice(0, 200)}`)
        }
        yield* call(client[group], one)
        const { text } = yield* get(`${adminUrl}/metrics`)
        if (!text.includes(`\ntrigate_operations_total{operation="${operation.name}",outcome="ok"} `)) {
          return yield* Effect.fail(`${label}: is not counted as ${operation.name}`)
        }
      }))
      assert.deepStrictEqual(mistakes, [])
    }))

  it.effect("is answered by the sandbox from its state", () =>
    Effect.gen(function*() {
      const start = 1_792_000_000_000
      yield* TestClock.setTime(start)
      const before = yield* Layer.build(Sandbox.layer())
      const after = yield* Layer.build(Sandbox.layer())
      yield* TestClock.setTime(start + day)
      yield* Effect.provide(change, after)
      const latest = yield* Effect.provide(services, after).pipe(
        Effect.flatMap(({ evm, layer2 }) =>
          Effect.all([evm.getBlockByNumber({ block: "latest" }), layer2.getBlockByNumber({ block: "latest" })])
        )
      )
      const requests = {
        "evm.getBlockByHash": [latest[0]?.hash, false],
        "layer2.getBlockByHash": [latest[1]?.hash, false],
        "evm.getTransactionReceipt": [sent],
        "evm.getLogs": [{ fromBlock: "earliest" }],
        "layer2.getLogs": [{ fromBlock: "earliest" }]
      }
      const changed = yield* Effect.provide(answers(requests), after)
      yield* TestClock.setTime(start)
      const unchanged = yield* Effect.provide(answers(requests), before)
      assert.deepStrictEqual([...unchanged].filter(([label, answer]) => answer.startsWith(`${label}: `)), [])
      // the id of a chain is what does not change
      const constants = declared.filter(({ label }) => changed.get(label) === unchanged.get(label))
      assert.deepStrictEqual(constants.map(({ label }) => label), ["evm.chainId", "layer2.chainId"])
    }))

  it.effect("is answered in memory as a test has set", () =>
    Effect.gen(function*() {
      const known = yield* services
      const set = {
        info: (yield* Info.InfoState).respond,
        evm: (yield* TradingEvm.TradingEvmState).respond,
        layer2: (yield* Layer2.Layer2State).respond
      }
      const mistakes = yield* mistakesIn(Effect.fnUntraced(function*(one) {
        const { answer, group, label, operation } = one
        // bars are set by coin
        if (label === "info.candleSnapshot") return
        const wire = yield* Effect.fromResult(Json.parse(answer))
        const expected = yield* Schema.decodeUnknownEffect(operation.response)(wire)
        yield* set[group](operation, () => Effect.succeed(expected))
        assert.deepStrictEqual(yield* call(known[group], one), expected, label)
      }))
      assert.deepStrictEqual(mistakes, [])
    }).pipe(Effect.provide([Info.layerMemory(), TradingEvm.layerMemory(), Layer2.layerMemory()])))
})
