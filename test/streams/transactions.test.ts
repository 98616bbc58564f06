/** Transactions of the token chain as Server-Sent Events: what a page, a script and the typed client receive, over a node of HTTP. */
import { assert, describe, it } from "@effect/vitest"
import { Address, beginCell, external, internal, storeMessage, toNano } from "@ton/core"
import { keyPairFromSeed } from "@ton/crypto"
import { WalletContractV4 } from "@ton/ton"
import { formatPosition } from "@trigate/domain/tokens/TokenData"
import type { AccountTransaction } from "@trigate/domain/tokens/TokenData"
import { tokenKey } from "@trigate/sandbox/SandboxExamples"
import * as Client from "@trigate/testing/Client"
import { gateway, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Row } from "../../packages/tokens/test/transactions/chainModel.ts"
import { append, internalTransfer, makeNode, raw } from "../../packages/tokens/test/transactions/chainModel.ts"

const account = raw("a")
const master = raw("b")
const wallet = raw("c")
const payer = raw("e")

const grow = (history: Array<Row>, count: number): void => {
  for (let index = 0; index < count; index += 1) {
    append(history, account, { source: payer, body: beginCell().storeUint(1, 32).endCell() })
  }
}

/** A node over HTTP, and the settings of a gateway in front of it. */
const chain = Effect.gen(function*() {
  const histories = new Map<string, Array<Row>>([[account, []], [wallet, []]])
  const node = makeNode({ histories, wallets: new Map([[master, wallet]]) })
  const { url } = yield* recordingUpstream(({ body }) => {
    const call: unknown = JSON.parse(body)
    return node.respond(String(JsonParts.at(call, "method")), JsonParts.at(call, "params"))
  })
  const environment = { TRIGATE_TOKEN_CHAIN_URL: url, TRIGATE_TOKEN_CHAIN_STREAM_RPS: "1000" }
  return { account: histories.get(account) ?? [], wallet: histories.get(wallet) ?? [], environment }
})

const idOf = ({ hash, lt }: Row): string => formatPosition({ lt: String(lt), hash })

/** Reads blocks of a stream of events until there are `count` of them, then closes the connection. */
const blocks = (url: string, count: number, headers: Readonly<Record<string, string>> = {}) =>
  Effect.promise(async () => {
    const aborting = new AbortController()
    const response = await fetch(url, { headers, signal: aborting.signal })
    assert.strictEqual(response.status, 200, await (response.status === 200 ? "" : response.text()))
    assert.strictEqual(response.headers.get("content-type"), "text/event-stream")
    assert.strictEqual(response.headers.get("cache-control"), "no-store")
    const reader = (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream()).getReader()
    let text = ""
    while (text.split("\n\n").length <= count) {
      const { done, value } = await reader.read()
      if (done) break
      text += value
    }
    aborting.abort()
    return text.split("\n\n").slice(0, count)
  })

/** Follows the transactions of an account from genesis on until the scope closes; returns the IDs that arrive. */
const follow = Effect.fnUntraced(function*(url: string, address: string) {
  const arrived = yield* Queue.unbounded<string>()
  const path = `${url}/api/v2/streams/transactions?address=${address}&after=genesis`
  const { body } = yield* Effect.promise(() => fetch(path))
  yield* Effect.forkScoped(
    Effect.promise(async () => {
      for await (const text of (body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
        for (const [, id] of text.matchAll(/^id: (.*)\nevent: transaction$/gmu)) Queue.offerUnsafe(arrived, id ?? "")
      }
    })
  )
  return arrived
})

const refusal = (url: string, headers: Readonly<Record<string, string>> = {}) =>
  Effect.promise(async () => {
    const response = await fetch(url, { headers })
    const body: unknown = await response.json()
    return [response.status, JsonParts.at(body, "_tag")]
  })

describe("GET /api/v2/streams/transactions", () => {
  it.live("begins where it is asked to, and resumes after the last event", () =>
    Effect.gen(function*() {
      const { account: history, environment } = yield* chain
      grow(history, 3)
      const { url } = yield* gateway(environment)
      const path = `${url}/api/v2/streams/transactions?address=${account}`
      const [start, ...all] = yield* blocks(`${path}&after=genesis`, 4)
      assert.strictEqual(start?.split("\n")[0], `id: 0:${"0".repeat(64)}`)
      assert.include(start, "event: start")
      assert.deepStrictEqual(
        all.map((block) => block.split("\n").slice(0, 2)),
        history.map((row) => [`id: ${idOf(row)}`, "event: transaction"])
      )
      const second = history[1]
      if (second === undefined) return assert.fail()
      const resumed = yield* blocks(path, 2, { "last-event-id": idOf(second) })
      assert.deepStrictEqual(
        resumed.map((block) => block.split("\n")[0]),
        history.slice(1).map((row) => `id: ${idOf(row)}`)
      )
      // behind a key of the node's surface, and with the id in another letter case
      const keyed = yield* blocks(
        `${url}/any-key/api/v2/streams/transactions?address=${account}&after=${idOf(second).toUpperCase()}`,
        2
      )
      assert.deepStrictEqual(keyed, resumed)
    }).pipe(Effect.scoped))

  it.live("is refused before it begins, and says in an event why it ends", () =>
    Effect.gen(function*() {
      const { account: history, environment } = yield* chain
      grow(history, 2)
      const { url } = yield* gateway(environment)
      const path = `${url}/api/v2/streams/transactions`
      assert.deepStrictEqual(yield* refusal(path), [400, "InvalidRequest"])
      assert.deepStrictEqual(yield* refusal(`${path}?address=EQ`), [400, "InvalidAddress"])
      assert.deepStrictEqual(yield* refusal(`${path}?address=${account}&after=7`), [400, "InvalidRequest"])
      assert.deepStrictEqual(
        yield* refusal(`${path}?address=${account}`, { "last-event-id": "7:7" }),
        [400, "InvalidRequest"]
      )
      const other = yield* gateway({ TRIGATE_TRADING_API_URL: "http://127.0.0.1:9" })
      assert.deepStrictEqual(
        yield* refusal(`${other.url}/api/v2/streams/transactions?address=${account}`),
        [501, "ChainNotConfigured"]
      )
      const unknown = `${String(history[0]?.lt)}:${"1".repeat(64)}`
      const [, problem] = yield* blocks(`${path}?address=${account}&after=${unknown}`, 2)
      assert.include(problem, "event: problem\n")
      assert.include(problem, "\"_tag\":\"HistoryUnavailable\"")
      assert.include(problem, `"after":"${unknown}"`)
    }).pipe(Effect.scoped))

  it.live("is resumed by the typed client over a restart of the gateway, without a gap or a double", () =>
    Effect.gen(function*() {
      const { account: history, environment } = yield* chain
      grow(history, 2)
      const first = yield* Scope.make()
      const before = yield* Scope.provide(gateway(environment), first)
      const { tokens } = yield* Client.makeClient(before.url)
      const seen: Array<AccountTransaction> = []
      const arrived = yield* Queue.unbounded<AccountTransaction>()
      const reading = yield* Effect.forkScoped(
        Stream.runForEach(tokens.transactions({ address: account, after: "genesis" }), (transaction) => {
          seen.push(transaction)
          return Queue.offer(arrived, transaction)
        })
      )
      const take = (count: number) => Effect.raceFirst(Queue.takeN(arrived, count), Fiber.join(reading))
      yield* take(2)
      yield* Scope.close(first, Exit.void)
      grow(history, 3)
      yield* gateway({ ...environment, TRIGATE_PORT: new URL(before.url).port })
      yield* take(3)
      grow(history, 1)
      yield* take(1)
      assert.deepStrictEqual(seen.map(formatPosition), history.map(idOf))
    }).pipe(Effect.scoped))

  it.live("continues over changes of the settings, and reads the addresses in force", () =>
    Effect.gen(function*() {
      const old = yield* chain
      grow(old.account, 2)
      const { reload, url } = yield* gateway(old.environment)
      const arrived = yield* follow(url, account)
      const take = (count: number) => Queue.takeN(arrived, count)
      const seen = [...yield* take(2)]
      yield* reload({ ...old.environment, TRIGATE_READ_DEADLINE: "9s" })
      grow(old.account, 1)
      seen.push(...yield* take(1))
      assert.deepStrictEqual(seen, old.account.map(idOf))
      const next = yield* chain
      next.account.push(...old.account)
      yield* reload(next.environment)
      grow(next.account, 1)
      grow(old.account, 2)
      seen.push(...yield* take(1))
      assert.deepStrictEqual(seen, next.account.map(idOf))
    }).pipe(Effect.scoped))

  it.live("continues over changes of the settings with a sandbox, which keeps its contracts", () =>
    Effect.gen(function*() {
      const { reload, url } = yield* gateway({})
      const { publicKey, secretKey } = keyPairFromSeed(Buffer.from(tokenKey.seed, "hex"))
      const sender = WalletContractV4.create({ workchain: 0, publicKey })
      const send = (seqno: number) => {
        const transfer = internal({ to: Address.parseRaw(account), value: toNano("0.2"), bounce: false })
        const body = sender.createTransfer({ seqno, secretKey, messages: [transfer] })
        const message = external({ to: sender.address, ...(seqno === 0 ? { init: sender.init } : {}), body })
        const boc = beginCell().store(storeMessage(message)).endCell().toBoc().toString("base64")
        return Effect.map(post(`${url}/api/v2/sendBoc`, JSON.stringify({ boc })), ({ status, text }) => {
          assert.strictEqual(status, 200, text)
        })
      }
      const arrived = yield* follow(url, account)
      for (const [seqno, settings] of [{ TRIGATE_READ_DEADLINE: "9s" }, {}].entries()) {
        yield* send(seqno)
        yield* Queue.take(arrived)
        yield* reload(settings)
      }
      yield* send(2)
      yield* Queue.take(arrived)
    }).pipe(Effect.scoped))

  it.live("counts as a socket of its caller, and ends with the gateway", () =>
    Effect.gen(function*() {
      const { environment } = yield* chain
      const own = yield* Scope.make()
      const { url } = yield* Scope.provide(gateway({ ...environment, TRIGATE_STREAM_CALLER_SOCKETS: "1" }), own)
      const path = `${url}/api/v2/streams/transactions?address=${account}`
      const open = yield* Effect.promise(() => fetch(path))
      assert.strictEqual(open.status, 200)
      assert.deepStrictEqual(yield* refusal(path), [429, "QuotaExceeded"])
      const text = yield* Effect.forkScoped(Effect.promise(() => open.text().catch(() => "cut")))
      yield* Scope.close(own, Exit.void)
      assert.notStrictEqual(yield* Fiber.join(text), "")
    }).pipe(Effect.scoped))
})

describe("GET /api/v2/streams/jettonTransfers", () => {
  it.live("streams what the owner's genuine wallet received", () =>
    Effect.gen(function*() {
      const { environment, wallet: history } = yield* chain
      append(history, wallet, { source: payer, body: internalTransfer(10n, payer) })
      append(history, wallet, { source: payer, body: internalTransfer(20n, payer), aborted: true })
      append(history, wallet, { source: payer, body: internalTransfer(40n, payer) })
      const { url } = yield* gateway(environment)
      const { tokens } = yield* Client.makeClient(url)
      const transfers = yield* tokens.jettonTransfers({ owner: account, master, after: "genesis" }).pipe(
        Stream.take(2),
        Stream.runCollect
      )
      assert.deepStrictEqual(transfers.map(({ amount, owner, sender }) => [amount, owner, sender]), [
        ["10", account, payer],
        ["40", account, payer]
      ])
      const failure = yield* Effect.flip(Stream.runDrain(tokens.jettonTransfers({ owner: account, master: wallet })))
      assert.strictEqual(failure._tag, "TokenNotFound")
    }).pipe(Effect.scoped))
})
