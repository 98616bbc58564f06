/**
 * `GET /docs` and `GET /openapi.json`: the API reference, in one page that loads nothing from the internet.
 */
import { ChainsApi, GatewayApi } from "@trigate/api/GatewayApi"
import * as Examples from "@trigate/api/unstable/Examples"
import { CallerKeys } from "@trigate/callers/CallerKeys"
import { actionCatalog, isActionType, isSentAction } from "@trigate/domain/actions/Action"
import { gatewayErrors, rpcCodes } from "@trigate/domain/errors/GatewayError"
import { errorGroups } from "@trigate/domain/errors/Problem"
import { trader } from "@trigate/domain/unstable/Sandbox"
import { table as subscriptions } from "@trigate/domain/unstable/streams/Subscriptions"
import { profileFor } from "@trigate/signing/VenueProfile"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as HttpApi from "effect/http-api/HttpApi"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- a hash is computed where it is used, without a service
import { createHash } from "node:crypto"
import { GatewayStatus } from "../Chains.ts"
import { readableHeaders } from "../requests/Observe.ts"
import { script, style } from "./DocsScript.ts"
import * as StaticPage from "./StaticPage.ts"

/** A JSON schema. */
export interface JsonSchema {
  readonly [member: string]: unknown
}

/** Schemas by name. */
export interface Definitions {
  readonly [name: string]: JsonSchema
}

/** Escapes text for HTML, also inside of a quoted attribute. */
export const escapeHtml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("\"", "&quot;")

const isSchema = (value: unknown): value is JsonSchema => Predicate.isObject(value) && !Array.isArray(value)

const listSchemas = (value: unknown): ReadonlyArray<JsonSchema> => Array.isArray(value) ? value.filter(isSchema) : []

const listTexts = (value: unknown): ReadonlyArray<string> =>
  Array.isArray(value) ? value.filter(Predicate.isString) : []

const prefix = "#/components/schemas/"

const refersTo = ({ $ref }: JsonSchema): string | undefined =>
  Predicate.isString($ref) && $ref.startsWith(prefix) ? $ref.slice(prefix.length) : undefined

const describe = ({ allOf, description }: JsonSchema): string | undefined =>
  Predicate.isString(description) ? description : listSchemas(allOf).map(describe).find(Predicate.isString)

/** Returns the parts of `allOf` that contain more than a description or examples. */
const parts = ({ allOf }: JsonSchema): ReadonlyArray<JsonSchema> =>
  listSchemas(allOf).filter((part) => Object.keys(part).some((name) => !["description", "examples"].includes(name)))

const renderObject = ({ additionalProperties, properties, required }: JsonSchema, indent: string): string => {
  const inner = `${indent}  `
  const needed = listTexts(required)
  const members = isSchema(properties) ? Object.entries(properties) : []
  const lines = members.flatMap(([name, member]) => {
    if (!isSchema(member)) return []
    const note = describe(member)
    const line = `${inner}${escapeHtml(name)}${needed.includes(name) ? "" : "?"}: ${renderType(member, inner)}`
    return note === undefined ? [line] : [`${inner}<i>// ${escapeHtml(note.replaceAll("\n", " "))}</i>`, line]
  })
  const others = isSchema(additionalProperties)
    ? [`${inner}[name: string]: ${renderType(additionalProperties, inner)}`]
    : []
  return lines.length + others.length === 0 ? "object" : `{\n${[...lines, ...others].join("\n")}\n${indent}}`
}

const renderArray = ({ items, prefixItems }: JsonSchema, indent: string): string => {
  const fixed = listSchemas(prefixItems)
  if (fixed.length > 0) return `[${fixed.map((item) => renderType(item, indent)).join(", ")}]`
  if (items === false) return "[]"
  const item = isSchema(items) ? renderType(items, indent) : "unknown"
  return item.includes(" | ") ? `(${item})[]` : `${item}[]`
}

/** Renders a schema as HTML; a named schema is a link to its section. */
export const renderType = (schema: JsonSchema, indent = ""): string => {
  const name = refersTo(schema)
  if (name !== undefined) return `<a href="#type-${escapeHtml(name)}">${escapeHtml(name.replace(/Encoded$/u, ""))}</a>`
  const { anyOf, enum: values, oneOf, type } = schema
  const choices = [...listSchemas(anyOf), ...listSchemas(oneOf)]
  if (choices.length > 0) return [...new Set(choices.map((choice) => renderType(choice, indent)))].join(" | ")
  if (Array.isArray(values)) return values.map((value) => escapeHtml(JSON.stringify(value))).join(" | ")
  const [part] = parts(schema)
  if (part !== undefined && type === undefined) return renderType(part, indent)
  if (type === "array") return renderArray(schema, indent)
  if (type === "object") return renderObject(schema, indent)
  return Predicate.isString(type) ? type === "integer" ? "number" : type : "unknown"
}

const first = (values: unknown): unknown => Array.isArray(values) ? values[0] : undefined

/**
 * Makes an example of a schema: the schema's first declared example; if there is none, an example with only the
 * required fields.
 */
export const makeExample = (schema: JsonSchema, definitions: Definitions, depth = 0): unknown => {
  const own = first(schema["examples"]) ?? first(schema["enum"])
  if (own !== undefined) return own
  const named = definitions[refersTo(schema) ?? ""]
  const [part] = [
    ...(named === undefined ? [] : [named]),
    ...listSchemas(schema["anyOf"]),
    ...listSchemas(schema["oneOf"]),
    ...listSchemas(schema["allOf"])
  ]
  if (depth > 8) return null
  const { items, prefixItems, properties, required, type } = schema
  if (part !== undefined && type === undefined) return makeExample(part, definitions, depth + 1)
  if (type === "object") {
    const needed = listTexts(required)
    return Object.fromEntries(
      Object.entries(isSchema(properties) ? properties : {}).flatMap(([name, member]) =>
        needed.includes(name) && isSchema(member) ? [[name, makeExample(member, definitions, depth + 1)]] : []
      )
    )
  }
  if (type === "array") {
    const fixed = listSchemas(prefixItems)
    return fixed.length > 0
      ? fixed.map((item) => makeExample(item, definitions, depth + 1))
      : isSchema(items) && Number(schema["minItems"] ?? 0) > 0
      ? [makeExample(items, definitions, depth + 1)]
      : []
  }
  if (type === "string") return ""
  if (type === "number" || type === "integer") return Math.max(0, Number(schema["minimum"] ?? 0))
  return type === "boolean" ? true : null
}

/**
 * Returns the first value that `read` finds: in a schema itself, in the schema that it refers to, or in its `allOf`
 * parts.
 */
const findIn = <A>(
  schema: JsonSchema,
  definitions: Definitions,
  read: (schema: JsonSchema) => A | undefined
): A | undefined => {
  const named = definitions[refersTo(schema) ?? ""]
  return read(schema) ??
    [...(named === undefined ? [] : [named]), ...listSchemas(schema["allOf"])]
      .map((part) => findIn(part, definitions, read)).find((found) => found !== undefined)
}

/** Returns the declared example of a schema. */
export const findExample = (schema: JsonSchema, definitions: Definitions): unknown =>
  findIn(schema, definitions, ({ examples }) => first(examples))

/** Returns the description of a schema. */
export const findDescription = (schema: JsonSchema, definitions: Definitions): string | undefined =>
  findIn(schema, definitions, ({ description }) => Predicate.isString(description) ? description : undefined)

/** An example of a body, with its title. */
export interface Example {
  readonly title: string
  readonly value: unknown
}

const exampleTitle = (value: unknown, at: number): string => {
  if (!isSchema(value)) return `Example ${at + 1}`
  const { action, method, type } = value
  if (isSentAction(action)) {
    return isActionType(action.type) ? `${action.type}: ${actionCatalog[action.type].summary}` : action.type
  }
  return [method, type].find(Predicate.isString) ?? `Example ${at + 1}`
}

/** Returns an example of each alternative of a body. */
export const listExamples = (schema: JsonSchema, definitions: Definitions): ReadonlyArray<Example> => {
  const named = definitions[refersTo(schema) ?? ""]
  if (named !== undefined) return listExamples(named, definitions)
  const own = schema["examples"]
  const choices = [...listSchemas(schema["anyOf"]), ...listSchemas(schema["oneOf"])]
  const values: ReadonlyArray<unknown> = Array.isArray(own)
    ? own
    : choices.length === 0
    ? [makeExample(schema, definitions)]
    : choices.map((choice) => makeExample(choice, definitions))
  return values.map((value, at) => ({ title: exampleTitle(value, at), value }))
}

const table = (columns: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>, name: string): string =>
  `<div class="scroll" role="region" tabindex="0" aria-label="${escapeHtml(name)}"><table><thead><tr>${
    columns.map((column) => `<th scope="col">${column}</th>`).join("")
  }</tr></thead><tbody>${
    rows.map((row) => `<tr>${row.map((cell) => `<td>${cell}</td>`).join("")}</tr>`).join("")
  }</tbody></table></div>`

const renderCode = (text: string): string => `<code>${escapeHtml(text)}</code>`

/** Escapes a text for HTML, and renders each part between backticks as code. */
const renderText = (text: string): string => escapeHtml(text).replaceAll(/`([^`]+)`/gu, "<code>$1</code>")

const chains = [
  [
    "Venue",
    "Hyperliquid",
    `${renderCode("POST /exchange")}, ${renderCode("POST /info")}, ${renderCode("GET /ws")}, ${
      renderCode("GET /streams")
    }; HyperEVM at ${renderCode("/evm")}`
  ],
  [
    "Token chain",
    "TON",
    `${renderCode("GET /api/v2/getTokenData")}, ${renderCode("POST /api/v2/jsonRPC")}, and its REST methods`
  ],
  ["Layer 2", "an EVM layer 2", renderCode("/l2")]
]

const findStatus = (tag: string, { components: { schemas } }: OpenApi.OpenAPISpec): string => {
  const members = schemas[`${tag}Encoded`]?.["properties"]
  if (!Predicate.hasProperty(members, "status") || !Predicate.hasProperty(members.status, "enum")) return "–"
  return String(members.status.enum)
}

const renderIntroduction = (document: OpenApi.OpenAPISpec, facts: Facts): string => {
  const groups = Object.entries(errorGroups).map(([group, advice]) => [renderCode(group), renderText(advice)])
  const errors = gatewayErrors.map((error) => {
    const tag = SchemaAST.resolveIdentifier(error.ast) ?? ""
    const code = Object.entries(rpcCodes).find(([name]) => name === tag)?.[1]
    return [renderCode(tag), findStatus(tag, document), String(code ?? ""), renderCode(error.prototype.group)]
  })
  const streams = subscriptions.map(({ about, delivery, name, summary }) => [
    renderCode(name),
    about,
    delivery,
    renderText(summary)
  ])
  return `<h1>${escapeHtml(document.info.title)}</h1><p>${escapeHtml(document.info.description ?? "")} ${
    facts.sandbox
      ? "This gateway serves the <strong>sandbox</strong>: all chains are in memory, and nothing here is real."
      : `This gateway is in front of ${facts.network}.`
  }</p>
<h2 id="chains">Chains</h2>${table(["Chain", "Network", "Routes"], chains, "Chains")}
<p>Bodies and responses are those of the chains, so their own client libraries work with this gateway's address.</p>
<h2 id="keys">Keys</h2><p>${
    facts.keys ? "This gateway requires a key." : "This gateway requires no key."
  } You send a key as <code>Authorization: Bearer …</code>, or as the first part of the path, for clients that cannot send a header. A key can be
limited to chains, operations, signers and quotas.</p>
<form><label>Key for the forms of this page; it stays in this page's memory <input id="key" type="password" autocomplete="off" spellcheck="false" placeholder="tg_…"></label></form>
<h2 id="errors">Errors</h2><p>An error of the gateway is <code>application/problem+json</code> (RFC 9457) with <code>_tag</code>; on JSON-RPC
routes it is in <code>error.data</code>. A response of the chain itself is relayed unchanged.</p>
${table(["Group", "What to do"], groups, "Groups of errors")}
<details><summary>All errors</summary>${table(["Error", "HTTP", "JSON-RPC", "Group"], errors, "Errors")}</details>
<h2 id="limits">Limits</h2><p>A request over a quota of its caller fails with <code>QuotaExceeded</code>, and a request over an upstream's limit with
<code>UpstreamRateLimited</code>, both with <code>retryAfter</code> in seconds. A body over the size limit fails with
<code>PayloadTooLarge</code>, and a gateway that is too busy refuses new work with <code>Overloaded</code>.</p>
<h2 id="headers">Headers</h2><p>A response can have these headers. A request can name its own <code>x-request-id</code>, and
<code>x-trigate-expected-signer</code>, the signer of an action.</p>
${
    table(
      ["Response header", "Content"],
      Object.entries(readableHeaders).map(([name, meaning]) => [renderCode(name), renderText(meaning)]),
      "Response headers"
    )
  }
<h2 id="subscriptions">Streams</h2><p><code>/ws</code> accepts <code>{"method":"subscribe","subscription":{"type":"trades","coin":"BTC"}}</code>,
<code>unsubscribe</code>, <code>ping</code> and <code>post</code>, as the venue does. <code>/streams?subscribe=…</code> sends the same frames as
Server-Sent Events; after a lost connection the client sends <code>Last-Event-ID</code>, and the first event states whether all events since
then follow. <code>/evm</code> and <code>/l2</code> as WebSockets accept <code>eth_subscribe</code>.</p>
<details><summary>All ${subscriptions.length} subscriptions</summary>${
    table(["Type", "About", "Frames", "Sends"], streams, "Subscriptions")
  }</details>`
}

type Operation = OpenApi.OpenAPISpecOperation

const exampleText = (value: unknown): string => {
  const one: unknown = Array.isArray(value) ? value[0] : value
  return Predicate.isString(one) ? one : one === null || one === undefined ? "" : JSON.stringify(one)
}

const renderParameters = ({ parameters }: Operation, definitions: Definitions): string =>
  parameters.map(({ description, in: place, name, required, schema }) => {
    const type = { ...schema }
    const value = exampleText(
      required ? makeExample(type, definitions) : findExample(type, definitions)
    )
    const note = description ?? findDescription(type, definitions) ?? ""
    return `<label><span><code>${escapeHtml(name)}</code> in the ${place}${required ? "" : ", optional"}: ${
      renderText(note)
    }</span><input name="${escapeHtml(name)}" data-in="${place}" value="${escapeHtml(value)}"${
      required ? " required" : ""
    } spellcheck="false"></label>`
  }).join("")

const isSocket = ({ responses }: Operation): boolean => responses[101] !== undefined

const messages: { readonly [suffix: string]: string } = {
  ws: `{"method":"subscribe","subscription":{"type":"trades","coin":"BTC"}}`,
  rpc: `{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}`
}

const jsonSchema = (content: OpenApi.OpenApiSpecContent): JsonSchema | undefined => {
  const found = Object.values(content).map((each) => each?.schema)[0]
  return found === undefined ? undefined : { ...found }
}

const renderBody = (operation: Operation, path: string, definitions: Definitions): string => {
  if (isSocket(operation)) {
    const message = messages[path.endsWith("/ws") ? "ws" : "rpc"] ?? ""
    return `<label>First message<textarea name="message" rows="3" spellcheck="false">${
      escapeHtml(message)
    }</textarea></label>`
  }
  const schema = operation.requestBody === undefined ? undefined : jsonSchema(operation.requestBody.content)
  if (schema === undefined) return ""
  const examples = listExamples(schema, definitions).map(({ title, value }) => ({
    title,
    text: JSON.stringify(value, undefined, 2)
  }))
  const choice = examples.length < 2 ?
    "" :
    `<label>Example <select data-examples>${
      examples.map(({ text, title }) => `<option value="${escapeHtml(text)}">${escapeHtml(title)}</option>`).join("")
    }</select></label>`
  return `${choice}<label>Body<textarea name="body" rows="14" spellcheck="false">${
    escapeHtml(examples[0]?.text ?? "{}")
  }</textarea></label>`
}

const renderResponse = (status: string, { content, description }: OpenApi.OpenApiSpecResponse): string => {
  const schema = content === undefined ? undefined : jsonSchema(content)
  const head = `<strong class="${status < "400" ? "good" : "bad"}">${status}</strong> ${renderText(description)}`
  return schema === undefined
    ? `<p>${head}</p>`
    : `<details><summary>${head} <small>${
      escapeHtml(Object.keys(content ?? {}).join(", "))
    }</small></summary><pre tabindex="0">${renderType(schema)}</pre></details>`
}

const renderTypes = (operation: Operation): string => {
  const request = operation.requestBody === undefined ? undefined : jsonSchema(operation.requestBody.content)
  const responses = Object.entries(operation.responses).map(([status, response]) => renderResponse(status, response))
  return `${
    request === undefined
      ? ""
      : `<h3>Request body</h3><details><summary>Type</summary><pre tabindex="0">${renderType(request)}</pre></details>`
  }<h3>Responses</h3>${responses.join("")}`
}

const sample = `<div class="sample" role="group" aria-label="Sample"><div class="bar">${
  ["curl", "Python", "TypeScript"].map((name) =>
    `<button type="button" data-language="${name}" aria-pressed="false">${name}</button>`
  ).join("")
}<button type="button" data-copy>Copy</button></div><pre tabindex="0"><code></code></pre></div>`

interface Placed {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

const kindFor = (operation: Operation): string =>
  isSocket(operation)
    ? "socket"
    : Object.hasOwn(operation.responses[200]?.content ?? {}, "text/event-stream")
    ? "events"
    : "call"

const verbFor = ({ method, operation }: Placed): string => isSocket(operation) ? "WS" : method

const renderOperation = (placed: Placed, definitions: Definitions): string => {
  const { method, operation, path } = placed
  return `<details class="operation" id="${escapeHtml(operation.operationId)}"><summary><b>${
    verbFor(placed)
  }</b> <code>${escapeHtml(path)}</code> ${renderText(operation.summary ?? "")}</summary><p>${
    renderText(operation.description ?? "")
  }</p><form data-method="${method}" data-path="${escapeHtml(path)}" data-kind="${kindFor(operation)}"><div>${
    renderParameters(operation, definitions)
  }${renderBody(operation, path, definitions)}<button type="submit">${
    isSocket(operation) ? "Open" : "Send"
  }</button><output hidden></output></div>${sample}</form>${renderTypes(operation)}</details>`
}

const methods = ["get", "post", "put", "patch", "delete"] as const

const listOperations = ({ paths }: OpenApi.OpenAPISpec): ReadonlyArray<Placed> =>
  Object.entries(paths).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const operation = item[method]
      return operation === undefined ? [] : [{ method: method.toUpperCase(), path, operation }]
    })
  )

/** The facts about the gateway that the page's introduction states. */
export interface Facts {
  readonly sandbox: boolean
  readonly network: string
  /** Whether callers need a key. */
  readonly keys: boolean
  /** The prefix of all paths; empty if there is none. */
  readonly prefix: string
}

const slug = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]+/gu, "-")

/** A link of the navigation; `title` is searched too. */
interface Link {
  readonly target: string
  readonly html: string
  readonly title?: string
}

const renderGroup = (name: string, links: ReadonlyArray<Link>, open = false): string =>
  `<details${open ? " open" : ""}><summary>${escapeHtml(name)}</summary>${
    links.map(({ html, target, title = "" }) =>
      `<a href="#${escapeHtml(target)}" title="${escapeHtml(title)}">${html}</a>`
    ).join("")
  }</details>`

const introduction: ReadonlyArray<Link> = [
  ["chains", "Chains"],
  ["keys", "Keys"],
  ["errors", "Errors"],
  ["limits", "Limits"],
  ["headers", "Headers"],
  ["subscriptions", "Streams, resume"]
].map(([target = "", html = ""]) => ({ target, html }))

const icon =
  "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCAzMiAzMiI+PHJlY3Qgd2lkdGg9IjMyIiBoZWlnaHQ9IjMyIiByeD0iNiIgZmlsbD0iIzBmNzY2ZSIvPjxwYXRoIGQ9Ik02IDEwaDIwTTYgMTZoMjBNNiAyMmgyME0xMSA2djIwTTIxIDZ2MjAiIHN0cm9rZT0iI2ZmZiIgc3Ryb2tlLXdpZHRoPSIyLjQiIHN0cm9rZS1saW5lY2FwPSJyb3VuZCIvPjwvc3ZnPg=="

/** Renders the page, whose only script is {@link script}. */
export const render = (document: OpenApi.OpenAPISpec, facts: Facts): string => {
  const { components: { schemas }, info, tags } = document
  const operations = listOperations(document)
  const ofTag = (tag: string) => operations.filter(({ operation }) => operation.tags[0] === tag)
  const sections = tags.map(({ description = "", name }) =>
    `<h2 id="${slug(name)}">${escapeHtml(name)}</h2><p>${renderText(description)}</p>${
      ofTag(name).map((placed) => renderOperation(placed, schemas)).join("")
    }`
  )
  const sorted = Object.entries(schemas).toSorted(([one], [other]) => one < other ? -1 : 1)
  const types = sorted.map(([name, schema]) =>
    `<details id="type-${escapeHtml(name)}"><summary><code>${
      escapeHtml(name.replace(/Encoded$/u, ""))
    }</code></summary>${
      Predicate.isString(schema["description"]) ? `<p>${renderText(schema["description"])}</p>` : ""
    }<pre tabindex="0">${renderType(schema)}</pre></details>`
  )
  const navigation = [
    renderGroup("Introduction", introduction, true),
    ...tags.map(({ name }) =>
      renderGroup(
        name,
        ofTag(name).map((placed) => ({
          target: placed.operation.operationId,
          html: `<b>${verbFor(placed)}</b><span>${escapeHtml(placed.path).replaceAll("/", "/<wbr>")}</span>`,
          title: placed.operation.summary ?? ""
        })),
        name === tags[0]?.name
      )
    ),
    renderGroup(
      "Types",
      sorted.map(([name]) => ({ target: `type-${name}`, html: escapeHtml(name.replace(/Encoded$/u, "")) }))
    )
  ]
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>${
    escapeHtml(info.title)
  }: API reference</title><link rel="icon" href="${icon}"><style>${style}</style></head><body data-base="${
    escapeHtml(facts.prefix)
  }"><nav aria-label="Operations and types"><strong><img src="${icon}" alt="">${
    escapeHtml(info.title)
  }</strong><label>Search <kbd>/</kbd><input id="search" type="search" autocomplete="off" spellcheck="false" placeholder="cancel, /exchange, bbo"></label><p id="found" role="status"></p>${
    navigation.join("")
  }<a href="openapi.json">OpenAPI document</a></nav><main data-keys="${facts.keys ? "yes" : "no"}">${
    renderIntroduction(document, facts)
  }${sections.join("")}<h2 id="types">Types</h2>${types.join("")}</main><script>${script}</script></body></html>`
}

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
const policy = StaticPage.contentPolicy({ script: hash(script), style: hash(style), image: "data:" })

const encoder = new TextEncoder()

const decodeDocument = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))

/** Returns the example actions, whose nonces are too old, signed again with nonces that the sandbox currently accepts. */
const signedNow = Effect.fnUntraced(function*(network: GatewayStatus["Service"]["network"]) {
  const profile = profileFor(network)
  const now = yield* Clock.currentTimeMillis
  const { signAction } = yield* Effect.promise(() => import("@trigate/sandbox/SandboxSigner"))
  const signed = yield* Effect.forEach(Examples.signedActions, ({ action, nonce }, place) => {
    const members: ReadonlyArray<readonly [string, unknown]> = Object.entries<unknown>(action).map(([name, value]) => [
      name,
      value === nonce ? now + place : name === profile.chainField ? profile.chainName : value
    ])
    const request = { action: { ...Object.fromEntries<unknown>(members), type: action.type }, nonce: now + place }
    return Effect.orDie(signAction(trader, request, profile))
  })
  const current = (value: unknown): unknown =>
    (Predicate.hasProperty(value, "nonce") && Predicate.isNumber(value.nonce)
      ? signed[value.nonce - Examples.firstNonce]
      : undefined) ?? value
  return (document: Record<string, unknown>) =>
    decodeDocument(JSON.stringify(document, (_, value: unknown) => current(value)))
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
        render(document, { network, sandbox, keys: check !== undefined, prefix })
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
