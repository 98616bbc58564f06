/** The console in a real browser, over gateways of this process. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as KeyStore from "@trigate/callers/KeyStore"
import * as KeyStoreFile from "@trigate/callers/KeyStoreFile"
import type { Scope } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/Json"
import { keys, tokens, transactions } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { faultyUpstream, idIn } from "@trigate/testing/FaultyUpstream"
import { gateway } from "@trigate/testing/Gateway"
import { say } from "@trigate/testing/Reactions"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as fs from "node:fs"
import { createRequire } from "node:module"
import * as os from "node:os"
import * as path from "node:path"
import * as zlib from "node:zlib"
import type { Opened } from "./browser.ts"
import { executable, keep, opened, shows } from "./browser.ts"

if (executable === undefined) console.log("console.test.ts: no Chromium on this machine, the console is not opened")

const folder = new URL("../../packages/server/console/", import.meta.url)

const goTo = ({ page }: Opened, url: string) => Effect.promise(() => page.goto(url))

const click = ({ page }: Opened, name: string) =>
  Effect.promise(() => page.getByRole("link", { name, exact: true }).click())

const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

/** The serious findings of axe on a page, by rule. */
const findings = ({ page }: Opened) =>
  Effect.promise(async () => {
    await page.evaluate(axe)
    return page.evaluate<ReadonlyArray<string>>(
      "axe.run().then(({ violations }) => violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')" +
        ".map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')))"
    )
  })

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

describe.skipIf(executable === undefined)("the console of a sandbox", () => {
  it.live("opens on its chains, says that nothing is real, and asks nobody else", () =>
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

  it.live("draws candles, marks what is missing, and takes a coin and an interval from the link", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const browser = yield* opened()
      yield* goTo(browser, `${url}/#candles?coin=HYPE&interval=15m`)
      yield* shows(browser, "500 bars, none missing between them")
      yield* Effect.promise(() => browser.page.locator("canvas").first().waitFor())
      yield* keep(browser, "console-candles")
      yield* Effect.promise(() => browser.page.getByLabel("Coin").fill("NOPE"))
      yield* Effect.promise(() => browser.page.getByRole("button", { name: "Show" }).click())
      yield* shows(browser, /NOPE/u)
      yield* Effect.promise(() => browser.page.getByRole("alert").waitFor())
      assert.strictEqual(new URL(browser.page.url()).hash, "#candles?coin=NOPE&interval=15m")
      assert.deepStrictEqual(browser.complaints.filter((complaint) => !complaint.includes("404")), [])
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

  it.live("has no serious finding of axe, light and dark, wide and narrow", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      for (const viewport of [{ width: 1200, height: 900 }, { width: 390, height: 800 }]) {
        const browser = yield* opened({ viewport })
        for (const colorScheme of ["light", "dark"] as const) {
          yield* Effect.promise(() => browser.page.emulateMedia({ colorScheme }))
          for (const panel of ["chains", "weight", "candles", "inspect", `lookup?of=${transactions.creation}`]) {
            yield* goTo(browser, `${url}/#${panel}`)
            yield* shows(browser, "Sandbox: nothing here is real")
            assert.deepStrictEqual(yield* findings(browser), [], `${panel} ${colorScheme} ${viewport.width}`)
          }
        }
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
    yield* shows(browser, "This gateway asks for a key")
    yield* Effect.promise(() => browser.page.getByLabel("Key", { exact: true }).fill(key))
    yield* Effect.promise(() => browser.page.getByRole("button", { name: "Use the key" }).click())
  })

describe.skipIf(executable === undefined)("the console of a gateway with keys", () => {
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
      yield* shows(browser, "The gateway does not take that key.")
      assert.deepStrictEqual(yield* findings(browser), [])
      yield* keep(browser, "console-key")
      yield* enterKey(browser, operator)
      yield* shows(browser, "Sandbox: nothing here is real")
      yield* goTo(browser, `${url}/#candles?coin=HYPE&interval=15m`)
      yield* shows(browser, "500 bars, none missing between them")
      assert.include(carried, `Bearer ${operator}`)
      assert.notInclude(yield* heldBy(browser), operator)
      assert.notInclude(browser.asked.join(" "), operator)
      assert.deepStrictEqual(browser.asked.filter((asked) => !asked.startsWith(`${url}/`)), [])
      yield* Effect.promise(() => browser.page.getByRole("button", { name: "Forget the key" }).click())
      yield* shows(browser, "This gateway asks for a key")
      yield* enterKey(browser, operator)
      yield* shows(browser, "500 bars, none missing between them")
      yield* Effect.promise(() => browser.page.reload())
      yield* shows(browser, "This gateway asks for a key")
      assert.deepStrictEqual(browser.complaints.filter((complaint) => !complaint.includes("401")), [])
    }))
})

describe.skipIf(executable === undefined)("the API reference", () => {
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
      yield* goTo(browser, `${url}/`)
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
      yield* keep(browser, "console-weight")
      assert.notInclude(yield* heldBy(browser), key)
      assert.deepStrictEqual(browser.asked.filter((asked) => !asked.startsWith(`${url}/`) || asked.includes(key)), [])
    }))
})
