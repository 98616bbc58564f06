import { assert, describe, it } from "@effect/vitest"
import type { Reaction } from "@trigate/testing/FaultyUpstream"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import { get, post } from "@trigate/testing/Gateway"
import { at } from "@trigate/testing/JsonParts"
import { hangUp, reset, say, sayHalf, silence } from "@trigate/testing/Reactions"
import { isExhaustive, samplePairs } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { bigBlocks, bodyOf } from "../bodies.ts"
import { askedOf, gatewayOver, isAsked } from "./faultyGateway.ts"
import { assertFailure, assertGood, evm, hashOf, info, layer2, receiptQuestion, result, tokenRpc } from "./routes.ts"
import type { Route } from "./routes.ts"
import { deadline, endsAfter, firstShare } from "./time.ts"

const ok = `{"status":"ok","response":{"type":"default"}}`
const page = { headers: [["content-type", "text/html"]], body: "<html></html>" } as const
const sound = say({ body: result(`"0x1"`) })
const full = { status: 429, headers: [["retry-after", "3600"]], body: `{"error":"slow down"}` } as const

/** What makes an address suspicious. */
const faults: ReadonlyArray<readonly [what: string, react: (route: Route) => Reaction]> = [
  ["resets", () => reset],
  ["ends", () => hangUp],
  ["half bodies", (route) => sayHalf(route.good, reset)],
  ["502s in HTML", () => say({ status: 502, ...page })],
  ["503s without a body", () => say({ status: 503, body: "" })]
]

/** What a caller may have asked for, and so says nothing about the address. */
const answers: ReadonlyArray<readonly [what: string, react: Reaction]> = [
  ["500s", say({ status: 500, body: `{"error":"internal"}` })],
  ["503s of its own", say({ status: 503, body: `{"error":"busy"}` })],
  ["HTML", say(page)],
  ["cut JSON", say({ body: `{"a":` })],
  ["429s", say(full)]
]

/** Asks the same of a gateway so many times, one after the other. */
const repeatedly = (route: Route, url: string, times: number) =>
  Effect.gen(function*() {
    for (let round = 0; round < times; round++) assertGood(route, yield* route.ask(url))
  })

/** Asks for so many receipts at the same time, all different. */
const together = (url: string, times: number, from: number) =>
  Effect.forEach(
    Array.from({ length: times }, (_, index) => hashOf(from + index)),
    (hash) => post(`${url}/l2`, receiptQuestion(hash)),
    { concurrency: "unbounded" }
  )

/** The sum of the samples of `/metrics` whose line holds all of some texts. */
const sample = (url: string, ...texts: ReadonlyArray<string>) =>
  Effect.map(get(`${url}/metrics`), ({ text }) =>
    text.split("\n")
      .filter((line) => texts.every((each) => line.includes(each)))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0))

const ejected = (url: string, { label }: Route, address: number) =>
  sample(url, "trigate_upstream_ejected{", `upstream="${label}"`, `address="${address}"`)

/** Waits until the first address of an upstream is ejected (1), or is not any more (0). */
const untilEjected = (url: string, route: Route, value: 0 | 1) =>
  Effect.repeat(ejected(url, route, 0), { until: (found) => found === value })

/** Asks one time after the other until an address is ejected. */
const askUntilEjected = (url: string, route: Route, address: number) =>
  Effect.repeat(Effect.andThen(route.ask(url), ejected(url, route, address)), { until: (found) => found === 1 })

/** How many probes of an upstream have ended. */
const probesOf = (url: string, { label }: Route) =>
  sample(url, "trigate_upstream_calls_total{", `upstream="${label}"`, `operation="probe"`)

const ejectionsOf = (url: string, { label }: Route) =>
  sample(url, "trigate_upstream_ejections_total{", `upstream="${label}"`)

/** Two addresses: the first fails every call and probe as told, the second answers. */
const pair = Effect.fnUntraced(function*(route: Route, react: Reaction, reactToProbe: Reaction = reset) {
  const first = yield* faultyUpstream(react)
  first.reactToProbe = reactToProbe
  const second = yield* faultyUpstream(say(route.good))
  const { url } = yield* gatewayOver({ [route.kind]: [first, second] })
  return { first, second, url }
})

describe("an address that fails again and again", () => {
  const routes = [info, evm, layer2, tokenRpc]
  const faultsOn = samplePairs("faults that eject an address", routes, faults)
  for (const route of routes) {
    for (const [what, react] of faultsOn(route)) {
      it.effect(`is ejected after five failures and a failed probe, and comes back: ${route.name}, ${what}`, () =>
        Effect.gen(function*() {
          const { first, second, url } = yield* pair(route, react(route))
          yield* repeatedly(route, url, 5)
          assert.deepStrictEqual(askedOf(first, second), [5, 5])
          yield* untilEjected(url, route, 1)
          yield* repeatedly(route, url, 5)
          assert.deepStrictEqual(askedOf(first, second), [5, 10])
          first.react = say(route.good)
          first.reactToProbe = sound
          yield* TestClock.adjust("1 second")
          yield* untilEjected(url, route, 0)
          yield* repeatedly(route, url, 2)
          assert.deepStrictEqual(askedOf(first, second), [7, 10])
        }))
    }
  }

  it.effect("is ejected after five answers to cheap calls that did not come in time", () =>
    Effect.gen(function*() {
      const { first, second, url } = yield* pair(layer2, silence)
      for (let round = 1; round <= 5; round++) {
        assertGood(layer2, yield* endsAfter(firstShare, layer2.ask(url), isAsked(first, round)))
      }
      yield* untilEjected(url, layer2, 1)
      yield* repeatedly(layer2, url, 3)
      assert.deepStrictEqual(askedOf(first, second), [5, 8])
    }))

  it.effect("stays while failures and answers take turns", () =>
    Effect.gen(function*() {
      let count = 0
      const { first, second, url } = yield* pair(layer2, (socket, one) => {
        count += 1
        if (count % 5 === 0) say(layer2.good)(socket, one)
        else reset(socket, one)
      })
      yield* repeatedly(layer2, url, 1)
      const before = yield* probesOf(url, layer2)
      yield* repeatedly(layer2, url, 11)
      assert.deepStrictEqual(askedOf(first, second), [12, 10])
      assert.strictEqual((yield* probesOf(url, layer2)) - before, 0)
    }))

  it.effect("stays while it answers its probes, one for every five failures", () =>
    Effect.gen(function*() {
      const { first, second, url } = yield* pair(layer2, reset, sound)
      yield* repeatedly(layer2, url, 1)
      const before = yield* probesOf(url, layer2)
      yield* repeatedly(layer2, url, 4)
      yield* Effect.repeat(probesOf(url, layer2), { until: (count) => count === before + 1 })
      yield* repeatedly(layer2, url, 5)
      yield* Effect.repeat(probesOf(url, layer2), { until: (count) => count === before + 2 })
      assert.deepStrictEqual(askedOf(first, second), [10, 10])
      assert.strictEqual(yield* ejected(url, layer2, 0), 0)
    }))

  it.effect("is probed when its time is over, whatever is asked meanwhile; each failure doubles the time", () =>
    Effect.gen(function*() {
      const { first, second, url } = yield* pair(layer2, reset)
      yield* repeatedly(layer2, url, 5)
      yield* untilEjected(url, layer2, 1)
      const before = yield* probesOf(url, layer2)
      let from = 1000
      for (const [index, seconds] of [1, 2, 4, 8, 10, 10].entries()) {
        yield* TestClock.adjust(seconds * 1000 - 1)
        const said = yield* together(url, 20, from += 100)
        assert.deepStrictEqual(new Set(said.map(({ text }) => text)), new Set([layer2.expected]))
        assert.strictEqual((yield* probesOf(url, layer2)) - before, index, `before ${seconds} s are over`)
        yield* TestClock.adjust(1)
        yield* Effect.repeat(probesOf(url, layer2), { until: (count) => count === before + index + 1 })
      }
      assert.deepStrictEqual(askedOf(first, second), [5, 5 + 6 * 20])
    }))

  it.effect("is asked all the same when the other half fails too", () =>
    Effect.gen(function*() {
      const { first, second, url } = yield* pair(layer2, reset)
      second.react = reset
      second.reactToProbe = reset
      yield* askUntilEjected(url, layer2, 0)
      yield* askUntilEjected(url, layer2, 1)
      const before = first.requests.length + second.requests.length
      first.react = say(layer2.good)
      second.react = say(layer2.good)
      assertGood(layer2, yield* layer2.ask(url))
      assert.strictEqual(first.requests.length + second.requests.length, before + 1)
    }))

  it.effect("fails calls at once where it is the only one, and serves again after its probe", () =>
    Effect.gen(function*() {
      const only = yield* faultyUpstream(reset)
      only.reactToProbe = reset
      const { url } = yield* gatewayOver({ layer2: [only] })
      yield* askUntilEjected(url, layer2, 0)
      const before = only.requests.length
      for (let round = 0; round < 5; round++) {
        const error = assertFailure("json-rpc", yield* layer2.ask(url), "UpstreamUnavailable")
        assert.strictEqual(at(error, "attempts"), 0)
        assert.strictEqual(at(error, "retryAfter"), 1)
      }
      assert.strictEqual(only.requests.length, before)
      only.react = say(layer2.good)
      only.reactToProbe = sound
      yield* TestClock.adjust("1 second")
      yield* untilEjected(url, layer2, 0)
      assertGood(layer2, yield* layer2.ask(url))
      assert.strictEqual(only.requests.length, before + 1)
    }))

  it.effect("still gets actions where it is the only one, each once", () =>
    Effect.gen(function*() {
      const only = yield* faultyUpstream(reset)
      only.reactToProbe = reset
      const { url } = yield* gatewayOver({ api: [only] })
      yield* askUntilEjected(url, info, 0)
      const before = only.requests.length
      only.react = say({ body: ok })
      for (let nonce = 0; nonce < 8; nonce++) {
        assert.strictEqual((yield* post(`${url}/exchange`, bodyOf(nonce, bigBlocks))).text, ok)
      }
      assert.strictEqual(only.requests.length, before + 8)
    }))

  it.effect("gets no action where another address is not ejected", () =>
    Effect.gen(function*() {
      const { first, second, url } = yield* pair(info, reset)
      yield* repeatedly(info, url, 5)
      yield* untilEjected(url, info, 1)
      second.react = say({ body: ok })
      assert.strictEqual((yield* post(`${url}/exchange`, bodyOf(1, bigBlocks))).text, ok)
      assert.deepStrictEqual(askedOf(first, second), [5, 6])
    }))
})

describe("what callers ask", () => {
  const logsQuestion = (from: number): string =>
    `{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x${from.toString(16)}"}]}`

  /** Runs callers that ask what goes wrong, each so many times, beside a victim; tells what the victim got. */
  const attack = Effect.fnUntraced(function*(options: {
    readonly clients: number
    readonly times: number
    readonly bad: (client: number, time: number) => Effect.Effect<unknown>
    readonly victim: (time: number) => Effect.Effect<{ readonly status: number; readonly text: string }>
  }) {
    const attackers = Effect.forEach(
      Array.from({ length: options.clients }, (_, client) => client),
      (client) =>
        Effect.forEach(Array.from({ length: options.times }), (_, time) => options.bad(client, time), {
          discard: true
        }),
      { concurrency: "unbounded", discard: true }
    )
    const victim = Effect.forEach(Array.from({ length: 60 }, (_, time) => time), options.victim)
    const [, got] = yield* Effect.all([attackers, victim], { concurrency: "unbounded" })
    return got
  })

  for (const count of [1, 2]) {
    it.effect(`ejects nobody: twelve clients whose query is answered with 500, of ${count}`, () =>
      Effect.gen(function*() {
        const upstreams = yield* Effect.replicateEffect(
          faultyUpstream((socket, asked) =>
            asked.body.includes("userFills")
              ? say({ status: 500, body: `{"error":"internal"}` })(socket, asked)
              : say({ body: `{"levels":[]}` })(socket, asked)
          ),
          count
        )
        const { url } = yield* gatewayOver({ api: upstreams }, { TRIGATE_RELAY_INFO: "on" })
        const before = yield* ejectionsOf(url, info)
        const got = yield* attack({
          clients: 12,
          times: 5,
          bad: (client, time) => post(`${url}/info`, `{"type":"userFills","user":"${client}-${time}"}`),
          victim: (time) => post(`${url}/info`, `{"type":"l2Book","coin":"C${time}"}`)
        })
        assert.deepStrictEqual(
          new Set(got.map(({ status, text }) => `${status} ${text}`)),
          new Set([`200 {"levels":[]}`])
        )
        const asked = upstreams.flatMap((each) => each.requests)
        assert.strictEqual(asked.filter(({ body }) => body.includes("l2Book")).length, 60)
        assert.strictEqual((yield* ejectionsOf(url, info)) - before, 0)
        assert.deepStrictEqual(upstreams.map(({ probes }) => probes.length), upstreams.map(() => 0))
      }))
  }

  it.effect("ejects nobody: clients whose logs are longer than 16 MiB", () =>
    Effect.gen(function*() {
      // five failures in a row are suspicious
      const clients = isExhaustive ? 8 : 5
      const times = isExhaustive ? 2 : 1
      const long = Buffer.alloc(17 * 1024 * 1024, 0x20)
      const only = yield* faultyUpstream((socket, asked) =>
        asked.body.includes("eth_getLogs") ? say({ body: long })(socket, asked) : say(layer2.good)(socket, asked)
      )
      const { url } = yield* gatewayOver({ layer2: [only] })
      const before = yield* ejectionsOf(url, layer2)
      const got = yield* attack({
        clients,
        times,
        bad: (client, time) =>
          Effect.map(post(`${url}/l2`, logsQuestion(10 * client + time)), (answer) => {
            assertFailure("json-rpc", answer, "UpstreamMalformed")
          }),
        victim: (time) => post(`${url}/l2`, receiptQuestion(hashOf(time)))
      })
      assert.deepStrictEqual(new Set(got.map(({ text }) => text)), new Set([layer2.expected]))
      assert.strictEqual(only.requests.filter(({ body }) => body.includes("eth_getLogs")).length, clients * times)
      assert.strictEqual(only.requests.length, clients * times + 60)
      assert.strictEqual((yield* ejectionsOf(url, layer2)) - before, 0)
      assert.strictEqual(only.probes.length, 0)
    }))

  for (const [what, react] of answers) {
    it.effect(`ejects nobody: ${what}`, () =>
      Effect.gen(function*() {
        const { first, second, url } = yield* pair(tokenRpc, react)
        yield* repeatedly(tokenRpc, url, 10)
        // who answers 429 is left alone for a while, and is not ejected
        assert.deepStrictEqual(askedOf(first, second), [what === "429s" ? 1 : 10, 10])
        assert.strictEqual(first.probes.length, 0)
      }))
  }

  it.effect("ejects nobody: errors that are the upstream's own answers", () =>
    Effect.gen(function*() {
      const first = yield* faultyUpstream(say({ status: 422, headers: [["content-type", "text/plain"]], body: "no" }))
      const second = yield* faultyUpstream(say(info.good))
      const { url } = yield* gatewayOver({ api: [first, second] })
      for (let round = 0; round < 10; round++) assert.strictEqual((yield* info.ask(url)).status, 422)
      assert.deepStrictEqual(askedOf(first, second), [10, 0])
    }))

  it.effect("ejects nobody: a query that takes longer than its deadline", () =>
    Effect.gen(function*() {
      const only = yield* faultyUpstream((socket, asked) =>
        asked.body.includes("eth_getLogs") ? silence(socket, asked) : say(layer2.good)(socket, asked)
      )
      only.reactToProbe = reset
      const { url } = yield* gatewayOver({ layer2: [only] })
      const asking = Effect.forEach(
        Array.from({ length: 10 }, (_, index) => index),
        (index) => post(`${url}/l2`, logsQuestion(index)),
        { concurrency: "unbounded" }
      )
      const slow = yield* endsAfter(deadline, asking, isAsked(only, 10))
      for (const answer of slow) assertFailure("json-rpc", answer, "UpstreamTimeout")
      assertGood(layer2, yield* layer2.ask(url))
      assert.strictEqual(only.requests.length, 11)
      assert.strictEqual(only.probes.length, 0)
    }))

  it.effect("ejects nobody and shuts nobody out: a Retry-After of an hour from every address", () =>
    Effect.gen(function*() {
      const upstreams = yield* Effect.replicateEffect(
        faultyUpstream((socket, asked) => say(asked.body.includes("eth_getLogs") ? full : layer2.good)(socket, asked)),
        2
      )
      const { url } = yield* gatewayOver({ layer2: upstreams })
      const before = yield* ejectionsOf(url, layer2)
      for (let round = 0; round < 10; round++) {
        assertFailure("json-rpc", yield* post(`${url}/l2`, logsQuestion(round)), "UpstreamRateLimited")
        assertGood(layer2, yield* layer2.ask(url))
      }
      const receipts = upstreams.flatMap(({ requests: asked }) => asked).filter(({ body }) => body.includes("Receipt"))
      assert.strictEqual(receipts.length, 10)
      assert.strictEqual((yield* ejectionsOf(url, layer2)) - before, 0)
    }))
})
