/**
 * `GET /docs` and `GET /openapi.json`: the API reference, in one page that loads nothing from the internet.
 *
 * The script is a string, because the page's content security policy admits the script by its hash. Without the script,
 * everything on the page except the forms works.
 */
import { ChainsApi, GatewayApi } from "@trigate/api/GatewayApi"
import * as Examples from "@trigate/api/unstable/Examples"
import { CallerKeys } from "@trigate/callers/CallerKeys"
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

const exampleTitle = (value: unknown, at: number): string =>
  isSchema(value) && Predicate.isString(value["method"])
    ? value["method"]
    : isSchema(value) && Predicate.isString(value["type"])
    ? value["type"]
    : `Example ${at + 1}`

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

/**
 * The script of the reference page: sends requests, reads event streams and opens WebSockets, all to this gateway.
 *
 * The script is a string, because the page's content security policy admits the script by its hash. Without the script,
 * everything on the page except the forms works.
 */
export const script = `"use strict";
const most = 20000;
const key = document.getElementById("key");
const base = document.body.dataset.base;
const running = new WeakMap();

const target = (form) => {
  const data = new FormData(form);
  const query = new URLSearchParams();
  let path = form.dataset.path;
  for (const input of form.querySelectorAll("[data-in]")) {
    const value = String(data.get(input.name) ?? "");
    if (input.dataset.in === "path") path = path.replace("{" + input.name + "}", encodeURIComponent(value));
    else if (value !== "") query.append(input.name, value);
  }
  const text = query.toString();
  return base + path + (text === "" ? "" : "?" + text);
};

const pretty = (text) => {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
};

const show = (form, state, text, isBad) => {
  const output = form.querySelector("output");
  output.hidden = false;
  const line = document.createElement("strong");
  line.className = isBad ? "bad" : "good";
  line.textContent = state;
  const body = document.createElement("pre");
  body.tabIndex = 0;
  body.textContent = text.length > most ? text.slice(0, most) + "\\n… " + (text.length - most) + " more characters" : text;
  output.replaceChildren(line, body);
};

const button = (form, text) => {
  form.querySelector("button").textContent = text;
};

const send = async (form) => {
  const ended = new AbortController();
  running.set(form, () => ended.abort());
  const body = form.elements.namedItem("body");
  const began = performance.now();
  try {
    const response = await fetch(target(form), {
      method: form.dataset.method,
      signal: ended.signal,
      headers: {
        ...(body === null ? {} : { "content-type": "application/json" }),
        ...(key.value === "" ? {} : { authorization: "Bearer " + key.value })
      },
      ...(body === null ? {} : { body: body.value })
    });
    const state = () => response.status + " " + response.statusText + ", " + Math.round(performance.now() - began) + " ms";
    const isEvents = (response.headers.get("content-type") ?? "").startsWith("text/event-stream");
    if (!isEvents) return show(form, state(), pretty(await response.text()), !response.ok);
    button(form, "Stop");
    let text = "";
    show(form, state(), "Waiting for the first event …", false);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text = (text + value).slice(-most);
      show(form, state(), text, false);
    }
  } catch (error) {
    if (!ended.signal.aborted) show(form, "No response", String(error.message ?? error), true);
  } finally {
    running.delete(form);
    button(form, "Send");
  }
};

const open = (form) => {
  const url = new URL(target(form), location.href);
  url.protocol = url.protocol.replace("http", "ws");
  const socket = new WebSocket(url);
  let text = "";
  const add = (state, line, isBad) => {
    text = (text + line).slice(-most);
    show(form, state, text, isBad);
  };
  running.set(form, () => socket.close(1000));
  button(form, "Close");
  socket.onopen = () => {
    const message = form.elements.namedItem("message").value;
    socket.send(message);
    add("open", "> " + message + "\\n", false);
  };
  socket.onmessage = ({ data }) => add("open", "< " + data + "\\n", false);
  socket.onclose = ({ code, reason }) => {
    running.delete(form);
    button(form, "Open");
    add("closed: " + code + " " + reason, "", code !== 1000);
  };
};

addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.target;
  if (form.dataset.path === undefined) return;
  const stop = running.get(form);
  if (stop !== undefined) stop();
  else if (form.dataset.socket === "yes") open(form);
  else void send(form);
});

addEventListener("change", ({ target }) => {
  if (target.dataset.examples === undefined) return;
  target.form.elements.namedItem("body").value = target.value;
});

const reveal = () => {
  const found = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = found; at !== null && at !== undefined; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  found?.scrollIntoView();
};
addEventListener("hashchange", reveal);
reveal();
`

/** The style of the page. Collapsed parts of the page are laid out when they are opened. */
export const style = `
:root{color-scheme:light dark;--back:light-dark(#f6f7f8,#101417);--card:light-dark(#fff,#181d21);--text:light-dark(#1b2226,#e4e9ec);
--soft:light-dark(#55616a,#9aa7b0);--line:light-dark(#e2e7ea,#272f35);--accent:light-dark(#0f766e,#2dd4bf);
--good:light-dark(#0b7a4b,#34d399);--bad:light-dark(#b42318,#f97066);font:15px/1.5 system-ui,sans-serif}
*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--text);display:grid;grid-template-columns:15rem minmax(0,1fr);align-items:start}
a{color:var(--accent)}nav{position:sticky;top:0;height:100vh;overflow-y:auto;padding:1rem;border-right:1px solid var(--line);background:var(--card)}
nav a{display:block;padding:.15rem .4rem;text-decoration:none;color:var(--text)}nav strong{display:block;color:var(--accent);font-size:1.15rem;padding:0 .4rem .4rem}
main{max-width:64rem;width:100%;margin:0 auto;padding:1.2rem}h1,h2{margin:1.4rem 0 .5rem}h3{margin:1rem 0 .3rem;font-size:1rem}
details{margin:.4rem 0;border:1px solid var(--line);border-radius:.5rem;background:var(--card)}details>*{margin-left:1rem;margin-right:1rem}
summary{cursor:pointer;margin:0;padding:.5rem .8rem;overflow-wrap:anywhere}summary b{display:inline-block;min-width:3.4rem;color:var(--accent)}
code,pre,textarea{font:.85rem/1.5 ui-monospace,monospace}pre{overflow:auto;max-height:30rem;padding:.6rem;background:var(--back);border-radius:.4rem}
pre i{color:var(--soft);font-style:normal}.soft{color:var(--soft)}.good{color:var(--good)}.bad{color:var(--bad)}.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--line)}
th{color:var(--soft);font-weight:500}form{display:grid;grid-template-columns:minmax(0,1fr);gap:.6rem;justify-items:start;margin-bottom:1rem}label{display:grid;grid-template-columns:minmax(0,1fr);gap:.2rem;width:100%;color:var(--soft)}
input,select,textarea,button{font:inherit;color:var(--text);background:var(--back);border:1px solid var(--line);border-radius:.4rem;padding:.35rem .6rem;max-width:100%}
textarea{width:100%;font:.85rem/1.5 ui-monospace,monospace}button{background:var(--accent);color:var(--card);font-weight:600;cursor:pointer}output{display:block;width:100%}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
@media(max-width:52rem){body{display:block}nav{position:static;height:auto;border:0}nav a{display:inline-block}main{padding:.7rem}}`

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
    "Trading chain",
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
  return `${choice}<label>Body<textarea name="body" rows="8" spellcheck="false">${
    escapeHtml(examples[0]?.text ?? "{}")
  }</textarea></label>`
}

const renderTypes = (operation: Operation): string => {
  const request = operation.requestBody === undefined ? undefined : jsonSchema(operation.requestBody.content)
  const responses = Object.entries(operation.responses).map(([status, response]) => {
    const schema = response.content === undefined ? undefined : jsonSchema(response.content)
    return `<dt><strong>${status}</strong> ${escapeHtml(Object.keys(response.content ?? {}).join(", "))}</dt><dd>${
      schema === undefined ? renderText(response.description) : `<pre tabindex="0">${renderType(schema)}</pre>`
    }</dd>`
  })
  return `<details><summary>Types</summary>${
    request === undefined ? "" : `<h3>Request body</h3><pre tabindex="0">${renderType(request)}</pre>`
  }<h3>Responses</h3><dl>${responses.join("")}</dl></details>`
}

interface Placed {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

const renderOperation = ({ method, operation, path }: Placed, definitions: Definitions): string => {
  const socket = isSocket(operation)
  return `<details class="operation" id="${escapeHtml(operation.operationId)}"><summary><b>${
    socket ? "WS" : method
  }</b> <code>${escapeHtml(path)}</code> ${renderText(operation.summary ?? "")}</summary><p>${
    renderText(operation.description ?? "")
  }</p><form data-method="${method}" data-path="${escapeHtml(path)}"${socket ? " data-socket=\"yes\"" : ""}>${
    renderParameters(operation, definitions)
  }${renderBody(operation, path, definitions)}<button type="submit">${
    socket ? "Open" : "Send"
  }</button><output hidden></output></form>${renderTypes(operation)}</details>`
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

/** Renders the page, whose only script is {@link script}. */
export const render = (document: OpenApi.OpenAPISpec, facts: Facts): string => {
  const { components: { schemas }, info, tags } = document
  const operations = listOperations(document)
  const parts = ["Chains", "Keys", "Errors", "Limits", "Subscriptions"]
  const sections = tags.map(({ description = "", name }) =>
    `<h2 id="${slug(name)}">${escapeHtml(name)}</h2><p>${renderText(description)}</p>${
      operations.filter(({ operation }) => operation.tags[0] === name)
        .map((placed) => renderOperation(placed, schemas)).join("")
    }`
  )
  const types = Object.entries(schemas).toSorted(([one], [other]) => one < other ? -1 : 1).map(([name, schema]) =>
    `<details id="type-${escapeHtml(name)}"><summary><code>${
      escapeHtml(name.replace(/Encoded$/u, ""))
    }</code></summary>${
      Predicate.isString(schema["description"]) ? `<p>${renderText(schema["description"])}</p>` : ""
    }<pre tabindex="0">${renderType(schema)}</pre></details>`
  )
  const links = [...parts, ...tags.map(({ name }) => name), "Types"].map((name) =>
    `<a href="#${slug(name)}">${escapeHtml(name === "Subscriptions" ? "Streams, resume" : name)}</a>`
  )
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>${
    escapeHtml(info.title)
  }: API reference</title><link rel="icon" href="data:,"><style>${style}</style></head><body data-base="${
    escapeHtml(facts.prefix)
  }"><nav aria-label="Sections"><strong>${escapeHtml(info.title)}</strong>${
    links.join("")
  }<a href="openapi.json">OpenAPI document</a></nav><main>${renderIntroduction(document, facts)}${
    sections.join("")
  }<h2 id="types">Types</h2>${types.join("")}</main><script>${script}</script></body></html>`
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

const isSignedExample = (value: unknown): boolean =>
  Predicate.hasProperty(value, "nonce") && value.nonce === Examples.signedAction.nonce

/** Replaces the example action, whose nonce is too old, with an action that the sandbox currently accepts. */
const signedNow = Effect.fnUntraced(function*(network: GatewayStatus["Service"]["network"]) {
  const nonce = yield* Clock.currentTimeMillis
  const { action } = Examples.signedAction
  const { signAction } = yield* Effect.promise(() => import("@trigate/sandbox/SandboxSigner"))
  const signed = yield* Effect.orDie(signAction(trader, { action, nonce }, profileFor(network)))
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
