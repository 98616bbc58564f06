/** The console of gateways with keys and upstreams in a real browser. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { afterAll, assert, describe, it } from "@effect/vitest"
import * as KeyStore from "@trigate/callers/KeyStore"
import * as KeyStoreFile from "@trigate/callers/KeyStoreFile"
import type { Scope } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Encoding"
import { keys, transactions } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { EvmChain } from "@trigate/testing/EvmChain"
import { faultyUpstream, idIn } from "@trigate/testing/FaultyUpstream"
import { gateway } from "@trigate/testing/Gateway"
import { say } from "@trigate/testing/Reactions"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import { isExhaustive } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { openSocket } from "../streams/socket.ts"
import type { Opened } from "./browser.ts"
import {
  canOpen,
  click,
  closeBrowser,
  findings,
  goTo,
  isAsWideAsTheWindow,
  keep,
  opened,
  postJson,
  press,
  shows,
  wear
} from "./browser.ts"

afterAll(closeBrowser)

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

/** The times in view in the chart, once about a hundred bars of the interval fill it. */
const chartView = ({ page }: Opened, minutes: number) =>
  Effect.promise(async () => {
    const found = await page.waitForFunction((bar) => {
      const label = document.querySelector(".plot")?.getAttribute("aria-label") ?? ""
      const [from = 0, to = 0] = [...label.matchAll(/(\d{4}-\d\d-\d\d) (\d\d:\d\d)/gu)].map(([, day, time]) =>
        Date.parse(`${day}T${time}Z`)
      )
      const bars = (to - from) / bar
      return bars > 100 && bars < 140 ? { bars, to } : undefined
    }, minutes * 60_000)
    return found.jsonValue()
  })

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

describe.runIf(canOpen)("the console of a gateway with keys", () => {
  it.live("on an admin listener that others can reach: it asks for a key, and stores it in memory only", () =>
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
      const streamed = browser.page.waitForResponse((response) => response.url().startsWith(`${url}/streams?`))
      yield* goTo(browser, `${url}/#candles?coin=HYPE&interval=15m`)
      yield* shows(browser, "500 bars, none missing between them")
      // each interval begins with its newest bars, whatever was in view before
      for (const [interval, minutes] of [["15m", 15], ["4h", 240], ["1h", 60]] as const) {
        if (interval !== "15m") yield* click(browser, interval)
        const view = yield* chartView(browser, minutes)
        assert.isBelow((yield* Clock.currentTimeMillis) - (view?.to ?? 0), 2 * minutes * 60_000, interval)
      }
      yield* click(browser, "15m")
      const stream = yield* Effect.promise(() => streamed)
      assert.strictEqual(stream.status(), 200)
      assert.strictEqual(stream.request().headers()["authorization"], `Bearer ${operator}`)
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

describe.runIf(canOpen)("the callers of a gateway with keys", () => {
  it.live("get keys, which are shown once, rotated and revoked, and see no more than their class", () =>
    Effect.gen(function*() {
      const { file, operator, reader } = yield* keyFile
      const { url } = yield* gateway({ TRIGATE_CALLERS: file })
      const browser = yield* opened()
      yield* goTo(browser, `${url}/#callers`)
      yield* enterKey(browser, reader)
      yield* shows(browser, "The scope of this caller does not include the class admin")
      yield* press(browser, "Forget the key")
      yield* enterKey(browser, operator)
      yield* shows(browser, "Make a key for a caller that has no valid key")
      yield* Effect.promise(() => browser.page.getByText("Make a key for a caller that has no valid key").click())
      yield* Effect.promise(() => browser.page.getByLabel("Name").fill("desk"))
      yield* Effect.promise(() => browser.page.getByLabel("Valid for days").fill("90"))
      yield* Effect.promise(() => browser.page.getByLabel("Requests per second").fill("20"))
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
      yield* shows(browser, "Requests per second: 20")
      const row = browser.page.getByRole("row", { name: /^desk/u })
      yield* Effect.promise(() => row.getByRole("button", { name: "Rotate …" }).click())
      yield* shows(browser, "Another key for desk?")
      assert.deepStrictEqual(yield* findings(browser), [])
      yield* press(browser, "Make it")
      yield* shows(browser, "The key of desk, shown only once")
      const second = yield* shownKey
      assert.deepStrictEqual([yield* asked(first), yield* asked(second)], [200, 200])
      const prefix = first.split("_")[1] ?? ""
      yield* Effect.promise(() =>
        browser.page.getByRole("row", { name: prefix }).getByRole("button", { name: "Revoke …" }).click()
      )
      yield* press(browser, "Revoke it")
      yield* Effect.promise(() => browser.page.getByRole("row", { name: prefix }).waitFor({ state: "detached" }))
      yield* Effect.promise(() => browser.page.getByLabel("Include expired and revoked keys").check())
      yield* shows(browser, "revoked")
      assert.strictEqual(new URL(browser.page.url()).hash, "#callers?all=yes")
      assert.notInclude(`${yield* heldBy(browser)} ${browser.asked.join(" ")}`, second)
      assert.deepStrictEqual(browser.asked.filter((asked) => !asked.startsWith(`${url}/`)), [])
    }))
})

describe.runIf(canOpen)("the console of a venue that fails", () => {
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
      yield* shows(browser, "If the venue did not accept the first attempt, the action can be executed now")
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
      yield* shows(browser, "Action forgotten; its nonce stays used.")
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
      yield* Effect.promise(() =>
        browser.page.waitForResponse((response) => response.url().includes("/admin/requests"))
      )
      assert.strictEqual(yield* postJson(`${url}/info`, `{"type":"spotMeta"}`), 200)
      assert.strictEqual(
        yield* postJson(`${url}/s3cr3tK3y/evm`, `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice"}`),
        200
      )
      yield* shows(browser, "spotMeta")
      yield* shows(browser, "ChainNotConfigured")
      yield* keep(browser, "console-requests")
      yield* Effect.promise(() => browser.page.getByLabel("Only failed requests").check())
      yield* Effect.promise(() => browser.page.getByText("spotMeta").waitFor({ state: "detached" }))
      assert.strictEqual(new URL(browser.page.url()).hash, "#requests?caller=&failed=yes")
      assert.notInclude(yield* heldBy(browser), "s3cr3tK3y")
      yield* goTo(browser, `${url}/#requests?caller=nobody`)
      yield* shows(browser, "No requests yet")
      yield* click(browser, "Weight")
      yield* shows(browser, "Use of the API weight by caller, last minute")
      yield* shows(browser, "address:127.0.0.1")
      // the second of two equal queries is answered from the cache, even where the first response is stale by now
      for (const query of [`{"type":"spotMeta"}`, `{"type":"spotMeta"}`]) {
        assert.strictEqual(yield* postJson(`${url}/info`, query), 200)
      }
      yield* Effect.promise(() =>
        browser.page.getByRole("row", { name: /^a cached response (?:1 20|2 40)$/u }).waitFor()
      )
      yield* keep(browser, "console-weight")
      assert.deepStrictEqual(yield* findings(browser), [])
      // a page that is opened now knows what was saved before
      yield* Effect.promise(() => browser.page.reload())
      yield* Effect.promise(() => browser.page.getByRole("row", { name: /^a cached response [12] [24]0$/u }).waitFor())
      assert.deepStrictEqual(browser.complaints, [])
    }))

  it.live("takes an unknown coin for the mistake of its caller: no failure of the venue, and no bars that are there", () =>
    Effect.gen(function*() {
      const api = yield* recordingUpstream(() => ({ status: 500, body: "null" }))
      const { url } = yield* gateway({ TRIGATE_TRADING_API_URL: api.url })
      const browser = yield* opened()
      yield* goTo(browser, `${url}/#chains`)
      yield* shows(browser, "trading-api")
      yield* goTo(browser, `${url}/#trade`)
      yield* shows(browser, "This gateway is not a sandbox: it sends orders to mainnet.")
      assert.strictEqual(yield* Effect.promise(() => browser.page.getByRole("button", { name: /order/u }).count()), 0)
      assert.strictEqual(
        yield* Effect.promise(() => browser.page.getByRole("link", { name: "Trade" }).count()),
        0
      )
      yield* goTo(browser, `${url}/#candles?coin=NOPE&interval=15m`)
      yield* shows(browser, "No bars: the last query failed")
      yield* click(browser, "Chains")
      const row = browser.page.getByRole("row", { name: "trading-api" })
      yield* Effect.promise(() => row.getByText("0 %", { exact: true }).waitFor())
      assert.strictEqual(yield* Effect.promise(() => row.locator(".bad").count()), 0)
    }))
})

const policies = `policies:
  - name: desk
    accounts: ["${keys.trader.address}"]
    coins: [BTC, ETH]
    orderNotional: 1000
    ordersPerMinute: 10
    openNotional: 50000
    priceBand: 10000
`

const orderOf = Effect.fnUntraced(function*(asset: number, price: string, size: string) {
  const order = { a: asset, b: true, p: price, s: size, r: false, t: { limit: { tif: "Gtc" } } }
  const nonce = yield* Clock.currentTimeMillis
  const action = { type: "order", orders: [order], grouping: "na" }
  return Json.stringify(yield* SandboxSigner.signAction(keys.trader, { nonce, action }))
})

describe.runIf(canOpen)("the guard of a gateway", () => {
  it.live("shows policies, uses and refusals, and halts and resumes after a confirmation", () =>
    Effect.gen(function*() {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "console-"))),
        (name) => Effect.sync(() => fs.rmSync(name, { recursive: true, force: true }))
      )
      const file = path.join(folder, "policies.yaml")
      fs.writeFileSync(file, policies)
      const { url } = yield* gateway({ TRIGATE_GUARD: file })
      const browser = yield* opened()
      const { page } = browser
      const send = (asset: number, price: string, size: string) =>
        Effect.flatMap(orderOf(asset, price, size), (body) => postJson(`${url}/exchange`, body))
      const refusals = page.getByRole("region", { name: "Latest refusals" }).getByRole("listitem")
      const halt = (scope: "account" | "coin", name: string) =>
        Effect.gen(function*() {
          yield* Effect.promise(() => page.getByRole("combobox", { name: "Scope" }).selectOption(scope))
          const label = scope === "coin" ? "Coin" : "Account"
          yield* Effect.promise(() => page.getByLabel(label, { exact: true }).fill(name))
          yield* press(browser, "Halt …")
        })
      yield* goTo(browser, `${url}/#guard`)
      yield* shows(browser, "No account yet: each one appears here with its first action.")
      const policy = page.getByRole("region", { name: "Policy desk" })
      assert.deepStrictEqual(
        (yield* Effect.promise(() => policy.locator("dd").allInnerTexts())).map((text) =>
          text.replaceAll(/\s+/gu, " ")
        ),
        [
          keys.trader.address,
          "orders, leverage and margin",
          "BTC, ETH",
          "at most 1 000 in the quote token",
          "within 10 000 basis points (100 %)",
          "at most 10 per minute",
          "at most 50 000 in the quote token"
        ]
      )
      assert.strictEqual(yield* send(0, "30000", "2"), 422)
      yield* Effect.promise(() =>
        refusals.filter({
          hasText: /Notional of an order.*The notional of the order is .* USDC; the policy allows 1000/u
        }).waitFor()
      )
      assert.strictEqual(yield* send(1, "1500", "0.01"), 200)
      const use = page.getByRole("region", { name: "Use of the limits" })
      yield* Effect.promise(() => use.getByRole("meter", { name: "New orders in the last minute: 1 of 10" }).waitFor())
      yield* Effect.promise(() => use.getByRole("meter", { name: /^Open orders: \d+ of 50.000 USDC$/u }).waitFor())
      // a misspelt coin, which would stop nothing
      yield* halt("coin", "btc")
      yield* shows(browser, "The venue lists no coin btc, so the halt stops nothing. Did you mean BTC?")
      assert.deepStrictEqual(yield* findings(browser), [])
      yield* press(browser, "Cancel")
      yield* halt("coin", "BTC")
      yield* shows(browser, "Orders on the book stay there, and can still fill.")
      yield* press(browser, "Halt")
      const banner = page.getByRole("region", { name: "Halt of orders in BTC" })
      yield* Effect.promise(() => banner.waitFor())
      assert.strictEqual(yield* send(0, "30000", "0.001"), 422)
      yield* Effect.promise(() =>
        refusals.first().filter({ hasText: /Trading of BTC is halted by the operator.*order sent from 127/u }).waitFor()
      )
      yield* keep(browser, "console-guard")
      for (const [colorScheme, width] of [["light", 1200], ["dark", 390], ["light", 360]] as const) {
        yield* wear(browser, { colorScheme, width })
        assert.deepStrictEqual(yield* findings(browser), [], `${colorScheme} ${width}`)
        assert.isTrue(yield* isAsWideAsTheWindow(browser), `${colorScheme} ${width}`)
      }
      yield* wear(browser, {})
      yield* Effect.promise(() => banner.getByRole("button", { name: "Resume …" }).press("Enter"))
      yield* shows(browser, "Resume orders in BTC?")
      yield* press(browser, "Resume")
      yield* Effect.promise(() => banner.waitFor({ state: "detached" }))
      assert.strictEqual(yield* send(0, "30000", "0.001"), 200)
      yield* halt("account", keys.trader.address)
      yield* press(browser, "Halt")
      const halted = page.getByRole("region", { name: `Halt of the account ${keys.trader.address}` })
      yield* Effect.promise(() => halted.waitFor())
      assert.strictEqual(yield* send(1, "1500", "0.01"), 422)
      yield* press(browser, "Resume …")
      yield* press(browser, "Resume")
      yield* Effect.promise(() => halted.waitFor({ state: "detached" }))
      // only the open panel is read
      yield* click(browser, "Callers")
      yield* shows(browser, "This gateway does not require keys")
      const before = browser.asked.length
      for (let round = 0; round < 2; round++) {
        yield* Effect.promise(() => page.waitForResponse((response) => response.url().endsWith("/admin/keys")))
      }
      assert.deepStrictEqual(browser.asked.slice(before).filter((asked) => asked.endsWith("/admin/guard")), [])
      assert.deepStrictEqual(browser.complaints, [])
    }))

  it.live("without policies, says what would be there", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const browser = yield* opened({ width: 360 })
      yield* goTo(browser, `${url}/#guard`)
      yield* shows(browser, "This gateway has no policies")
      yield* Effect.promise(() => browser.page.getByRole("link", { name: "A bot that cannot blow up" }).waitFor())
      assert.deepStrictEqual(yield* findings(browser), [])
      assert.isTrue(yield* isAsWideAsTheWindow(browser))
    }))
})

describe.runIf(canOpen)("the console of live chains", () => {
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
      yield* shows(browser, "address 0 ejected: HTTP 502 to 504")
      yield* shows(browser, /tried again at \d\d:\d\d:\d\d UTC/u)
      yield* keep(browser, "console-chains")
      yield* click(browser, "Weight")
      yield* shows(browser, "API weight available to reads now")
      assert.notInclude(yield* heldBy(browser), key)
      assert.deepStrictEqual(browser.asked.filter((asked) => !asked.startsWith(`${url}/`) || asked.includes(key)), [])
    }))

  // each of them takes a second or two
  if (isExhaustive) {
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
        yield* shows(browser, "there are no older bars")
        // this venue lists no coins, so that the stream of bars is refused, and the bars are queried
        assert.deepStrictEqual(browser.complaints.filter((complaint) => !complaint.includes("400")), [])
      }))

    it.live("shows the head of each EVM chain that clients follow, its age and reorganisations, on a phone too", () =>
      Effect.gen(function*() {
        const chain = new EvmChain("console", { blocks: 1230 })
        const node = yield* recordingUpstream(({ body }) => ({ body: chain.respond(body) }))
        const { url } = yield* gateway({ TRIGATE_LAYER2_URL: node.url, TRIGATE_LAYER2_RPS: "1000" })
        const browser = yield* opened({ width: 390 })
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
  }
})
