/**
 * Static pages, made and compressed once, and the console at `GET /`.
 *
 * All responses share the same bytes, so concurrent responses need no additional memory or processor time.
 *
 * Its files are built from `packages/console` into the folder `console` of this package. In a checkout, `npm ci` builds
 * them.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Path from "effect/Path"
import type * as Scope from "effect/Scope"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- a validator is computed where it is used, without a service
import { createHash } from "node:crypto"
import * as Zlib from "node:zlib"
import * as ProblemResponse from "../requests/Request.ts"

/** The content of a page. */
export interface Content {
  readonly contentType: string
  readonly body: Uint8Array
  /** The `Content-Security-Policy` of the page. Default: none. */
  readonly policy?: string
}

type Coding = "br" | "gzip" | "identity"

type Encoder = (body: Uint8Array) => Effect.Effect<Uint8Array>

const encoder = (
  encode: (body: Uint8Array, done: (error: Error | null, output: Uint8Array) => void) => void
): Encoder =>
(body) =>
  Effect.callback((resume) => {
    encode(body, (error, output) => resume(error === null ? Effect.succeed(output) : Effect.die(error)))
  })

// for three megabytes, the best quality takes ten seconds, quality 9 takes 0.4 seconds, and quality 5 less than 0.1
// seconds for 3 percent more bytes
const quality = { params: { [Zlib.constants.BROTLI_PARAM_QUALITY]: 5 } }

const encoders: { readonly [C in Coding]: Encoder } = {
  br: encoder((body, done) => Zlib.brotliCompress(body, quality, done)),
  gzip: encoder((body, done) => Zlib.gzip(body, done)),
  identity: Effect.succeed
}

/** Returns the quality value of a content coding in `Accept-Encoding` (RFC 9110, section 12.5.3). */
const codingWeight = (accepted: string, coding: Coding): number => {
  let others = 0
  for (const member of accepted.split(",")) {
    const [, name, weight = "1"] = /^\s*([^\s;]+)\s*(?:;\s*q=([0-9.]+)\s*)?$/u.exec(member) ?? []
    if (name?.toLowerCase() === coding) return Number(weight)
    if (name === "*") others = Number(weight)
  }
  return others
}

const codingFor = (accepted: string | undefined): Coding => {
  if (accepted === undefined) return "identity"
  const br = codingWeight(accepted, "br")
  const gzip = codingWeight(accepted, "gzip")
  return br > 0 && br >= gzip ? "br" : gzip > 0 ? "gzip" : "identity"
}

/** Returns whether `If-None-Match` contains a validator, compared weakly (RFC 9110, section 13.1.2). */
const isAmong = (validators: string | undefined, etag: string): boolean =>
  validators !== undefined &&
  validators.split(",").some((each) => ["*", etag, `W/${etag}`].includes(each.trim()))

const represent = (coding: Coding, { body, contentType, policy }: Content) =>
  Effect.map(encoders[coding](body), (encoded) => {
    const etag = `"${createHash("sha256").update(encoded).digest("base64url").slice(0, 22)}"`
    // the browser has to revalidate a cached copy, because an update of the gateway changes the page
    const headers = {
      etag,
      vary: "accept-encoding",
      "cache-control": "no-cache",
      ...(policy === undefined ? {} : { "content-security-policy": policy })
    }
    return {
      etag,
      whole: HttpServerResponse.uint8Array(encoded, {
        contentType,
        headers: coding === "identity" ? headers : { ...headers, "content-encoding": coding }
      }),
      notModified: HttpServerResponse.empty({ status: 304, headers })
    }
  })

/**
 * Runs an effect once, at its first use. The effect has its own scope, so that one client's disconnection does not
 * interrupt the effect for other clients.
 */
const once = <A, R>(effect: Effect.Effect<A, never, R>, scope: Scope.Scope): Effect.Effect<A, never, R> => {
  let running: Fiber.Fiber<A> | undefined
  return Effect.suspend(() =>
    running === undefined
      ? Effect.flatMap(Effect.forkIn(effect, scope), (fiber) => Fiber.join(running = fiber))
      : Fiber.join(running)
  )
}

/** Makes the handler of a page. Closing the scope releases the page's resources. */
export const make = <R>(content: Effect.Effect<Content, never, R>) =>
  Effect.map(Effect.scope, (scope) => {
    const made = once(content, scope)
    const coded = (coding: Coding) => once(Effect.flatMap(made, (content) => represent(coding, content)), scope)
    const representations = { br: coded("br"), gzip: coded("gzip"), identity: coded("identity") }
    return Effect.flatMap(HttpServerRequest, ({ headers }) =>
      Effect.map(
        representations[codingFor(headers["accept-encoding"])],
        ({ etag, notModified, whole }) => isAmong(headers["if-none-match"], etag) ? notModified : whole
      ))
  })

/**
 * The folders that can contain the console: beside the folder of the bundled program, or in this package. The first one
 * that contains files is used.
 */
/** Returns a content security policy of a page that loads nothing else, and calls only its own origin. */
export const contentPolicy = (sources: { readonly script: string; readonly style: string; readonly image: string }) =>
  [
    "default-src 'none'",
    `script-src ${sources.script}`,
    `style-src ${sources.style}`,
    `img-src ${sources.image}`,
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ].join("; ")

const folders = [new URL("../console", import.meta.url), new URL("../../console", import.meta.url)]

const types: { readonly [extension: string]: string } = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml"
}

/** The `Content-Security-Policy`: only resources of this gateway, no inline scripts or styles, no framing. */
const policy = contentPolicy({ script: "'self'", style: "'self'", image: "'self' data:" })

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
      yield* router.add("GET", route, yield* make(content))
    }), { discard: true })
}))
