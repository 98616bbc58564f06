/** A page in a real browser: Debian's Chromium, driven by playwright-core. */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as http from "node:http"
import * as path from "node:path"
import { chromium } from "playwright-core"

/** The browser of this machine. */
export const find = (): string | undefined =>
  ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((file) => fs.existsSync(file))

const types: { readonly [extension: string]: string } = { ".html": "text/html", ".js": "text/javascript" }

/** Serves the files of a folder on a free port. */
const serve = (folder: string): Promise<http.Server> =>
  new Promise((resolve) => {
    const server = http.createServer(({ url = "/" }, response) => {
      const { pathname } = new URL(url, "http://page")
      const file = path.join(folder, pathname === "/" ? "index.html" : path.normalize(pathname))
      if (fs.existsSync(file)) response.setHeader("content-type", types[path.extname(file)] ?? "text/plain")
      else response.statusCode = 404
      response.end(fs.existsSync(file) ? fs.readFileSync(file) : "")
    })
    server.listen(0, "127.0.0.1", () => resolve(server))
  })

const portOf = (server: http.Server): number => {
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : 0
}

/** The title that the page of a folder gives itself. */
export const titleOf = (executablePath: string, folder: string, query: string): Effect.Effect<string> =>
  Effect.promise(async () => {
    const server = await serve(folder)
    const browser = await chromium.launch({
      executablePath,
      args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    })
    const page = await browser.newPage()
    const failed = new Promise<string>((resolve) =>
      page.on("pageerror", (error) => resolve(`failed: ${error.message}`))
    )
    await page.goto(`http://127.0.0.1:${portOf(server)}/${query}`)
    const titled = page.waitForFunction("document.title").then(() => page.title())
    const title = await Promise.race([titled, failed])
    await browser.close()
    server.close()
    return title
  })
