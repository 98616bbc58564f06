import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import Dns from "node:dns"
import type { LookupAddress, LookupOptions } from "node:dns"
import { bigBlocks, bodyOf } from "../bodies.ts"
import { post } from "../gateway.ts"
import { askedOf, assertAtDeadline, assertWithinDeadline, gatewayOver, timed } from "./faultyGateway.ts"
import { faultyUpstream } from "./faultyUpstream.ts"
import { say } from "./reactions.ts"
import { assertFailure, assertGood, neverKept, reads } from "./routes.ts"

type Done = (error: Error | null, address: string | Array<LookupAddress>, family?: number) => void

const real = Dns.lookup

/** What names resolve to: an address, no such name, or no answer at all; others resolve as they do. */
const names = new Map<string, string>([["missing.test", "none"], ["slow.test", "silence"]])

const lookup = (name: string, options: LookupOptions, done: Done): void => {
  const found = names.get(name)
  if (name === "slow.test") return
  if (found === undefined) real(name, options, done)
  else if (found === "none") {
    done(Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: "ENOTFOUND" }), "")
  } else if (options.all === true) done(null, [{ address: found, family: 4 }])
  else done(null, found, 4)
}

const ok = `{"status":"ok","response":{"type":"default"}}`
const act = (url: string) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => post(`${url}/exchange`, bodyOf(now, bigBlocks)))

describe.concurrent("a name of an upstream", () => {
  beforeAll(() => {
    // what Node's sockets ask for addresses
    Object.assign(Dns, { lookup })
  })
  afterAll(() => {
    Object.assign(Dns, { lookup: real })
  })

  for (const [what, name] of [["does not exist", "missing.test"], ["is never resolved", "slow.test"]] as const) {
    for (const route of reads) {
      it.live(`that ${what} sends a read to the next address: ${route.name}`, () =>
        Effect.gen(function*() {
          const second = yield* faultyUpstream(say(route.good))
          const { url } = yield* gatewayOver({ [route.kind]: [`http://${name}:9`, second] })
          const { milliseconds, value } = yield* timed(route.ask(url))
          assertGood(route, value)
          assertWithinDeadline(milliseconds)
          assert.deepStrictEqual(askedOf(second), [1])
        }))

      it.live(`that ${what} fails a read within its deadline: ${route.name}`, () =>
        Effect.gen(function*() {
          const { url } = yield* gatewayOver({ [route.kind]: [`http://${name}:9`] })
          const { milliseconds, value } = yield* timed(route.ask(url))
          if (name === "slow.test") {
            assertFailure(route.protocol, value, "UpstreamTimeout")
            assertAtDeadline(milliseconds)
          } else {
            assertFailure(route.protocol, value, "UpstreamUnavailable")
            assertWithinDeadline(milliseconds)
          }
          assert.notInclude(value.text, name)
        }))
    }

    it.live(`that ${what} leaves an action certainly not sent`, () =>
      Effect.gen(function*() {
        const { url } = yield* gatewayOver({ api: [`http://${name}:9`] })
        const { milliseconds, value } = yield* timed(act(url))
        assertFailure("http", value, "UpstreamUnavailable")
        assertWithinDeadline(milliseconds)
        assert.notInclude(value.text, name)
      }))

    it.live(`that ${what} does not keep an action from the next address, which gets it once`, () =>
      Effect.gen(function*() {
        const second = yield* faultyUpstream(say({ body: ok }))
        const { url } = yield* gatewayOver({ api: [`http://${name}:9`, second] }, { TRIGATE_ONCE_DEADLINE: "2s" })
        const { milliseconds, value } = yield* timed(act(url))
        assert.strictEqual(value.text, ok)
        assert.isBelow(milliseconds, 2_000)
        assert.deepStrictEqual(askedOf(second), [1])
      }))
  }

  for (const route of neverKept) {
    it.live(`is asked for again when its address is gone: ${route.name}`, () =>
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
