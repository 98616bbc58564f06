/**
 * `npm run record`: records docs/images/console.png, an animation of the console of a sandbox: the chart with fills and open
 * orders, a filled order, a refused one, and a mistake in a signature.
 */
import * as ProcessMetrics from "@trigate/server/unstable/process/Metrics"
import { gateway } from "@trigate/testing/Gateway"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as zlib from "node:zlib"
import type { Opened } from "./browser.ts"
import { click, closeBrowser, goTo, opened, postJson, press, shows } from "./browser.ts"

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
    return [
      chunk("fcTL", integers(sequence++), size, integers(0, 0), delay),
      ...readChunks(png).filter(({ type }) => type === "IDAT").map(({ data }) =>
        at === 0 ? chunk("IDAT", data) : chunk("fdAT", integers(sequence++), data)
      )
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

/** A day of trading before the recording: fills of several bars, and orders that rest on both sides of the price. */
const earlier = Effect.fnUntraced(function*(browser: Opened, url: string) {
  const { page } = browser
  const order = Effect.fnUntraced(function*(side: string, size: string, price: string, outcome: RegExp) {
    yield* Effect.promise(() => page.getByLabel("Side").selectOption(side))
    yield* Effect.promise(() => page.getByLabel("Size").fill(size))
    yield* Effect.promise(() => page.getByLabel("Price").fill(price))
    yield* press(browser, "Place the order")
    yield* shows(browser, outcome)
  })
  yield* goTo(browser, `${url}/#trade`)
  yield* shows(browser, "No open orders.")
  for (
    const [side, size, later] of [["buy", "0.4", 6], ["buy", "0.3", 5], ["sell", "0.2", 4], ["buy", "0.1", 3]] as const
  ) {
    yield* order(side, size, "", /^Order \d+ is filled/u)
    yield* postJson(`${url}/admin/sandbox/clock`, JSON.stringify({ advance: later * 3_600_000 }))
  }
  const prices = yield* Effect.promise(() =>
    fetch(`${url}/info`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: `{"type":"allMids"}`
    }).then((response) => response.text())
  )
  const { ETH } = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ ETH: Schema.String })))(prices)
  for (const [side, size, share] of [["buy", "0.25", 0.99], ["buy", "0.5", 0.985], ["sell", "0.3", 1.01]] as const) {
    yield* order(side, size, String(Math.round(Number(ETH) * share)), /^Order \d+ is resting/u)
  }
})

const record = Effect.gen(function*() {
  // the venue's clock is advanced to the present by the trading before the recording
  const clock = new Date((yield* Clock.currentTimeMillis) - hours * 3_600_000).toISOString()
  const { url } = yield* gateway({ TRIGATE_SANDBOX_CLOCK: clock })
  const browser = yield* opened()
  const { page } = browser
  const frames: Array<Frame> = []
  const show = (seconds: number) =>
    Effect.map(Effect.promise(() => page.screenshot()), (png) => void frames.push({ png, seconds }))
  const order = Effect.fnUntraced(function*(size: string, price: string) {
    yield* Effect.promise(() => page.getByLabel("Size").fill(size))
    yield* Effect.promise(() => page.getByLabel("Price").fill(price))
    yield* show(0.8)
    yield* press(browser, "Place the order")
  })
  yield* Effect.promise(() => page.setViewportSize({ width: 1040, height: 660 }))
  yield* earlier(browser, url)
  // the first frame is all that a viewer without animations shows
  yield* goTo(browser, `${url}/#candles?coin=ETH&interval=15m`)
  yield* shows(browser, "500 bars, none missing between them")
  yield* Effect.promise(() => page.getByRole("img", { name: /^Candlestick chart from/u }).waitFor())
  // orders and fills are read every ten seconds
  yield* Effect.promise(() => page.waitForResponse((response) => response.url().endsWith("/info")))
  yield* Effect.promise(() => page.waitForFunction(() => document.fonts.status === "loaded"))
  yield* Effect.promise(() => page.mouse.move(0, 0))
  yield* show(3)
  yield* click(browser, "Paper trading")
  yield* shows(browser, /^As of /u)
  yield* order("0.05", "")
  yield* shows(browser, /^Order \d+ is filled/u)
  yield* show(2.5)
  yield* order("0.001", "1500")
  yield* shows(browser, /^Refused \(MinimumNotional\)/u)
  yield* show(3)
  yield* click(browser, "Inspector")
  yield* press(browser, "Load an example")
  yield* press(browser, "Inspect")
  yield* Effect.promise(() => page.locator("details", { hasText: "The corrected body" }).waitFor())
  yield* Effect.promise(() => page.locator("section.card").last().scrollIntoViewIfNeeded())
  yield* show(3)
  fs.writeFileSync(new URL("../../docs/images/console.png", import.meta.url), animate(frames))
})

await Effect.runPromise(record.pipe(Effect.scoped, Effect.provide(ProcessMetrics.layer)))
await closeBrowser()
