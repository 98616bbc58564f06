/** What client libraries show of an action that the guard refuses, and that they do not send it again. */
import { assert, describe, it } from "@effect/vitest"
import { ExchangeClient, HttpTransport } from "@nktkas/hyperliquid"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { get } from "@trigate/testing/Gateway"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { privateKeyToAccount } from "viem/accounts"
import { classified, exchangeAt } from "./ccxtVenue.ts"
import { statusOf } from "./hyperliquidVenue.ts"
import { rejection } from "./rejection.ts"

const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "guard-"))
const file = Path.join(folder, "policies.yaml")
Fs.writeFileSync(file, "policies:\n  - name: desk\n    accounts: \"*\"\n    coins: [ETH]\n    orderNotional: 100\n")

const text = /The policy does not name BTC/u

/** The number of orders that the guard refused; ccxt also approves a builder's fee, which the policy does not name. */
const refusals = (url: string) =>
  Effect.map(get(`${url}/admin/guard`), ({ json }) => {
    const all = JsonParts.at(json, "refusals")
    return Array.isArray(all) ? all.filter((each) => JsonParts.at(each, "actionType") === "order").length : -1
  })

describe("a refusal of the guard", () => {
  it.live("is an error of ccxt, which sends the order once", () =>
    Effect.gen(function*() {
      const { url } = yield* hostedGateway({ TRIGATE_GUARD: file })
      const exchange = exchangeAt(url, keys.trader)
      Object.assign(exchange.options, { maxRetriesOnFailure: 2, maxRetriesOnFailureDelay: 0 })
      const error = classified(
        yield* rejection(() => exchange.createOrder("BTC/USDC:USDC", "limit", "buy", 0.01, 30_000))
      )
      assert.strictEqual(error.name, "ExchangeError")
      assert.match(error.message, text)
      assert.strictEqual(yield* refusals(url), 1)
    }))

  it.live("is an error of nktkas with the gateway's sentence", () =>
    Effect.gen(function*() {
      const { url } = yield* hostedGateway({ TRIGATE_GUARD: file })
      const exchange = new ExchangeClient({
        transport: new HttpTransport({ apiUrl: url }),
        wallet: privateKeyToAccount(keys.trader.privateKey)
      })
      const order = { a: 0, b: true, p: "30000", s: "0.01", r: false, t: { limit: { tif: "Gtc" } } } as const
      const { message, status } = yield* statusOf(() => exchange.order({ orders: [order], grouping: "na" }))
      assert.strictEqual(status, 422)
      assert.match(message, text)
      assert.strictEqual(yield* refusals(url), 1)
    }))
})
