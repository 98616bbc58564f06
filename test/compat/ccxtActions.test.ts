/** ccxt's signed calls against a gateway process that has a venue behind it: only the base URL is changed. */
import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { send } from "@trigate/testing/Gateway"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import type { Reply, Seen } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import { classified, client, exchangeAt } from "./ccxtVenue.ts"
import { rejection } from "./rejection.ts"
import { session } from "./session.ts"
import { taken, venue } from "./venue.ts"

const btc = "BTC/USDC:USDC"

const { trader } = keys

const resting = taken(`{"type":"order","data":{"statuses":[{"resting":{"oid":77738308}}]}}`)
const cancelled = taken(`{"type":"cancel","data":{"statuses":["success"]}}`)

const answered = ({ body }: Seen): Reply =>
  body.includes(`"type":"order"`) ? resting : body.includes(`"type":"cancel"`) ? cancelled : taken()

/** ccxt with the trader's key and loaded markets, through the gateway that is started over the venue. */
const connectedBy = Effect.fnUntraced(function*<R>(
  started: (upstream: string) => Effect.Effect<string, never, R>,
  respond: (request: Seen) => Reply
) {
  const upstream = yield* venue(respond)
  const url = yield* started(upstream.url)
  const exchange = exchangeAt(url, trader)
  const sent = () => upstream.seen.filter(({ path }) => path === "/exchange").map(({ body }) => body)
  yield* Effect.promise(() => exchange.loadMarkets())
  const ahead = sent()
  upstream.seen.length = 0
  return { upstream, url, exchange, sent, ahead }
})

const connected = (
  name: string,
  relayed: string | undefined,
  respond: (request: Seen) => Reply = answered
) =>
  connectedBy((api) =>
    session({
      name: `ccxt/${name}`,
      client,
      upstreams: { api },
      environment: relayed === undefined ? {} : { TRIGATE_RELAY_ACTIONS: relayed }
    }), respond)

type Exchange = ReturnType<typeof exchangeAt>

const order = (exchange: Exchange, params = {}) => exchange.createOrder(btc, "limit", "buy", 0.001, 60_000, params)

const typeOf = (body: string): string => String(JsonParts.value(body, "action", "type"))

describe("ccxt's signed calls", () => {
  const calls: ReadonlyArray<readonly [what: string, type: string, call: (exchange: Exchange) => Promise<unknown>]> = [
    ["an order", "order", (exchange) => order(exchange)],
    ["an order of a vault", "order", (exchange) => order(exchange, { vaultAddress: keys.multiSigUser.address })],
    ["a cancellation", "cancel", (exchange) => exchange.cancelOrder("77738308", btc)],
    ["a leverage", "updateLeverage", (exchange) => exchange.setLeverage(5, btc)],
    ["a transfer", "usdClassTransfer", (exchange) => exchange.transfer("USDC", 1.5, "spot", "swap")],
    ["a withdrawal", "withdraw3", (exchange) => exchange.withdraw("USDC", 10, keys.stranger.address)]
  ]

  it.live("are refused for good by a gateway that relays none, and nothing is sent", () =>
    Effect.gen(function*() {
      const { ahead, exchange, sent } = yield* connected("unsupported", "none")
      for (const [what, type, call] of calls) {
        const error = classified(yield* rejection(() => call(exchange)))
        assert.strictEqual(error.name, "ExchangeError", what)
        assert.include(error.message, `"_tag":"UnsupportedAction","actionType":"${type}"`, what)
      }
      assert.deepStrictEqual([ahead, sent()], [[], []])
    }))

  it.live("are sent once, as the bytes that were signed, where they are named", () =>
    Effect.gen(function*() {
      const { ahead, exchange, sent, upstream } = yield* connected(
        "named",
        "order,cancel,updateLeverage,usdClassTransfer,withdraw3"
      )
      assert.deepStrictEqual(ahead, [])
      for (const [what, type, call] of calls) {
        upstream.seen.length = 0
        yield* Effect.promise(() => call(exchange))
        assert.deepStrictEqual(sent(), [exchange.last_request_body], what)
        assert.strictEqual(typeOf(sent()[0] ?? ""), type, what)
        assert.strictEqual(exchange.last_response_headers?.["X-Trigate-Signer"], trader.address, what)
      }
    }))

  it.live("are all sent by default, what ccxt does unasked ahead of them too", () =>
    Effect.gen(function*() {
      const { ahead, exchange, sent } = yield* connected("all", undefined)
      assert.deepStrictEqual(ahead.map(typeOf).toSorted(), ["approveBuilderFee", "setReferrer"])
      const placed = yield* Effect.promise(() => order(exchange))
      assert.strictEqual(placed.id, "77738308")
      assert.deepStrictEqual(sent(), [exchange.last_request_body])
      assert.include(sent()[0], `"builder":`)
    }))

  it.live("are signed for the testnet where ccxt and the gateway are told so, and refused where only one is", () =>
    Effect.gen(function*() {
      const upstream = yield* venue(answered)
      const connect = Effect.fnUntraced(function*(network: string) {
        const url = yield* session({
          name: `ccxt/testnet-on-${network}`,
          client,
          upstreams: { api: upstream.url },
          environment: {
            TRIGATE_NETWORK: network,
            TRIGATE_RELAY_ACTIONS: "order,withdraw3",
            TRIGATE_SIGNERS: trader.address
          }
        })
        const exchange = exchangeAt(url, trader)
        // it would turn to the testnet's own address, if that were not the gateway's too
        exchange.urls = { ...exchange.urls, test: { public: url, private: url } }
        exchange.setSandboxMode(true)
        yield* Effect.promise(() => exchange.loadMarkets())
        upstream.seen.length = 0
        return exchange
      })
      const sent = () => upstream.seen.filter(({ path }) => path === "/exchange").map(({ body }) => body)
      const right = yield* connect("testnet")
      yield* Effect.promise(() => right.withdraw("USDC", 10, keys.stranger.address))
      assert.deepStrictEqual(sent(), [right.last_request_body])
      yield* Effect.promise(() => order(right))
      assert.deepStrictEqual(sent().slice(1), [right.last_request_body])
      const wrong = yield* connect("mainnet")
      const field = classified(yield* rejection(() => wrong.withdraw("USDC", 10, keys.stranger.address)))
      assert.include(field.message, `"_tag":"InvalidSignature"`)
      assert.include(field.message, `The action is for \\"Testnet\\", not for \\"Mainnet\\"`)
      const hashed = classified(yield* rejection(() => order(wrong)))
      assert.include(hashed.message, `"_tag":"InvalidSignature"`)
      assert.deepStrictEqual(sent(), [])
    }))

  it.live("are sent once only: the same bytes again are refused here", () =>
    Effect.gen(function*() {
      const { exchange, sent, url } = yield* connected("same-bytes", "order")
      yield* Effect.promise(() => order(exchange))
      const again = yield* send(`${url}/exchange`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: String(exchange.last_request_body)
      })
      assert.strictEqual(again.status, 409)
      assert.include(again.json, { _tag: "NonceAlreadyUsed", signer: trader.address })
      assert.strictEqual(sent().length, 1)
    }))

  // the two below are not recorded: a refusal that tells the time cannot be played back, nor can an answer that never came
  const unrecorded = (api: string) =>
    Effect.map(hostedGateway({ TRIGATE_TRADING_API_URL: api, TRIGATE_RELAY_ACTIONS: "order" }), ({ url }) => url)

  it.live("that are too old are refused here", () =>
    Effect.gen(function*() {
      const { exchange, sent } = yield* connectedBy(unrecorded, answered)
      exchange.incrementingNonce = () => exchange.milliseconds() - 2 * 24 * 3_600_000
      const error = classified(yield* rejection(() => order(exchange)))
      assert.strictEqual(error.name, "ExchangeError")
      assert.include(error.message, `"_tag":"NonceOutOfWindow"`)
      assert.deepStrictEqual(sent(), [])
    }))

  it.live("that end without an answer are a timeout, not a failure", () =>
    Effect.gen(function*() {
      const { exchange, sent } = yield* connectedBy(unrecorded, () => "hang-up")
      const error = classified(yield* rejection(() => order(exchange)))
      assert.strictEqual(error.name, "RequestTimeout")
      assert.include(error.message, `"_tag":"OutcomeUnknown"`)
      assert.strictEqual(sent().length, 1)
    }))

  const refusals: ReadonlyArray<readonly [what: string, reply: Reply, name: string]> = [
    ["err", { body: `{"status":"err","response":"Insufficient balance for withdrawal"}` }, "InsufficientFunds"],
    [
      "unknown-signer",
      { body: `{"status":"err","response":"User or API Wallet ${trader.address} does not exist."}` },
      "InvalidOrder"
    ],
    [
      "error-in-ok",
      taken(`{"type":"order","data":{"statuses":[{"error":"Order has invalid size."}]}}`),
      "InvalidOrder"
    ],
    ["422", { status: 422, type: "text/plain", body: "Failed to deserialize the JSON body" }, "ExchangeError"],
    ["500", { status: 500, body: "null" }, "ExchangeNotAvailable"],
    ["429", { status: 429, body: "null" }, "RateLimitExceeded"]
  ]
  for (const [what, reply, name] of refusals) {
    it.live(`refused by the venue (${what}) are of the class that they are straight from it`, () =>
      Effect.gen(function*() {
        const { exchange, sent, upstream } = yield* connected(`refused-order-${what}`, "order", () => reply)
        const through = classified(yield* rejection(() => order(exchange)))
        assert.strictEqual(through.name, name)
        assert.deepStrictEqual(sent(), [exchange.last_request_body])
        const straight = exchangeAt(upstream.url, trader)
        assert.strictEqual(classified(yield* rejection(() => order(straight))).name, name)
      }))
  }
})
