import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import { post } from "@trigate/testing/Gateway"
import { say } from "@trigate/testing/Reactions"
import { sample } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import Dns from "node:dns"
import type { LookupAddress, LookupOptions } from "node:dns"
import { bigBlocks, bodyOf } from "../bodies.ts"
import { askedOf, gatewayOver } from "./faultyGateway.ts"
import { assertFailure, assertGood, jsonRpcReads, neverCached, reads } from "./routes.ts"
import { deadline, endsAfter, firstShare, isTimed, probeDeadline } from "./time.ts"

type Done = (error: Error | null, address: string | Array<LookupAddress>, family?: number) => void

const real = Dns.lookup

/** What names resolve to: an address, no such name, or no answer at all; others resolve as they do. */
const names = new Map<string, string>([["missing.test", "none"], ["slow.test", "silence"]])

const lookup = (name: string, options: LookupOptions, done: Done): void => {
  const found = names.get(name)
  if (found === "silence") return
  if (found === undefined) real(name, options, done)
  else if (found === "none") {
    done(Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: "ENOTFOUND" }), "")
  } else if (options.all === true) done(null, [{ address: found, family: 4 }])
  else done(null, found, 4)
}

const ok = `{"status":"ok","response":{"type":"default"}}`
const act = (url: string) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => post(`${url}/exchange`, bodyOf(now, bigBlocks)))

describe("a name of an upstream", () => {
  beforeAll(() => {
    // what Node's sockets ask for addresses
    Object.assign(Dns, { lookup })
  })
  afterAll(() => {
    Object.assign(Dns, { lookup: real })
  })

  /** Makes a call over a name: at once where the name does not exist, else after so much of the deadline. */
  const over = <A, E, R>(name: string, milliseconds: number, call: Effect.Effect<A, E, R>) =>
    name === "slow.test" ? endsAfter(milliseconds, call, isTimed(milliseconds)) : call

  for (const [what, name] of [["does not exist", "missing.test"], ["is never resolved", "slow.test"]] as const) {
    for (const route of sample(`routes of a name that ${what}`, reads, 3)) {
      it.effect(`that ${what} sends a read to the next address: ${route.name}`, () =>
        Effect.gen(function*() {
          const second = yield* faultyUpstream(say(route.good))
          const { url } = yield* gatewayOver({ [route.kind]: [`http://${name}:9`, second] })
          if (name === "slow.test" && jsonRpcReads.includes(route)) {
            // calls wait until each of several addresses was asked for its chain
            yield* isTimed(probeDeadline)
            yield* TestClock.adjust(probeDeadline)
          }
          assertGood(route, yield* over(name, firstShare, route.ask(url)))
          assert.deepStrictEqual(askedOf(second), [1])
          // a gateway that closes waits for its probes
          yield* TestClock.adjust(probeDeadline)
        }))

      it.effect(`that ${what} fails a read, at its deadline at the latest: ${route.name}`, () =>
        Effect.gen(function*() {
          const { url } = yield* gatewayOver({ [route.kind]: [`http://${name}:9`] })
          const value = yield* over(name, deadline, route.ask(url))
          assertFailure(route.protocol, value, name === "slow.test" ? "UpstreamTimeout" : "UpstreamUnavailable")
          assert.notInclude(value.text, name)
        }))
    }

    it.effect(`that ${what} leaves an action certainly not sent`, () =>
      Effect.gen(function*() {
        const { url } = yield* gatewayOver({ api: [`http://${name}:9`] })
        const value = yield* over(name, deadline, act(url))
        assertFailure("http", value, "UpstreamUnavailable")
        assert.notInclude(value.text, name)
      }))

    it.effect(`that ${what} does not keep an action from the next address, which gets it once`, () =>
      Effect.gen(function*() {
        const second = yield* faultyUpstream(say({ body: ok }))
        const { url } = yield* gatewayOver({ api: [`http://${name}:9`, second] })
        assert.strictEqual((yield* over(name, firstShare, act(url))).text, ok)
        assert.deepStrictEqual(askedOf(second), [1])
      }))
  }

  for (const route of neverCached) {
    it.effect(`is asked for again when its address is gone: ${route.name}`, () =>
      Effect.gen(function*() {
        const after = yield* faultyUpstream(say(route.good), { host: "127.0.0.2" })
        const { port } = after
        const name = `moving-${port}.test`
        const { url } = yield* gatewayOver({ [route.kind]: [`http://${name}:${port}`] })
        names.set(name, "127.0.0.1")
        yield* Effect.scoped(Effect.gen(function*() {
          const before = yield* faultyUpstream(say(route.good), { port })
          assertGood(route, yield* route.ask(url))
          assert.deepStrictEqual(askedOf(before, after), [1, 0])
        }))
        names.set(name, "127.0.0.2")
        assertGood(route, yield* route.ask(url))
        assert.deepStrictEqual(askedOf(after), [1])
      }))
  }
})
