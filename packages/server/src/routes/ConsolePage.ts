/**
 * `GET /`: the console, a page about this gateway that loads nothing from other origins.
 *
 * Its files are built from `packages/console` into the folder `console` of this package. In a checkout, `npm ci` builds
 * them.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Path from "effect/Path"
import * as ProblemResponse from "../requests/ProblemResponse.ts"
import * as StaticPage from "./StaticPage.ts"

/**
 * The folders that can contain the console: beside the folder of the bundled program, or in this package. The first one
 * that contains files is used.
 */
const folders = [new URL("../console", import.meta.url), new URL("../../console", import.meta.url)]

const types: { readonly [extension: string]: string } = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml"
}

/** The `Content-Security-Policy`: only resources of this gateway, no inline scripts or styles, no framing. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'"
].join("; ")

const notBuilt = ProblemResponse.plainProblem(404, "Not Found", "The console is not built: run `npm run console`")

/**
 * The routes of the console's files; each file is read at its first request.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const found = (yield* Effect.forEach(
    folders,
    Effect.fnUntraced(function*(folder) {
      const root = yield* Effect.orDie(path.fromFileUrl(folder))
      const names = yield* Effect.orElseSucceed(files.readDirectory(root, { recursive: true }), () => [])
      return names.flatMap((name) => {
        const contentType = types[path.extname(name)]
        return contentType === undefined ? [] : [{ contentType, name, file: path.join(root, name) }]
      })
    })
  )).find((listed) => listed.length > 0) ?? []
  if (found.length === 0) return yield* router.add("GET", "/", Effect.succeed(notBuilt))
  yield* Effect.forEach(found, ({ contentType, file, name }) =>
    Effect.gen(function*() {
      const content = Effect.map(Effect.orDie(files.readFile(file)), (body) => ({
        body,
        contentType,
        policy
      }))
      const route = name === "index.html" ? "/" : `/${name.replaceAll("\\", "/")}` as const
      yield* router.add("GET", route, yield* StaticPage.make(content))
    }), { discard: true })
}))
