/** A page of the console in Debian's Chromium, with everything that it asked for and complained about. */
import { canRun } from "@trigate/testing/Requirement"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { createRequire } from "node:module"
import type { Browser, Page } from "playwright-core"
import { chromium } from "playwright-core"

/** The browser of this machine, if there is one. */
export const executable = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
  .find((file) => fs.existsSync(file))

/** Whether the console can be opened here. */
export const canOpen = canRun("tests in a browser", executable === undefined ? "there is no Chromium" : undefined)

/** A page, and what happened on it. */
export interface Opened {
  readonly page: Page
  /** The URLs of all requests. */
  readonly asked: Array<string>
  /** Errors of scripts and of the content security policy. */
  readonly complaints: Array<string>
}

let launched: Promise<Browser> | undefined
let made: Promise<Page> | undefined

/** Makes the timers with which the page polls ten times as fast: a test waits for what they bring, not for them. */
const hurry = `for (const name of ["setTimeout", "setInterval"]) {
  const start = globalThis[name]
  globalThis[name] = (act, delay = 0) => start(act, delay < 1000 ? delay : delay / 10)
}`

const makePage = async (): Promise<Page> => {
  launched = chromium.launch({
    executablePath: executable ?? "",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic"]
  })
  const context = await (await launched).newContext({ reducedMotion: "reduce" })
  // the page shares two cores with other tests
  context.setDefaultTimeout(60_000)
  await context.grantPermissions(["clipboard-read", "clipboard-write"])
  await context.addInitScript({ content: hurry })
  return context.newPage()
}

/** Ends the browser. */
export const closeBrowser = async (): Promise<void> => {
  const open = await launched
  launched = undefined
  made = undefined
  await open?.close()
}

/** The width of the window in pixels, and the colour scheme. */
export interface Look {
  readonly width?: number
  readonly colorScheme?: "light" | "dark"
}

/** Changes the width of the window and the colour scheme of an open page. */
export const wear = ({ page }: Pick<Opened, "page">, { colorScheme = "light", width = 1200 }: Look) =>
  Effect.promise(async () => {
    await page.setViewportSize({ width, height: 900 })
    await page.emulateMedia({ colorScheme })
  })

/**
 * Lends the only page of the file, which is blank when the scope begins and ends. A browser, a context and a page take a second
 * of processor time each, so that tests share them.
 */
export const opened = (look: Look = {}) =>
  Effect.gen(function*() {
    const page = yield* Effect.promise(() => made ??= makePage())
    yield* wear({ page }, look)
    const asked: Array<string> = []
    const complaints: Array<string> = []
    page.on("request", (request) => void asked.push(request.url()))
    page.on("pageerror", ({ message }) => void complaints.push(message))
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") complaints.push(message.text())
    })
    yield* Effect.addFinalizer(() =>
      Effect.promise(async () => {
        page.removeAllListeners()
        await page.unrouteAll()
        await page.goto("about:blank")
      })
    )
    return { page, asked, complaints } satisfies Opened
  })

/** Waits until an element shows a text. */
export const shows = ({ page }: Opened, text: string | RegExp) =>
  Effect.promise(() => page.getByText(text).first().waitFor({ state: "visible" }))

/** The pictures of docs/images that the tests make, each 1200 pixels wide and 900 high. */
export const pictures = [
  "console-callers",
  "console-candles",
  "console-chains",
  "console-guard",
  "console-inspector",
  "console-overview",
  "console-requests",
  "console-resolve",
  "console-trade",
  "console-weight"
] as const

/** Saves a picture of the page where the documents show it, if `SCREENSHOTS` is set. */
export const keep = ({ page }: Opened, name: (typeof pictures)[number]) =>
  process.env["SCREENSHOTS"] === undefined
    ? Effect.void
    : Effect.promise(() =>
      page.screenshot({ path: new URL(`../../docs/images/${name}.png`, import.meta.url).pathname })
    )

/** Opens a URL. */
export const goTo = ({ page }: Opened, url: string) => Effect.promise(() => page.goto(url))

/** Follows a link by its name. */
export const click = ({ page }: Opened, name: string) =>
  Effect.promise(() => page.getByRole("link", { name, exact: true }).click())

/** Presses the first button with a name. */
export const press = ({ page }: Opened, name: string) =>
  Effect.promise(() => page.getByRole("button", { name, exact: true }).first().click())

const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

/** Returns the findings of axe on a page, or on the selected parts of a large one, by rule. */
export const findings = ({ page }: Opened, parts: ReadonlyArray<string> = ["html"]) =>
  Effect.promise(async () => {
    await page.evaluate(axe)
    return page.evaluate<ReadonlyArray<string>>(
      `axe.run({ include: ${JSON.stringify(parts)} }, { resultTypes: ["violations"] }).then(({ violations }) =>
        violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html).join(" ")))`
    )
  })

/** Returns whether the page is no wider than its window. */
export const isAsWideAsTheWindow = ({ page }: Opened) =>
  Effect.promise(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth))

/** Posts JSON from outside of the page; returns the status. */
export const postJson = (url: string, body: string) =>
  Effect.promise(() =>
    fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body }).then(({ status }) => status)
  )
