/** `@nktkas/hyperliquid`'s actions beyond the four, through a gateway process that is told to relay them. */
import { assert, describe, it } from "@effect/vitest"
import { ApiRequestError, ExchangeClient, HttpTransport } from "@nktkas/hyperliquid"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import type { Reply } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import { privateKeyToAccount } from "viem/accounts"
import { connected, sent, statusOf } from "./hyperliquidVenue.ts"
import { rejection } from "./rejection.ts"
import { venue } from "./venue.ts"

const { stranger, trader, validator } = keys

const done = { status: "ok", response: { type: "default" } }

const order = { a: 0, b: true, p: "60000", s: "0.001", r: false, t: { limit: { tif: "Gtc" } } } as const
const cloid = "0x1234567890abcdef1234567890abcdef"
const token = "PURR:0xc1fb593aeffbeb02f85e0308e9956a90"
const destination = validator.address

/** Actions by their type: those that sign a hash, then those that sign their fields. */
const actions: ReadonlyArray<readonly [type: string, act: (by: ExchangeClient) => Promise<unknown>]> = [
  ["order", (by) => by.order({ orders: [order], grouping: "na" })],
  ["cancel", (by) => by.cancel({ cancels: [{ a: 0, o: 77_738_308 }] })],
  ["cancelByCloid", (by) => by.cancelByCloid({ cancels: [{ asset: 0, cloid }] })],
  ["modify", (by) => by.modify({ oid: 77_738_308, order: { ...order, c: cloid } })],
  ["batchModify", (by) => by.batchModify({ modifies: [{ oid: cloid, order }] })],
  ["scheduleCancel", (by) => by.scheduleCancel({ time: 1_892_000_000_000 })],
  ["updateLeverage", (by) => by.updateLeverage({ asset: 0, isCross: true, leverage: 5 })],
  ["updateIsolatedMargin", (by) => by.updateIsolatedMargin({ asset: 0, isBuy: true, ntli: -5_000_000 })],
  ["twapOrder", (by) => by.twapOrder({ twap: { a: 0, b: true, s: "1", r: false, m: 30, t: false } })],
  ["vaultTransfer", (by) => by.vaultTransfer({ vaultAddress: destination, isDeposit: true, usd: 5_000_000 })],
  ["subAccountTransfer", (by) => by.subAccountTransfer({ subAccountUser: destination, isDeposit: true, usd: 1 })],
  ["setReferrer", (by) => by.setReferrer({ code: "CODE" })],
  ["usdSend", (by) => by.usdSend({ destination, amount: "1.5" })],
  ["spotSend", (by) => by.spotSend({ destination, token, amount: "1" })],
  ["withdraw3", (by) => by.withdraw3({ destination, amount: "10" })],
  ["usdClassTransfer", (by) => by.usdClassTransfer({ amount: "1", toPerp: true })],
  [
    "sendAsset",
    (by) => by.sendAsset({ destination, sourceDex: "", destinationDex: "spot", token, amount: "1", fromSubAccount: "" })
  ],
  ["approveAgent", (by) => by.approveAgent({ agentAddress: keys.agent.address, agentName: "" })],
  ["approveBuilderFee", (by) => by.approveBuilderFee({ maxFeeRate: "0.01%", builder: destination })],
  ["cDeposit", (by) => by.cDeposit({ wei: 100_000_000 })],
  ["cWithdraw", (by) => by.cWithdraw({ wei: 100_000_000 })],
  ["stakingLinkDisableTradingUser", (by) => by.stakingLinkDisableTradingUser({ tradingUser: destination })]
]

const toEvm = {
  token: "USDC",
  amount: "1",
  sourceDex: "spot",
  destinationRecipient: destination,
  addressEncoding: "hex",
  destinationChainId: 1,
  gasLimit: 200_000,
  data: "0x"
} as const

describe("@nktkas/hyperliquid's actions", () => {
  it.live("is refused what the gateway is told not to relay, reads as well as actions", () =>
    Effect.gen(function*() {
      const { exchange, info, upstream } = yield* connected("not-relayed", {
        TRIGATE_RELAY_INFO: "off",
        TRIGATE_RELAY_ACTIONS: "none"
      })
      const read = yield* statusOf(() => info.exchangeStatus())
      assert.strictEqual(read.status, 400)
      assert.include(read.message, `"_tag":"InvalidRequest"`)
      for (const [type, act] of actions) {
        const { message, status } = yield* statusOf(() => act(exchange))
        assert.strictEqual(status, 422, type)
        assert.include(message, `"_tag":"UnsupportedAction","actionType":"${type}"`)
      }
      assert.deepStrictEqual(upstream.seen, [])
    }))

  it.live("acts by any action that is named, once and in its own bytes, and the signer of each is told", () =>
    Effect.gen(function*() {
      const { exchange, transport, upstream } = yield* connected("named-actions", {
        TRIGATE_RELAY_ACTIONS: actions.map(([type]) => type).join(","),
        // nothing is relayed here but what recovers to this address
        TRIGATE_SIGNERS: trader.address
      })
      for (const [type, act] of actions) {
        upstream.seen.length = 0
        assert.deepStrictEqual(yield* Effect.promise(() => act(exchange)), done, type)
        assert.deepStrictEqual(sent(upstream), transport.bodies.slice(-1), type)
        assert.include(sent(upstream)[0], `"type":"${type}"`)
      }
      const { message, status } = yield* statusOf(() => exchange.claimRewards())
      assert.strictEqual(status, 422)
      assert.include(message, `"actionType":"claimRewards"`)
    }))

  it.live("acts for a vault, until a moment, by default", () =>
    Effect.gen(function*() {
      const { exchange, transport, upstream } = yield* connected("all-actions", { TRIGATE_SIGNERS: trader.address })
      const opts = { vaultAddress: keys.multiSigUser.address, expiresAfter: 1_892_000_000_000 }
      yield* Effect.promise(() => exchange.order({ orders: [order], grouping: "na" }, opts))
      assert.deepStrictEqual(sent(upstream), transport.bodies)
      assert.include(sent(upstream)[0], `"vaultAddress":"${keys.multiSigUser.address}","expiresAfter":1892000000000`)
    }))

  it.live("sends to the EVM with data, where signers are listed too", () =>
    Effect.gen(function*() {
      const { exchange, transport, upstream } = yield* connected("to-evm-with-data", {
        TRIGATE_RELAY_ACTIONS: "sendToEvmWithData",
        TRIGATE_SIGNERS: trader.address
      })
      assert.deepStrictEqual(yield* Effect.promise(() => exchange.sendToEvmWithData(toEvm)), done)
      assert.deepStrictEqual(sent(upstream), transport.bodies)
    }))

  it.live("is refused a nonce that was used, and another's signature where signers are listed", () =>
    Effect.gen(function*() {
      const { exchange, transport, upstream } = yield* connected("refused-nonces", {
        TRIGATE_RELAY_ACTIONS: "order,usdSend",
        TRIGATE_SIGNERS: trader.address
      })
      yield* Effect.promise(() => exchange.usdSend({ destination, amount: "1" }))
      const again = yield* statusOf(() => transport.request("exchange", JSON.parse(transport.bodies[0] ?? "")))
      assert.strictEqual(again.status, 409)
      assert.include(again.message, `"_tag":"NonceAlreadyUsed"`)
      const other = new ExchangeClient({ transport, wallet: privateKeyToAccount(stranger.privateKey) })
      for (const [type, act] of actions.filter(([type]) => type === "order" || type === "usdSend")) {
        const foreign = yield* statusOf(() => act(other))
        assert.strictEqual(foreign.status, 403, type)
        assert.include(foreign.message, `"_tag":"SignerNotAllowed","signer":"${stranger.address}"`)
      }
      assert.strictEqual(sent(upstream).length, 1)
    }))

  // not recorded: the refusal tells the time
  it.live("is refused a nonce that is too old", () =>
    Effect.gen(function*() {
      const upstream = yield* venue()
      const { url } = yield* hostedGateway({ TRIGATE_TRADING_API_URL: upstream.url, TRIGATE_RELAY_ACTIONS: "*" })
      const late = new ExchangeClient({
        transport: new HttpTransport({ apiUrl: url }),
        wallet: privateKeyToAccount(trader.privateKey),
        nonceManager: () => Date.now() - 2 * 24 * 3_600_000
      })
      for (const [type, act] of actions.filter(([type]) => type === "order" || type === "usdSend")) {
        const { message, status } = yield* statusOf(() => act(late))
        assert.strictEqual(status, 422, type)
        assert.include(message, `"_tag":"NonceOutOfWindow"`)
      }
      assert.deepStrictEqual(upstream.seen, [])
    }))

  const answers: ReadonlyArray<readonly [what: string, reply: Reply, status: number, end: string]> = [
    ["422", { status: 422, type: "text/plain", body: "Failed to deserialize" }, 422, "Failed to deserialize"],
    ["500", { status: 500, body: "null" }, 500, "null"],
    // the venue's `null` says nothing
    ["429", { status: 429, body: "null" }, 429, `"trading-api responded with HTTP 429"}`]
  ]
  for (const [what, reply, status, end] of answers) {
    it.live(`is told the venue's ${what}, after one request`, () =>
      Effect.gen(function*() {
        const { exchange, upstream } = yield* connected(
          `action-${what}`,
          { TRIGATE_RELAY_ACTIONS: "order" },
          () => reply
        )
        const told = yield* statusOf(() => exchange.order({ orders: [order], grouping: "na" }))
        assert.strictEqual(told.status, status)
        assert.isTrue(told.message.endsWith(end), told.message)
        assert.strictEqual(sent(upstream).length, 1)
      }))
  }

  it.live("is told the venue's err, and the error of an order inside its ok", () =>
    Effect.gen(function*() {
      const bodies = [
        `{"status":"err","response":"User or API Wallet ${trader.address} does not exist."}`,
        `{"status":"ok","response":{"type":"order","data":{"statuses":[{"error":"Order has zero size."}]}}}`
      ]
      const left = [...bodies]
      const { exchange, upstream } = yield* connected("action-err", { TRIGATE_RELAY_ACTIONS: "order" }, () => ({
        body: left.shift() ?? ""
      }))
      for (const body of bodies) {
        const error = yield* rejection(() => exchange.order({ orders: [order], grouping: "na" }))
        assert.instanceOf(error, ApiRequestError)
        assert.deepStrictEqual<unknown>(error.response, JSON.parse(body))
      }
      assert.strictEqual(sent(upstream).length, 2)
    }))
})
