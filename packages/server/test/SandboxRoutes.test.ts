/** The routes that control the sandbox of a gateway, through the typed client and through plain requests. */
import { assert, describe, it } from "@effect/vitest"
import * as Connection from "@trigate/client/Connection"
import * as Sandbox from "@trigate/client/Sandbox"
import { unwrapReason } from "@trigate/domain/errors/GatewayError"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { gateway, get, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import { liveGateway } from "./liveGateway.ts"

const user = keys.stranger.address

const over = (baseUrl: string) => Layer.provide(Connection.layer({ baseUrl }), FetchHttpClient.layer)

describe("the control of a served sandbox", () => {
  it.live("moves its clock and prices, gives money, copies it, and puts it back", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({ TRIGATE_SANDBOX_SEED: "monday", TRIGATE_SANDBOX_REJECTED_LEGS: "0.5" })
      const info = (query: object) => Effect.map(post(`${url}/info`, JSON.stringify(query)), ({ json }) => json)
      const markOf = (coin: string) =>
        Effect.map(info({ type: "activeAssetData", user, coin }), (data) => JsonParts.at(data, "markPx"))
      const worthOf = Effect.map(
        info({ type: "clearinghouseState", user }),
        (state) => JsonParts.at(state, "marginSummary", "accountValue")
      )
      yield* Effect.gen(function*() {
        const first = yield* Sandbox.status()
        assert.deepStrictEqual([first.seed, first.faults, first.snapshots], [
          "monday",
          { latency: 0, lostReplies: 0, lostRequests: 0, rateLimited: 0, rejectedLegs: 0.5, droppedSockets: 0 },
          []
        ])
        assert.deepStrictEqual(yield* Sandbox.startBots({ bots: 100 }), {
          bots: 100,
          queries: 1000,
          requests: 10,
          weightWithout: 9200,
          weight: 92,
          weightPerMinute: 1200
        })
        assert.deepStrictEqual((yield* Sandbox.cutSockets({ downFor: 0 })).faults, first.faults)
        const later = yield* Sandbox.advance({ advance: 600_000 })
        assert.isAtLeast(later.time - first.time, 600_000)
        yield* Sandbox.setPrices({ coin: "BTC", points: [{ time: 0, price: 60_000 }] })
        assert.strictEqual(yield* markOf("BTC"), "60000.0")
        yield* Sandbox.setBook({ coin: "BTC", book: { bids: [{ px: "59990", sz: "0.1" }], asks: [] } })
        const levels = Effect.map(info({ type: "l2Book", coin: "BTC" }), (book) => JsonParts.at(book, "levels"))
        assert.deepStrictEqual(yield* levels, [[{ px: "59990.0", sz: "0.1", n: 1 }], []])
        yield* Sandbox.setBook({ coin: "BTC", book: null })
        assert.isString(JsonParts.at(yield* levels, 1, 19, "px"))
        yield* Sandbox.endow({ user, usd: "250.5" })
        assert.strictEqual(yield* worthOf, "250.5")
        yield* Sandbox.endow({ user, spot: [{ token: "HYPE", amount: "2" }, { token: 150, amount: "0.5" }] })
        const spotState = yield* info({ type: "spotClearinghouseState", user })
        assert.deepStrictEqual(JsonParts.at(spotState, "balances", 0, "total"), "2.5")
        yield* Sandbox.endow({ user, requestLimit: 3 })
        assert.strictEqual(JsonParts.at(yield* info({ type: "userRateLimit", user }), "nRequestsCap"), 3)
        const { snapshots: [id = ""] } = yield* Sandbox.snapshot()
        yield* Sandbox.endow({ user, usd: "1", positions: [{ coin: "BTC", size: "-0.001" }] })
        yield* Sandbox.setPrices({ coin: "BTC", points: [{ time: 0, price: 50_000 }] })
        assert.strictEqual(yield* worthOf, "261.5")
        yield* Sandbox.reset({ snapshot: id })
        assert.deepStrictEqual([yield* worthOf, yield* markOf("BTC")], ["250.5", "60000.0"])
        yield* Sandbox.reset({})
        assert.strictEqual(yield* worthOf, "0.0")
        assert.notStrictEqual(yield* markOf("BTC"), "60000.0")
        for (let more = 0; more < 8; more++) yield* Sandbox.snapshot()
        const { snapshots } = yield* Sandbox.setFaults({ rateLimited: 1 })
        assert.deepStrictEqual(snapshots, ["2", "3", "4", "5", "6", "7", "8", "9"])
        assert.strictEqual((yield* post(`${url}/info`, `{"type":"allMids"}`)).status, 429)
        const { faults } = yield* Sandbox.setFaults({ rateLimited: 0 })
        assert.deepStrictEqual([faults.rateLimited, faults.rejectedLegs], [0, 0.5])
        assert.strictEqual((yield* post(`${url}/info`, `{"type":"allMids"}`)).status, 200)
        const gone = yield* Effect.flip(Sandbox.reset({ snapshot: id }))
        assert.strictEqual(unwrapReason(gone)._tag, "InvalidRequest")
      }).pipe(Effect.provide(over(url)))
    }))

  it.live("refuses foreign pages and what is out of range, and changes nothing", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const control = (path: string, body: object, headers: { readonly [name: string]: string } = {}) =>
        Effect.map(post(`${url}/admin/sandbox/${path}`, JSON.stringify(body), headers), ({ status }) => status)
      const origin = { origin: "https://foreign.example" }
      assert.strictEqual(yield* control("faults", { rateLimited: 1 }, origin), 403)
      assert.strictEqual(yield* control("clock", { advance: 1000 }, origin), 403)
      assert.strictEqual((yield* get(`${url}/admin/sandbox`, origin)).status, 403)
      assert.strictEqual(yield* control("faults", { rateLimited: 1.5 }), 400)
      assert.strictEqual(yield* control("clock", { advance: 32 * 86_400_000 }), 400)
      assert.strictEqual(yield* control("prices", { coin: "NOSUCH", points: [{ time: 0, price: 1 }] }), 400)
      assert.strictEqual(
        yield* control("prices", { coin: "BTC", points: [{ time: 5, price: 1 }, { time: 5, price: 2 }] }),
        400
      )
      const faultsOf = (path: string, body: object) =>
        Effect.map(
          post(`${url}/admin/sandbox/${path}`, JSON.stringify(body)),
          ({ json, status }) => [status, JsonParts.at(json, "detail")]
        )
      assert.deepStrictEqual(yield* faultsOf("accounts", { user: "0x1" }), [
        400,
        "user: Expected a 20-byte address in 0x hex"
      ])
      assert.deepStrictEqual(yield* faultsOf("faults", { lostReply: 1 }), [400, "lostReply: Unknown member"])
      const book = { bids: [{ px: "59990.55", sz: "0.1" }], asks: [] }
      assert.deepStrictEqual(yield* faultsOf("books", { coin: "BTC", book }), [
        400,
        "book.bids.0.px: Expected at most 5 significant digits and 1 decimals, as in an order"
      ])
      assert.deepStrictEqual(yield* faultsOf("books", { coin: "NOSUCH", book }), [
        400,
        "coin: The sandbox does not list NOSUCH"
      ])
      const given = (members: object) => faultsOf("accounts", { user, usd: "5", ...members })
      assert.deepStrictEqual(yield* given({ usd: "-5" }), [
        400,
        "usd: Expected an amount of at least 0 with at most 6 decimals"
      ])
      assert.deepStrictEqual(yield* given({ spot: [{ token: 99_999, amount: "1" }] }), [
        400,
        "spot.0.token: The sandbox lists no token 99999"
      ])
      assert.deepStrictEqual(yield* given({ spot: [{ token: "NOSUCH", amount: "1" }] }), [
        400,
        "spot.0.token: The sandbox lists no token NOSUCH"
      ])
      assert.deepStrictEqual(yield* given({ positions: [{ coin: "NOSUCH", size: "1" }] }), [
        400,
        "positions.0.coin: The sandbox lists no perpetual NOSUCH"
      ])
      assert.deepStrictEqual(yield* given({ positions: [{ coin: "ETH", size: "1.00001" }] }), [
        400,
        "positions.0.size: Expected a size with at most 4 decimals"
      ])
      assert.deepStrictEqual(yield* given({ positions: [{ coin: "ETH", size: "1", entryPx: "1.23456789" }] }), [
        400,
        "positions.0.entryPx: Expected at most 5 significant digits and 2 decimals, as in an order"
      ])
      const state = yield* post(`${url}/info`, JSON.stringify({ type: "clearinghouseState", user }))
      assert.strictEqual(JsonParts.at(state.json, "marginSummary", "accountValue"), "0.0")
      const { json } = yield* get(`${url}/admin/sandbox`)
      assert.strictEqual(JsonParts.at(json, "faults", "rateLimited"), 0)
    }))

  it.live("is on the admin listener alone where there is one, and nowhere where the chains are live", () =>
    Effect.gen(function*() {
      const apart = yield* gateway({ TRIGATE_ADMIN_PORT: "0" })
      assert.strictEqual((yield* get(`${apart.url}/admin/sandbox`)).status, 404)
      assert.strictEqual((yield* get(`${apart.adminUrl}/admin/sandbox`)).status, 200)
      const live = yield* liveGateway({})
      assert.strictEqual((yield* get(`${live.adminUrl}/admin/requests`)).status, 200)
      assert.strictEqual((yield* get(`${live.adminUrl}/admin/sandbox`)).status, 404)
      assert.strictEqual((yield* post(`${live.adminUrl}/admin/sandbox/faults`, "{}")).status, 404)
    }))
})
