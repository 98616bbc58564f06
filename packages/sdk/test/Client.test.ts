/** The client with promises, over a gateway with its sandbox. */
import { assert, describe, it } from "@effect/vitest"
import { trader } from "@trigate/domain/unstable/Sandbox"
import { createClient, isError } from "@trigate/sdk"
import type { ClientError, SigningClient } from "@trigate/sdk"
import { gateway, post } from "@trigate/testing/Gateway"
import * as Effect from "effect/Effect"
import { createServer } from "node:http"

const limit = { coin: "ETH", side: "buy", sizeInBase: "0.2", priceInQuote: "1100.5" } as const
const market = { coin: "ETH", side: "buy", sizeInBase: "0.05" } as const

/** Runs a program over a new sandbox. */
const withClient = (program: (trigate: SigningClient, url: string) => Promise<void>) =>
  Effect.gen(function*() {
    const { url } = yield* gateway({})
    const { privateKey } = trader
    const client = yield* Effect.acquireRelease(
      Effect.sync(() => createClient({ baseUrl: url, privateKey })),
      (client) => Effect.promise(client.close)
    )
    yield* Effect.promise(() => program(client, url))
  })

/** Returns the error with which a promise rejects. */
const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(() => undefined, (error: unknown) => error)

const setFaults = (url: string, faults: { readonly [name: string]: number }) =>
  Effect.runPromise(post(`${url}/admin/sandbox/faults`, JSON.stringify(faults)))

const startLine = (error: unknown): ReadonlyArray<string> =>
  error instanceof Error ? (error.stack ?? "").split("\n").map((line) => line.trim()) : []

describe("orders", () => {
  it.live("are signed for the gateway's network, placed, streamed and cancelled", () =>
    withClient(async (trigate) => {
      assert.strictEqual(trigate.address, trader.address)
      const user = await trigate.orders.account()
      assert.strictEqual(user, trader.address)
      const resting = await trigate.orders.place(limit)
      assert.deepStrictEqual([resting._tag, resting.settledBy], ["Resting", "response"])
      assert(resting._tag === "Resting")
      assert.deepStrictEqual((await trigate.info.openOrders({ user })).map(({ oid }) => oid), [resting.oid])
      assert.strictEqual((await trigate.orders.cancel({ coin: "ETH", oid: resting.oid }))._tag, "Done")
      const filled = await trigate.orders.place(market)
      assert(filled._tag === "Filled")
      for await (const { fills } of trigate.streams.userFills({ user })) {
        assert.deepStrictEqual(fills.map(({ coin, oid, sz }) => [coin, oid, sz]), [["ETH", filled.oid, "0.05"]])
        break
      }
      const { entries } = await trigate.orders.placeAll([limit, { ...limit, sizeInBase: "0.001" }])
      assert.deepStrictEqual(entries.map(({ _tag }) => _tag), ["Resting", "Rejected"])
      const leverage = await trigate.orders.send({ type: "updateLeverage", asset: 1, isCross: true, leverage: 5 })
      assert.deepStrictEqual(leverage.entries, [{ _tag: "Done" }])
    }))

  it.live("of a lost reply have the outcome that the venue's state shows", () =>
    withClient(async (trigate, url) => {
      await setFaults(url, { lostReplies: 1 })
      const placed = await trigate.orders.place(market)
      assert.deepStrictEqual([placed._tag, placed.settledBy], ["Filled", "venueState"])
      const error = await rejection(trigate.orders.cancel({ coin: "ETH", oid: 1 }, { wait: 0 }))
      assert(isError(error, "StillUnknown"))
      assert.strictEqual(error.signer, trader.address)
      assert.isFalse(isError(error, "ActionRejected"))
    }))

  it.live("of a lost request are sent again, byte for byte", () =>
    withClient(async (trigate, url) => {
      await setFaults(url, { lostRequests: 1 })
      const placing = trigate.orders.place(market, { wait: "1 second" })
      while ((await trigate.admin.actions()).length === 0);
      await setFaults(url, { lostRequests: 0 })
      const placed = await placing
      assert.deepStrictEqual([placed._tag, placed.settledBy], ["Filled", "resend"])
    }))
})

describe("errors", () => {
  it.live("are instances of Error with a tag, and name the call and the program's line", () =>
    withClient(async (trigate) => {
      const error = await rejection(trigate.info.candleSnapshot({ coin: "ETHX", interval: "1d", startTime: 0 }))
      assert(isError(error, "UnknownAsset"))
      assert.strictEqual(error.coin, "ETHX")
      const [first, second, third] = startLine(error)
      assert.deepStrictEqual([first, second], [`UnknownAsset: ${error.message}`, "at trigate.info.candleSnapshot"])
      assert.include(third, "Client.test.ts")

      const refused = await rejection(trigate.orders.place({ ...limit, sizeInBase: "0.001" }))
      assert(isError(refused, "ActionRejected"))
      assert.strictEqual(refused.reason, "MinimumNotional")
      assert.strictEqual(startLine(refused)[1], "at trigate.orders.place")

      const invalid = await rejection(trigate.evm.getStorageAt({ address: "0x1", slot: "0x2" }))
      assert(isError(invalid, "InvalidRequest"))

      const streamed = await rejection(trigate.streams.trades({ coin: "ETHX" })[Symbol.asyncIterator]().next())
      assert(isError(streamed, "SubscriptionRefused"))
      assert.strictEqual(startLine(streamed)[1], "at trigate.streams.trades")
    }))

  it("are thrown at once for a malformed key", () => {
    const thrown = (): unknown => {
      try {
        return createClient({ baseUrl: "http://localhost:1", privateKey: "0x1" })
      } catch (error) {
        return error
      }
    }
    assert.isTrue(isError(thrown(), "InvalidPrivateKey"))
  })

  it.live("name a gateway that does not respond", () =>
    Effect.promise(async () => {
      const trigate = createClient({ baseUrl: "http://127.0.0.1:9", privateKey: trader.privateKey })
      const placed = await rejection(trigate.orders.place(market))
      assert(isError(placed, "NotSent"))
      assert.strictEqual(placed.reason._tag, "UpstreamUnavailable")
      const error = await rejection(trigate.info.allMids())
      const tags: ReadonlyArray<ClientError["_tag"]> = ["UpstreamUnavailable"]
      assert.isTrue(tags.some((tag) => isError(error, tag)))
    }))
})

it.live("a gateway that does not respond in time leaves the outcome of an action open, and no other", () =>
  Effect.gen(function*() {
    const server = yield* Effect.acquireRelease(
      Effect.sync(() => createServer(() => {})),
      (server) => Effect.sync(() => server.closeAllConnections())
    )
    yield* Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void)))
    const address = server.address()
    assert(typeof address === "object" && address !== null)
    const client = createClient({ baseUrl: `http://127.0.0.1:${address.port}`, timeout: 20 })
    yield* Effect.promise(async () => {
      assert.isTrue(isError(await rejection(client.info.allMids()), "UpstreamUnavailable"))
      const signature = { r: "0x1", s: "0x2", v: 27 } as const
      const action = { type: "noop" } as const
      assert.isTrue(isError(await rejection(client.exchange.submit({ action, nonce: 1, signature })), "OutcomeUnknown"))
    })
  }))

it.live("close ends the streams", () =>
  withClient(async (trigate) => {
    let seen = 0
    for await (const _ of trigate.streams.allMids({})) {
      seen += 1
      await trigate.close()
    }
    assert.isAbove(seen, 0)
  }))
