/** The console of a sandbox in a real browser. */
import { afterAll, assert, describe, it, layer } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { keys, tokens, transactions } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import type { Gateway } from "@trigate/testing/Gateway"
import { gateway } from "@trigate/testing/Gateway"
import { isExhaustive, sample } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { promisify } from "node:util"
import * as zlib from "node:zlib"
import { openSocket } from "../streams/socket.ts"
import {
  canOpen,
  click,
  closeBrowser,
  findings,
  goTo,
  isAsWideAsTheWindow,
  keep,
  opened,
  pictures,
  postJson,
  press,
  shows,
  wear
} from "./browser.ts"

afterAll(closeBrowser)

const folder = new URL("../../packages/server/console/", import.meta.url)

/** The gateway of all tests of this file. */
class Sandbox extends Context.Service<Sandbox, Gateway>()("test/console/Sandbox") {}

const sandbox = Layer.effect(Sandbox, gateway({}))

describe("the page", () => {
  it("loads less than 150 kB, zipped, before a chart is drawn", () => {
    const page = fs.readFileSync(new URL("index.html", folder), "utf8")
    const first = [...page.matchAll(/(?:src|href)="\.\/(console\/[^"]+)"/gu)].map(([, name = ""]) => name)
    const bytes = first.reduce((sum, name) => sum + zlib.gzipSync(fs.readFileSync(new URL(name, folder))).length, 0)
    assert.isAtLeast(first.length, 2)
    assert.isBelow(bytes, 150_000)
  })

  it.live("is one of its origin alone, under a policy that lets nothing else in", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const { headers, status } = yield* Effect.promise(() => fetch(url))
      assert.strictEqual(status, 200)
      assert.strictEqual(
        headers.get("content-security-policy"),
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
      )
      assert.strictEqual(headers.get("x-content-type-options"), "nosniff")
    }))
})

describe("the pictures of the documents", () => {
  const images = new URL("../../docs/images/", import.meta.url)
  const read = (name: string) => fs.readFileSync(new URL(`${name}.png`, images))

  it("are those that the tests make, and the animation of npm run record", () => {
    const there = fs.readdirSync(images).filter((name) => name.startsWith("console")).map((name) =>
      name.replace(".png", "")
    )
    assert.sameMembers(there, ["console", ...pictures])
  })

  it("have the size of the window", () => {
    for (const name of pictures) {
      const png = read(name)
      assert.deepStrictEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [1200, 900], name)
      assert.isAbove(png.length, 10_000, name)
      assert.isBelow(png.length, 250_000, name)
    }
  })

  it("move in less than 1 MB", () => {
    const animation = read("console")
    assert.isAbove(animation.readUInt32BE(animation.indexOf("acTL") + 4), 5)
    assert.isBelow(animation.length, 1_000_000)
  })
})

const panels = [
  "overview",
  "trade",
  "chains",
  "weight",
  "streams",
  "candles",
  "inspect",
  `lookup?of=${transactions.creation}`,
  "actions",
  "guard",
  "callers",
  "requests",
  "account",
  "settings?all=yes"
]

/** The clients whose programs the console shows, and what each program prints. */
const programs = [
  ["curl", /"BTC":"/u],
  ["nktkas", /BTC: '/u],
  ["ccxt", /symbol: 'ETH\/USDC:USDC'/u],
  ["viem", /^\d+n \d+n\n$/u],
  ["ton", /^50000000n\n$/u]
] as const

/** The standard output of a program, which has to end with 0. */
const output = (command: string, file: string) =>
  Effect.callback<string>((resume) => {
    execFile(command, [file], { encoding: "utf8" }, (error, stdout, stderr) =>
      resume(error === null ? Effect.succeed(stdout) : Effect.die(new Error(`${file}: ${stderr}`))))
  })

/** Every panel, light and dark, wide and narrow; a sample has each of the four looks. */
const looks = sample(
  "panels of the console",
  panels.flatMap((panel) =>
    ([["light", 1200], ["dark", 1200], ["light", 390], ["dark", 390]] as const)
      .map(([colorScheme, width]) => ({ panel, colorScheme, width }))
  ),
  4,
  ({ colorScheme, width }) => `${colorScheme} ${width}`
)

const refused = /^400 /u
const unknown = /^404 /u

/** The routes whose example is refused by an open sandbox. */
const expectedStates: { readonly [operation: string]: RegExp } = {
  "actions.outcome": unknown,
  "actions.find": unknown,
  "node.outcome": unknown,
  "node.findOutcome": unknown,
  "node.exchange": /^501 /u,
  "admin.createKey": refused,
  "admin.rotateKey": refused,
  "admin.revokeKeys": refused
}

describe.runIf(canOpen)("the console of a sandbox", () => {
  layer(sandbox, { excludeTestServices: true })((it) => {
    it.effect("opens on an overview: traffic, errors by tag, and programs for each client that run as they are copied", () =>
      Effect.gen(function*() {
        const { url } = yield* Sandbox
        const browser = yield* opened()
        const { page } = browser
        yield* goTo(browser, `${url}/`)
        yield* shows(browser, "The last minute")
        assert.strictEqual(new URL(page.url()).hash, "")
        assert.strictEqual(
          yield* postJson(`${url}/info`, `{"type":"l2Book","coin":"NOPE"}`),
          200
        )
        assert.strictEqual(yield* postJson(`${url}/info`, `{"type":"candleSnapshot"}`), 400)
        const errors = page.getByRole("region", { name: "Errors", exact: true })
        yield* Effect.promise(() => errors.getByRole("row", { name: /InvalidRequest/u }).first().waitFor())
        const slowest = page.getByRole("region", { name: "Slowest routes of the last minute" })
        yield* Effect.promise(() => slowest.getByRole("row", { name: /info\.query/u }).first().waitFor())
        yield* keep(browser, "console-overview")
        const made = yield* Effect.acquireRelease(
          Effect.sync(() => fs.mkdtempSync(path.join(import.meta.dirname, "snippet-"))),
          (name) => Effect.sync(() => fs.rmSync(name, { recursive: true, force: true }))
        )
        for (const [client, expected] of sample("programs of the console", programs, 1)) {
          yield* Effect.promise(() => page.getByRole("combobox", { name: "Client" }).selectOption(client))
          yield* Effect.promise(() => page.getByRole("button", { name: /^Copy: / }).click())
          const program = yield* Effect.promise(() => page.evaluate(() => navigator.clipboard.readText()))
          const file = path.join(made, `${client}.${client === "curl" ? "sh" : "mts"}`)
          fs.writeFileSync(file, program)
          assert.match(yield* output(client === "curl" ? "bash" : process.execPath, file), expected, client)
        }
        assert.deepStrictEqual(browser.complaints, [])
      }))

    it.effect("loads an example, says what is wrong with it, and copies the corrected body, which then fits", () =>
      Effect.gen(function*() {
        const { url } = yield* Sandbox
        const browser = yield* opened()
        const { page } = browser
        const press = (name: string) => Effect.promise(() => page.getByRole("button", { name }).click())
        yield* goTo(browser, `${url}/#inspect`)
        yield* press("Load an example")
        const example = yield* Effect.promise(() => page.getByRole("textbox", { name: "Body" }).inputValue())
        yield* press("Inspect")
        const corrected = page.locator("details", { hasText: "The corrected body" })
        yield* Effect.promise(() => corrected.locator("summary").click())
        const shown = yield* Effect.promise(() => corrected.locator("pre").innerText())
        assert.notStrictEqual(shown, example)
        yield* Effect.promise(() => corrected.getByRole("button", { name: "Copy" }).click())
        assert.strictEqual(yield* Effect.promise(() => page.evaluate(() => navigator.clipboard.readText())), shown)
        assert.deepStrictEqual(yield* findings(browser), [])
        yield* Effect.promise(() => page.getByRole("textbox", { name: "Body" }).fill(shown))
        yield* press("Inspect")
        yield* Effect.promise(() => page.locator("p.good", { hasText: "The signature is by 0x" }).waitFor())
        assert.deepStrictEqual(browser.complaints, [])
      }))

    it.effect("shows its chains, says that nothing is real, and asks nobody else", () =>
      Effect.gen(function*() {
        const { url } = yield* Sandbox
        const browser = yield* opened()
        yield* goTo(browser, `${url}/`)
        yield* shows(browser, "Sandbox: nothing here is real")
        yield* shows(browser, "Venue")
        yield* click(browser, "Weight")
        yield* shows(browser, "No address of the venue's API is configured, so the gateway uses no API weight.")
        assert.deepStrictEqual(browser.complaints, [])
        assert.deepStrictEqual(browser.asked.filter((asked) => !asked.startsWith(`${url}/`)), [])
      }))

    it.effect("inspects a pasted body: its signer, and who should have signed", () =>
      Effect.gen(function*() {
        const { url } = yield* Sandbox
        const browser = yield* opened()
        const nonce = yield* Clock.currentTimeMillis
        const body = Json.stringify(
          yield* SandboxSigner.signAction(keys.trader, {
            nonce,
            action: { type: "evmUserModify", usingBigBlocks: true }
          })
        )
        yield* goTo(browser, `${url}/#inspect`)
        yield* Effect.promise(() => browser.page.getByRole("textbox", { name: "Body" }).fill(body))
        yield* Effect.promise(() => browser.page.getByLabel("Who should have signed").fill(keys.agent.address))
        yield* Effect.promise(() => browser.page.getByRole("button", { name: "Inspect" }).click())
        yield* shows(browser, keys.trader.address)
        yield* keep(browser, "console-inspector")
        assert.strictEqual(new URL(browser.page.url()).hash, "#inspect")
        yield* Effect.promise(() => browser.page.getByRole("textbox", { name: "Body" }).fill("{}"))
        yield* Effect.promise(() => browser.page.getByRole("button", { name: "Inspect" }).click())
        yield* Effect.promise(() => browser.page.getByRole("alert").waitFor())
      }))

    it.effect("has no finding of axe and nothing beside the window, light and dark, wide and narrow", () =>
      Effect.gen(function*() {
        const { url } = yield* Sandbox
        const browser = yield* opened()
        for (const { colorScheme, panel, width } of looks) {
          const seen = `${panel} ${colorScheme} ${width}`
          yield* wear(browser, { colorScheme, width })
          yield* goTo(browser, `${url}/#${panel}`)
          yield* shows(browser, "Sandbox: nothing here is real")
          assert.deepStrictEqual(yield* findings(browser), [], seen)
          assert.isTrue(yield* isAsWideAsTheWindow(browser), seen)
        }
      }))

    // last, because it sets faults and moves the clock
    // each of these panels takes a second or two
    if (isExhaustive) {
      it.effect("draws candles, and takes a coin and an interval from the link; another interval is a link, too", () =>
        Effect.gen(function*() {
          const { url } = yield* Sandbox
          const browser = yield* opened()
          const { page } = browser
          yield* goTo(browser, `${url}/#candles?coin=HYPE&interval=15m`)
          yield* shows(browser, "500 bars, none missing between them")
          yield* Effect.promise(() => page.locator("canvas").first().waitFor())
          yield* keep(browser, "console-candles")
          yield* click(browser, "4h")
          yield* shows(browser, "HYPE 4h")
          assert.strictEqual(new URL(page.url()).hash, "#candles?coin=HYPE&interval=4h")
          yield* Effect.promise(() => page.getByLabel("Coin").fill("HYPEE"))
          yield* Effect.promise(() => page.getByRole("button", { name: "Show" }).click())
          yield* shows(browser, `The venue knows no coin "HYPEE"`)
          assert.strictEqual(new URL(page.url()).hash, "#candles?coin=HYPEE&interval=4h")
          yield* Effect.promise(() => page.getByRole("alert").getByRole("link", { name: "HYPE", exact: true }).click())
          yield* shows(browser, "500 bars, none missing between them")
          assert.deepStrictEqual(browser.complaints.filter((complaint) => !complaint.includes("404")), [])
        }))

      it.effect("moves the forming bar by the stream, shows its prices, and saves the bars as CSV", () =>
        Effect.gen(function*() {
          const { url } = yield* Sandbox
          const browser = yield* opened()
          const { page } = browser
          yield* goTo(browser, `${url}/#candles?coin=BTC&interval=1M`)
          const legend = page.locator(".legend")
          yield* Effect.promise(() => legend.waitFor())
          const first = yield* Effect.promise(() => legend.innerText())
          assert.match(first, /UTC\s+O [\d.\s]+\s+H [\d.\s]+\s+L [\d.\s]+\s+C [\d.\s]+\s+V [\d.\s]+\s+[+-][\d.]+ %$/u)
          // no query is answered from here on
          yield* Effect.promise(() => page.route("**/info", (route) => route.abort()))
          yield* Effect.promise(() => legend.filter({ hasNotText: first.replaceAll(/\s+/gu, " ") }).waitFor())
          yield* press(browser, "Log scale")
          yield* Effect.promise(() => page.getByRole("button", { name: "Log scale", pressed: true }).waitFor())
          const [download] = yield* Effect.promise(() =>
            Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download CSV" }).click()])
          )
          assert.strictEqual(download.suggestedFilename(), "BTC-1M.csv")
          const file = yield* Effect.promise(() => download.path())
          const [head, ...lines] = fs.readFileSync(file, "utf8").trimEnd().split("\n")
          assert.strictEqual(head, "open_time,close_time,open,high,low,close,volume,trades")
          assert.isAbove(lines.length, 2)
          assert.match(lines.at(-1) ?? "", /^\d{13},\d{13}(?:,[\d.]+){5},\d+$/u)
        }))

      it.effect("looks up a receipt with its layer-1 fee, and a token", () =>
        Effect.gen(function*() {
          const { url } = yield* Sandbox
          const browser = yield* opened()
          yield* goTo(browser, `${url}/#lookup?of=${transactions.creation}`)
          yield* shows(browser, "0.000001467470653134")
          yield* shows(browser, "0.000000002501312712")
          yield* goTo(browser, `${url}/#lookup?of=${tokens.onchain}`)
          yield* shows(browser, "Trigate Sandbox")
          assert.deepStrictEqual(browser.complaints, [])
        }))

      it.effect("shows the subscriptions that callers share, and why their WebSockets ended", () =>
        Effect.gen(function*() {
          const { url } = yield* Sandbox
          const browser = yield* opened()
          yield* goTo(browser, `${url}/#streams`)
          yield* shows(browser, "Streams now")
          const [one, two] = [yield* openSocket(`${url}/ws`), yield* openSocket(`${url}/ws`)]
          for (const socket of [one, two]) socket.subscribe({ type: "bbo", coin: "BTC" })
          const cells = (name: string) => browser.page.getByRole("row", { name }).locator("td")
          yield* Effect.promise(() => browser.page.getByRole("rowheader", { name: "bbo" }).waitFor())
          assert.match(
            (yield* Effect.promise(() => cells("bbo").allTextContents())).join(" "),
            /^[\d.]+ \/s [\d.]+ \/s [\d.]+ m?s$/u
          )
          one.raw.send(Buffer.from([1]))
          yield* Effect.promise(() => cells("WebSocket ended binary").first().waitFor())
          assert.deepStrictEqual(browser.complaints, [])
        }))

      it.effect("computes the last hour from the gateway's samples, and states how old it is once the gateway is gone", () =>
        Effect.gen(function*() {
          const { url } = yield* Sandbox
          const browser = yield* opened()
          const { page } = browser
          const sample = {
            failed: 0,
            cached: 30,
            attempts: 10,
            weightSaved: 0,
            weightLeft: 900,
            sockets: 2,
            deliveries: 0
          }
          const samples = [
            { ...sample, time: 1_767_225_600_000, requests: 100 },
            {
              ...sample,
              time: 1_767_225_610_000,
              weightSaved: 300,
              requests: 150,
              failed: 5,
              cached: 60,
              attempts: 20,
              deliveries: 400
            },
            // the gateway began again
            { ...sample, time: 1_767_225_620_000, requests: 20, cached: 0, attempts: 0, weightLeft: 850 }
          ]
          yield* Effect.promise(() => page.route("**/admin/history", (route) => route.fulfill({ json: samples })))
          yield* goTo(browser, `${url}/`)
          const hour = page.getByRole("region", { name: "The last hour" })
          yield* Effect.promise(() => hour.getByText("Weight left").waitFor())
          assert.deepStrictEqual(
            (yield* Effect.promise(() => hour.locator("dd").allInnerTexts())).map((text) =>
              text.replaceAll(/\s+/gu, " ")
            ),
            [
              "0.0 /s at most 5.0 /s",
              "0.0 /s at most 0.5 /s",
              "– at most –",
              "– at most –",
              "300 in total",
              "0 % at most 75 %",
              "850 at most 900",
              "2 at most 2",
              "0.0 /s at most 40.0 /s"
            ]
          )
          yield* shows(browser, "00:00 to 00:00:20 UTC, a sample every 10 seconds, of this gateway only.")
          assert.deepStrictEqual(browser.complaints, [])
          yield* Effect.promise(() => page.route("**/metrics", (route) => route.abort()))
          yield* shows(browser, /; this page shows the state at \d\d:\d\d:\d\d UTC$/u)
        }))

      it.effect("shows an account: budget, agents, and a fill that only the stream brings", () =>
        Effect.gen(function*() {
          const { url } = yield* Sandbox
          const browser = yield* opened()
          const { page } = browser
          yield* goTo(browser, `${url}/#account`)
          yield* shows(browser, /actions left; each traded dollar adds one/u)
          yield* shows(browser, "No named agents.")
          const fills = page.getByRole("region", { name: "Latest fills", exact: true }).getByRole("row")
          yield* Effect.promise(() => page.getByText(/^As of/u).waitFor())
          const before = yield* Effect.promise(() => fills.count())
          yield* Effect.promise(() => page.route("**/info", (route) => route.abort()))
          const mids: unknown = yield* Effect.promise(() =>
            fetch(`${url}/info`, {
              method: "POST",
              headers: { "content-type": "application/json" },
              body: `{"type":"allMids"}`
            }).then((response) => response.json())
          )
          const { ETH } = Schema.decodeUnknownSync(Schema.Struct({ ETH: Schema.String }))(mids)
          const order = {
            a: 1,
            b: true,
            p: String(Math.round(Number(ETH) * 1.03)),
            s: "0.007",
            r: false,
            t: { limit: { tif: "Ioc" } }
          }
          const action = { type: "order", orders: [order], grouping: "na" }
          const nonce = yield* Clock.currentTimeMillis
          const body = Json.stringify(yield* SandboxSigner.signAction(keys.trader, { nonce, action }))
          assert.strictEqual(yield* postJson(`${url}/exchange`, body), 200)
          yield* Effect.promise(() => fills.nth(before === 0 ? 1 : before).waitFor())
          yield* Effect.promise(() => fills.filter({ hasText: "0.007" }).first().waitFor())
          assert.deepStrictEqual(browser.complaints.filter((complaint) => !complaint.includes("ERR_FAILED")), [])
        }))

      it.effect("switches faults of the venue on and off", () =>
        Effect.gen(function*() {
          const { url } = yield* Sandbox
          const browser = yield* opened()
          const query = `{"type":"l2Book","coin":"BTC"}`
          yield* goTo(browser, `${url}/#trade`)
          yield* Effect.promise(() => browser.page.getByText("Faults of the venue: off").click())
          yield* Effect.promise(() => browser.page.getByLabel(/^Requests refused with 429/u).fill("1"))
          yield* shows(browser, "Requests refused with 429: 100 %")
          assert.strictEqual(yield* postJson(`${url}/info`, query), 429)
          assert.deepStrictEqual(yield* findings(browser), [])
          yield* press(browser, "All off")
          yield* shows(browser, "Requests refused with 429: 0 %")
          assert.strictEqual(yield* postJson(`${url}/info`, query), 200)
        }))

      it.effect("shows the settings and their defaults", () =>
        Effect.gen(function*() {
          const { url } = yield* Sandbox
          const browser = yield* opened()
          yield* goTo(browser, `${url}/#settings`)
          yield* Effect.promise(() =>
            browser.page.getByRole("checkbox", { name: /^Also show the \d+ settings/u }).check()
          )
          const row = browser.page.getByRole("row", { name: /^TRIGATE_BATCH_LIMIT/u })
          assert.deepStrictEqual((yield* Effect.promise(() => row.locator("td").allInnerTexts())).slice(0, 2), [
            "100",
            "default"
          ])
        }))
    }

    // the last one, because it sends every route, those that change the sandbox too
    it.effect("has a reference that names chains, keys, errors and streams, and sends every route", () =>
      Effect.gen(function*() {
        const { url } = yield* Sandbox
        const bytes = yield* Effect.promise(() =>
          fetch(`${url}/docs`).then((response) => response.text()).then((page) => zlib.gzipSync(page).length)
        )
        assert.isBelow(bytes, 250_000)
        const browser = yield* opened()
        const { page } = browser
        yield* goTo(browser, `${url}/`)
        yield* click(browser, "API reference")
        for (
          const text of ["Hyperliquid", "This gateway requires no key.", "outcome-unknown", "A request over a quota"]
        ) {
          yield* shows(browser, text)
        }
        const contract = yield* Effect.promise(() => fetch(`${url}/openapi.json`).then((response) => response.text()))
        const forms = yield* Effect.promise(() =>
          page.locator("form[data-path]").evaluateAll((found) => found.map((form) => form.parentElement?.id ?? ""))
        )
        assert.strictEqual(forms.length, contract.split(`"operationId":`).length - 1)
        // a search leads to an operation, whose samples run as they are copied
        yield* Effect.promise(() => page.keyboard.press("/"))
        yield* Effect.promise(() => page.keyboard.type("relay signed"))
        yield* shows(browser, "1 found")
        yield* Effect.promise(() => page.keyboard.press("Enter"))
        const relay = page.locator("[id='exchange.submit']")
        const copied = (language: string, example: string) =>
          Effect.promise(async () => {
            await relay.getByLabel("Example").selectOption({ label: example })
            await relay.getByRole("button", { name: language, exact: true }).click()
            await relay.getByRole("button", { name: "Copy" }).click()
            await relay.getByRole("button", { name: "Copied" }).waitFor()
            return page.evaluate(() => navigator.clipboard.readText())
          })
        const run = (program: string, ...args: ReadonlyArray<string>) =>
          Effect.promise(() => promisify(execFile)(program, args)).pipe(Effect.map(({ stdout }) => stdout))
        assert.include(yield* run("bash", "-c", yield* copied("curl", "usdSend: Send USDC to another account")), `"ok"`)
        assert.match(
          yield* run(
            process.execPath,
            "--input-type=module-typescript",
            "--eval",
            yield* copied("TypeScript", "evmUserModify: Choose big or small blocks for EVM transactions")
          ),
          /^200 .*"ok"/u
        )
        assert.include(yield* copied("Python", "order: Place orders"), `"b": True,`)
        for (const id of sample("routes of the reference", forms, 6)) {
          yield* Effect.promise(() =>
            page.evaluate((hash) => {
              location.hash = hash
            }, id)
          )
          const operation = page.locator(`[id="${id}"]`)
          const button = operation.getByRole("button", { name: /^(?:Send|Open)$/u })
          yield* Effect.promise(() => button.click())
          const state = operation.locator("output strong")
          yield* Effect.promise(() => state.waitFor())
          assert.match(yield* Effect.promise(() => state.innerText()), expectedStates[id] ?? /^(?:200 OK|open$)/u, id)
          const running = operation.getByRole("button", { name: /^(?:Stop|Close)$/u })
          if (yield* Effect.promise(() => running.isVisible())) yield* Effect.promise(() => running.click())
        }
        yield* wear(browser, { colorScheme: "dark", width: 390 })
        assert.isTrue(yield* isAsWideAsTheWindow(browser))
        // axe takes seconds for the whole page
        const parts = isExhaustive ? ["html"] : ["nav", "main > h1", "[role=region]", "[id='exchange.submit']"]
        assert.deepStrictEqual(yield* findings(browser, parts), [])
        assert.deepStrictEqual(
          browser.asked.filter((asked) => !asked.startsWith(url) && !asked.startsWith("data:")),
          []
        )
        assert.deepStrictEqual(browser.complaints.filter((complaint) => !/status of [45]/u.test(complaint)), [])
      }))
  })
})
