/** The Trade view of a sandbox's console in a real browser. */
import { afterAll, assert, describe, layer } from "@effect/vitest"
import type { Gateway } from "@trigate/testing/Gateway"
import { gateway } from "@trigate/testing/Gateway"
import { isExhaustive } from "@trigate/testing/Sample"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import {
  canOpen,
  closeBrowser,
  findings,
  goTo,
  isAsWideAsTheWindow,
  keep,
  opened,
  press,
  shows,
  wear
} from "./browser.ts"
import type { Opened } from "./browser.ts"

afterAll(closeBrowser)

/** The gateway of all tests of this file. */
class Sandbox extends Context.Service<Sandbox, Gateway>()("test/console/trade/Sandbox") {}

const trade = Effect.gen(function*() {
  const { url } = yield* Sandbox
  const browser = yield* opened()
  yield* goTo(browser, `${url}/#trade?coin=ETH`)
  yield* Effect.promise(() => browser.page.getByRole("button", { name: "Buy ETH" }).waitFor())
  return browser
})

/** Fills in the ticket and sends it. */
const order = ({ page }: Opened, side: "Buy" | "Sell", type: string, size: string, price?: string) =>
  Effect.promise(async () => {
    await page.getByRole("radio", { name: side }).check({ force: true })
    await page.getByLabel("Type").selectOption(type)
    await page.getByLabel("Size", { exact: true }).fill(size)
    if (price !== undefined) await page.getByLabel("Price", { exact: true }).fill(price)
    await page.getByRole("button", { name: `${side} ETH` }).click()
  })

const tab = ({ page }: Opened, name: string) =>
  Effect.promise(() => page.getByRole("tab", { name: new RegExp(`^${name} \\d`, "u") }).click())

const table = ({ page }: Opened, name: string) => page.getByRole("region", { name: `${name}, table` })

const looks = [["dark", 390], ["dark", 1920], ["dark", 768], ["light", 390], ["light", 1200]] as const

const chartSays = ({ page }: Opened, text: RegExp) =>
  Effect.promise(() => page.getByRole("img", { name: text }).waitFor())

describe.runIf(canOpen)("the Trade view of a sandbox", () => {
  layer(Layer.effect(Sandbox, gateway({})), { excludeTestServices: true })((it) => {
    it.effect("has the coin, its prices, the chart, the book and the trades of a coin that a search finds by its name", () =>
      Effect.gen(function*() {
        const browser = yield* trade
        const { page } = browser
        yield* chartSays(browser, /^Candlestick chart from/u)
        const book = page.getByRole("region", { name: "Order book" })
        yield* Effect.promise(() => book.getByRole("row").nth(19).waitFor())
        const prices = (yield* Effect.promise(() => book.locator("tr:is(.bid, .ask) th").allInnerTexts()))
          .map((text) => Number(text.replaceAll(/\s/gu, "")))
        assert.strictEqual(prices.length, 18)
        assert.deepStrictEqual(prices, prices.toSorted((one, other) => other - one))
        yield* Effect.promise(() => table(browser, "Trades").getByRole("row").nth(10).waitFor())
        // a price of the book goes to the ticket, as that of a limit order
        const bid = book.locator("tr.bid th").first()
        const price = yield* Effect.promise(() =>
          // in one step, because the book changes each second
          bid.evaluate((cell: HTMLElement) => {
            cell.click()
            return cell.innerText
          })
        )
        assert.strictEqual(
          Number(yield* Effect.promise(() => page.getByLabel("Price", { exact: true }).inputValue())),
          Number(price.replaceAll(/\s/gu, ""))
        )
        // the token of pair 107 is HYPE: the venue itself names no spot pair of it
        yield* Effect.promise(() => page.locator("body").press("/"))
        yield* Effect.promise(() => page.keyboard.type("hype/us"))
        yield* Effect.promise(() => page.getByRole("option", { name: /^HYPE\/USDC/u }).waitFor())
        assert.deepStrictEqual(yield* findings(browser), [])
        yield* Effect.promise(() => page.keyboard.press("Enter"))
        yield* Effect.promise(() => page.getByRole("region", { name: "Market of HYPE/USDC" }).waitFor())
        assert.strictEqual(new URL(page.url()).hash, "#trade?coin=%40107&interval=15m")
        yield* Effect.promise(() => page.getByRole("button", { name: "Buy HYPE" }).waitFor())
        // the account, and the market and the bars of two coins: no stream ends before it is left
        const streams = () => browser.asked.filter((asked) => asked.includes("/streams?")).length
        yield* Effect.eventually(Effect.suspend(() => streams() < 5 ? Effect.fail("not open") : Effect.void))
        assert.strictEqual(streams(), 5)
        assert.deepStrictEqual(browser.complaints, [])
      }))

    it.effect("states cost and fee, fills an order, explains a refused one, and cancels those that rest", () =>
      Effect.gen(function*() {
        const { url } = yield* Sandbox
        const browser = yield* trade
        const { page } = browser
        const type = (...keys: ReadonlyArray<string>) =>
          Effect.forEach(keys, (key) => Effect.promise(() => page.keyboard.press(key)), { discard: true })
        // by the keyboard alone
        yield* Effect.promise(() => page.locator("body").press("s"))
        yield* Effect.promise(() => page.getByRole("button", { name: "Sell ETH" }).waitFor())
        yield* Effect.promise(() => page.locator("main").press("b"))
        yield* Effect.promise(() => page.getByLabel("Size", { exact: true }).selectText())
        yield* Effect.promise(() => page.keyboard.type("0.05"))
        const cost = page.locator("dl.cost")
        yield* Effect.promise(() => cost.getByText(/^0\.0\d{3} USDC \(taker, 0\.045 %\)$/u).waitFor())
        yield* type("Enter")
        yield* shows(browser, /^Order \d+ is filled: 0\.05 at [\d.\u202f]+\.$/u)
        yield* Effect.promise(() =>
          table(browser, "Positions").getByRole("row", { name: /^ETH 20× cross 0\.05/u }).waitFor()
        )
        yield* chartSays(browser, /; entry of 0\.05 at [\d.\s]+; \d+ fills?;/u)
        yield* tab(browser, "Latest fills")
        yield* Effect.promise(() =>
          // an order may take several prices of the book, a fill each
          table(browser, "Latest fills").getByRole("row", { name: /ETH Open Long 0\.0\d/u }).first().waitFor()
        )
        yield* order(browser, "Buy", "limit", "0.001", "1500")
        yield* shows(browser, "Refused: Order must have minimum value of $10.")
        yield* shows(browser, "The order value (size x price) must be at least 10 USDC: raise the size.")
        yield* order(browser, "Buy", "limit", "0.123456", "1500")
        yield* shows(browser, "The size of ETH has at most 4 decimals.")
        yield* order(browser, "Buy", "limit", "0.05", "1500")
        yield* shows(browser, /^Order \d+ is resting on the book\.$/u)
        yield* chartSays(browser, /; order to buy 0\.05 at 1.500\.0;/u)
        yield* keep(browser, "console-trade")
        // axe takes seconds
        for (const [colorScheme, width] of isExhaustive ? looks : looks.slice(0, 1)) {
          yield* wear(browser, { colorScheme, width })
          assert.deepStrictEqual(yield* findings(browser), [], `${colorScheme} ${width}`)
          assert.isTrue(yield* isAsWideAsTheWindow(browser), `${colorScheme} ${width}`)
        }
        yield* wear(browser, {})
        yield* tab(browser, "Open orders")
        yield* Effect.promise(() => page.getByRole("button", { name: /^Cancel order/u }).press("Enter"))
        yield* shows(browser, /^Order \d+ is cancelled\.$/u)
        yield* shows(browser, /^No open orders\./u)
        for (const price of ["1501", "1502"]) {
          yield* order(browser, "Buy", "limit", "0.05", price)
          yield* chartSays(browser, new RegExp(`order to buy 0\\.05 at 1.${price.slice(1)}`, "u"))
        }
        yield* press(browser, "Cancel all")
        yield* shows(browser, "2 orders are cancelled.")
        yield* tab(browser, "Positions")
        yield* press(browser, "Close the position in ETH")
        yield* shows(browser, /^No positions yet/u)
        assert.deepStrictEqual(browser.complaints, [])
        assert.deepStrictEqual(browser.asked.filter((asked) => !asked.startsWith(`${url}/`)), [])
      }))

    it.effect("leads from a lost reply to the outcome of the order", () =>
      Effect.gen(function*() {
        const browser = yield* trade
        const { page } = browser
        yield* Effect.promise(() => page.getByText("Faults of the venue: off").click())
        yield* Effect.promise(() => page.getByLabel(/^Actions whose reply is lost/u).fill("1"))
        yield* shows(browser, "Actions whose reply is lost: 100 %")
        // at the same time, because the outcome replaces these texts
        yield* Effect.all([
          shows(browser, "Outcome unknown: the order was sent, and the response was lost."),
          shows(browser, /^Resend the identical bytes/u),
          order(browser, "Buy", "market", "0.03")
        ], { concurrency: "unbounded" })
        yield* Effect.promise(() => page.getByText(/^Client order ID 0x[0-9a-f]{32}/u).waitFor())
        yield* Effect.promise(() => page.getByRole("link", { name: "When the outcome is unknown" }).waitFor())
        yield* shows(browser, /^Known after [\d.]+ s\. Order \d+ is filled: 0\.03 at [\d.\u202f]+\.$/u)
        yield* press(browser, "All off")
        if (!isExhaustive) return
        yield* Effect.promise(() => page.getByLabel(/^Actions lost before the venue/u).fill("1"))
        yield* shows(browser, "Actions lost before the venue: 100 %")
        yield* order(browser, "Buy", "market", "0.02")
        yield* shows(browser, /^Known after \d+\.\d s: the order was not placed, and can no longer arrive\.$/u)
        yield* press(browser, "All off")
        yield* shows(browser, "Actions lost before the venue: 0 %")
        assert.deepStrictEqual(browser.complaints.filter((complaint) => !complaint.includes("504")), [])
      }))

    const scenario = (name: string, figure: RegExp, meaning: RegExp, guide: string) =>
      Effect.gen(function*() {
        const browser = yield* trade
        const { page } = browser
        yield* press(browser, name)
        const story = page.getByRole("region", { name, exact: true })
        yield* Effect.promise(() => story.locator(".number").waitFor())
        assert.match(yield* Effect.promise(() => story.locator(".number").innerText()), figure)
        assert.match(yield* Effect.promise(() => story.locator(".number + p").innerText()), meaning)
        yield* Effect.promise(() => story.getByRole("link", { name: guide }).waitFor())
        return { ...browser, story }
      })

    it.effect("scenario: a hundred bots cost what one costs", () =>
      Effect.gen(function*() {
        const { complaints, story } = yield* scenario(
          "100 bots on one address",
          /^9.200 → 92$/u,
          /^weight at the venue: equal queries share one request/u,
          "How reads are cached"
        )
        yield* Effect.promise(() => story.getByText("1\u202f000 queries became 10 requests to the venue.").waitFor())
        yield* Effect.promise(() => story.getByText(/^20 bots: .* over its limit of 1.200 a minute/u).waitFor())
        assert.deepStrictEqual(complaints, [])
      }))

    it.effect("scenario: a lost reply settles", () =>
      Effect.gen(function*() {
        const { story } = yield* scenario(
          "Lose the next reply",
          /^\d+\.\d s$/u,
          /^from the lost reply to the known outcome: one order, one fill\.$/u,
          "When the outcome is unknown"
        )
        yield* Effect.promise(() => story.getByText(/^Settled: order \d+ is filled, 0\.05 at/u).waitFor())
      }))

    it.effect("scenario: the inspector names a mistake", () =>
      Effect.gen(function*() {
        const browser = yield* scenario(
          "A mistake in a signature",
          /^1 mistake named$/u,
          /^in [\d.]+ m?s, with the value to sign: mainnet\.$/u,
          "When a signature is refused"
        )
        yield* Effect.promise(() =>
          browser.story.getByText(/^The venue refuses it: User or API Wallet 0x[0-9a-f]{40} does not exist\.$/u)
            .waitFor()
        )
        yield* Effect.promise(() => browser.story.getByText(/but it is signed for testnet/u).waitFor())
        assert.deepStrictEqual(yield* findings(browser), [])
        yield* press(browser, "Close the scenario")
        yield* Effect.promise(() => browser.story.waitFor({ state: "detached" }))
        assert.deepStrictEqual(browser.complaints, [])
      }))

    it.effect("scenario: no fill is lost with the venue's WebSocket", () =>
      Effect.gen(function*() {
        const { complaints } = yield* scenario(
          "Kill the venue's socket",
          /^(\d+) of \1 fills$/u,
          /^arrived [\d.]+ s after the cut: 0 lost, 0 sent twice\.$/u,
          "When the connection is lost"
        )
        assert.deepStrictEqual(complaints, [])
      }))

    // last, because it moves the clock
    it.effect("scenario: an hour passes, and funding is paid", () =>
      Effect.gen(function*() {
        const { complaints, story } = yield* scenario(
          "Jump an hour",
          /^[+-]\d+\.\d{4} USDC$/u,
          /^of funding in 1 payment for the hour\.$/u,
          "Control of the sandbox"
        )
        yield* Effect.promise(() =>
          story.getByText(/^ETH moved from [\d.\s]+ to [\d.\s]+ \([+-][\d.]+ %\)\.$/u).waitFor()
        )
        assert.deepStrictEqual(complaints, [])
      }))
  })
})
