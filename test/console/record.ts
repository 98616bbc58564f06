/**
 * `npm run record`: records docs/images/console.png, an animation of the Trade view of a sandbox: the chart with fills and
 * open orders, a filled order, a refused one, and three scenarios.
 */
import * as ProcessMetrics from "@trigate/server/unstable/process/Metrics"
import { gateway } from "@trigate/testing/Gateway"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as zlib from "node:zlib"
import type { Opened } from "./browser.ts"
import { closeBrowser, goTo, opened, press, shows } from "./browser.ts"

interface Frame {
  readonly png: Buffer
  /** Seconds for which the frame is shown. */
  readonly seconds: number
}

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/** Returns the chunks of a PNG by type, in order (PNG specification, section 5). */
const readChunks = (png: Buffer) => {
  const chunks: Array<{ readonly type: string; readonly data: Buffer }> = []
  for (let at = signature.length; at < png.length;) {
    const length = png.readUInt32BE(at)
    chunks.push({ type: png.toString("latin1", at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) })
    at += length + 12
  }
  return chunks
}

const chunk = (type: string, ...parts: ReadonlyArray<Buffer>): Buffer => {
  const body = Buffer.concat([Buffer.from(type, "latin1"), ...parts])
  const framed = Buffer.alloc(body.length + 8)
  framed.writeUInt32BE(body.length - 4, 0)
  body.copy(framed, 4)
  framed.writeUInt32BE(zlib.crc32(body), body.length + 4)
  return framed
}

const integers = (...values: ReadonlyArray<number>): Buffer => {
  const bytes = Buffer.alloc(values.length * 4)
  values.forEach((value, at) => bytes.writeUInt32BE(value, at * 4))
  return bytes
}

/** Joins PNGs of one size into an animated PNG that repeats (PNG specification, third edition, section 11.3.5). */
const animate = (frames: ReadonlyArray<Frame>): Buffer => {
  let sequence = 0
  const head = frames.flatMap(({ png }) => readChunks(png)).find(({ type }) => type === "IHDR")
  if (head === undefined) throw new Error("No frames")
  const size = head.data.subarray(0, 8)
  const parts = frames.flatMap(({ png, seconds }, at) => {
    const delay = Buffer.from([0, Math.round(seconds * 10), 0, 10, 0, 0])
    const found = readChunks(png).filter(({ type }) => type === "IDAT").map(({ data }) => data)
    // the browser compresses for speed
    const data = zlib.deflateSync(zlib.inflateSync(Buffer.concat(found)), { level: 9 })
    return [
      chunk("fcTL", integers(sequence++), size, integers(0, 0), delay),
      at === 0 ? chunk("IDAT", data) : chunk("fdAT", integers(sequence++), data)
    ]
  })
  return Buffer.concat([
    signature,
    chunk("IHDR", head.data),
    chunk("acTL", integers(frames.length, 0)),
    ...parts,
    chunk("IEND")
  ])
}

/** Hours of trading before the recording. */
const hours = 18

const order = ({ page }: Opened, side: "Buy" | "Sell", size: string, price?: number) =>
  Effect.promise(async () => {
    await page.getByRole("radio", { name: side }).check({ force: true })
    await page.getByLabel("Type").selectOption(price === undefined ? "market" : "limit")
    await page.getByLabel("Size", { exact: true }).fill(size)
    if (price !== undefined) await page.getByLabel("Price", { exact: true }).fill(String(price))
    await page.getByRole("button", { name: `${side} ETH` }).click()
  })

const post = (url: string, body: object) =>
  Effect.promise(() =>
    fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body)
    }).then((response) => response.text())
  )

const decodeMids = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ ETH: Schema.String })))

const mid = (url: string) =>
  Effect.map(post(`${url}/info`, { type: "allMids" }), (mids) => Number(decodeMids(mids).ETH))

const advance = (url: string, hours: number) =>
  post(`${url}/admin/sandbox/clock`, { advance: Math.round(hours * 3_600_000) })

/** A day of trading before the recording: fills of several bars, and orders that rest on both sides of the price. */
const earlier = Effect.fnUntraced(function*(browser: Opened, url: string) {
  // looks ahead, so that the position has a profit
  yield* post(`${url}/admin/sandbox/snapshots`, {})
  const before = yield* mid(url)
  yield* advance(url, hours)
  const [side, other] = before < (yield* mid(url)) ? ["Buy", "Sell"] as const : ["Sell", "Buy"] as const
  yield* post(`${url}/admin/sandbox/reset`, { snapshot: "1" })
  for (
    const [each, size, later] of [[side, "0.4", 6], [side, "0.3", 5], [other, "0.2", 4], [side, "0.1", 3.2]] as const
  ) {
    yield* order(browser, each, size)
    yield* shows(browser, /^Order \d+ is filled/u)
    yield* advance(url, later)
  }
  const price = yield* mid(url)
  for (const [side, size, share] of [["Buy", "0.25", 0.997], ["Buy", "0.5", 0.993], ["Sell", "0.3", 1.006]] as const) {
    yield* order(browser, side, size, Math.round(price * share))
    yield* shows(browser, /^Order \d+ is resting/u)
  }
})

const record = Effect.gen(function*() {
  // the venue's clock is advanced to the present by the trading before the recording
  const clock = new Date((yield* Clock.currentTimeMillis) - hours * 3_600_000).toISOString()
  const { url } = yield* gateway({ TRIGATE_SANDBOX_CLOCK: clock })
  const browser = yield* opened({ colorScheme: "dark" })
  const { page } = browser
  const frames: Array<Frame> = []
  const show = (seconds: number) =>
    Effect.map(Effect.promise(() => page.screenshot()), (png) => void frames.push({ png, seconds }))
  const trade = Effect.gen(function*() {
    yield* goTo(browser, `${url}/#trade?coin=ETH&interval=15m`)
    yield* Effect.promise(() => page.getByRole("button", { name: "Buy ETH" }).waitFor())
    yield* Effect.promise(() => page.getByRole("img", { name: /^Candlestick chart from/u }).waitFor())
    yield* Effect.promise(() => page.locator("tr.bid").nth(6).waitFor())
  })
  const story = Effect.fnUntraced(function*(name: string) {
    yield* press(browser, name)
    yield* Effect.promise(() => page.getByRole("region", { name, exact: true }).locator(".number").waitFor())
    yield* show(3.5)
  })
  yield* Effect.promise(() => page.setViewportSize({ width: 1120, height: 660 }))
  yield* trade
  yield* earlier(browser, url)
  // the first frame is all that a viewer without animations shows
  yield* goTo(browser, "about:blank")
  yield* trade
  yield* Effect.promise(() => page.getByRole("img", { name: /entry of .* order to buy .* fills/u }).waitFor())
  yield* Effect.promise(() => page.waitForFunction(() => document.fonts.status === "loaded"))
  yield* Effect.promise(() => page.mouse.move(0, 0))
  yield* show(3)
  yield* order(browser, "Buy", "0.05")
  yield* shows(browser, /^Order \d+ is filled/u)
  yield* show(2)
  yield* order(browser, "Buy", "0.001", 1500)
  yield* shows(browser, /^Refused: /u)
  yield* show(2.5)
  yield* story("100 bots on one address")
  yield* story("Lose the next reply")
  yield* story("A mistake in a signature")
  fs.writeFileSync(new URL("../../docs/images/console.png", import.meta.url), animate(frames))
})

await Effect.runPromise(record.pipe(Effect.scoped, Effect.provide(ProcessMetrics.layer)))
await closeBrowser()
