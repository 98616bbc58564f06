/** `GET /docs` and `GET /openapi.json`: the API reference, in one page that loads nothing from the internet. */
import * as Examples from "@trigate/api/Examples"
import { ChainsApi, GatewayApi } from "@trigate/api/GatewayApi"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { profileFor } from "@trigate/signing/VenueProfile"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as HttpApi from "effect/http-api/HttpApi"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiScalar from "effect/http-api/HttpApiScalar"
import * as OpenApi from "effect/http-api/OpenApi"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { GatewayStatus } from "../GatewayStatus.ts"
import * as StaticPage from "./StaticPage.ts"

// @effect-diagnostics-next-line nodeBuiltinImport:off -- a hash is computed where it is used, without a service
import { createHash } from "node:crypto"

/** The routes that the reference describes. */
export interface Options {
  /** Whether to include the routes about the gateway itself. */
  readonly health: boolean
  /** The path before all routes; empty for none. */
  readonly prefix: string
}

// without external fonts, a proxy, or the toolbar that offers to upload the document
const scalar = {
  withDefaultFonts: false,
  theme: "default",
  customCss: ".api-reference-toolbar { display: none !important }"
} as const

const scriptHash = (script: string): string => `'sha256-${createHash("sha256").update(script).digest("base64")}'`

/**
 * Returns the `Content-Security-Policy`: the page may run its own scripts, use styles and send requests to this gateway; no page
 * may frame it.
 */
const securityPolicy = (scripts: ReadonlyArray<string>): string =>
  [
    "default-src 'none'",
    `script-src ${scripts.map(scriptHash).join(" ")}`,
    "style-src 'unsafe-inline'",
    "img-src data:",
    "font-src data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ].join("; ")

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")

// the methods in the contract
const methods = ["get", "post", "delete"] as const

/** Renders the outline of the reference as a list, which is shown until the script has rendered the reference. */
const renderOutline = ({ info, paths, tags }: OpenApi.OpenAPISpec): string => {
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const operation = item[method]
      if (operation === undefined) return []
      const { summary = "", tags } = operation
      return {
        tag: tags[0],
        line: `<li><code>${method.toUpperCase()} ${escaped(path)}</code> ${escaped(summary)}</li>`
      }
    })
  )
  const groups = tags.map(({ name }) => {
    const lines = operations.flatMap(({ line, tag }) => tag === name ? [line] : [])
    return `<h2>${escaped(name)}</h2><ul>${lines.join("")}</ul>`
  })
  return `<h1>${escaped(info.title)}</h1>${groups.join("")}`
}

const outlineStyle = "<style>:root{color-scheme:light dark}body{font-family:system-ui,sans-serif}" +
  "#api-reference-container>:is(h1,h2,ul){margin:1rem 2rem;line-height:1.6}</style>"

/** Defers loading and starting the script, which has three megabytes, until the browser has shown the outline. */
const deferScript = (start: string): string =>
  "requestAnimationFrame(() => setTimeout(() => {" +
  "const script = document.createElement('script');" +
  "script.textContent = document.getElementById('reference').textContent;" +
  `document.body.append(script);${start}}))`

const decoder = new TextDecoder()
const encoder = new TextEncoder()

/** Inserts the outline into Effect's page and moves its two scripts after it. */
const arranged = ({ body, contentType }: StaticPage.Content, document: OpenApi.OpenAPISpec): StaticPage.Content => {
  const [, head = "", reference = "", between = "", start = "", tail = ""] =
    /^(.*?)<script>(.*?)<\/script>(.*?)<script>(.*?)<\/script>(.*)$/su.exec(decoder.decode(body)) ?? []
  const later = deferScript(start)
  const container = `<div id="api-reference-container">`
  const page = [
    head.replace("</head>", () => `${outlineStyle}</head>`).replace(
      container,
      () => container + renderOutline(document)
    ),
    `<script type="text/plain" id="reference">${reference}</script>${between}<script>${later}</script>${tail}`
  ]
  return { contentType, body: encoder.encode(page.join("")), policy: securityPolicy([reference, later]) }
}

const pageContent = ({ body }: HttpServerResponse.HttpServerResponse): Effect.Effect<StaticPage.Content> =>
  body._tag === "Uint8Array"
    ? Effect.succeed({ contentType: body.contentType, body: body.body })
    : Effect.die(new Error("The reference has no text"))

const decodeDocument = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))

const isSignedExample = (value: unknown): boolean =>
  Predicate.hasProperty(value, "nonce") && value.nonce === Examples.signedAction.nonce

/** Replaces the example action, whose nonce is too old, with an action that the sandbox currently accepts. */
const signedNow = Effect.fnUntraced(function*(network: GatewayStatus["Service"]["network"]) {
  const nonce = yield* Clock.currentTimeMillis
  const { action } = Examples.signedAction
  const signed = yield* Effect.orDie(SandboxSigner.signAction(keys.trader, { action, nonce }, profileFor(network)))
  return (document: Record<string, unknown>) =>
    decodeDocument(JSON.stringify(document, (_, value: unknown) => isSignedExample(value) ? signed : value))
})

const describing = <Groups extends HttpApiGroup.Constraint>(api: HttpApi.HttpApi<"gateway", Groups>, prefix: string) =>
  HttpRouter.use(Effect.fnUntraced(function*(router) {
    const { network, sandbox } = yield* GatewayStatus
    const scope = yield* Effect.scope
    const placed = prefix === "" ? api : api.annotate(OpenApi.Servers, [{ url: prefix }])
    const contract = sandbox
      ? Effect.map(signedNow(network), (transform) => placed.annotate(OpenApi.Transform, transform))
      : Effect.succeed(placed)
    const page = Effect.flatMap(
      contract,
      (contract) =>
        Scope.provide(HttpRouter.toHttpEffect(HttpApiScalar.layer(contract, { path: "/docs", scalar })), scope).pipe(
          Effect.flatten,
          Effect.orDie,
          Effect.flatMap(pageContent),
          Effect.map((content) => arranged(content, OpenApi.fromApi(contract)))
        )
    )
    const document = Effect.flatMap(
      contract,
      (contract) => pageContent(HttpServerResponse.jsonUnsafe(OpenApi.fromApi(contract)))
    )
    yield* router.add("GET", "/docs", yield* StaticPage.make(page))
    yield* router.add("GET", "/openapi.json", yield* StaticPage.make(document))
  }))

/**
 * The two routes. The page, whose script has three megabytes, and the document are built on their first request.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = ({ health, prefix }: Options) =>
  health ? describing(GatewayApi, prefix) : describing(ChainsApi, prefix)
