import { assert, describe, it } from "@effect/vitest"
import type { FaultyUpstream, Reaction } from "@trigate/testing/FaultyUpstream"
import { faultyUpstream, idIn } from "@trigate/testing/FaultyUpstream"
import { post } from "@trigate/testing/Gateway"
import { inTurn, reset, say } from "@trigate/testing/Reactions"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Net from "node:net"
import * as RawHttp from "../rawHttp.ts"
import { askedOf, gatewayOver } from "./faultyGateway.ts"
import { evm, hashOf, layer2, receiptQuestion, result, storageQuestion } from "./routes.ts"

const herd = 50
const question = receiptQuestion(hashOf(1))

const requestOf = (path: string, body: string): string =>
  `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n` +
  `content-length: ${body.length}\r\n\r\n${body}`

const countOf = (text: string, part: string): number => text.split(part).length - 1

/**
 * Asks the same `times` times on one connection, and then something else: a server reads one request after the other, so
 * who sees the last one knows that all others are there. Gives what came back, once each has its answer.
 */
const asking = (url: string, times: number, body = question) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const { hostname, port } = new URL(url)
      const socket = Net.connect({ host: hostname, port: Number(port), noDelay: true })
      const whole = Promise.withResolvers<string>()
      let text = ""
      socket.on("error", () => {})
      socket.on("data", (chunk: Buffer) => {
        text += chunk.toString("utf8")
        if (countOf(text, "HTTP/1.1 ") === times + 1 && text.endsWith("}")) whole.resolve(text)
      })
      socket.write(requestOf("/l2", body).repeat(times) + requestOf("/evm", storageQuestion()))
      return { answered: Effect.promise(() => whole.promise), leave: () => socket.resetAndDestroy() }
    }),
    ({ leave }) => Effect.sync(leave)
  )

/** A layer 2 that holds its first answer until a marker came to the node, and then reacts; the later ones at once. */
const held = Effect.fnUntraced(function*(first: Reaction, later: Reaction) {
  const waiting: Array<() => void> = []
  const upstream = yield* faultyUpstream(
    inTurn((socket, asked) => void waiting.push(() => first(socket, asked)), later)
  )
  const node = yield* faultyUpstream(say(evm.good))
  const { url } = yield* gatewayOver({ layer2: [upstream], node: [node] })
  const arrived = (markers: number): Effect.Effect<void> =>
    Effect.andThen(
      node.until(() => node.requests.length >= markers),
      upstream.until(() => waiting.length > 0)
    )
  const release = () => {
    for (const answer of waiting) answer()
  }
  return { arrived, node, release, upstream, url }
})

const html = say({ headers: [["content-type", "text/html"]], body: "<html></html>" })
const good = say(layer2.good)
const results = (text: string): number => countOf(text, `"result":null`)

describe("callers that ask the same at the same time", () => {
  it.effect(`are answered with one request, all ${herd}`, () =>
    Effect.gen(function*() {
      const { arrived, release, upstream, url } = yield* held(good, good)
      const callers = yield* asking(url, herd)
      yield* arrived(1)
      release()
      assert.strictEqual(results(yield* callers.answered), herd)
      assert.deepStrictEqual(askedOf(upstream), [1])
    }))

  it.effect("get each their own id back", () =>
    Effect.gen(function*() {
      const { arrived, release, upstream, url } = yield* held(good, good)
      const one = yield* asking(url, 1, receiptQuestion(hashOf(1), `"one"`))
      yield* arrived(1)
      const two = yield* asking(url, 1, receiptQuestion(hashOf(1), "22222222222222222222"))
      yield* arrived(2)
      release()
      assert.include(yield* one.answered, `{"jsonrpc":"2.0","id":"one","result":null}`)
      assert.include(yield* two.answered, `{"jsonrpc":"2.0","id":22222222222222222222,"result":null}`)
      assert.deepStrictEqual(askedOf(upstream), [1])
    }))

  for (const [what, first, failures] of [["a reset", reset, 0], ["HTML", html, 1]] as const) {
    it.effect(`do not all fail when the one that asked for them fails with ${what}: the others ask again, once`, () =>
      Effect.gen(function*() {
        const { arrived, release, upstream, url } = yield* held(first, good)
        const callers = yield* asking(url, herd)
        yield* arrived(1)
        release()
        assert.isAtLeast(results(yield* callers.answered), herd - failures)
        assert.deepStrictEqual(askedOf(upstream), [2])
      }))
  }

  it.effect("do not share a refusal that one of them earned: who spelled it otherwise asks for itself", () =>
    Effect.gen(function*() {
      const refused = say({
        body: ({ body }) => `{"jsonrpc":"2.0","id":${idIn(body)},"error":{"code":-32602,"message":"not in lower case"}}`
      })
      const { arrived, release, upstream, url } = yield* held(refused, good)
      const hash = hashOf(0xabc)
      const hostile = yield* asking(url, 1, receiptQuestion(`0x${hash.slice(2).toUpperCase()}`))
      yield* arrived(1)
      const honest = yield* asking(url, 3, receiptQuestion(hash))
      yield* arrived(2)
      assert.deepStrictEqual(askedOf(upstream), [1])
      release()
      assert.include(yield* hostile.answered, `"message":"not in lower case"`)
      const answers = yield* honest.answered
      assert.strictEqual(results(answers), 3)
      assert.notInclude(answers, "not in lower case")
      assert.deepStrictEqual(askedOf(upstream), [4])
    }))

  it.effect("outlive the one that asked for them: one of them asks again", () =>
    Effect.gen(function*() {
      const { arrived, release, upstream, url } = yield* held(good, good)
      const leader = yield* asking(url, 1)
      yield* arrived(1)
      const followers = yield* asking(url, herd)
      yield* arrived(2)
      leader.leave()
      yield* upstream.until(() => upstream.requests.length === 2)
      release()
      assert.strictEqual(results(yield* followers.answered), herd)
      assert.deepStrictEqual(askedOf(upstream), [2])
    }))

  it.effect("leave nothing behind when all of them leave", () =>
    Effect.gen(function*() {
      const { arrived, upstream, url } = yield* held(good, good)
      const callers = yield* asking(url, herd)
      yield* arrived(1)
      callers.leave()
      yield* upstream.until(() => upstream.open() === 0)
      assert.strictEqual((yield* post(`${url}/l2`, question)).text, layer2.expected)
      assert.deepStrictEqual(askedOf(upstream), [2])
    }))
})

describe("callers that ask what only looks the same", () => {
  /** Questions that differ in the method, the params, the chain, or who asks for it. */
  const node = "0x0123456789abcdef0123456789abcdef01234567"
  const storage = (slot: number) =>
    `{"jsonrpc":"2.0","id":1,"method":"eth_getStorageAt","params":["${node}","${hashOf(slot)}","latest"]}`
  const candles = (coin: string) =>
    `{"type":"candleSnapshot","req":{"coin":"${coin}","interval":"1h","startTime":0,"endTime":1}}`
  const groups: ReadonlyArray<readonly [what: string, asks: ReadonlyArray<readonly [path: string, body: string]>]> = [
    ["slots of storage", [["/evm", storage(1)], ["/evm", storage(2)]]],
    ["transactions", [["/l2", receiptQuestion(hashOf(1))], ["/l2", receiptQuestion(hashOf(2))]]],
    ["coins in other letter cases", [["/info", candles("kPEPE")], ["/info", candles("KPEPE")]]],
    ["prices", [
      ["/evm", `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`],
      ["/evm", `{"jsonrpc":"2.0","id":1,"method":"eth_bigBlockGasPrice","params":[]}`]
    ]]
  ]
  for (const [what, asks] of groups) {
    it.effect(`are asked for one by one: ${what}`, () =>
      Effect.gen(function*() {
        const pending: Array<() => void> = []
        const answers: FaultyUpstream = yield* faultyUpstream((socket, asked) => {
          const body = asked.path.endsWith("/info") ? () => "[]" : result("null")
          pending.push(() => say({ body })(socket, asked))
        })
        const { url } = yield* gatewayOver({ api: [answers], node: [answers], layer2: [answers] })
        const fibers = yield* Effect.forEach(asks, ([path, body]) =>
          Effect.forkChild(
            RawHttp.exchange(url, [
              RawHttp.headOf("POST", path, [["content-type", "application/json"], [
                "content-length",
                `${body.length}`
              ]]),
              body
            ]),
            { startImmediately: true }
          ))
        yield* answers.until(() => answers.requests.length === asks.length)
        for (const answer of pending) answer()
        for (const fiber of fibers) assert.strictEqual((yield* Fiber.join(fiber)).status, 200)
        assert.deepStrictEqual(askedOf(answers), [asks.length])
      }))
  }

  it.effect("are not answered from what was not there a moment ago", () =>
    Effect.gen(function*() {
      const receipts = [result("null"), result("null"), result(`{"status":"0x1"}`)] as const
      const only = yield* faultyUpstream(
        inTurn(say({ body: receipts[0] }), say({ body: receipts[1] }), say({ body: receipts[2] }))
      )
      const { url } = yield* gatewayOver({ layer2: [only] })
      const ask = post(`${url}/l2`, question)
      assert.strictEqual((yield* ask).text, layer2.expected)
      assert.strictEqual((yield* ask).text, layer2.expected)
      assert.strictEqual((yield* ask).text, `{"jsonrpc":"2.0","id":1,"result":{"status":"0x1"}}`)
      assert.deepStrictEqual(askedOf(only), [3])
    }))
})
