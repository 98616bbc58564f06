/** The console in a real browser, over gateways of this process. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { afterAll, assert, describe, it } from "@effect/vitest"
import * as KeyStore from "@trigate/callers/KeyStore"
import * as KeyStoreFile from "@trigate/callers/KeyStoreFile"
import type { Scope } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Json"
import { keys, tokens, transactions } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { EvmChain } from "@trigate/testing/EvmChain"
import { faultyUpstream, idIn } from "@trigate/testing/FaultyUpstream"
import { gateway } from "@trigate/testing/Gateway"
import { say } from "@trigate/testing/Reactions"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import { sample } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import { createRequire } from "node:module"
import * as os from "node:os"
import * as path from "node:path"
import * as zlib from "node:zlib"
import { openSocket } from "../streams/socket.ts"
import type { Opened } from "./browser.ts"
import { closeBrowser, executable, keep, opened, shows } from "./browser.ts"

if (executable === undefined) console.log("console.test.ts: no Chromium on this machine, the console is not opened")

afterAll(closeBrowser)

/** Tests of pages side by side: most of the time they wait for what the page polls. */
const inBrowser = describe.skipIf(executable === undefined).concurrent

const folder = new URL("../../packages/server/console/", import.meta.url)

const goTo = ({ page }: Opened, url: string) => Effect.promise(() => page.goto(url))

const click = ({ page }: Opened, name: string) =>
  Effect.promise(() => page.getByRole("link", { name, exact: true }).click())

const press = ({ page }: Opened, name: string) =>
  Effect.promise(() => page.getByRole("button", { name, exact: true }).first().click())

const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

/** The serious findings of axe on a page, by rule. */
const findings = ({ page }: Opened) =>
  Effect.promise(async () => {
    await page.evaluate(axe)
    return page.evaluate<ReadonlyArray<string>>(
      "axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')" +
        ".map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')))"
    )
  })

/** Whether a page scrolls in one direction alone. */
const isAsWideAsTheWindow = ({ page }: Opened) =>
  Effect.promise(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth))

describe("the page", () => {
  it("loads less than 150 kB, zipped, before a chart is drawn", () => {
    const first = fs.readdirSync(new URL("console/", folder)).filter((name) => name.startsWith("index-"))
    const bytes = first.reduce(
      (sum, name) => sum + zlib.gzipSync(fs.readFileSync(new URL(`console/${name}`, folder))).length,
      0
    )
    assert.strictEqual(first.length, 2)
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
  "callers",
  "requests"
]

const postJson = (url: string, body: string) =>
  Effect.promise(() =>
    fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body }).then(({ status }) => status)
  )

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

// one after the other: all pages have one clipboard
describe.skipIf(executable === undefined)("what the console of a sandbox copies", () => {
  it.live("opens on an overview: traffic, errors by tag, and programs for each client that run as they are copied", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
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
      const errors = page.getByRole("region", { name: "Errors of the last minute" })
      yield* Effect.promise(() => errors.getByRole("row", { name: /InvalidRequest/u }).first().waitFor())
      const slowest = page.getByRole("region", { name: "Slowest routes of the last minute" })
      yield* Effect.promise(() => slowest.getByRole("row", { name: /info\.query/u }).first().waitFor())
      yield* keep(browser, "console-overview")
      yield* Effect.promise(() => page.context().grantPermissions(["clipboard-read", "clipboard-write"]))
      const made = yield* Effect.acquireRelease(
        Effect.sync(() => fs.mkdtempSync(path.join(import.meta.dirname, "snippet-"))),
        (name) => Effect.sync(() => fs.rmSync(name, { recursive: true, force: true }))
      )
      for (const [client, expected] of sample("programs of the console", programs, 2)) {
        yield* Effect.promise(() => page.getByRole("combobox", { name: "Client" }).selectOption(client))
        yield* Effect.promise(() => page.getByRole("button", { name: /^Copy: / }).click())
        const program = yield* Effect.promise(() => page.evaluate(() => navigator.clipboard.readText()))
        const file = path.join(made, `${client}.${client === "curl" ? "sh" : "mts"}`)
        fs.writeFileSync(file, program)
        assert.match(yield* output(client === "curl" ? "bash" : process.execPath, file), expected, client)
      }
      assert.deepStrictEqual(browser.complaints, [])
    }))

  it.live("loads an example, says what is wrong with it, and copies the corrected body, which then fits", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
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
      yield* Effect.promise(() => page.context().grantPermissions(["clipboard-read", "clipboard-write"]))
      yield* Effect.promise(() => corrected.getByRole("button", { name: "Copy" }).click())
      assert.strictEqual(yield* Effect.promise(() => page.evaluate(() => navigator.clipboard.readText())), shown)
      assert.deepStrictEqual(yield* findings(browser), [])
      yield* Effect.promise(() => page.getByRole("textbox", { name: "Body" }).fill(shown))
      yield* press("Inspect")
      yield* Effect.promise(() => page.locator("p.good", { hasText: "The signature is by 0x" }).waitFor())
      assert.deepStrictEqual(browser.complaints, [])
    }))
})

inBrowser("the console of a sandbox", () => {
  it.live("fills a paper order, explains a refused one, and cancels one that rests, by the keyboard", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const browser = yield* opened()
      const { page } = browser
      const type = (...keys: ReadonlyArray<string>) =>
        Effect.forEach(keys, (key) => Effect.promise(() => page.keyboard.press(key)), { discard: true })
      const place = (size: string, price: string) =>
        Effect.gen(function*() {
          yield* Effect.promise(() => page.getByLabel("Size").focus())
          yield* Effect.promise(() => page.getByLabel("Size").selectText())
          yield* Effect.promise(() => page.keyboard.type(size))
          yield* type("Tab", "Tab")
          yield* Effect.promise(() => page.getByLabel("Price").selectText())
          yield* type("Delete")
          yield* Effect.promise(() => page.keyboard.type(price))
          yield* type("Tab", "Enter")
        })
      yield* goTo(browser, `${url}/`)
      yield* Effect.promise(() => page.getByRole("link", { name: "place a paper order" }).press("Enter"))
      yield* shows(browser, "No open orders.")
      yield* place("0.05", "")
      yield* shows(browser, /^Order \d+ is filled: 0\.05 at [\d.]+\.$/u)
      yield* Effect.promise(() =>
        page.getByRole("region", { name: "Positions, table" }).getByRole("row", { name: /^ETH 0\.05/u }).waitFor()
      )
      yield* Effect.promise(() =>
        // an order may take several prices of the book, a fill each
        page.getByRole("region", { name: "Latest fills, table" }).getByRole("row", { name: /ETH Open Long 0\.0\d/u })
          .first().waitFor()
      )
      yield* place("0.001", "1500")
      yield* shows(browser, "Refused (MinimumNotional): Order must have minimum value of $10. asset=1")
      yield* shows(browser, "The order value (size x price) must be at least 10 USDC: raise the size.")
      yield* keep(browser, "console-trade")
      assert.deepStrictEqual(yield* findings(browser), [])
      yield* place("0.05", "1500")
      yield* shows(browser, /^Order \d+ rests in the book\.$/u)
      yield* Effect.promise(() => page.getByRole("button", { name: /^Cancel order/u }).press("Enter"))
      yield* shows(browser, /^Order \d+ is cancelled\.$/u)
      yield* shows(browser, "No open orders.")
      assert.deepStrictEqual(browser.complaints, [])
      assert.deepStrictEqual(browser.asked.filter((asked) => !asked.startsWith(`${url}/`)), [])
    }))

  it.live("shows its chains, says that nothing is real, and asks nobody else", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const browser = yield* opened()
      yield* goTo(browser, `${url}/`)
      yield* shows(browser, "Sandbox: nothing here is real")
      yield* shows(browser, "Trading chain")
      yield* click(browser, "Weight")
      yield* shows(browser, "No address of the official API is configured, so there is no weight to spend.")
      assert.deepStrictEqual(browser.complaints, [])
      assert.deepStrictEqual(browser.asked.filter((asked) => !asked.startsWith(`${url}/`)), [])
    }))

  it.live("draws candles, and takes a coin and an interval from the link; another interval is a link, too", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
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

  it.live("moves the forming bar by the stream, shows its prices, and saves the bars as CSV", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const browser = yield* opened()
      const { page } = browser
      yield* goTo(browser, `${url}/#candles?coin=BTC&interval=1M`)
      const legend = page.locator(".legend")
      yield* Effect.promise(() => legend.waitFor())
      const first = yield* Effect.promise(() => legend.innerText())
      assert.match(first, /UTC\s+O [\d.]+\s+H [\d.]+\s+L [\d.]+\s+C [\d.]+\s+V [\d.]+\s+[+-][\d.]+ %$/u)
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

  it.live("inspects a pasted body: its signer, and who should have signed", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const browser = yield* opened()
      const nonce = yield* Clock.currentTimeMillis
      const body = Json.stringify(
        yield* SandboxSigner.signAction(keys.trader, { nonce, action: { type: "evmUserModify", usingBigBlocks: true } })
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

  it.live("looks up a receipt with its layer-1 fee, and a token", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const browser = yield* opened()
      yield* goTo(browser, `${url}/#lookup?of=${transactions.creation}`)
      yield* shows(browser, "0.000001467470653134")
      yield* shows(browser, "0.000000002501312712")
      yield* goTo(browser, `${url}/#lookup?of=${tokens.onchain}`)
      yield* shows(browser, "Trigate Sandbox")
      assert.deepStrictEqual(browser.complaints, [])
    }))

  it.live("has no serious finding of axe and nothing beside the window, light and dark, wide and narrow", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      for (const { colorScheme, panel, width } of looks) {
        const browser = yield* opened({ colorScheme, viewport: { width, height: 850 } })
        yield* goTo(browser, `${url}/#${panel}`)
        yield* shows(browser, "Sandbox: nothing here is real")
        const seen = `${panel} ${colorScheme} ${width}`
        assert.deepStrictEqual(yield* findings(browser), [], seen)
        assert.isTrue(yield* isAsWideAsTheWindow(browser), seen)
      }
    }))
})

/** All that the page holds: its source, its storage and its address. */
const heldBy = ({ page }: Opened) =>
  Effect.promise(() =>
    page.evaluate(() =>
      [
        document.documentElement.outerHTML,
        JSON.stringify(localStorage),
        JSON.stringify(sessionStorage),
        document.cookie,
        location.href
      ].join(" ")
    )
  )

/** Two keys in a file: one for everything that the console shows, and one for reading alone. */
const keyFile = Effect.gen(function*() {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "console-"))),
    (name) => Effect.sync(() => fs.rmSync(name, { recursive: true, force: true }))
  )
  const file = path.join(folder, "keys.json")
  const store = Context.get(
    yield* Layer.build(Layer.provide(KeyStoreFile.layer(file), NodeFileSystem.layer)),
    KeyStore.KeyStore
  )
  const made = (name: string, classes: NonNullable<Scope["classes"]>) =>
    Effect.map(Effect.orDie(store.create({ name, scope: { classes } })), ({ key }) => Redacted.value(key))
  return {
    file,
    operator: yield* made("operator", ["admin", "read", "inspect"]),
    reader: yield* made("reader", ["read"])
  }
})

const enterKey = (browser: Opened, key: string) =>
  Effect.gen(function*() {
    yield* shows(browser, "This gateway requires a key")
    yield* Effect.promise(() => browser.page.getByLabel("Key", { exact: true }).fill(key))
    yield* Effect.promise(() => browser.page.getByRole("button", { name: "Use the key" }).click())
  })

inBrowser("the console of a gateway with keys", () => {
  it.live("on an admin listener that others can reach: it asks for a key, and keeps it in memory alone", () =>
    Effect.gen(function*() {
      const { file, operator } = yield* keyFile
      const { adminUrl } = yield* gateway({
        TRIGATE_CALLERS: file,
        TRIGATE_ADMIN_HOST: "0.0.0.0",
        TRIGATE_ADMIN_PORT: "0"
      })
      const url = adminUrl.replace("0.0.0.0", "127.0.0.1")
      const browser = yield* opened()
      const carried: Array<string | undefined> = []
      browser.page.on("request", (request) => void carried.push(request.headers()["authorization"]))
      yield* goTo(browser, `${url}/`)
      yield* enterKey(browser, `${operator.slice(0, -1)}x`)
      yield* shows(browser, "The gateway does not accept that key.")
      assert.deepStrictEqual(yield* findings(browser), [])
      yield* enterKey(browser, operator)
      yield* shows(browser, "Sandbox: nothing here is real")
      yield* goTo(browser, `${url}/#candles?coin=HYPE&interval=15m`)
      yield* shows(browser, "500 bars, none missing between them")
      assert.include(carried, `Bearer ${operator}`)
      assert.notInclude(yield* heldBy(browser), operator)
      assert.notInclude(browser.asked.join(" "), operator)
      assert.deepStrictEqual(browser.asked.filter((asked) => !asked.startsWith(`${url}/`)), [])
      yield* Effect.promise(() => browser.page.getByRole("button", { name: "Forget the key" }).click())
      yield* shows(browser, "This gateway requires a key")
      yield* enterKey(browser, operator)
      yield* shows(browser, "500 bars, none missing between them")
      yield* Effect.promise(() => browser.page.reload())
      yield* shows(browser, "This gateway requires a key")
      assert.deepStrictEqual(browser.complaints.filter((complaint) => !complaint.includes("401")), [])
    }))
})

inBrowser("the callers of a gateway with keys", () => {
  it.live("get keys, which are shown once, rotated and revoked, and see no more than their class", () =>
    Effect.gen(function*() {
      const { file, operator, reader } = yield* keyFile
      const { url } = yield* gateway({ TRIGATE_CALLERS: file })
      const browser = yield* opened()
      yield* goTo(browser, `${url}/#callers`)
      yield* enterKey(browser, reader)
      yield* shows(browser, "The scope of this caller does not include the class `admin`")
      yield* press(browser, "Forget the key")
      yield* enterKey(browser, operator)
      yield* shows(browser, "Make the first key of a caller")
      yield* Effect.promise(() => browser.page.getByText("Make the first key of a caller").click())
      yield* Effect.promise(() => browser.page.getByLabel("Name").fill("desk"))
      yield* Effect.promise(() => browser.page.getByLabel("Valid for days").fill("90"))
      yield* Effect.promise(() => browser.page.getByLabel("Requests a second").fill("20"))
      yield* press(browser, "Make the key")
      const shownKey = Effect.promise(() => browser.page.getByLabel("New key").inputValue())
      const first = yield* shownKey
      const asked = (key: string) =>
        Effect.promise(() =>
          fetch(`${url}/info`, {
            method: "POST",
            headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
            body: `{"type":"spotMeta"}`
          }).then(({ status }) => status)
        )
      assert.strictEqual(yield* asked(first), 200)
      assert.notInclude(yield* heldBy(browser), first)
      assert.deepStrictEqual(yield* findings(browser), [])
      yield* keep(browser, "console-callers")
      yield* press(browser, "I have it")
      yield* shows(browser, "Requests a second: 20")
      const row = browser.page.getByRole("row", { name: /^desk/u })
      yield* Effect.promise(() => row.getByRole("button", { name: "Rotate …" }).click())
      yield* shows(browser, "Another key for desk?")
      assert.deepStrictEqual(yield* findings(browser), [])
      yield* press(browser, "Make it")
      yield* shows(browser, "The key of desk, shown this once")
      const second = yield* shownKey
      assert.deepStrictEqual([yield* asked(first), yield* asked(second)], [200, 200])
      const prefix = first.split("_")[1] ?? ""
      yield* Effect.promise(() =>
        browser.page.getByRole("row", { name: prefix }).getByRole("button", { name: "Revoke …" }).click()
      )
      yield* press(browser, "Revoke it")
      yield* Effect.promise(() => browser.page.getByRole("row", { name: prefix }).waitFor({ state: "detached" }))
      yield* Effect.promise(() => browser.page.getByLabel("Also those that have expired").check())
      yield* shows(browser, "revoked")
      assert.strictEqual(new URL(browser.page.url()).hash, "#callers?all=yes")
      assert.notInclude(`${yield* heldBy(browser)} ${browser.asked.join(" ")}`, second)
      assert.deepStrictEqual(browser.asked.filter((asked) => !asked.startsWith(`${url}/`)), [])
    }))
})

inBrowser("the API reference", () => {
  it.live("opens from the console, and asks nobody else", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const browser = yield* opened()
      yield* goTo(browser, `${url}/`)
      yield* click(browser, "API reference")
      yield* shows(browser, "Relay a signed action")
      // the outline is gone once the reference is drawn
      yield* Effect.promise(() =>
        browser.page.getByText("POST /exchange", { exact: true }).waitFor({ state: "detached" })
      )
      yield* shows(browser, "Relay a signed action")
      assert.deepStrictEqual(browser.asked.filter((asked) => !asked.startsWith(url) && !asked.startsWith("data:")), [])
      assert.deepStrictEqual(browser.complaints, [])
    }))

  it.live("lists every operation before its script runs, and where none runs", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const { page } = yield* opened({ javaScriptEnabled: false })
      yield* Effect.promise(() => page.goto(`${url}/docs`))
      const lines = yield* Effect.promise(() => page.locator("li").allInnerTexts())
      assert.include(lines, "POST /exchange Relay a signed action")
      const contract = yield* Effect.promise(() => fetch(`${url}/openapi.json`).then((answer) => answer.text()))
      assert.strictEqual(lines.length, contract.split(`"operationId":`).length - 1)
    }))
})

// one after the other: the metrics that it shows are those of the process
describe.skipIf(executable === undefined)("the console of a venue that fails", () => {
  it.live("tells of actions without an answer, and sends one again only after it has said what that does", () =>
    Effect.gen(function*() {
      const api = yield* recordingUpstream(() => ({ status: 502, body: "" }))
      const { url } = yield* gateway({ TRIGATE_TRADING_API_URL: api.url })
      const now = yield* Clock.currentTimeMillis
      for (const nonce of [now, now + 1]) {
        const signed = Json.stringify(
          yield* SandboxSigner.signAction(keys.trader, {
            nonce,
            action: { type: "evmUserModify", usingBigBlocks: true }
          })
        )
        assert.strictEqual(yield* postJson(`${url}/exchange`, signed), 504)
      }
      const browser = yield* opened()
      yield* goTo(browser, `${url}/#actions`)
      yield* shows(browser, "evmUserModify")
      assert.strictEqual(yield* Effect.promise(() => browser.page.getByRole("row").count()), 3)
      yield* press(browser, "Find out …")
      yield* shows(browser, "If it did not, the action can be executed now")
      assert.deepStrictEqual(yield* findings(browser), [])
      yield* keep(browser, "console-resolve")
      const sent = () => api.seen.filter(({ path }) => path === "/exchange").length
      yield* press(browser, "Cancel")
      assert.strictEqual(sent(), 2)
      api.respond = () => ({ body: `{"status":"err","response":"Invalid nonce: duplicate nonce"}` })
      yield* press(browser, "Find out …")
      yield* press(browser, "Send the same bytes")
      yield* shows(browser, "The first attempt was accepted: Invalid nonce: duplicate nonce")
      assert.strictEqual(sent(), 3)
      yield* press(browser, "Forget …")
      yield* press(browser, "Forget it")
      yield* shows(browser, "Forgotten; its nonce stays used.")
      yield* shows(browser, "None: the outcome of every action is known.")
      assert.strictEqual(sent(), 3)
      assert.deepStrictEqual(browser.complaints, [])
    }))

  it.live("shows requests as they end, by caller and by failure, and who used the weight", () =>
    Effect.gen(function*() {
      const api = yield* recordingUpstream(({ body }) =>
        body.includes("spotMeta") ? { body: `{"tokens":[],"universe":[]}` } : { status: 502, body: "" }
      )
      const { url } = yield* gateway({ TRIGATE_TRADING_API_URL: api.url })
      const browser = yield* opened()
      yield* goTo(browser, `${url}/#requests`)
      yield* shows(browser, "Nothing yet")
      yield* Effect.promise(() =>
        browser.page.waitForResponse((response) => response.url().endsWith("/admin/requests"))
      )
      assert.strictEqual(yield* postJson(`${url}/info`, `{"type":"spotMeta"}`), 200)
      assert.strictEqual(
        yield* postJson(`${url}/s3cr3tK3y/evm`, `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice"}`),
        200
      )
      yield* shows(browser, "spotMeta")
      yield* shows(browser, "ChainNotConfigured")
      yield* keep(browser, "console-requests")
      yield* Effect.promise(() => browser.page.getByLabel("Only what failed").check())
      yield* Effect.promise(() => browser.page.getByText("spotMeta").waitFor({ state: "detached" }))
      assert.strictEqual(new URL(browser.page.url()).hash, "#requests?caller=&failed=yes")
      assert.notInclude(yield* heldBy(browser), "s3cr3tK3y")
      yield* goTo(browser, `${url}/#requests?caller=nobody`)
      yield* shows(browser, "Nothing yet")
      yield* click(browser, "Weight")
      yield* shows(browser, "Who used the weight of the last minute")
      yield* shows(browser, "address:127.0.0.1")
      // the same query again is answered from the cache
      assert.strictEqual(yield* postJson(`${url}/info`, `{"type":"spotMeta"}`), 200)
      yield* Effect.promise(() => browser.page.getByRole("row", { name: "a cached response 1 20" }).waitFor())
      yield* keep(browser, "console-weight")
      assert.deepStrictEqual(yield* findings(browser), [])
      assert.deepStrictEqual(browser.complaints, [])
    }))

  it.live("takes an unknown coin for the mistake of its caller: no failure of the venue, and no bars that are there", () =>
    Effect.gen(function*() {
      const api = yield* recordingUpstream(() => ({ status: 500, body: "null" }))
      const { url } = yield* gateway({ TRIGATE_TRADING_API_URL: api.url })
      const browser = yield* opened()
      yield* goTo(browser, `${url}/#chains`)
      yield* shows(browser, "trading-api")
      yield* goTo(browser, `${url}/#candles?coin=NOPE&interval=15m`)
      yield* shows(browser, "No bars: the last query failed")
      yield* click(browser, "Chains")
      const row = browser.page.getByRole("row", { name: "trading-api" })
      yield* Effect.promise(() => row.getByText("0 %", { exact: true }).waitFor())
      assert.strictEqual(yield* Effect.promise(() => row.locator("td.bad").count()), 0)
    }))

  it.live("draws what bars there are, shades those that are missing, and pages back to the oldest", () =>
    Effect.gen(function*() {
      const width = 15 * 60_000
      const last = Math.floor((yield* Clock.currentTimeMillis) / width)
      const bars = Array.from({ length: 700 }, (_, back) => last - back).toReversed()
        .filter((number) => ![3, 40, 41, 600].includes(last - number))
      const Query = Schema.Struct({
        req: Schema.Struct({
          coin: Schema.String,
          startTime: Schema.Finite,
          endTime: Schema.optionalKey(Schema.Finite)
        })
      })
      const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Query))
      const api = yield* recordingUpstream(({ body }) => {
        if (!body.includes("candleSnapshot")) return { body: "{}" }
        const { req: { coin, endTime = Infinity, startTime } } = decode(body)
        const found = bars.filter((number) => number * width >= startTime && number * width <= endTime)
        return {
          body: JSON.stringify(found.map((number) => ({
            t: number * width,
            T: (number + 1) * width - 1,
            s: coin,
            i: "15m",
            o: "100.0",
            h: `${101 + (number % 7)}.0`,
            l: "99.0",
            c: `${100 + (number % 3)}.5`,
            v: `${number % 10}.5`,
            n: 4
          })))
        }
      })
      const { url } = yield* gateway({ TRIGATE_TRADING_API_URL: api.url })
      const browser = yield* opened()
      yield* goTo(browser, `${url}/#candles?coin=BTC&interval=15m`)
      yield* shows(browser, "497 bars, 3 missing between them")
      yield* Effect.promise(() => browser.page.locator("canvas").first().waitFor())
      yield* press(browser, "Older bars")
      yield* shows(browser, "696 bars, 4 missing between them")
      yield* press(browser, "Older bars")
      yield* shows(browser, "there are no older ones")
      // this venue lists no coins, so that the stream of bars is refused, and the bars are queried
      assert.deepStrictEqual(browser.complaints.filter((complaint) => !complaint.includes("400")), [])
    }))
})

// one after the other: the metrics that it shows are those of the process
describe.skipIf(executable === undefined)("the console of live chains", () => {
  it.live("shows what failed and what is ejected, and no endpoint key anywhere", () =>
    Effect.gen(function*() {
      const key = "k3y0fTh3N0d3"
      const badGateway = say({ status: 502, body: "<html>bad gateway</html>" })
      const broken = yield* faultyUpstream(badGateway)
      broken.reactToProbe = badGateway
      const sound = yield* faultyUpstream(
        say({ body: ({ body }) => `{"jsonrpc":"2.0","id":${idIn(body)},"result":null}` })
      )
      const { url } = yield* gateway({
        TRIGATE_LAYER2_URL: `${broken.url}/${key},${sound.url}/${key}`,
        TRIGATE_TRADING_API_URL: sound.url
      })
      const browser = yield* opened()
      yield* goTo(browser, `${url}/#chains`)
      yield* shows(browser, "layer2")
      for (const id of [1, 2, 3, 4, 5, 6, 7, 8]) {
        yield* Effect.promise(() =>
          fetch(`${url}/l2`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({
              jsonrpc: "2.0",
              id,
              method: "eth_getTransactionReceipt",
              params: [transactions.opStack]
            })
          }).then((answer) => answer.text())
        )
      }
      yield* shows(browser, /address 0 ejected/u)
      yield* keep(browser, "console-chains")
      yield* click(browser, "Weight")
      yield* shows(browser, "Weight that reads can take now")
      assert.notInclude(yield* heldBy(browser), key)
      assert.deepStrictEqual(browser.asked.filter((asked) => !asked.startsWith(`${url}/`) || asked.includes(key)), [])
    }))

  it.live("shows the subscriptions that callers share, and why their WebSockets ended", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
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

  it.live("shows the head of each EVM chain that clients follow, its age and reorganisations, on a phone too", () =>
    Effect.gen(function*() {
      const chain = new EvmChain("console", { blocks: 1230 })
      const node = yield* recordingUpstream(({ body }) => ({ body: chain.respond(body) }))
      const { url } = yield* gateway({ TRIGATE_LAYER2_URL: node.url, TRIGATE_LAYER2_RPS: "1000" })
      const browser = yield* opened({ viewport: { width: 390, height: 900 } })
      yield* goTo(browser, `${url}/#chains`)
      yield* shows(browser, "Heads of the EVM chains")
      const heads = yield* openSocket(`${url}/l2`)
      heads.send(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads",{"fromBlock":"latest"}]}`)
      yield* Effect.promise(() => heads.until((frames) => frames.length >= 2))
      const row = browser.page.getByRole("row", { name: "Layer 2" })
      const cells = Effect.promise(() => row.locator("td").allTextContents())
      yield* Effect.promise(() => row.getByText("1\u202f229", { exact: true }).waitFor())
      // the registry of metrics is that of the process
      const before = Number((yield* cells)[2])
      chain.reorganise(1, 3)
      yield* Effect.promise(() => row.getByText("1\u202f231", { exact: true }).waitFor())
      assert.match((yield* cells)[1] ?? "", /^[\d.]+ m?s$/u)
      assert.deepStrictEqual((yield* cells).slice(2, 4), [`${before + 1}`, "1"])
      assert.isTrue(yield* isAsWideAsTheWindow(browser))
      assert.deepStrictEqual(yield* findings(browser), [])
      assert.deepStrictEqual(browser.complaints, [])
    }))
})
