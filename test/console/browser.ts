/** A page of the console in Debian's Chromium, with everything that it asked for and complained about. */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { chromium } from "playwright-core"

/** The browser of this machine, if there is one. */
export const executable = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((file) => fs.existsSync(file))

/** A page, and what happened on it. */
export interface Opened {
  readonly page: Page
  /** The URLs of all requests. */
  readonly asked: Array<string>
  /** Errors of scripts and of the content security policy. */
  readonly complaints: Array<string>
}

let launched: Promise<Browser> | undefined

/** The browser of all pages; starting one takes a second of processor time. */
const browser = (): Promise<Browser> =>
  launched ??= chromium.launch({
    executablePath: executable ?? "",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic"]
  })

/** Ends the browser. */
export const closeBrowser = async (): Promise<void> => {
  const open = await launched
  launched = undefined
  await open?.close()
}

/** Opens a page with a storage of its own, which closes with the scope. */
export const opened = (options: BrowserContextOptions = {}) =>
  Effect.acquireRelease(
    Effect.promise(async () =>
      (await browser()).newContext({ viewport: { width: 1200, height: 900 }, reducedMotion: "reduce", ...options })
    ),
    (context) => Effect.promise(() => context.close())
  ).pipe(
    // pages share two cores with each other and with other tests
    Effect.tap((context) => Effect.sync(() => context.setDefaultTimeout(120_000))),
    Effect.flatMap((context) => Effect.promise(() => context.newPage())),
    Effect.map((page): Opened => {
      const asked: Array<string> = []
      const complaints: Array<string> = []
      page.on("request", (request) => void asked.push(request.url()))
      page.on("pageerror", ({ message }) => void complaints.push(message))
      page.on("console", (message) => {
        if (message.type() === "error" || message.type() === "warning") complaints.push(message.text())
      })
      return { page, asked, complaints }
    })
  )

/** Waits until an element shows a text. */
export const shows = ({ page }: Opened, text: string | RegExp) =>
  Effect.promise(() => page.getByText(text).first().waitFor({ state: "visible" }))

/** Keeps a picture of the page where the documents show it, if `SCREENSHOTS` is set. */
export const keep = ({ page }: Opened, name: string) =>
  process.env["SCREENSHOTS"] === undefined
    ? Effect.void
    : Effect.promise(() =>
      page.screenshot({ path: new URL(`../../docs/images/${name}.png`, import.meta.url).pathname })
    )
