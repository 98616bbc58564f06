/** The delivery of logs to many subscriptions: the index against a comparison of each log with each subscription. */
import { assert, describe, it } from "@effect/vitest"
import { local } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Encoding"
import * as JsonRpc from "@trigate/domain/evm/EvmProtocol"
import type { LogFilter } from "@trigate/domain/evm/EvmResources"
import { selectionIn, selects } from "@trigate/domain/evm/EvmResources"
import { serving } from "@trigate/domain/evm/Layer2Operations"
import * as Filters from "@trigate/evm/unstable/Filters"
import type { Header } from "@trigate/evm/unstable/Heads"
import * as LogDelivery from "@trigate/evm/unstable/LogDelivery"
import { sample, seed } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { createHash } from "node:crypto"

/** Numbers below a bound, from a seed. */
const randomBy = (text: string) => {
  let step = Number.parseInt(createHash("sha256").update(text).digest("hex").slice(0, 8), 16)
  return (below: number): number => {
    step = (step * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor(step / 65_536) % below
  }
}

type Filter = Pick<LogFilter, "address" | "topics">

const hex = (value: number, bytes: number): `0x${string}` => `0x${(0xa0 + value).toString(16).padStart(2 * bytes, "0")}`

/** A number of distinct logs, whose addresses and topics repeat. */
const randomLogs = (random: (below: number) => number, count: number) =>
  Array.from({ length: count }, (_, index) => ({
    address: hex(random(6), 20),
    topics: Array.from({ length: random(5) }, () => hex(random(4), 32)),
    logIndex: `0x${index.toString(16)}`
  }))

const upper = (text: `0x${string}`): `0x${string}` => `0x${text.slice(2).toUpperCase()}`

const randomFilter = (random: (below: number) => number): Filter => {
  const randomHex = (bound: number, bytes: number) => {
    const value = hex(random(bound), bytes)
    return random(2) === 0 ? value : upper(value)
  }
  const member = (bound: number, bytes: number) =>
    random(2) === 0 ? randomHex(bound, bytes) : Array.from({ length: random(4) }, () => randomHex(bound, bytes)).concat(
      // a long list is stored in another form
      random(4) === 0 ? Array.from({ length: 40 }, (_, index) => hex(2 + 7 * index, bytes)) : []
    )
  return {
    ...(random(2) === 0 ? { address: member(6, 20) } : {}),
    ...(random(3) === 0
      ? {}
      : { topics: Array.from({ length: random(5) }, () => random(2) === 0 ? null : member(4, 32)) })
  }
}

const hash = (number: number) => hex(number, 32)

const header = (number: number): Header => ({
  number: BigInt(number),
  hash: hash(number),
  parentHash: hash(number - 1),
  logsBloom: undefined,
  timestamp: number,
  text: "{}"
})

const logText = (number: number, log: object): string =>
  JSON.stringify({ ...log, blockNumber: `0x${number.toString(16)}`, blockHash: hash(number) })

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({
  params: Schema.Struct({
    subscription: Schema.String,
    result: Schema.Struct({
      logIndex: Schema.optionalKey(Schema.String),
      removed: Schema.optionalKey(Schema.Boolean)
    })
  })
})))

/** A delivery of the logs of block 1, after block 0. */
const makeDelivery = (logs: ReadonlyArray<object>) =>
  Effect.gen(function*() {
    const topics = Filters.makeTopics("node")
    let blocks = [header(0), header(1)]
    const delivery = yield* LogDelivery.make({
      serving,
      topics,
      reads: { header: () => Effect.undefined },
      send: () => Effect.succeed(JsonRpc.result(Json.of(`[${logs.map((log) => logText(1, log)).join(",")}]`))),
      chain: () => ({
        head: () => blocks.at(-1),
        at: (number) => blocks[Number(number)],
        above: (number) => blocks.filter((each) => each.number > number),
        take: () => Effect.void,
        clear: () => {}
      })
    })
    delivery.begin([header(0)])
    return {
      topics,
      delivery,
      /** Replaces block 1. */
      reorganise: () => {
        blocks = [header(0)]
        delivery.rewind(0n)
      }
    }
  })

/** Lets other fibers run until a condition holds. */
const until = (condition: () => boolean) =>
  Effect.gen(function*() {
    while (!condition()) yield* Effect.yieldNow
  })

describe("the delivery of logs", () => {
  it.effect(`is the one of a comparison with each subscription, in the same order (seed ${seed})`, () =>
    Effect.forEach(
      sample(
        "subscriptions to logs",
        Array.from({ length: 60 }, (_, index) => index),
        12,
        (round) => String(round % 2)
      ),
      (round) =>
        Effect.gen(function*() {
          const random = randomBy(`${seed} logs ${round}`)
          const logs = randomLogs(random, 40)
          const { delivery, topics } = yield* makeDelivery(logs)
          const received: Array<readonly [id: string, log: string | undefined]> = []
          const sink = {
            caller: local,
            deliver: ({ text }: { readonly text: string }) => {
              const { params: { result, subscription } } = decode(text)
              received.push([subscription, result.logIndex])
            },
            flush: () => {}
          }
          const joined = Array.from({ length: 200 }, (_, index) => {
            const filter = randomFilter(random)
            // some are not shared, or begin later
            const hasPositions = index % 3 === 0 ? { hasPositions: true as const } : {}
            const topic = topics.join({ kind: "logs", filter, ...hasPositions }, sink, index % 17 === 0 ? 1n : 0n)
            return { topic, filter }
          })
          const left = joined.filter(() => random(4) === 0)
          for (const { topic } of left) topics.leave(topic, sink)
          const remaining = joined.filter(({ topic }) => !left.some((each) => each.topic === topic))
          const expected = remaining.filter(({ topic }) => topic.since < 1n).flatMap(({ filter, topic }) =>
            logs.filter((log) => selects(selectionIn(filter), log)).map(({ logIndex }) => [topic.id, logIndex] as const)
          )
          assert.isAbove(expected.length, 100)
          yield* Effect.forkScoped(delivery.run)
          delivery.wake()
          yield* until(() => delivery.position() === 1n)
          yield* until(() => !delivery.isSending())
          // positions follow the logs
          assert.deepStrictEqual(received.filter(([, log]) => log !== undefined), expected)
        }).pipe(Effect.scoped),
      { discard: true }
    ))

  const makeAddress = (index: number) => hex(index, 20)

  it.effect("lets other fibers run between the deliveries of one block", () =>
    Effect.gen(function*() {
      const logs = Array.from(
        { length: 20 },
        (_, index) => ({ address: makeAddress(0), topics: [], logIndex: `0x${index}` })
      )
      const { delivery, topics } = yield* makeDelivery(logs)
      let deliveries = 0
      const sink = { caller: local, deliver: () => void deliveries++, flush: () => {} }
      for (let index = 0; index < 1_000; index++) {
        topics.join({ kind: "logs", filter: { address: [makeAddress(0), makeAddress(index + 1)] } }, sink, 0n)
      }
      const seen = new Set<number>()
      yield* Effect.forkScoped(delivery.run)
      delivery.wake()
      yield* until(() => {
        seen.add(deliveries)
        return deliveries === 20_000
      })
      assert.isAbove(seen.size, 4)
      assert.strictEqual(deliveries, 20_000)
    }).pipe(Effect.scoped))

  it.effect("lets other fibers run between the connections to which it sends a block", () =>
    Effect.gen(function*() {
      const { delivery, topics } = yield* makeDelivery([{ address: makeAddress(0), topics: [], logIndex: "0x0" }])
      let flushes = 0
      for (let index = 0; index < 1_000; index++) {
        const sink = { caller: local, deliver: () => {}, flush: () => void flushes++ }
        topics.join({ kind: "logs", filter: { address: makeAddress(0) } }, sink, 0n)
      }
      const seen = new Set<number>()
      yield* Effect.forkScoped(delivery.run)
      delivery.wake()
      yield* until(() => {
        seen.add(flushes)
        return flushes === 1_000
      })
      assert.includeMembers([...seen], [64, 128, 960])
    }).pipe(Effect.scoped))

  it.effect("compares a log only with subscriptions that the index finds for it", () =>
    Effect.gen(function*() {
      const { topics } = yield* makeDelivery([])
      const sink = { caller: local, deliver: () => {}, flush: () => {} }
      const event = hex(0, 32)
      const address = Array.from({ length: 100 }, (_, index) => makeAddress(index))
      const long = topics.join({ kind: "logs", filter: { address } }, sink, 0n)
      assert.strictEqual(topics.retained(), 3_200)
      topics.leave(long, sink)
      assert.strictEqual(topics.retained(), 0)
      // one token and one event for all, with a recipient each
      for (let index = 0; index < 1_000; index++) {
        const filter = { address: makeAddress(0), topics: [event, null, hex(index, 32)] }
        topics.join({ kind: "logs", filter }, sink, 0n)
        topics.join({ kind: "logs", filter: { address: [makeAddress(index + 1), makeAddress(index + 2)] } }, sink, 0n)
      }
      const log = { address: makeAddress(0), topics: [event, event, hex(7, 32)] }
      assert.isBelow(topics.logCandidates(log, () => {}), 5)
      assert.strictEqual(topics.logCandidates({ address: makeAddress(10), topics: [] }, () => {}), 2)
    }))

  it.effect("removes what was sent of a block that is replaced while its logs are sent", () =>
    Effect.gen(function*() {
      const logs = Array.from(
        { length: 20 },
        (_, index) => ({ address: makeAddress(0), topics: [], logIndex: `0x${index}` })
      )
      const { delivery, reorganise, topics } = yield* makeDelivery(logs)
      const received = new Map<string, Array<string>>()
      let deliveries = 0
      const sink = {
        caller: local,
        deliver: ({ text }: { readonly text: string }) => {
          deliveries++
          const { params: { result, subscription } } = decode(text)
          const known = received.get(subscription) ?? []
          received.set(subscription, known)
          if (result.removed === true) assert.strictEqual(known.pop(), result.logIndex)
          else known.push(result.logIndex ?? "")
        },
        flush: () => {}
      }
      for (let index = 0; index < 1_000; index++) {
        topics.join({ kind: "logs", filter: { address: [makeAddress(0), makeAddress(index + 1)] } }, sink, 0n)
      }
      yield* Effect.forkScoped(delivery.run)
      delivery.wake()
      yield* until(() => deliveries > 5_000)
      assert.isTrue(delivery.isSending())
      const before = deliveries
      assert.isBelow(before, 20_000)
      reorganise()
      assert.strictEqual(deliveries, 2 * before)
      assert.deepStrictEqual([...received.values()].flat(), [])
      for (let index = 0; index < 20; index++) yield* Effect.yieldNow
      assert.strictEqual(deliveries, 2 * before)
      assert.strictEqual(delivery.position(), 0n)
    }).pipe(Effect.scoped))

  it.effect("ends the subscriptions after a reorg of blocks whose logs are too long to be stored", () =>
    Effect.forEach([[20, "removed"], [40, "error"]] as const, ([count, outcome]) =>
      Effect.gen(function*() {
        const data = `0x${"0".repeat(1024 * 1024)}`
        const logs = Array.from({ length: count }, (_, index) => ({
          address: makeAddress(0),
          topics: [],
          data,
          logIndex: `0x${index}`
        }))
        const { delivery, reorganise, topics } = yield* makeDelivery(logs)
        let deliveries = 0
        const after = new Set<string>()
        const sink = {
          caller: local,
          deliver: ({ text }: { readonly text: string }) => {
            deliveries++
            if (deliveries > count) after.add(text.includes("\"error\":") ? "error" : "removed")
          },
          flush: () => {}
        }
        topics.join({ kind: "logs", filter: {} }, sink, 0n)
        yield* Effect.forkScoped(delivery.run)
        delivery.wake()
        yield* until(() => delivery.position() === 1n)
        assert.strictEqual(deliveries, count)
        // the logs are dropped after all blocks of the span
        for (let index = 0; index < 20; index++) yield* Effect.yieldNow
        reorganise()
        assert.deepStrictEqual([...after], [outcome])
        assert.strictEqual(topics.size(), outcome === "error" ? 0 : 1)
        assert.strictEqual(delivery.position(), 0n)
      }).pipe(Effect.scoped), { discard: true }))
})
