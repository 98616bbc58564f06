import { assert, describe, it } from "@effect/vitest"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import * as OutlierDetection from "@trigate/upstream/attempts/OutlierDetection"
import { HttpTransport, timedOut, TransportError } from "@trigate/upstream/transport/HttpTransport"
import * as Upstream from "@trigate/upstream/unstable/Upstream"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"

const broken = new TransportError({ sent: "maybe", reason: "Broken", detail: "ECONNRESET" })

/** Addresses that answer with a chain's id, with any other text, or not at all; what they answer can be changed. */
const nodes = (...first: ReadonlyArray<string | undefined>) => nodesOf("layer2", ...first)

const nodesOf = (label: Upstream.UpstreamLabel, ...first: ReadonlyArray<string | undefined>) => {
  const answers = [...first]
  const asked: Array<string> = []
  const upstream = Upstream.make(label, answers.map((_, index) => `http://node-${index}/SECRET-KEY`))
  const transport = Layer.succeed(
    HttpTransport,
    HttpTransport.of({
      send: ({ body, timeout, url }) =>
        Effect.suspend(() => {
          const address = Redacted.value(url)
          asked.push(`${address} ${new TextDecoder().decode(body)}`)
          const answer = answers[Number(/[0-9]+/u.exec(address)?.[0])]
          if (answer === undefined) return Effect.fail(broken)
          if (answer === "hangs") return Effect.andThen(Effect.sleep(timeout), Effect.fail(timedOut("maybe", timeout)))
          const text = answer.startsWith("0x") ? `{"jsonrpc":"2.0","id":1,"result":"${answer}"}` : answer
          return Effect.succeed({ status: 200, headers: {}, body: Utf8.encode(text) })
        })
    })
  )
  return { answers, asked, upstream, transport }
}

/** The addresses that a call would ask, after it has waited for the first comparison. */
const usable = (upstream: Upstream.Upstream, path = "") =>
  Effect.gen(function*() {
    const outliers = yield* OutlierDetection.OutlierDetection
    const targets = Upstream.targets(upstream, path)
    yield* outliers.ready(targets) ?? Effect.void
    return Arr.isReadonlyArrayNonEmpty(targets) ? outliers.choose(targets).targets.map(({ address }) => address) : []
  })

const checking =
  ({ transport, upstream }: ReturnType<typeof nodes>, options: { readonly chainId?: bigint } = {}) =>
  <A, E>(effect: Effect.Effect<A, E, OutlierDetection.OutlierDetection>) =>
    effect.pipe(
      Effect.provide(
        OutlierDetection.layer({ oneChain: [{ upstream, ...options }] }).pipe(Layer.provide(transport))
      ),
      Effect.provideService(Metric.MetricRegistry, new Map())
    )

const cases: ReadonlyArray<readonly [string, ReadonlyArray<string | undefined>, ReadonlyArray<number>]> = [
  ["two that agree, one of them with padding", ["0x3e7", "0x03E7"], [0, 1]],
  ["two that differ: the more preferred is right", ["0x1", "0x3e7"], [0]],
  ["the majority against the most preferred", ["0x1", "0x3e7", "0x3e7"], [1, 2]],
  ["a draw of four: the more preferred are right", ["0x1", "0x3e7", "0x3e7", "0x1"], [0, 3]],
  ["one that does not answer is unknown", [undefined, "0x3e7", "0x1", "0x3e7"], [0, 1, 3]],
  ["one that refuses the question is unknown", ["{\"error\":{\"code\":-32601}}", "0x3e7"], [0, 1]],
  ["one that answers no JSON is unknown", ["<html>", "0x3e7"], [0, 1]],
  ["nobody that answers: all are usable", [undefined, undefined], [0, 1]]
]

describe("the comparison of chains", () => {
  for (const [name, answers, expected] of cases) {
    const fake = nodes(...answers)
    it.effect(name, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* usable(fake.upstream), expected)
        assert.strictEqual(fake.asked.length, answers.length)
      }).pipe(checking(fake), Effect.provide(Logger.layer([]))))
  }

  it.effect("asks each address for its chain at its JSON-RPC path, and counts for its other paths", () => {
    const fake = nodesOf("trading-node", "0x1", "0x2")
    return Effect.gen(function*() {
      assert.deepStrictEqual(yield* usable(fake.upstream, "/info"), [0])
      assert.deepStrictEqual(fake.asked, [
        "http://node-0/SECRET-KEY/evm {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_chainId\",\"params\":[]}",
        "http://node-1/SECRET-KEY/evm {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_chainId\",\"params\":[]}"
      ])
    }).pipe(checking(fake), Effect.provide(Logger.layer([])))
  })

  it.effect("looks again about every minute: an address is back when it agrees, silence keeps what was known", () => {
    const fake = nodes("0x1", "0x2")
    return Effect.gen(function*() {
      assert.deepStrictEqual(yield* usable(fake.upstream), [0])
      fake.answers[1] = undefined
      yield* TestClock.adjust("72 seconds")
      assert.deepStrictEqual(yield* usable(fake.upstream), [0])
      // the right one is silent now: the other must not become the majority
      fake.answers[0] = undefined
      fake.answers[1] = "0x2"
      yield* TestClock.adjust("72 seconds")
      assert.deepStrictEqual(yield* usable(fake.upstream), [0])
      fake.answers[1] = "0x1"
      yield* TestClock.adjust("72 seconds")
      assert.deepStrictEqual(yield* usable(fake.upstream), [0, 1])
      assert.isAtLeast(fake.asked.length, 8)
      assert.isAtMost(fake.asked.length, 12)
    }).pipe(checking(fake), Effect.provide(Logger.layer([])))
  })

  it.effect("makes a call wait a fifth of a second for the first round, and no longer", () => {
    const fake = nodes("0x1", "hangs")
    return Effect.gen(function*() {
      const first = yield* Effect.forkChild(usable(fake.upstream), { startImmediately: true })
      yield* TestClock.adjust(199)
      assert.isUndefined(first.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* Fiber.join(first), [0, 1])
      // the question is given up after five seconds; then nobody waits
      yield* TestClock.adjust(4800)
      assert.deepStrictEqual(yield* usable(fake.upstream), [0, 1])
    }).pipe(checking(fake))
  })

  it.effect("does not ask a single address, and no other upstream waits", () => {
    const fake = nodes("hangs")
    const other = Upstream.make("token-chain", ["http://node-0", "http://node-1"])
    return Effect.gen(function*() {
      assert.deepStrictEqual(yield* usable(fake.upstream), [0])
      assert.deepStrictEqual(yield* usable(other), [0, 1])
      assert.deepStrictEqual(fake.asked, [])
    }).pipe(checking(fake))
  })

  it.effect("holds a single address to an expected chain", () => {
    const fake = nodes("0x1")
    return Effect.gen(function*() {
      yield* Effect.yieldNow
      assert.deepStrictEqual(yield* usable(fake.upstream), [])
      fake.answers[0] = "0x3e7"
      yield* TestClock.adjust("72 seconds")
      assert.deepStrictEqual(yield* usable(fake.upstream), [0])
    }).pipe(checking(fake, { chainId: 999n }), Effect.provide(Logger.layer([])))
  })

  it.effect("leaves wrong addresses out of the limit of ejections", () => {
    const fake = nodes("0x1", "0x2", "0x1")
    return Effect.gen(function*() {
      const outliers = yield* OutlierDetection.OutlierDetection
      const [first] = Upstream.targets(fake.upstream, "")
      assert.isDefined(first)
      outliers.defer(first, 5000)
      assert.deepStrictEqual(yield* usable(fake.upstream), [2])
    }).pipe(checking(fake), Effect.provide(Logger.layer([])))
  })

  it.effect("tells by place and id, once, in log and metrics, and names no URL", () => {
    const fake = nodes("0x1", "0x2")
    const lines: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => {
      lines.push(`${logLevel} ${String(message)}`)
    })
    return Effect.gen(function*() {
      assert.deepStrictEqual(yield* usable(fake.upstream), [0])
      yield* TestClock.adjust("72 seconds")
      fake.answers[1] = "0x1"
      yield* TestClock.adjust("72 seconds")
      assert.deepStrictEqual(lines, [
        "Warn layer2#1 reports the chain ID 2, expected 1: it receives no calls until it reports 1",
        "Info layer2#1 is on chain 1 again"
      ])
      const ejections = (yield* Metric.snapshot).flatMap((each) =>
        each.type === "Counter" && each.id === "trigate_upstream_ejections_total"
          ? [[each.attributes, each.state.count]]
          : []
      )
      assert.deepStrictEqual(ejections, [[{ upstream: "layer2", address: "1", cause: "wrong_chain" }, 1]])
    }).pipe(checking(fake), Effect.provide(Logger.layer([logger])))
  })
})
