/** Streams of transactions and of received jettons against a model of the chain, over a node with faults. */
import { assert, describe, it } from "@effect/vitest"
import { beginCell, comment } from "@ton/core"
import { background, CurrentCaller } from "@trigate/domain/Caller"
import { ChainNotConfigured, QuotaExceeded } from "@trigate/domain/errors/GatewayError"
import { formatPosition, genesis, parsePosition } from "@trigate/domain/tokens/TokenData"
import type { AccountTransaction, JettonTransfer, Position, StartPosition } from "@trigate/domain/tokens/TokenData"
import type { TokenBackend } from "@trigate/domain/unstable/tokens/TokenProtocol"
import { sample } from "@trigate/testing/Sample"
import { randomBy } from "@trigate/testing/SeededRandom"
import * as Transactions from "@trigate/tokens/transactions/Transactions"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { PageFault, Row } from "./chainModel.ts"
import { append, internalTransfer, makeNode, notification, raw } from "./chainModel.ts"
import { passUntil } from "./passing.ts"

const account = raw("a")
const master = raw("b")
const wallet = raw("c")
const fakeWallet = raw("d")
const payer = raw("e")

const options = { requestsPerSecond: 1, pollInterval: "2 seconds" } as const

const body = () => beginCell().storeUint(1, 32).endCell()

const grow = (history: Array<Row>, count: number): void => {
  for (let index = 0; index < count; index += 1) append(history, account, { source: payer, body: body() })
}

const positions = (rows: ReadonlyArray<Row | Position>): ReadonlyArray<string> =>
  rows.map(({ hash, lt }) => formatPosition({ lt: String(lt), hash }))

/** Reads a stream into a list until the scope closes. */
const collect = Effect.fnUntraced(function*<A, E>(stream: Stream.Stream<A, E>) {
  const items: Array<A> = []
  const fiber = yield* Effect.forkScoped(Stream.runForEach(stream, (item) => Effect.sync(() => items.push(item))))
  return { items, fiber }
})

/** Runs an effect while virtual time passes. */
const passing = Effect.fnUntraced(function*<A, E>(effect: Effect.Effect<A, E>) {
  const fiber = yield* Effect.forkScoped(effect)
  yield* passUntil(() => fiber.pollUnsafe() !== undefined)
  return yield* Fiber.join(fiber)
})

describe("transactions", () => {
  it.effect("begins with the next transaction without a position, and with the first one after genesis", () =>
    Effect.gen(function*() {
      const history: Array<Row> = []
      grow(history, 3)
      const { transactions } = yield* Transactions.make(makeNode({ histories: new Map([[account, history]]) }), options)
      const all = yield* collect(transactions({ address: account, after: "genesis" }))
      const next = yield* collect(transactions({ address: account }))
      yield* passUntil(() => all.items.length === 3)
      grow(history, 2)
      yield* passUntil(() => all.items.length === 5 && next.items.length === 2)
      assert.deepStrictEqual(positions(all.items), positions(history))
      assert.deepStrictEqual(positions(next.items), positions(history.slice(3)))
    }).pipe(Effect.scoped))

  it.effect("reads what the cell says", () =>
    Effect.gen(function*() {
      const history: Array<Row> = []
      append(history, account, { source: payer, body: comment("order 7"), aborted: true })
      const node = makeNode({ histories: new Map([[account, history]]) })
      const { transactions } = yield* Transactions.make(node, options)
      const { items } = yield* collect(transactions({ address: account, after: "genesis" }))
      yield* passUntil(() => items.length === 1)
      const [row] = history
      assert.deepStrictEqual(items, [{
        account,
        lt: String(row?.lt),
        hash: row?.hash ?? "",
        previous: { lt: "0", hash: "0".repeat(64) },
        time: 1_760_000_000,
        aborted: true,
        fee: "1",
        inMessage: {
          kind: "internal",
          source: payer,
          destination: account,
          value: "1",
          bounced: false,
          opcode: "0x00000000",
          comment: "order 7",
          body: comment("order 7").toBoc().toString("base64")
        },
        outMessages: []
      }])
    }).pipe(Effect.scoped))

  it.effect("shares the requests of an account among its readers, and spaces all requests", () =>
    Effect.gen(function*() {
      const history: Array<Row> = []
      grow(history, 40)
      const node = makeNode({ histories: new Map([[account, history]]) })
      const { transactions } = yield* Transactions.make(node, options)
      const readers = yield* Effect.forEach(
        Array.from({ length: 20 }),
        () => collect(transactions({ address: account }))
      )
      yield* passUntil(() => node.requests.length === 3)
      const before = node.requests.length
      grow(history, 5)
      yield* passUntil(() => readers.every(({ items }) => items.length === 5))
      // the poll that found them returned all five
      assert.isAtMost(node.requests.length - before, 2)
    }).pipe(Effect.scoped))

  it.effect("fails for a position that the account does not have", () =>
    Effect.gen(function*() {
      const history: Array<Row> = []
      grow(history, 3)
      const node = makeNode({ histories: new Map([[account, history]]) })
      const { transactions } = yield* Transactions.make(node, options)
      const [first, second] = history
      const fails = Effect.fnUntraced(function*(after: Position) {
        const { fiber } = yield* collect(transactions({ address: account, after }))
        yield* passUntil(() => fiber.pollUnsafe() !== undefined)
        return yield* Effect.flip(Fiber.join(fiber))
      })
      for (
        const after of [
          { lt: String(first?.lt), hash: "1".repeat(64) },
          { lt: String((second?.lt ?? 0n) - 1n), hash: first?.hash ?? "" },
          { lt: String(history[2]?.lt), hash: first?.hash ?? "" }
        ]
      ) {
        const error = yield* fails(after)
        assert.deepInclude(error, { _tag: "HistoryUnavailable", address: account, after: formatPosition(after) })
      }
    }).pipe(Effect.scoped))

  it.effect("fails when the node does not have the older pages, and refuses a wrong address before a request", () =>
    Effect.gen(function*() {
      const history: Array<Row> = []
      grow(history, 200)
      const pruned = history.slice(100)
      const node = makeNode({ histories: new Map([[account, pruned]]) })
      const { transactions } = yield* Transactions.make(node, options)
      const after = { lt: String(history[50]?.lt), hash: history[50]?.hash ?? "" }
      const { fiber } = yield* collect(transactions({ address: account, after }))
      yield* passUntil(() => fiber.pollUnsafe() !== undefined)
      const error = yield* Effect.flip(Fiber.join(fiber))
      assert.deepInclude(error, { _tag: "HistoryUnavailable", after: formatPosition(after) })
      const asked = node.requests.length
      const wrong = yield* Effect.flip(Stream.runDrain(transactions({ address: "0:12" })))
      assert.strictEqual(wrong._tag, "InvalidAddress")
      assert.strictEqual(node.requests.length, asked)
    }).pipe(Effect.scoped))

  it.effect("walks further than it keeps in memory", () =>
    Effect.gen(function*() {
      const history: Array<Row> = []
      grow(history, 420)
      const node = makeNode({ histories: new Map([[account, history]]), mostRows: 10 })
      const { transactions } = yield* Transactions.make(node, { ...options, requestsPerSecond: 100 })
      const { items } = yield* collect(transactions({ address: account, after: "genesis" }))
      yield* passUntil(() => items.length === 420)
      assert.deepStrictEqual(positions(items), positions(history))
    }).pipe(Effect.scoped))

  const faults: ReadonlyArray<PageFault> = ["429", "500", "hole", "doubled", "lag", "empty"]

  it.effect("gives each reader the model's history, once and in order, through faults and restarts at any step", () =>
    Effect.gen(function*() {
      const seeds = Array.from({ length: 60 }, (_, index) => index + 1)
      for (const seed of sample("histories of an account", seeds, 2)) {
        yield* Effect.gen(function*() {
          const random = randomBy(seed)
          const history: Array<Row> = []
          grow(history, random(250))
          // a minute of 429 now and then, single faults otherwise
          let outage = 0
          const node = makeNode({
            histories: new Map([[account, history]]),
            mostRows: 20 + random(40),
            faultOf: () => {
              if (outage > 0) outage -= 1
              else if (random(40) === 0) outage = 6
              return outage > 0 ? "429" : random(3) === 0 ? faults[random(faults.length)] ?? "none" : "none"
            }
          })
          const seen: Array<AccountTransaction> = []
          let after: StartPosition = "genesis"
          yield* Effect.forkScoped(Effect.forever(
            Effect.gen(function*() {
              // a restart: the service and its cache are new
              const { transactions } = yield* Transactions.make(node, { ...options, requestsPerSecond: 5 })
              yield* transactions({ address: account, after }).pipe(
                Stream.take(1 + random(150)),
                Stream.runForEach((transaction) =>
                  Effect.sync(() => {
                    seen.push(transaction)
                    after = { lt: transaction.lt, hash: transaction.hash }
                  })
                ),
                // a walk gives up after eight pages that do not connect; its caller resumes
                Effect.catchTag("HistoryUnavailable", () => Effect.void)
              )
            }).pipe(Effect.scoped)
          ))
          let rounds = 0
          yield* passUntil(
            () => rounds > 60 && seen.length >= history.length,
            () => {
              rounds += 1
              if (rounds <= 60 && random(4) === 0) grow(history, random(20))
            }
          )
          assert.deepStrictEqual(positions(seen), positions(history), `seed ${seed}`)
        }).pipe(Effect.scoped)
      }
    }))
})

describe("reads that callers share", () => {
  it.effect("are the gateway's own, and those of one caller are that caller's", () =>
    Effect.gen(function*() {
      const histories = new Map([[account, new Array<Row>()]])
      const node = makeNode({ histories, wallets: new Map([[master, wallet]]) })
      const readers: Array<readonly [string, string]> = []
      const backend: Pick<TokenBackend, "read"> = {
        read: (call) =>
          Effect.flatMap(CurrentCaller, (caller) => {
            const isPage = Predicate.hasProperty(call.params.valueOrUndefined, "lt")
            readers.push([isPage ? "page" : call.operation.name, caller.id])
            return caller.id === "first"
              ? Effect.fail(new QuotaExceeded({ retryAfter: 60, detail: "used up" }))
              : node.read(call)
          })
      }
      const { jettonWallet, transactions } = yield* Transactions.make(backend, { ...options, requestsPerSecond: 1_000 })
      const as = (id: string) => Effect.provideService(CurrentCaller, { id, scope: {}, quota: {} })
      grow(histories.get(account) ?? [], 20)
      yield* Effect.forkScoped(as("first")(Stream.runDrain(transactions({ address: account, after: "genesis" }))))
      const seen: Array<string> = []
      const second = Stream.runForEach(
        transactions({ address: account, after: "genesis" }),
        ({ lt }) => Effect.sync(() => seen.push(lt))
      )
      yield* Effect.forkScoped(as("second")(second))
      yield* passUntil(() => seen.length === 20)
      assert.strictEqual(yield* passing(as("first")(jettonWallet({ owner: account, master }))), wallet)
      assert.deepStrictEqual([...new Set(readers.map(String))].toSorted(), [
        "getTransactions,transactions of first",
        "page,first",
        "page,second",
        "runGetMethod,transactions of first"
      ])
    }).pipe(Effect.scoped))
})

describe("callers who wait for the node", () => {
  it.effect("take turns: a caller with one account is read as often as one with twenty", () =>
    Effect.gen(function*() {
      const addresses = Array.from({ length: 21 }, (_, index) => `0:${index.toString(16).padStart(64, "0")}`)
      const node = makeNode({ histories: new Map(addresses.map((address) => [address, new Array<Row>()])) })
      const read: Array<string> = []
      const backend: Pick<TokenBackend, "read"> = {
        read: (call) =>
          Effect.flatMap(CurrentCaller, ({ id }) => {
            read.push(id)
            return node.read(call)
          })
      }
      const { transactions } = yield* Transactions.make(backend, options)
      for (const [index, address] of addresses.entries()) {
        yield* transactions({ address }).pipe(
          Stream.runDrain,
          Effect.provideService(CurrentCaller, background(index < 20 ? "greedy" : "modest")),
          Effect.forkScoped
        )
      }
      yield* passUntil(() => read.length >= 40)
      const ofModest = read.slice(20, 40).filter((id) => id === "transactions of modest").length
      assert.isAtLeast(ofModest, 6)
    }).pipe(Effect.scoped))
})

describe("a scope that closes", () => {
  it.effect("ends the streams", () =>
    Effect.gen(function*() {
      const own = yield* Scope.make()
      const history: Array<Row> = []
      grow(history, 1)
      const node = makeNode({ histories: new Map([[account, history]]) })
      const { transactions } = yield* Scope.provide(Transactions.make(node, options), own)
      const { fiber, items } = yield* collect(transactions({ address: account, after: "genesis" }))
      yield* passUntil(() => items.length === 1)
      yield* Scope.close(own, Exit.void)
      assert.deepStrictEqual(yield* passing(Fiber.join(fiber)), undefined)
    }).pipe(Effect.scoped))
})

describe("shared streams", () => {
  it.effect("continue with another backend, also after one that failed for good", () =>
    Effect.gen(function*() {
      const history: Array<Row> = []
      grow(history, 2)
      const nodes = [0, 1].map(() => makeNode({ histories: new Map([[account, history]]) }))
      const [first, second] = nodes
      if (first === undefined || second === undefined) return assert.fail()
      const { use } = yield* Transactions.SharedTransactions
      const absent = new ChainNotConfigured({ chain: "tokens", detail: "No upstream URL" })
      const { latestPosition, transactions } = use({ read: () => Effect.fail(absent) }, options)
      const newest = () => passing(Effect.result(latestPosition({ address: account })))
      assert.deepStrictEqual(yield* newest(), Result.fail(absent))
      use(first, options)
      assert.deepStrictEqual(
        Result.map(yield* newest(), (position) => positions([position])),
        Result.succeed(positions(history.slice(1)))
      )
      const { items } = yield* collect(transactions({ address: account, after: "genesis" }))
      yield* passUntil(() => items.length === 2)
      use(second, { ...options, requestsPerSecond: 0.1 })
      const asked = first.requests.length
      grow(history, 1)
      yield* passUntil(() => items.length === 3)
      yield* passUntil(() => second.requests.length === 3)
      assert.deepStrictEqual(positions(items), positions(history))
      assert.strictEqual(first.requests.length, asked)
    }).pipe(Effect.provide(Transactions.SharedTransactions.layer()), Effect.scoped))
})

describe("latestPosition", () => {
  it.effect("is the newest transaction's, and that of genesis for an account without any", () =>
    Effect.gen(function*() {
      const history: Array<Row> = []
      grow(history, 3)
      const { latestPosition } = yield* Transactions.make(
        makeNode({ histories: new Map([[account, history]]) }),
        { ...options, requestsPerSecond: 1_000 }
      )
      assert.deepStrictEqual(
        positions([yield* passing(latestPosition({ address: account }))]),
        positions(history.slice(2))
      )
      assert.deepStrictEqual(yield* passing(latestPosition({ address: wallet })), genesis)
    }).pipe(Effect.scoped))

  it.effect("fails while the node cannot be asked, without waiting", () =>
    Effect.gen(function*() {
      const node = makeNode({ histories: new Map(), faultOf: () => "429" })
      const { latestPosition } = yield* Transactions.make(node, options)
      const error = yield* Effect.flip(latestPosition({ address: account }))
      assert.strictEqual(error._tag, "UpstreamRateLimited")
      assert.strictEqual(node.requests.length, 1)
    }).pipe(Effect.scoped))
})

describe("jettonTransfers", () => {
  it.effect("credits what the owner's genuine wallet received, once each", () =>
    Effect.gen(function*() {
      const walletHistory: Array<Row> = []
      const ownerHistory: Array<Row> = []
      const receive = (amount: bigint, more: { aborted?: boolean; bounced?: boolean } = {}, forward = 0n) =>
        append(walletHistory, wallet, { source: payer, body: internalTransfer(amount, payer, forward), ...more })
      receive(10n, {}, 1n)
      append(ownerHistory, account, { source: wallet, body: notification(10n, payer) })
      // forward amount 0: no notification
      receive(20n)
      // a stranger's wallet sends notifications as well
      append(ownerHistory, account, { source: fakeWallet, body: notification(1_000n, payer) })
      // the wallet refuses a stranger's internal_transfer; a transfer of the owner came back; the owner sends
      receive(40n, { aborted: true })
      receive(80n, { bounced: true })
      append(walletHistory, wallet, { source: account, body: beginCell().storeUint(0x0f8a7ea5, 32).endCell() })
      receive(160n)
      const node = makeNode({
        histories: new Map([[wallet, walletHistory], [account, ownerHistory]]),
        wallets: new Map([[master, wallet]]),
        faultOf: (request) => request % 3 === 0 ? "doubled" : request % 5 === 0 ? "hole" : "none"
      })
      const { jettonTransfers } = yield* Transactions.make(node, options)
      const { items } = yield* collect(jettonTransfers({ owner: account, master, after: "genesis" }))
      yield* passUntil(() => items.length === 3)
      receive(320n)
      yield* passUntil(() => items.length === 4)
      assert.deepStrictEqual(items.map(({ amount }: JettonTransfer) => amount), ["10", "20", "160", "320"])
      assert.deepStrictEqual(items[0], {
        lt: String(walletHistory[0]?.lt),
        hash: walletHistory[0]?.hash ?? "",
        time: 1_760_000_000,
        owner: account,
        master,
        wallet,
        sender: payer,
        amount: "10",
        queryId: "7",
        forwardAmount: "1"
      })
      // resumed by position
      const after = Option.getOrThrow(parsePosition(positions(items)[1] ?? ""))
      const resumed = yield* collect(jettonTransfers({ owner: account, master, after }))
      yield* passUntil(() => resumed.items.length === 2)
      assert.deepStrictEqual(resumed.items, items.slice(2))
    }).pipe(Effect.scoped))

  it.effect("asks for a wallet once, and again after a failure", () =>
    Effect.gen(function*() {
      const wallets = new Map<string, string>()
      const node = makeNode({ histories: new Map(), wallets })
      const { jettonWallet } = yield* Transactions.make(node, { ...options, requestsPerSecond: 1_000 })
      const found = passing(Effect.result(jettonWallet({ owner: account, master })))
      assert.strictEqual((yield* found)._tag, "Failure")
      wallets.set(master, wallet)
      assert.deepStrictEqual(yield* found, Result.succeed(wallet))
      assert.deepStrictEqual(yield* found, Result.succeed(wallet))
      assert.strictEqual(node.requests.length, 2)
    }).pipe(Effect.scoped))

  it.effect("fails for a contract that derives no wallets", () =>
    Effect.gen(function*() {
      const { jettonTransfers } = yield* Transactions.make(makeNode({ histories: new Map() }), options)
      const error = yield* Effect.flip(Stream.runDrain(jettonTransfers({ owner: account, master: wallet })))
      assert.strictEqual(error._tag, "TokenNotFound")
    }).pipe(Effect.scoped))
})
