/** Each rule of a policy against a sandbox whose BTC costs 60 000 and whose ETH costs 3 000: what it refuses and says. */
import { assert, describe, layer } from "@effect/vitest"
import type { SandboxSigner } from "@trigate/sandbox"
import type { TestKey } from "@trigate/sandbox/SandboxExamples"
import * as Effect from "effect/Effect"
import {
  agent,
  fixPrices,
  govern,
  judge,
  multiSigUser,
  orderOf,
  orders,
  sandbox,
  send,
  sign,
  start,
  stranger,
  trader
} from "./guarded.ts"

type Action = SandboxSigner.Unsigned["action"]
type Expected = Readonly<Record<string, string | number>> | undefined

interface Row {
  readonly name: string
  readonly rules: object
  readonly action: Action
  readonly by?: TestKey
  readonly envelope?: Partial<SandboxSigner.Unsigned>
  /** The members of the refusal; `undefined` if the action passes. */
  readonly refused: Expected
}

const chain = { signatureChainId: "0x66eee", hyperliquidChain: "Mainnet" } as const
const cloid = `0x${"ab".repeat(16)}`
const elsewhere = "0x1111111111111111111111111111111111111111"
const buy = (s: string, p = "59000", rest = {}) => orders(orderOf(0, "buy", s, p, rest))
const sell = (s: string, p = "61000", rest = {}) => orders(orderOf(0, "sell", s, p, rest))
const usdSend = { type: "usdSend", ...chain, destination: elsewhere, amount: "1", time: start } as const
// the nonce inside the action is the body's
const atStart = { nonce: start }
const leverage = (leverage: number, isCross = true) => ({ type: "updateLeverage", asset: 0, isCross, leverage })

const rows: ReadonlyArray<Row> = [
  // actions
  { name: "a policy without actions", rules: {}, action: buy("0.01"), refused: undefined },
  { name: "a transfer that is not named", rules: {}, action: usdSend, envelope: atStart, refused: { rule: "actions" } },
  {
    name: "a transfer that is named",
    rules: { actions: ["usdSend"] },
    action: usdSend,
    envelope: atStart,
    refused: undefined
  },
  {
    name: "an order that is not named",
    rules: { actions: ["usdSend"] },
    action: buy("0.01"),
    refused: { rule: "actions" }
  },
  {
    name: "an order beside named transfers",
    rules: { actions: ["trading", "usdSend"] },
    action: buy("0.01"),
    refused: undefined
  },
  {
    name: "an API wallet",
    rules: {},
    action: { type: "approveAgent", ...chain, agentAddress: elsewhere, agentName: "a", nonce: start },
    envelope: atStart,
    refused: { rule: "actions" }
  },
  {
    name: "a cancel where nothing is named",
    rules: { actions: ["usdSend"] },
    action: { type: "cancel", cancels: [{ a: 0, o: 1 }] },
    refused: undefined
  },
  {
    name: "a dead man's switch of the venue",
    rules: { actions: ["usdSend"] },
    action: { type: "scheduleCancel" },
    refused: undefined
  },
  // accounts
  {
    name: "an API wallet's order",
    rules: { orderNotional: 1000 },
    action: buy("0.1"),
    by: agent,
    refused: { rule: "orderNotional", account: trader.address }
  },
  { name: "a signer without an account", rules: {}, action: buy("0.01"), by: stranger, refused: { rule: "account" } },
  {
    name: "a sub-account's order",
    rules: { orderNotional: 1000 },
    action: buy("0.1"),
    envelope: { vaultAddress: elsewhere },
    refused: { rule: "orderNotional", account: elsewhere }
  },
  {
    name: "a transfer that names a vault, which its signature does not cover",
    rules: {},
    action: usdSend,
    envelope: { ...atStart, vaultAddress: elsewhere },
    refused: { rule: "actions", account: trader.address }
  },
  // the action alone
  { name: "another coin", rules: { coins: ["ETH"] }, action: buy("0.01"), refused: { rule: "coins", leg: 0 } },
  { name: "a coin that is named", rules: { coins: ["ETH", "BTC"] }, action: buy("0.01"), refused: undefined },
  {
    name: "a coin of a dex",
    rules: { coins: ["xyz:*"] },
    action: orders(orderOf(110_000, "buy", "1", "10")),
    refused: undefined
  },
  {
    name: "a coin of no list",
    rules: { coins: ["BTC"] },
    action: orders(orderOf(9_999, "buy", "1", "10")),
    refused: { rule: "coins", leg: 0 }
  },
  {
    name: "an order that is not reduce-only",
    rules: { reduceOnly: true },
    action: orders(orderOf(0, "buy", "0.01", "59000", { r: true }), orderOf(0, "buy", "0.01", "59000")),
    refused: { rule: "reduceOnly", leg: 1 }
  },
  { name: "reduce-only", rules: { reduceOnly: true }, action: buy("0.01", "59000", { r: true }), refused: undefined },
  {
    name: "reduce-only in a spot market, where it means nothing",
    rules: { reduceOnly: true },
    action: orders(orderOf(10_107, "buy", "1", "10", { r: true })),
    refused: { rule: "reduceOnly", leg: 0 }
  },
  { name: "no cloid", rules: { cloidRequired: true }, action: buy("0.01"), refused: { rule: "cloidRequired", leg: 0 } },
  { name: "a cloid", rules: { cloidRequired: true }, action: buy("0.01", "59000", { c: cloid }), refused: undefined },
  {
    name: "no expiry",
    rules: { expiresWithin: "10 seconds" },
    action: buy("0.01"),
    refused: { rule: "expiresWithin", limit: 10, unit: "s" }
  },
  {
    name: "an expiry too late",
    rules: { expiresWithin: "10 seconds" },
    action: buy("0.01"),
    envelope: { expiresAfter: start + 10_001 },
    refused: { rule: "expiresWithin", measured: 10.001, limit: 10 }
  },
  {
    name: "an expiry in time",
    rules: { expiresWithin: "10 seconds" },
    action: buy("0.01"),
    envelope: { expiresAfter: start + 10_000 },
    refused: undefined
  },
  {
    name: "the wrong hours",
    rules: { hours: { from: "08:00", to: "17:00", zone: "UTC" } },
    action: buy("0.01"),
    refused: { rule: "hours", retryAfter: 51_240 }
  },
  {
    name: "the hours of another zone",
    rules: { hours: { from: "08:00", to: "17:00", zone: "America/New_York" } },
    action: buy("0.01"),
    refused: undefined
  },
  {
    name: "the hours of the night before",
    rules: { hours: { from: "18:00", to: "17:48", zone: "UTC", days: ["tue"] } },
    action: buy("0.01"),
    refused: undefined
  },
  {
    name: "reducing outside the hours",
    rules: { hours: { from: "08:00", to: "17:00", zone: "UTC" } },
    action: buy("0.01", "59000", { r: true }),
    refused: undefined
  },
  {
    name: "another destination",
    rules: { actions: ["usdSend"], destinations: [trader.address] },
    action: usdSend,
    envelope: atStart,
    refused: { rule: "destinations" }
  },
  {
    name: "a destination that is named",
    rules: { actions: ["usdSend"], destinations: [elsewhere] },
    action: usdSend,
    envelope: atStart,
    refused: undefined
  },
  {
    name: "a builder's fee",
    rules: { builderFee: 1 },
    action: { ...buy("0.01"), builder: { b: elsewhere, f: 11 } },
    refused: { rule: "builderFee", measured: 1.1, limit: 1, unit: "bp" }
  },
  {
    name: "leverage",
    rules: { leverage: 5 },
    action: leverage(6),
    refused: { rule: "leverage", measured: 6, limit: 5, unit: "x" }
  },
  { name: "leverage at the limit", rules: { leverage: 5 }, action: leverage(5), refused: undefined },
  { name: "the margin mode", rules: { marginMode: "isolated" }, action: leverage(5), refused: { rule: "marginMode" } },
  // notional: size x the higher of limit and mid
  {
    name: "the notional at the mid price",
    rules: { orderNotional: 5999 },
    action: buy("0.1", "30000"),
    refused: { rule: "orderNotional", measured: 6000, limit: 5999, unit: "USDC", leg: 0 }
  },
  {
    name: "the notional at the limit price",
    rules: { orderNotional: 6100 },
    action: sell("0.1", "62000"),
    refused: { rule: "orderNotional", measured: 6200, limit: 6100 }
  },
  {
    name: "the notional at the trigger price",
    rules: { orderNotional: 6100 },
    action: buy("0.1", "61000", { t: { trigger: { isMarket: false, triggerPx: "64000", tpsl: "sl" } } }),
    refused: { rule: "orderNotional", measured: 6400 }
  },
  { name: "the notional within", rules: { orderNotional: 6000 }, action: buy("0.1", "30000"), refused: undefined },
  {
    name: "the notional of a TWAP order",
    rules: { orderNotional: 5999 },
    action: { type: "twapOrder", twap: { a: 0, b: true, s: "0.1", r: false, m: 30, t: false } },
    refused: { rule: "orderNotional", measured: 6000 }
  },
  {
    name: "the notional of a replaced order",
    rules: { orderNotional: 5999 },
    action: { type: "modify", oid: 1, order: orderOf(0, "buy", "0.1", "59000") },
    refused: { rule: "orderNotional", measured: 6000 }
  },
  {
    name: "the notional of an action",
    rules: { actionNotional: 11_000 },
    action: orders(orderOf(0, "buy", "0.1", "59000"), orderOf(0, "buy", "0.1", "58000")),
    refused: { rule: "actionNotional", measured: 12_000, limit: 11_000 }
  },
  {
    name: "the notional inside a multi-sig",
    rules: { orderNotional: 5999 },
    action: {
      type: "multiSig",
      ...chain,
      signatures: [{ r: "0x1", s: "0x1", v: 27 }],
      payload: { multiSigUser: multiSigUser.address, outerSigner: trader.address, action: buy("0.1") }
    },
    refused: { rule: "orderNotional", measured: 6000, account: multiSigUser.address }
  },
  // prices
  {
    name: "a price below the band",
    rules: { priceBand: 100 },
    action: buy("0.01", "59399"),
    refused: { rule: "priceBand", measured: 100.17, limit: 100, unit: "bp", leg: 0 }
  },
  {
    name: "a price above the band",
    rules: { priceBand: 100 },
    action: sell("0.01", "60601"),
    refused: { rule: "priceBand", measured: 100.17 }
  },
  { name: "a price within the band", rules: { priceBand: 100 }, action: buy("0.01", "59400"), refused: undefined },
  {
    name: "a slippage of a buy",
    rules: { marketSlippage: 50 },
    action: buy("0.01", "60306", { tif: "Ioc" }),
    refused: { rule: "marketSlippage", measured: 51, limit: 50 }
  },
  {
    name: "a slippage of a sale",
    rules: { marketSlippage: 50 },
    action: sell("0.01", "59694", { tif: "Ioc" }),
    refused: { rule: "marketSlippage", measured: 51 }
  },
  {
    name: "an immediate order that cannot slip",
    rules: { marketSlippage: 50 },
    action: buy("0.01", "30000", { tif: "Ioc" }),
    refused: undefined
  },
  // rates and the account
  {
    name: "more orders than a minute may have",
    rules: { ordersPerMinute: 1 },
    action: orders(orderOf(0, "buy", "0.01", "59000"), orderOf(0, "buy", "0.01", "58000")),
    refused: { rule: "ordersPerMinute", measured: 2, limit: 1 }
  },
  {
    name: "open orders",
    rules: { openNotional: 5999 },
    action: buy("0.1"),
    refused: { rule: "openNotional", measured: 6000, limit: 5999, unit: "USDC" }
  },
  {
    name: "open orders that only reduce",
    rules: { openNotional: 5999 },
    action: buy("0.1", "59000", { r: true }),
    refused: undefined
  },
  {
    name: "a position",
    rules: { positionNotional: 5999 },
    action: buy("0.1"),
    refused: { rule: "positionNotional", measured: 6000, leg: 0 }
  },
  {
    name: "a position in this coin",
    rules: { positionNotional: { ETH: 1, BTC: 6000 } },
    action: buy("0.1"),
    refused: undefined
  },
  {
    name: "a position in other coins",
    rules: { positionNotional: { ETH: 1, "*": 100 } },
    action: buy("0.1"),
    refused: { rule: "positionNotional", limit: 100 }
  },
  {
    name: "all positions",
    rules: { totalNotional: 8999, coins: ["BTC", "ETH"] },
    action: orders(orderOf(0, "buy", "0.1", "59000"), orderOf(1, "sell", "1", "3000")),
    refused: { rule: "totalNotional", measured: 9000 }
  }
]

describe("Rules", () => {
  layer(sandbox, { excludeTestServices: false })((it) => {
    for (const { action, by = trader, envelope, name, refused, rules } of rows) {
      it.effect(name, () =>
        Effect.gen(function*() {
          yield* fixPrices
          yield* govern({ policies: [{ name: "desk", accounts: "*", ...rules }] })
          const refusal = yield* judge(yield* sign(by, action, envelope))
          if (refused === undefined) return assert.strictEqual(refusal?.message, undefined)
          assert(refusal !== undefined, "the action passes")
          assert.include(Object.assign({}, refusal), refused)
        }))
    }
  })
})

describe("Guard", () => {
  layer(sandbox, { excludeTestServices: false })((it) => {
    it.effect("knows an API wallet as soon as its account has approved it through this gateway", () =>
      Effect.gen(function*() {
        yield* fixPrices
        yield* govern({
          policies: [{
            name: "desk",
            accounts: [trader.address],
            actions: ["trading", "approveAgent"],
            orderNotional: 100
          }]
        })
        // nobody's account yet
        assert.include(Object.assign({}, yield* judge(yield* sign(stranger, buy("0.1")))), { rule: "account" })
        const approval = {
          type: "approveAgent",
          ...chain,
          agentAddress: stranger.address,
          agentName: "a",
          nonce: start
        } as const
        assert.include(yield* send(yield* sign(trader, approval, atStart)), "\"ok\"")
        assert.include(Object.assign({}, yield* judge(yield* sign(stranger, buy("0.1")))), {
          rule: "orderNotional",
          account: trader.address
        })
      }))
  })
})
