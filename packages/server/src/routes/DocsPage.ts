/** `GET /docs` and `GET /openapi.json`: the API reference, in one page that loads nothing from the internet. */
import * as Examples from "@trigate/api/Examples"
import { ChainsApi, GatewayApi } from "@trigate/api/GatewayApi"
import { CallerKeys } from "@trigate/callers/CallerKeys"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { profileFor } from "@trigate/signing/VenueProfile"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as HttpApi from "effect/http-api/HttpApi"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { GatewayStatus } from "../GatewayStatus.ts"
import * as ReferencePage from "./reference/ReferencePage.ts"
import { script } from "./reference/ReferenceScript.ts"
import * as StaticPage from "./StaticPage.ts"

// @effect-diagnostics-next-line nodeBuiltinImport:off -- a hash is computed where it is used, without a service
import { createHash } from "node:crypto"

/** The routes that the reference describes. */
export interface Options {
  /** Whether to include the routes about the gateway itself. */
  readonly health: boolean
  /** The prefix of all paths; empty if there is none. */
  readonly prefix: string
}

const hash = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`

/**
 * The `Content-Security-Policy`: allows the page's own script and style, and requests to this gateway; forbids to frame
 * the page.
 */
const policy = [
  "default-src 'none'",
  `script-src ${hash(script)}`,
  `style-src ${hash(ReferencePage.style)}`,
  "img-src data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'"
].join("; ")

const encoder = new TextEncoder()

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
    const { check } = yield* CallerKeys
    const placed = prefix === "" ? api : api.annotate(OpenApi.Servers, [{ url: prefix }])
    const document = Effect.map(
      sandbox
        ? Effect.map(signedNow(network), (transform) => placed.annotate(OpenApi.Transform, transform))
        : Effect.succeed(placed),
      OpenApi.fromApi
    )
    const page = Effect.map(document, (document): StaticPage.Content => ({
      contentType: "text/html; charset=utf-8",
      body: encoder.encode(
        ReferencePage.render(document, { network, sandbox, keys: check !== undefined, prefix })
      ),
      policy
    }))
    const contract = Effect.map(document, (document): StaticPage.Content => ({
      contentType: "application/json",
      body: encoder.encode(JSON.stringify(document))
    }))
    yield* router.add("GET", "/docs", yield* StaticPage.make(page))
    yield* router.add("GET", "/openapi.json", yield* StaticPage.make(contract))
  }))

/**
 * The routes `GET /docs` and `GET /openapi.json`. The page and the document are rendered on their first request.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = ({ health, prefix }: Options) =>
  health ? describing(GatewayApi, prefix) : describing(ChainsApi, prefix)
