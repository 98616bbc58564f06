/** Logs over nodes with various limits and various words: the logs are right, in a bounded number of requests. */
import { assert, describe, it } from "@effect/vitest"
import { local } from "@trigate/domain/Caller"
import type { EvmFrame } from "@trigate/domain/unstable/evm/EvmStreams"
import * as EvmChain from "@trigate/testing/EvmChain"
import { sample, sampleRuns } from "@trigate/testing/Sample"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Scripted from "../../upstream/test/scripted.ts"
import { passSeconds } from "./modelled.ts"
import { call, gateway } from "./nodes.ts"

/** The size of a query, and its cost for a node. */
interface Asked {
  readonly blocks: number
  /** The largest number of addresses, or of alternatives for a topic. */
  readonly alternatives: number
  readonly rows: number
  readonly bytes: number
  /** A model of the time: blocks that are read, and logs that are found. */
  readonly time: number
}

/** The limits of a node, which refuses larger queries. */
type Limits = { readonly [Name in keyof Asked]?: number }

/** The error with which a node refuses a query, and its HTTP status. */
interface Style {
  readonly name: string
  readonly error: (limit: number, asked: Asked) => unknown
  readonly status?: number
}

const style = (
  name: string,
  code: number,
  message: (limit: number, asked: number) => string,
  status = 200
): Style => ({ name, status, error: (limit, { blocks }) => ({ code, message: message(limit, blocks) }) })

/** Words of public nodes and providers, and the requests that are refused until a limit of 30 blocks is known. */
const known: ReadonlyArray<readonly [Style, refused: number]> = [
  // the words name the limit, and say that it is one of blocks
  [style("Infura", -32602, (limit, asked) => `range ${asked} exceeds limit of ${limit}`), 1],
  [style("Base", -32602, (limit) => `please limit the query to at most ${limit} blocks`), 1],
  [style("reth", -32602, (limit) => `query exceeds max block range ${limit}`, 400), 1],
  // the words contain the number: it is tried, and then twice as many blocks with a filter that no log matches
  [style("eRPC's list", -32005, (limit) => `query exceeds limit ${limit}`), 2],
  [style("Harmony", -32000, (limit) => `query must be smaller than size ${limit}`), 2],
  // the words contain no number, or are about another limit
  [style("Erigon", -32000, () => "block range too large"), 5],
  [style("Nitro", -32000, () => "logs matched by query exceeds limit of 10000"), 5],
  [style("Nitro, time", -32000, () => "log query timed out"), 5],
  [style("geth, time", -32002, () => "request timed out", 503), 5],
  [style("Infura, rows", -32005, () => "query returned more than 10000 results"), 5],
  [style("geth, addresses", -32602, () => "exceed max addresses or topics per search position"), 5],
  [
    {
      name: "zkSync",
      error: () => ({ code: -32008, message: "Response is too big", data: "Exceeded max limit of 1" })
    },
    5
  ]
]

/** Words that are in no list. */
const invented: ReadonlyArray<readonly [Style, refused: number]> = [
  [style("Chinese", -32000, (limit) => `区块范围不能超过${limit}`), 2],
  [style("French, with another number", -32099, () => "demande refusée (réf. 812)"), 5],
  [style("no words", -32000, () => ""), 5],
  [style("a code of its own", 7301, () => "E7301"), 5],
  [style("the code of any limit", -32005, () => "limit exceeded"), 5],
  [style("German", -32602, () => "Die Anfrage ist zu groß", 413), 5],
  [style("a server's fault", -32603, () => "internal error", 500), 5],
  [{ name: "a text as the error", error: () => "zu viel", status: 400 }, 5],
  [{ name: "an error without a code", error: () => ({ message: "нельзя" }) }, 5]
]

const styles = [...known, ...invented]

const decodeError = Schema.decodeUnknownSync(Schema.Struct({ code: Schema.Number, message: Schema.String }))
const messageOf = ({ error }: Style): string =>
  decodeError(error(30, { blocks: 240, alternatives: 1, rows: 0, bytes: 0, time: 0 })).message
const wordless = style("no words", -32000, () => "")

const listed = (value: unknown): number => Array.isArray(value) ? value.length : 1

const decodeFilter = Schema.decodeUnknownSync(Schema.Struct({
  fromBlock: Schema.optionalKey(Schema.String),
  toBlock: Schema.optionalKey(Schema.String),
  address: Schema.optionalKey(Schema.Unknown),
  topics: Schema.optionalKey(Schema.Array(Schema.Unknown))
}))
const decodeRequest = Schema.decodeUnknownSync(Schema.fromJsonString(
  Schema.Struct({ id: Schema.Number, method: Schema.String, params: Schema.Array(Schema.Unknown) })
))

const names = ["blocks", "alternatives", "rows", "bytes", "time"] as const

/** A node of a chain that refuses the queries above its limits. */
const limited = (
  chain: EvmChain.EvmChain,
  limits: Limits,
  { error, status = 200 }: Style,
  onLogs: (nth: number) => Scripted.Reaction | undefined = () => undefined
) => {
  /** Whether each request for logs was refused. */
  const refusals: Array<boolean> = []
  const transport = Scripted.make(({ body }) => {
    const { id, method, params } = decodeRequest(body)
    const answer = chain.call(method, params)
    const reply = (member: object, status = 200) =>
      Scripted.answer(status, JSON.stringify({ jsonrpc: "2.0", id, ...member }))
    if (method !== "eth_getLogs" || !("result" in answer) || !Array.isArray(answer.result)) return reply(answer)
    const { address, fromBlock, toBlock, topics = [] } = decodeFilter(params[0])
    const blocks = fromBlock === undefined ? 1 : Number(toBlock ?? fromBlock) - Number(fromBlock) + 1
    const rows = answer.result.length
    const asked: Asked = {
      blocks: Number.isNaN(blocks) ? chain.head.number + 1 : blocks,
      alternatives: Math.max(listed(address), ...topics.map(listed)),
      rows,
      bytes: JSON.stringify(answer.result).length,
      time: blocks + 10 * rows
    }
    const exceeded = names.find((name) => asked[name] > (limits[name] ?? Infinity))
    refusals.push(exceeded !== undefined)
    return onLogs(refusals.length) ??
      (exceeded === undefined ? reply(answer) : reply({ error: error(limits[exceeded] ?? 0, asked) }, status))
  })
  return { refusals, transport, layer: Layer.provide(Pipeline.layer({ attempts: 1 }), transport.layer) }
}

const hex = (value: number) => `0x${value.toString(16)}`
const range = (from: number, to: number) => ({ fromBlock: hex(from), toBlock: hex(to) })

const chain = new EvmChain.EvmChain("limits", { blocks: 501 })

const filled = (values: ReadonlyArray<string>, count: number, digits: number) =>
  [...values, ...Array.from({ length: count }, (_, index) => `0x${index.toString(16).padStart(digits, "0")}`)].slice(
    0,
    count
  )
/** Addresses, the first of which are those of the model. */
const addresses = (count: number) => filled(EvmChain.contracts, count, 40)
/** Topics, the first of which are those of the model. */
const topics = (count: number) => filled(EvmChain.events, count, 64)

const mostParts = 40
/** The requests for logs besides the parts: the query itself, eight probes, and one because parts begin at multiples. */
const besides = 10
/** The probes of addresses and topics, if a node refuses a single block. */
const ofAlternatives = 8

const decodeTooWide = Schema.decodeUnknownOption(
  Schema.Struct({ data: Schema.TaggedStruct("LogRangeTooWide", { served: Schema.Number }) })
)

const decodeNotification = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({ params: Schema.Struct({ result: Schema.Unknown }) }))
)

type Node = ReturnType<typeof limited>

/** Queries logs over a node some times in a row. Returns the numbers of requests for logs, and of refused ones. */
const times = (count: number, node: Node, filter: object) =>
  Effect.gen(function*() {
    const backend = yield* gateway()
    return yield* Effect.forEach(Arr.range(1, count), () =>
      Effect.gen(function*() {
        node.refusals.length = 0
        const answer = yield* call(backend, "eth_getLogs", filter)
        return { answer, sent: node.refusals.length, refused: node.refusals.filter((each) => each).length }
      }))
  }).pipe(Effect.provide(node.layer))

const once = (node: Node, filter: object) => Effect.map(times(1, node, filter), ([first]) => first ?? assert.fail())

describe("eth_getLogs over a node that refuses", () => {
  for (
    const [each, refused] of sample("words of refusals", styles, 9, ([{ status }, refused]) => `${refused} ${status}`)
  ) {
    it.effect(`a number of blocks is split, and the node's limit is learned: ${each.name}`, () =>
      Effect.gen(function*() {
        const node = limited(chain, { blocks: 30 }, each)
        const [first, second] = yield* times(2, node, range(1, 240))
        assert.deepStrictEqual([first?.answer, second?.answer], [chain.logs({}, 1, 240), chain.logs({}, 1, 240)])
        assert.deepStrictEqual([first?.refused, second?.refused], [refused, 0])
        assert.isAtMost(first?.sent ?? 0, 21)
      }))
  }

  it.effect("a single block is passed on in the node's own words, after three requests, or five for several addresses", () =>
    Effect.gen(function*() {
      const message = "invalid argument 0: hex string without 0x prefix"
      const error = { code: -32602, message }
      for (const [filter, sent] of [[{}, 3], [{ address: addresses(8) }, 5]] as const) {
        const node = limited(chain, { blocks: 0 }, style("invalid", -32602, () => message))
        assert.deepStrictEqual(yield* once(node, { ...range(1, 400), ...filter }), {
          answer: error,
          sent,
          refused: sent
        })
      }
      // a query of one block and address is not repeated, and one of several addresses is tried with four, and one
      for (
        const [filter, sent] of [
          [{ ...range(9, 9), address: addresses(1) }, 1],
          [{ fromBlock: "latest" }, 1],
          [{ blockHash: chain.head.hash }, 1],
          [{ blockHash: chain.head.hash, address: addresses(8) }, 3],
          [{ ...range(9, 9), topics: [null, topics(8)] }, 3]
        ] as const
      ) {
        const node = limited(chain, { blocks: 0 }, style("invalid", -32602, () => message))
        assert.deepStrictEqual(yield* once(node, filter), { answer: error, sent, refused: sent })
      }
    }))

  const notSplit: ReadonlyArray<readonly [Style, answer: { readonly code: number; readonly tag?: string }]> = [
    [style("a daily quota", -32005, () => "daily request count exceeded, request rate limited"), { code: -32005 }],
    [style("a rate", -32016, () => "over rate limit"), { code: -32016 }],
    [style("a rate by its code", 429, () => "超出限制"), { code: 429 }],
    [style("a capacity", -32005, () => "capacity exceeded"), { code: -32005 }],
    [style("HTTP 429", -32005, () => "block range too large", 429), { code: -32005, tag: "UpstreamRateLimited" }],
    [style("HTTP 403", -32000, () => "block range too large", 403), { code: -32000 }],
    [style("a key", -32000, () => "invalid API key"), { code: -32000 }],
    [style("the method", -32601, () => "the method eth_getLogs does not exist/is not available"), { code: -32601 }],
    [style("blocks", -32000, () => "block range extends beyond current head block"), { code: -32000 }]
  ]
  for (const [each, { code, tag }] of notSplit) {
    it.effect(`because of its rate, access or method is passed on after one request: ${each.name}`, () =>
      Effect.gen(function*() {
        const node = limited(chain, { blocks: 30 }, each)
        const asked = yield* Effect.result(once(node, range(1, 240)))
        assert.deepStrictEqual(node.refusals, [true])
        if (tag !== undefined) assert.strictEqual(asked._tag === "Failure" ? asked.failure._tag : asked._tag, tag)
        else {
          const answer = asked._tag === "Success" ? asked.success.answer : asked
          assert.deepStrictEqual(answer, { code, message: messageOf(each) })
        }
      }))
  }

  it.effect.prop(
    "by any limit, with any words, is right, and takes a bounded number of requests",
    {
      which: Schema.Literals(names),
      // how many times larger than the limit the query is
      times: Schema.Int.check(Schema.isBetween({ minimum: 2, maximum: 14 })),
      each: Schema.Literals(styles.map((_, index) => index)),
      from: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 200 })),
      blocks: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 300 })),
      address: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 60 })),
      topic: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 60 }))
    },
    ({ address, blocks, each, from, times: larger, topic, which }) =>
      Effect.gen(function*() {
        const to = from + blocks - 1
        const filter = {
          ...(address === 0 ? {} : { address: addresses(address) }),
          ...(topic === 0 ? {} : { topics: [topics(topic)] })
        }
        const logs = chain.logs(filter, from, to)
        const alternatives = Math.max(address, topic, 1)
        const size: Asked = {
          blocks,
          alternatives,
          rows: logs.length,
          bytes: JSON.stringify(logs).length,
          time: blocks + 10 * logs.length
        }
        // an empty list has two bytes
        const limits = { [which]: Math.max(which === "bytes" ? 2 : 0, Math.ceil(size[which] / larger)) }
        const node = limited(chain, limits, styles[each]?.[0] ?? assert.fail())
        const { answer, sent } = yield* once(node, { ...range(from, to), ...filter })
        assert.isAtMost(sent, mostParts + besides + (alternatives > 1 ? ofAlternatives : 0))
        // with the headers of the range's last block, and of two blocks that identify settled parts
        assert.isAtMost(node.transport.seen.length, sent + 3)
        if (Array.isArray(answer)) return assert.deepStrictEqual<unknown>(answer, logs)
        if (Option.isSome(decodeTooWide(answer))) return
        // the node refuses a block of the range, whose logs cannot be divided
        const inOne = Math.max(...chain.blocks.slice(from, to + 1).map(({ logs }) => logs.length))
        assert.isTrue(which !== "blocks" && which !== "alternatives" && inOne > 0)
      }),
    { arbitrary: { runs: sampleRuns(120) } }
  )

  for (
    const [name, filter, limits, each, refused] of [
      [
        "1500 addresses, of which 1000 are served",
        { address: addresses(1500) },
        { alternatives: 1000 },
        style("geth", -32602, () => "exceed max addresses or topics per search position"),
        2
      ],
      [
        "1500 addresses, if the words name the number",
        { address: addresses(1500) },
        { alternatives: 1000 },
        style("a provider", -32602, () => "1500 addresses specified in query, but only 1000 are allowed"),
        1
      ],
      [
        "50 addresses, of which 20 are served, without a word",
        { address: addresses(50) },
        { alternatives: 20 },
        wordless,
        5
      ],
      ["50 topics", { topics: [topics(50), null] }, { alternatives: 20 }, wordless, 5],
      ["addresses and topics", { address: addresses(40), topics: [topics(30)] }, { alternatives: 20 }, wordless, 4],
      ["addresses, in 100 blocks", { address: addresses(40) }, { alternatives: 20, blocks: 100 }, wordless, 7]
    ] as const
  ) {
    it.effect(`a number of addresses or topics is split by them, and the limit is learned: ${name}`, () =>
      Effect.gen(function*() {
        const node = limited(chain, limits, each)
        const asked = yield* times(2, node, { ...range(1, 400), ...filter })
        const logs = chain.logs({ ...filter }, 1, 400)
        assert.isAbove(logs.length, 50)
        assert.deepStrictEqual(asked.map(({ answer }) => answer), [logs, logs])
        assert.deepStrictEqual(asked.map(({ refused }) => refused), [refused, 0])
        for (const { sent } of asked) assert.isAtMost(sent, 30)
      }))
  }

  it.effect("the addresses of a block by its hash splits them, and repeated addresses are queried once", () =>
    Effect.gen(function*() {
      const node = limited(chain, { alternatives: 2 }, wordless)
      const { hash, logs } = chain.blocks.findLast(({ logs }) => logs.length === 3) ?? assert.fail("no such block")
      const address = [...EvmChain.contracts, ...EvmChain.contracts.map((each) => `0x${each.slice(2).toUpperCase()}`)]
      assert.deepStrictEqual(yield* once(node, { blockHash: hash, address }), { answer: logs, sent: 4, refused: 2 })
    }))

  it.effect("a block with too many logs divides its addresses, and does not learn from it", () =>
    Effect.gen(function*() {
      const node = limited(chain, { rows: 1 }, wordless)
      const number = chain.blocks.findIndex(({ logs }) => logs.length === 3)
      const filter = { ...range(number, number), address: EvmChain.contracts }
      const asked = yield* times(2, node, filter)
      const { logs } = chain.blocks[number] ?? assert.fail("no such block")
      assert.deepStrictEqual(asked.map(({ answer }) => answer), [logs, logs])
      // the second query is as the first one, and not one of each address
      assert.deepStrictEqual(asked.map(({ refused }) => refused), [2, 2])
    }))

  it.effect("a dense range does not limit the blocks of other queries", () =>
    Effect.gen(function*() {
      const node = limited(chain, { rows: 40 }, wordless)
      yield* Effect.gen(function*() {
        const backend = yield* gateway()
        assert.deepStrictEqual(yield* call(backend, "eth_getLogs", range(1, 400)), chain.logs({}, 1, 400))
        node.refusals.length = 0
        const filter = { ...range(1, 400), address: addresses(5).slice(3) }
        assert.deepStrictEqual(yield* call(backend, "eth_getLogs", filter), [])
        assert.deepStrictEqual(node.refusals, [false])
      }).pipe(Effect.provide(node.layer))
    }))

  it.effect("a smaller number of blocks for a time is asked for more again as soon as a query needs it", () =>
    Effect.gen(function*() {
      const limits = { blocks: 2 }
      const node = limited(chain, limits, wordless)
      yield* Effect.gen(function*() {
        const backend = yield* gateway()
        const ask = (from: number, to: number) => call(backend, "eth_getLogs", range(from, to))
        assert.deepStrictEqual(yield* ask(1, 60), chain.logs({}, 1, 60))
        // a node that serves two blocks, and is asked for three
        node.refusals.length = 0
        const tooWide = Option.getOrThrow(decodeTooWide(yield* ask(1, 100)))
        assert.deepStrictEqual([tooWide.data.served, node.refusals], [80, [true]])
        // one that serves ten
        limits.blocks = 10
        node.refusals.length = 0
        assert.deepStrictEqual(yield* ask(1, 400), chain.logs({}, 1, 400))
        assert.isFalse(node.refusals.some((isRefused) => isRefused))
        assert.isAtMost(node.refusals.length, 41)
      }).pipe(Effect.provide(node.layer))
    }))

  it.effect("less than it did is measured again after a query that could not be served", () =>
    Effect.gen(function*() {
      const limits = { blocks: 100 }
      const node = limited(chain, limits, wordless)
      yield* Effect.gen(function*() {
        const backend = yield* gateway()
        /** Queries the logs of a contract, which no other query has cached. */
        const ask = (contract: number) => {
          const filter = { ...range(1, 400), address: EvmChain.contracts[contract] }
          return Effect.map(call(backend, "eth_getLogs", filter), (answer) => {
            const isTooWide = Option.isSome(decodeTooWide(answer))
            if (!isTooWide) assert.deepStrictEqual(answer, chain.logs(filter, 1, 400))
            return isTooWide
          })
        }
        assert.isFalse(yield* ask(0))
        limits.blocks = 13
        assert.isTrue(yield* ask(1))
        assert.isFalse(yield* ask(2))
      }).pipe(Effect.provide(node.layer))
    }))

  it.effect("a part is refused or fails as a whole, and never returns the other parts", () =>
    Effect.gen(function*() {
      const failing = [
        [Scripted.answer(429, "{}"), "UpstreamRateLimited"],
        [Scripted.reset, "UpstreamUnavailable"],
        [Scripted.silence, "UpstreamTimeout"],
        [Scripted.answer(200, "[]"), "UpstreamMalformed"],
        [
          Scripted.answer(200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32016,"message":"over rate limit"}}`),
          -32016
        ]
      ] as const
      for (const [reaction, expected] of failing) {
        for (const nth of [2, 3, 12]) {
          const node = limited(chain, { blocks: 30 }, wordless, (each) => each === nth ? reaction : undefined)
          const asked = yield* Effect.forkChild(Effect.result(once(node, range(1, 240))))
          while (node.refusals.length < nth && asked.pollUnsafe() === undefined) yield* Effect.yieldNow
          yield* TestClock.adjust("11 seconds")
          const ended = yield* Fiber.join(asked)
          const got = ended._tag === "Failure" ? ended.failure._tag : decodeError(ended.success.answer).code
          assert.strictEqual<string | number>(got, expected)
        }
      }
    }))

  it.effect("addresses fails with a typed error if a block is replaced between the parts", () =>
    Effect.gen(function*() {
      const own = new EvmChain.EvmChain("replaced", { blocks: 30 })
      // the seventh query is the first of two parts
      const node = limited(own, { alternatives: 2 }, wordless, (nth) => {
        if (nth === 7) own.reorganise(25)
        return undefined
      })
      const asked = yield* Effect.flip(once(node, { ...range(1, 29), address: EvmChain.contracts }))
      assert.deepInclude(asked, { _tag: "UpstreamUnavailable", group: "retry-later" })
      assert.match(asked.message, /A reorg replaced block \d+ while its logs were read/u)
    }))

  it.effect("is split for filters and for subscriptions too", () => {
    const node = limited(chain, { blocks: 30 }, wordless)
    return Effect.gen(function*() {
      const backend = yield* gateway()
      const from = chain.head.number - 199
      const expected = chain.logs({}, from)
      const id = yield* call(backend, "eth_newFilter", { fromBlock: hex(from), toBlock: "latest" })
      assert.deepStrictEqual(yield* call(backend, "eth_getFilterLogs", id), expected)
      const frames: Array<EvmFrame> = []
      backend.subscribe({ kind: "logs", filter: {}, fromBlock: BigInt(from) }, {
        caller: local,
        deliver: (frame) => void frames.push(frame),
        flush: () => {}
      })
      yield* passSeconds(3)
      assert.deepStrictEqual<unknown>(frames.map(({ text }) => decodeNotification(text).params.result), expected)
    }).pipe(Effect.provide(node.layer), Effect.scoped)
  })
})
