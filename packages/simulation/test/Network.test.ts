/** The network: faults of HTTP requests, order and loss of WebSockets, and killed servers. */
import { assert, describe, it } from "@effect/vitest"
import { local } from "@trigate/domain/Caller"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import * as Network from "@trigate/simulation/Network"
import * as Simulation from "@trigate/simulation/Simulation"
import { type Connection, SocketLost } from "@trigate/upstream/streams/SocketTransport"
import type { TransportError } from "@trigate/upstream/transport/HttpTransport"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"

const run = <A, E>(program: Effect.Effect<A, E, Simulation.Simulation>, seed = 0): A => {
  const { exit } = Simulation.run(program, { seed, yields: 0.05 })
  assert(Exit.isSuccess(exit), String(exit))
  return exit.value
}

const timeout = 5000

const request = {
  owner: local,
  method: "POST",
  url: Redacted.make("http://server/path"),
  headers: {},
  body: Encoding.encode("question"),
  maxAnswerBytes: 1024,
  timeout
} as const

/** A network with a server that answers after `takes` milliseconds, a client, and a function that sends a request. */
const pair = Effect.fnUntraced(function*(options: Network.Options = {}, takes: number = 0) {
  const { node, now } = yield* Simulation.Simulation
  const network = yield* Network.make(options)
  const [client, server] = [node("client"), node("server")]
  client.start(Effect.never)
  server.start(Effect.never)
  const served = { arrivals: 0, answers: 0, interruptions: 0 }
  network.serve("http://server", {
    node: server,
    http: () =>
      Effect.suspend(() => {
        served.arrivals++
        return Effect.delay(
          Effect.sync(() => {
            served.answers++
            return { status: 200, headers: {}, body: Encoding.encode("answer") }
          }),
          takes
        )
      }).pipe(Effect.onInterrupt(() => Effect.sync(() => served.interruptions++)))
  })
  return { client, server, network, served, now, send: () => Effect.result(network.http(client).send(request)) }
})

const describeResult = (result: Result.Result<{ readonly status: number }, TransportError>): string =>
  Result.match(result, {
    onFailure: ({ detail, reason, sent }) => `${reason}, sent ${sent}: ${detail}`,
    onSuccess: ({ status }) => String(status)
  })

describe("an HTTP request", () => {
  it("arrives once and has a response, within the times of two packets and a connection", () => {
    for (let seed = 0; seed < 20; seed++) {
      run(
        Effect.gen(function*() {
          const { now, send, served } = yield* pair({ latency: [10, 20] }, 100)
          assert.strictEqual(describeResult(yield* send()), "200")
          assert.deepStrictEqual(served, { arrivals: 1, answers: 1, interruptions: 0 })
          assert.isTrue(now() >= 140 && now() <= 180, String(now()))
        }),
        seed
      )
    }
  })

  const expected: { readonly [fault in Network.HttpFault]: readonly [result: string, arrivals: number] } = {
    refused: ["Connect, sent no: ECONNREFUSED", 0],
    lost: ["Broken, sent maybe: ECONNRESET", 0],
    swallowed: ["Timeout, sent maybe: no response within 5000 ms", 0],
    unanswered: ["Broken, sent maybe: ECONNRESET", 1],
    silent: ["Timeout, sent maybe: no response within 5000 ms", 1],
    cut: ["Broken, sent maybe: ECONNRESET", 1],
    late: ["200", 1]
  }

  for (const fault of Network.httpFaults) {
    it(`with the fault "${fault}" has its error and its number of arrivals`, () => {
      const [result, arrivals] = expected[fault]
      for (let seed = 0; seed < 20; seed++) {
        run(
          Effect.gen(function*() {
            const { now, send, served } = yield* pair({ fault: () => fault, longest: 1000 })
            assert.strictEqual(describeResult(yield* send()), result, `seed ${seed}`)
            if (result.startsWith("Timeout")) assert.strictEqual(now(), timeout)
            yield* Effect.sleep("1 minute")
            assert.strictEqual(served.arrivals, arrivals)
          }),
          seed
        )
      }
    })
  }

  it("that is later than its timeout arrives nevertheless", () => {
    run(Effect.gen(function*() {
      const { send, served } = yield* pair({ fault: () => "late", longest: 1_000_000 })
      assert.strictEqual(describeResult(yield* send()), expected.swallowed[0])
      assert.strictEqual(served.arrivals, 0)
      yield* Effect.sleep("1 hour")
      assert.strictEqual(served.arrivals, 1)
    }))
  })

  it("without a connection in time was not sent", () => {
    run(Effect.gen(function*() {
      const { client, network, served } = yield* pair({ latency: [100, 100] })
      const sent = network.http(client).send({ ...request, sendWithin: 50 })
      assert.strictEqual(describeResult(yield* Effect.result(sent)), "Timeout, sent no: no response within 50 ms")
      yield* Effect.sleep("1 minute")
      assert.strictEqual(served.arrivals, 0)
    }))
  })

  it("of a client that leaves interrupts the server", () => {
    run(Effect.gen(function*() {
      const { send, served } = yield* pair({}, 1000)
      yield* Effect.timeoutOption(send(), 500)
      yield* Effect.sleep("1 minute")
      assert.deepStrictEqual(served, { arrivals: 1, answers: 0, interruptions: 1 })
    }))
  })

  it("of a client that is killed interrupts the server, and arrives if it was on its way", () => {
    run(Effect.gen(function*() {
      const { client, send, served } = yield* pair({}, 1000)
      client.start(send())
      yield* Effect.sleep(500)
      client.kill()
      yield* Effect.sleep("1 minute")
      assert.deepStrictEqual(served, { arrivals: 1, answers: 0, interruptions: 1 })
    }))
    run(Effect.gen(function*() {
      const { client, send, served } = yield* pair({ latency: [100, 100] })
      client.start(send())
      yield* Effect.sleep(250)
      client.kill()
      assert.strictEqual(served.arrivals, 0)
      yield* Effect.sleep("1 minute")
      assert.strictEqual(served.arrivals, 1)
    }))
  })

  it("to a server that is killed breaks, without an interruption in the server", () => {
    run(Effect.gen(function*() {
      const { send, served, server } = yield* pair({}, 1000)
      const sending = yield* Effect.forkChild(send())
      yield* Effect.sleep(500)
      server.kill()
      assert.strictEqual(describeResult(yield* Fiber.join(sending)), expected.unanswered[0])
      assert.deepStrictEqual(served, { arrivals: 1, answers: 0, interruptions: 0 })
      assert.strictEqual(describeResult(yield* send()), expected.refused[0])
      // the restarted process listens when it serves again
      server.start(Effect.never)
      assert.strictEqual(describeResult(yield* send()), expected.refused[0])
    }))
  })

  it("to an address that was closed, or that nobody serves, is refused", () => {
    run(Effect.gen(function*() {
      const { client, network, send } = yield* pair()
      const elsewhere = network.http(client).send({ ...request, url: Redacted.make("http://elsewhere/") })
      assert.strictEqual(describeResult(yield* Effect.result(elsewhere)), expected.refused[0])
      network.close("http://server")
      assert.strictEqual(describeResult(yield* send()), expected.refused[0])
    }))
  })
})

/** A server that accepts WebSockets, and its ends of them. */
const openSocket = Effect.fnUntraced(function*() {
  const { client, network, server } = yield* pair({ latency: [1, 100] })
  const received: Array<string> = []
  const toClient = yield* Queue.unbounded<string>()
  let isOpen = false
  network.serve("http://server", {
    node: server,
    accept: () =>
      Effect.gen(function*() {
        isOpen = true
        yield* Effect.addFinalizer(() =>
          Effect.sync(() => {
            isOpen = false
          })
        )
        return {
          receive: Effect.map(Queue.take(toClient), (text): readonly [string] => [text]),
          send: (text) => Effect.sync(() => void received.push(text))
        } satisfies Connection
      })
  })
  const connection = yield* network.sockets(client).open(Redacted.make("ws://server/ws"))
  const texts: Array<string> = []
  let lost: SocketLost | undefined
  yield* Effect.forkScoped(
    Effect.forever(Effect.map(connection.receive, (found) => void texts.push(...found))).pipe(
      Effect.catchTag("SocketLost", (error) => Effect.sync(() => lost = error))
    )
  )
  return {
    client,
    network,
    server,
    send: connection.send,
    /** Sends a text from the server. */
    push: (text: string) => Queue.offer(toClient, text),
    state: () => ({ received, texts, isOpen, lost })
  }
})

const reset = new SocketLost({ code: 1006, reason: "" })

describe("a WebSocket", () => {
  it("carries messages in order, in both directions", () => {
    for (let seed = 0; seed < 20; seed++) {
      run(
        Effect.scoped(Effect.gen(function*() {
          const { push, send, state } = yield* openSocket()
          const sent = Array.from({ length: 30 }, (_, at) => String(at))
          for (const text of sent) {
            yield* send(text)
            yield* push(text)
            yield* Effect.sleep(3)
          }
          yield* Effect.sleep(1000)
          assert.deepStrictEqual(state(), { received: sent, texts: sent, isOpen: true, lost: undefined })
        })),
        seed
      )
    }
  })

  it("that breaks ends both ends", () => {
    run(Effect.scoped(Effect.gen(function*() {
      const { network, push, send, state } = yield* openSocket()
      assert.strictEqual(network.breakSockets(0, false), 0)
      assert.strictEqual(network.breakSockets(1, false), 1)
      yield* Effect.sleep(1000)
      yield* push("late")
      assert.deepStrictEqual(yield* Effect.flip(send("late")), new SocketLost({ code: 1006, reason: "closed" }))
      yield* Effect.sleep(1000)
      assert.deepStrictEqual(state(), { received: [], texts: [], isOpen: false, lost: reset })
      assert.strictEqual(network.breakSockets(1, false), 0)
    })))
  })

  it("that becomes silent delivers nothing, and no end notices", () => {
    run(Effect.scoped(Effect.gen(function*() {
      const { network, push, send, state } = yield* openSocket()
      yield* send("heard")
      yield* push("heard")
      yield* Effect.sleep(1000)
      assert.strictEqual(network.breakSockets(1, true), 1)
      yield* send("lost")
      yield* push("lost")
      yield* Effect.sleep("1 day")
      assert.deepStrictEqual(state(), { received: ["heard"], texts: ["heard"], isOpen: true, lost: undefined })
    })))
  })

  it("of a killed server is lost for its clients, and a new one is refused", () => {
    run(Effect.scoped(Effect.gen(function*() {
      const { client, network, server, state } = yield* openSocket()
      server.kill()
      yield* Effect.sleep(1000)
      // the finalizers of the server do not run
      assert.deepStrictEqual(state(), { received: [], texts: [], isOpen: true, lost: reset })
      const refused = yield* Effect.flip(network.sockets(client).open(Redacted.make("ws://server/ws")))
      assert.deepStrictEqual(refused, new SocketLost({ code: 1006, reason: "ECONNREFUSED" }))
    })))
  })

  it("of a killed client is closed at the server", () => {
    run(Effect.scoped(Effect.gen(function*() {
      const { client, state } = yield* openSocket()
      client.kill()
      yield* Effect.sleep(1000)
      assert.isFalse(state().isOpen)
    })))
  })

  it("is closed with the scope of its client", () => {
    run(Effect.gen(function*() {
      const { state } = yield* Effect.scoped(openSocket())
      assert.isTrue(state().isOpen)
      yield* Effect.sleep(1000)
      assert.isFalse(state().isOpen)
    }))
  })
})
