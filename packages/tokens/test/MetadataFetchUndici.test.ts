import { assert, describe, it } from "@effect/vitest"
import * as MetadataFetchUndici from "@trigate/tokens/metadata/MetadataFetchUndici"
import { exchange, isPublic, MetadataUnavailable } from "@trigate/tokens/metadata/MetadataFetchUndici"
import { MetadataFetch } from "@trigate/tokens/TokenChain"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as References from "effect/References"
import * as TestClock from "effect/testing/TestClock"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import * as net from "node:net"

const loopback = { address: "127.0.0.1", family: 4 } as const
const published = { address: "93.184.216.34", family: 4 } as const
const uri = "https://token.example/meta.json"

/** A server on the loopback address, closed with the test; gives its port. */
const serve = (handler: http.RequestListener) =>
  Effect.acquireRelease(
    Effect.callback<http.Server>((resume) => {
      const server = http.createServer(handler)
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  ).pipe(Effect.map((server) => (server.address() as AddressInfo).port))

/** One GET of a name that no resolver knows, connecting to the loopback address. */
const get = (port: number, maxBytes = 64 * 1024) =>
  exchange({ url: new URL(`http://pinned.invalid:${port}/meta.json?v=1`), addresses: [loopback], maxBytes })

describe("one exchange", () => {
  it.live("connects to the address that was checked, and names the host", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const port = yield* serve((request, response) => {
        seen.push(request.method, request.url, request.headers.host, request.headers["accept-encoding"])
        response.end(`{"name":"N"}`)
      })
      assert.strictEqual(new TextDecoder().decode(yield* get(port)), `{"name":"N"}`)
      assert.deepStrictEqual(seen, ["GET", "/meta.json?v=1", `pinned.invalid:${port}`, "identity"])
    }))

  const redirects = [301, 302, 303, 307, 308]
  for (const status of [...redirects, 204, 404, 500]) {
    it.live(`refuses HTTP ${status} and follows nothing`, () =>
      Effect.gen(function*() {
        let requests = 0
        const port = yield* serve((_request, response) => {
          requests += 1
          response.writeHead(status, { location: `http://127.0.0.1:${port}/elsewhere` }).end()
        })
        assert.strictEqual((yield* Effect.flip(get(port))).reason, `HTTP ${status}`)
        assert.strictEqual(requests, 1)
      }))
  }

  it.live("takes as many bytes as allowed and not one more", () =>
    Effect.gen(function*() {
      const port = yield* serve((_request, response) => {
        response.write("x".repeat(1023))
        response.end("x")
      })
      assert.strictEqual((yield* get(port, 1024)).length, 1024)
      assert.strictEqual((yield* Effect.flip(get(port, 1023))).reason, "larger than 1023 bytes")
    }))

  it.live("hangs up on a server that never stops sending", () =>
    Effect.gen(function*() {
      const closed = yield* Deferred.make<void>()
      const port = yield* serve((_request, response) => {
        const more = () => {
          while (response.write("x".repeat(16_384))) { /* until the socket is full */ }
        }
        response.on("drain", more)
        response.on("close", () => Deferred.doneUnsafe(closed, Effect.void))
        more()
      })
      assert.strictEqual((yield* Effect.flip(get(port))).reason, "larger than 65536 bytes")
      yield* Deferred.await(closed)
    }))

  it.live("refuses what is compressed all the same", () =>
    Effect.gen(function*() {
      const port = yield* serve((_request, response) => {
        response.writeHead(200, { "content-encoding": "gzip" }).end("bomb")
      })
      assert.strictEqual((yield* Effect.flip(get(port))).reason, "compressed")
    }))

  it.live("hangs up when nobody waits any more", () =>
    Effect.gen(function*() {
      const asked = yield* Deferred.make<void>()
      const closed = yield* Deferred.make<void>()
      const port = yield* serve((request) => {
        Deferred.doneUnsafe(asked, Effect.void)
        request.on("close", () => Deferred.doneUnsafe(closed, Effect.void))
      })
      const fiber = yield* Effect.forkChild(get(port))
      yield* Deferred.await(asked)
      yield* Fiber.interrupt(fiber)
      yield* Deferred.await(closed)
    }))

  it.live("tells a refused connection and half a body as unavailable", () =>
    Effect.gen(function*() {
      const port = yield* serve((_request, response) => {
        response.writeHead(200, { "content-length": "100" })
        response.write("half", () => response.destroy())
      })
      assert.instanceOf(yield* Effect.flip(get(port)), MetadataUnavailable)
      assert.strictEqual((yield* Effect.flip(get(1))).reason, "ECONNREFUSED")
    }))
})

/** The guard with everything outside replaced: what names resolve to, and what the exchange answers. */
const guarded = (
  answers: {
    readonly resolve?: MetadataFetchUndici.Resolve
    readonly exchange?: MetadataFetchUndici.Parts["exchange"]
  },
  bounds: MetadataFetchUndici.Bounds = {}
) => {
  const exchanges: Array<MetadataFetchUndici.Exchange> = []
  return Effect.map(
    MetadataFetchUndici.make({
      resolve: answers.resolve ?? (() => Effect.succeed([published])),
      isPublic,
      exchange: (call) => {
        exchanges.push(call)
        return answers.exchange?.(call) ?? Effect.succeed(new TextEncoder().encode(`{"name":"N"}`))
      }
    }, bounds),
    ({ fetch }) => ({ fetch, exchanges })
  )
}

const text = (body: string) => () => Effect.succeed(new TextEncoder().encode(body))

describe("the guard", () => {
  it.effect("hands over the addresses that it checked", () =>
    Effect.gen(function*() {
      const { exchanges, fetch } = yield* guarded({})
      assert.deepStrictEqual(yield* fetch(uri), Option.some({ name: "N" }))
      assert.strictEqual(exchanges.length, 1)
      assert.deepStrictEqual(exchanges[0]?.addresses, [published])
      assert.strictEqual(exchanges[0]?.maxBytes, 65_536)
      assert.strictEqual(exchanges[0]?.url.href, uri)
    }))

  const inside = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "192.168.0.1"]
  for (const address of inside) {
    it.effect(`sends nothing to a name that resolves to ${address}, not even among public addresses`, () =>
      Effect.gen(function*() {
        const { exchanges, fetch } = yield* guarded({
          resolve: () => Effect.succeed([published, { address, family: 4 }])
        })
        assert.deepStrictEqual(yield* fetch(uri), Option.none())
        assert.deepStrictEqual(exchanges, [])
      }))
  }

  it.effect("sends nothing to a name without an address, nor for a URI that it refuses", () =>
    Effect.gen(function*() {
      const resolved: Array<string> = []
      const { exchanges, fetch } = yield* guarded({
        resolve: (hostname) =>
          Effect.sync(() => {
            resolved.push(hostname)
            return []
          })
      })
      for (const bad of [uri, "http://token.example/", "https://127.0.0.1/", "https://a@token.example/", "ipfs://x"]) {
        assert.deepStrictEqual(yield* fetch(bad), Option.none())
      }
      assert.deepStrictEqual(resolved, ["token.example"])
      assert.deepStrictEqual(exchanges, [])
    }))

  for (const body of ["not JSON", "[]", `"text"`, "null", "1", "", `{"name":`]) {
    it.effect(`has no document in ${JSON.stringify(body)}`, () =>
      Effect.gen(function*() {
        const { fetch } = yield* guarded({ exchange: text(body) })
        assert.deepStrictEqual(yield* fetch(uri), Option.none())
      }))
  }

  it.effect("has no document where the exchange itself is broken", () =>
    Effect.gen(function*() {
      const { fetch } = yield* guarded({ exchange: () => Effect.die("broken") })
      assert.deepStrictEqual(yield* fetch(uri), Option.none())
    }).pipe(Effect.provideService(References.MinimumLogLevel, "None")))

  it.effect("reads a document with a byte order mark", () =>
    Effect.gen(function*() {
      const { fetch } = yield* guarded({ exchange: text(`\uFEFF{"decimals":6}`) })
      assert.deepStrictEqual(yield* fetch(uri), Option.some({ decimals: 6 }))
    }))

  it.effect("waits three seconds for the name and the document together", () =>
    Effect.gen(function*() {
      const { fetch } = yield* guarded({
        resolve: () => Effect.delay(Effect.succeed([published]), "2 seconds"),
        exchange: () => Effect.delay(text("{}")(), "1001 millis")
      })
      const fiber = yield* Effect.forkChild(fetch(uri))
      yield* TestClock.adjust("2999 millis")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* Fiber.join(fiber), Option.none())
    }))

  it.effect("keeps a document for a day and a failure for a minute", () =>
    Effect.gen(function*() {
      let works = false
      const { exchanges, fetch } = yield* guarded({
        exchange: () => works ? text("{}")() : Effect.fail(new MetadataUnavailable({ reason: "down" }))
      })
      assert.deepStrictEqual(yield* fetch(uri), Option.none())
      works = true
      yield* TestClock.adjust("59 seconds")
      assert.deepStrictEqual(yield* fetch(uri), Option.none())
      assert.strictEqual(exchanges.length, 1)
      yield* TestClock.adjust("1 seconds")
      assert.deepStrictEqual(yield* fetch(uri), Option.some({}))
      assert.strictEqual(exchanges.length, 2)
      works = false
      yield* TestClock.adjust("23 hours")
      assert.deepStrictEqual(yield* fetch(uri), Option.some({}))
      assert.strictEqual(exchanges.length, 2)
      yield* TestClock.adjust("1 hours")
      assert.deepStrictEqual(yield* fetch(uri), Option.none())
      assert.strictEqual(exchanges.length, 3)
    }))

  it.effect("asks once for many callers at once, and forgets the oldest beyond its capacity", () =>
    Effect.gen(function*() {
      const { exchanges, fetch } = yield* guarded({}, { capacity: 2 })
      yield* Effect.all(Array.from({ length: 50 }, () => fetch(uri)), { concurrency: "unbounded" })
      assert.strictEqual(exchanges.length, 1)
      yield* fetch("https://token.example/2")
      yield* fetch("https://token.example/3")
      yield* fetch(uri)
      assert.strictEqual(exchanges.length, 4)
    }))

  it.effect("has at most sixteen documents under way", () =>
    Effect.gen(function*() {
      const { exchanges, fetch } = yield* guarded({ exchange: () => Effect.never })
      const fiber = yield* Effect.forkChild(Effect.all(
        Array.from({ length: 40 }, (_, index) => fetch(`https://token.example/${index}`)),
        { concurrency: "unbounded" }
      ))
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(exchanges.length, 16)
      yield* TestClock.adjust("1 seconds")
      assert.isTrue((yield* Fiber.join(fiber)).every(Option.isNone))
    }))

  it.effect("goes through the gateway for IPFS", () =>
    Effect.gen(function*() {
      const cid = "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG"
      const { exchanges, fetch } = yield* guarded({}, { ipfsGateway: "https://gateway.example/ipfs" })
      assert.deepStrictEqual(yield* fetch(`ipfs://${cid}/1.json`), Option.some({ name: "N" }))
      assert.strictEqual(exchanges[0]?.url.href, `https://gateway.example/ipfs/${cid}/1.json`)
    }))
})

describe("a name whose addresses change", () => {
  it.effect("is looked up once for a fetch, so that what was checked is what is connected to", () =>
    Effect.gen(function*() {
      let lookups = 0
      const connected: Array<ReadonlyArray<string>> = []
      const { fetch } = yield* Effect.sync(() => {
        const guard = MetadataFetchUndici.make({
          resolve: () => Effect.sync(() => [lookups++ === 0 ? published : loopback]),
          isPublic,
          exchange: ({ addresses }) =>
            Effect.sync(() => {
              connected.push(addresses.map(({ address }) => address))
              return new TextEncoder().encode(`{"name":"N"}`)
            })
        }, {})
        return { fetch: (path: string) => Effect.flatMap(guard, (made) => made.fetch(`https://token.example/${path}`)) }
      })
      assert.isTrue(Option.isSome(yield* fetch("one.json")))
      // the next answer of the name is a private address
      assert.isTrue(Option.isNone(yield* fetch("two.json")))
      assert.deepStrictEqual([lookups, connected], [2, [[published.address]]])
    }))
})

describe("the live layer", () => {
  it.live("does not open a connection to a private address that a name resolves to", () =>
    Effect.gen(function*() {
      let connections = 0
      const server = yield* Effect.acquireRelease(
        Effect.callback<net.Server>((resume) => {
          const listening = net.createServer(() => {
            connections += 1
          })
          listening.listen(0, "127.0.0.1", () => resume(Effect.succeed(listening)))
        }),
        (listening) => Effect.sync(() => listening.close())
      )
      assert.isTrue(server.listening)
      const resolved: Array<string> = []
      const layer = MetadataFetchUndici.layer({
        resolve: (hostname) =>
          Effect.sync(() => {
            resolved.push(hostname)
            return [loopback]
          })
      })
      const fetched = yield* MetadataFetch.use((service) => service.fetch(uri)).pipe(Effect.provide(layer))
      assert.deepStrictEqual(fetched, Option.none())
      assert.deepStrictEqual(resolved, ["token.example"])
      assert.strictEqual(connections, 0)
    }))
})
