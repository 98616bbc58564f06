/** How long the console and the API reference take to open in Chromium, each time in a browser without a cache, and what they transfer. */
import type { Page } from "playwright-core"
import { chromium } from "playwright-core"
import { executable } from "../test/console/browser.ts"
import * as Peers from "./harness/peers.ts"
import { plan } from "./harness/plan.ts"
import { start } from "./harness/processes.ts"
import type { Row } from "./harness/results.ts"
import { median } from "./harness/statistics.ts"
import { run } from "./harness/suite.ts"

const serving = (): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = start({
      name: "trigate",
      core: "peer",
      program: process.execPath,
      args: [Peers.program, "serve"],
      env: { TRIGATE_PORT: "0", TRIGATE_ACCESS_LOG: "off" }
    })
    let printed = ""
    child.stdout?.on("data", (chunk: Buffer) => {
      printed += chunk.toString("utf8")
      const url = /listens on (?<url>http:\S+)/u.exec(printed)?.groups?.["url"]
      if (url !== undefined) resolve(url)
    })
    child.on("close", () => reject(new Error(`The gateway ended:\n${printed}`)))
  })

/** One opening: seconds until something is shown and until the page is whole, and the bytes that came. */
interface Opening {
  readonly shown: number
  readonly whole: number
  readonly kilobytes: number
}

const opening = async (url: string, whole: (page: Page) => Promise<unknown>): Promise<Opening> => {
  const browser = await chromium.launch({ executablePath: executable ?? "", args: ["--no-sandbox", "--disable-gpu"] })
  const page = await browser.newPage()
  const began = performance.now()
  await page.goto(url)
  await whole(page)
  const seconds = (performance.now() - began) / 1000
  const [paint = 0, bytes = 0] = await page.evaluate<ReadonlyArray<number>>(
    "[performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0, " +
      "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]" +
      ".reduce((sum, { transferSize }) => sum + transferSize, 0)]"
  )
  await browser.close()
  return { shown: paint / 1000, whole: seconds, kilobytes: bytes / 1000 }
}

const pages: ReadonlyArray<readonly [name: string, path: string, whole: (page: Page) => Promise<unknown>]> = [
  ["console", "/", (page) => page.getByText("Venue").first().waitFor()],
  ["reference", "/docs", (page) => page.getByText("POST /exchange", { exact: true }).first().waitFor()]
]

await run("pages", async () => {
  if (executable === undefined) return { rows: [], notes: ["there is no Chromium on this machine"] }
  const url = await serving()
  const rows: Array<Row> = []
  const notes: Array<string> = []
  for (const [name, path, whole] of pages) {
    const first = await opening(`${url}${path}`, whole)
    notes.push(
      `the first opening of the ${name}, which the gateway makes then, showed it after ${first.shown.toFixed(2)} s`
    )
    const openings: Array<Opening> = []
    for (let round = 0; round < plan.rounds; round++) openings.push(await opening(`${url}${path}`, whole))
    const row = (title: string, unit: string, of: (each: Opening) => number, aim?: number): Row => {
      const values = openings.map(of)
      const value = median(values)
      const aimed = aim === undefined ? {} : { aim: `<= ${aim} ${unit}`, met: value <= aim }
      return { title: `${name}, ${title}`, beside: "Chromium, empty cache", unit, value, values, ...aimed }
    }
    rows.push(
      row("transferred", "kB", ({ kilobytes }) => kilobytes),
      row("first content shown", "s", ({ shown }) => shown, 0.6),
      row("whole", "s", ({ whole }) => whole)
    )
  }
  return { rows, notes }
})
