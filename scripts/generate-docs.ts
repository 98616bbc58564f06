/**
 * Writes what repeats the code: the contract, operations, errors, metrics and settings, and the entry module of each package.
 *
 * `npm run docs:generate` writes them; with `--check`, as `npm run docs:check` runs it, nothing is written and every
 * file that differs from the code is named.
 */
import { GatewayApi } from "@trigate/api/GatewayApi"
import { ActionRejected } from "@trigate/domain/actions/ActionOutcome"
import { exchangeOperations } from "@trigate/domain/actions/ExchangeOperations"
import { StillUnknown } from "@trigate/domain/actions/Resolution"
import { labels } from "@trigate/domain/DeclaredMetric"
import type { ErrorGroup } from "@trigate/domain/errors/ErrorGroup"
import { errorGroups } from "@trigate/domain/errors/ErrorGroup"
import { callerFailures, commonFailures, gatewayErrors, rpcCodes } from "@trigate/domain/errors/GatewayError"
import { requestReasons } from "@trigate/domain/errors/RequestError"
import { upstreamReasons } from "@trigate/domain/errors/UpstreamError"
import { configuredReads } from "@trigate/domain/evm/EvmMethods"
import { families, standardMethods } from "@trigate/domain/evm/EvmMethodTable"
import { evmMethods, serving } from "@trigate/domain/evm/EvmOperations"
import { layer2Methods } from "@trigate/domain/evm/Layer2Operations"
import { infoOperations, passthroughQueries, passthroughQuery } from "@trigate/domain/info/InfoOperations"
import type { AnyCodec, Cost, Operation } from "@trigate/domain/operations/Operation"
import { duration } from "@trigate/domain/Setting"
import type { Subscription } from "@trigate/domain/streams/Subscription"
import { table as subscriptionTable } from "@trigate/domain/streams/Subscriptions"
import { getTokenData, tokenRpcOperations, tokenSendOperations } from "@trigate/domain/tokens/TokenOperations"
import { rows } from "@trigate/server/process/Metrics"
import { grouped, settings } from "@trigate/server/settings/Settings"
import * as OpenApi from "effect/http-api/OpenApi"
import type * as JsonSchema from "effect/JsonSchema"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as fs from "node:fs"
import * as path from "node:path"
import { clientModules } from "./client-calls.ts"
import * as monitoring from "./monitoring.ts"
import { entryModules } from "./packages/entries.ts"

const root = path.resolve(import.meta.dirname, "..")

const note = "<!-- Written by `npm run docs:generate` from the code; change the code, not this file. -->"

const document = (title: string, ...blocks: ReadonlyArray<string>): string =>
  `${[`# ${title}`, note, ...blocks].join("\n\n")}\n`

const code = (text: string): string => `\`${text}\``
const codes = (words: ReadonlyArray<string>): string => words.map(code).join(", ")

const pad = (cells: ReadonlyArray<string>, widths: ReadonlyArray<number>): string =>
  `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`

/** A table as the formatter lays it out. */
const table = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const escaped = rows.map((row) => row.map((cell) => cell.replaceAll("|", "\\|")))
  const widths = head.map((name, column) => Math.max(3, name.length, ...escaped.map((row) => row[column]?.length ?? 0)))
  return [pad(head, widths), `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`]
    .concat(escaped.map((row) => pad(row, widths))).join("\n")
}

// ids of the generated headings: a tag has letters only
const errorLink = (tag: string, from = "errors.md"): string => `[${code(tag)}](${from}#${tag.toLowerCase()})`

const tagOf = (failure: AnyCodec): string => {
  const tag = SchemaAST.resolveIdentifier(failure.ast)
  if (tag === undefined) throw new Error("An operation declares a failure without an identifier")
  return tag
}

const failureTags = (operation: Operation): ReadonlyArray<string> => operation.failures.map(tagOf)

interface Route {
  readonly method: string
  readonly path: string
}

const { evm, exchange, info, layer2, node, tokens } = GatewayApi.groups

interface Section {
  readonly title: string
  readonly routes: ReadonlyArray<Route>
  readonly operations: ReadonlyArray<Operation>
  /** Operations that need no row, each group with a sentence. */
  readonly described?: ReadonlyArray<readonly [sentence: string, operations: ReadonlyArray<Operation>]>
}

const isStandard = ({ name, summary }: Operation): boolean => standardMethods[name]?.summary === summary

const standardReads = evmMethods.filter(isStandard)

const readsState = (method: Operation): boolean => failureTags(method).includes("UnsupportedBlock")

/** The methods that do the same on both EVM routes; only the trading chain's nodes refuse a block. */
const isShared = (method: Operation): boolean =>
  evmMethods.some((other) =>
    other.name === method.name && other.class === method.class && other.summary === method.summary &&
    failureTags(other).filter((tag) => tag !== "UnsupportedBlock").join() === failureTags(method).join()
  )

const sections: ReadonlyArray<Section> = [
  {
    title: "Signed actions",
    routes: [exchange.endpoints.submit, node.endpoints.exchange],
    operations: exchangeOperations
  },
  {
    title: "Queries of the trading chain",
    routes: [info.endpoints.query, node.endpoints.info],
    operations: [...Object.values(infoOperations), passthroughQuery]
  },
  {
    title: "EVM of the trading chain",
    routes: [evm.endpoints.rpc, node.endpoints.evm],
    operations: evmMethods.filter((method) => !isStandard(method)),
    described: [
      ["These standard reads are relayed unchanged", standardReads.filter((method) => !readsState(method))],
      [
        `These reads of state are relayed unchanged too; they fail with ${
          errorLink("UnsupportedBlock")
        } for a block other than the latest`,
        standardReads.filter(readsState)
      ]
    ]
  },
  {
    title: "Token data",
    routes: [tokens.endpoints.getTokenData, node.endpoints.getTokenData],
    operations: [getTokenData]
  },
  {
    title: "JSON-RPC of the token chain",
    routes: [tokens.endpoints.rpc, node.endpoints.tokenRpc],
    operations: [...Object.values(tokenRpcOperations), ...Object.values(tokenSendOperations)]
  },
  {
    title: "JSON-RPC of the layer 2",
    routes: [layer2.endpoints.rpc, node.endpoints.layer2, node.endpoints.root],
    operations: layer2Methods.filter((method) => !isShared(method)),
    described: [[
      "The other methods of [the EVM of the trading chain](#evm-of-the-trading-chain) have the same meaning, class and errors here, but they read\nany block and never fail with `UnsupportedBlock`. Only these are missing",
      evmMethods.filter(({ name }) => !layer2Methods.some((method) => method.name === name))
    ]]
  }
]

const routeText = ({ method, path }: Route): string => code(`${method} ${path.replaceAll(/:(\w+)/gu, "{$1}")}`)

const costText = ({ entriesPerWeight, requestUnits, rowsPerWeight, weight }: Cost): string => {
  const rows = rowsPerWeight === undefined ? "" : ` + 1 per ${rowsPerWeight} rows`
  const entries = entriesPerWeight === undefined ? "" : ` + 1 per ${entriesPerWeight} entries`
  return [
    ...weight === 0 ? [] : [`weight ${weight}${rows}${entries}`],
    ...requestUnits === 1 ? [] : [`${requestUnits} request units`]
  ].join(", ")
}

const sourceTexts = { "official-api": "official API", node: "node" } as const

/** What is said of an operation besides its name and summary. */
const facts: ReadonlyArray<readonly [head: string, of: (operation: Operation) => string]> = [
  ["Class", (operation) => code(operation.class)],
  ["Served by", (operation) => operation.sources.map((source) => sourceTexts[source]).join(", then ")],
  ["Cost", (operation) => costText(operation.cost)]
]

const errorLinks = (tags: ReadonlyArray<string>): string => tags.map((tag) => errorLink(tag)).join(", ")

/** The own errors that all operations of a section have, and those that only some have. */
const errorColumns = (operations: ReadonlyArray<Operation>) => {
  const [first = [], ...others] = operations.map(failureTags)
  const shared = first.filter((tag) => others.every((tags) => tags.includes(tag)))
  const further = operations.map((operation) => failureTags(operation).filter((tag) => !shared.includes(tag)))
  return [
    { head: "Own errors", values: operations.map(() => errorLinks(shared)) },
    { head: shared.length === 0 ? "Own errors" : "Further errors", values: further.map(errorLinks) }
  ]
}

/** The value that most rows of a column have. */
const usual = (values: ReadonlyArray<string>): string => {
  const counts = Map.groupBy(values, (value) => value)
  return [...counts].reduce((most, group) => group[1].length > most[1].length ? group : most, [
    "",
    [] as Array<string>
  ])[0]
}

/** The value that most operations of a section have is written once, above its table, which lists the others. */
const sectionText = ({ described = [], operations, routes, title }: Section): string => {
  const [first, ...keyed] = routes.map(routeText)
  const columns = [...facts.map(([head, of]) => ({ head, values: operations.map(of) })), ...errorColumns(operations)]
    .map(({ head, values }) => ({ head, values, usual: usual(values) }))
  const own = columns.filter(({ usual, values }) => values.some((value) => value !== usual))
  return [
    `## ${title}`,
    [
      `- Route: ${String(first)}; behind an endpoint key ${keyed.join(", ")}`,
      ...columns.filter(({ usual }) => usual !== "").map((column) =>
        `- ${column.head}${own.includes(column) ? ", unless the table differs" : ""}: ${column.usual}`
      )
    ].join("\n"),
    table(
      ["Operation", "What it does", ...own.map(({ head }) => head)],
      operations.map((
        { name, summary },
        row
      ) => [
        code(name),
        summary,
        ...own.map(({ usual, values }) => values[row] === usual ? "" : String(values[row]))
      ])
    ),
    ...described.map(([sentence, methods]) => `${sentence}: ${codes(methods.map(({ name }) => name))}.`)
  ].join("\n\n")
}

const configured = Object.keys(families).map((family) => ({ family, reads: configuredReads(family, serving) }))

const familiesText = [
  "## Families of EVM methods",
  `Only some nodes have these reads. ${code(`${settings.relayMethods.env}=zks_*,trace_*`)} makes ${code("/evm")} and ${
    code("/l2")
  } relay the named families. On ${code("/evm")}, the reads of state among them fail with ${
    errorLink("UnsupportedBlock")
  } for a block other than the latest: ${
    codes(
      configured.flatMap(({ reads }) => reads.filter(readsState).map(({ name }) => name))
    )
  }.`,
  configured.map(({ family, reads }) => `- ${code(family)}: ${codes(reads.map(({ name }) => name))}`).join("\n")
]

const operationsText = document(
  "Operations",
  "A `read` may be sent again. A `once` call is never sent again after a byte may have reached the upstream. Weight counts against the\n" +
    "official API's rate limit. A node provider's plan counts request units: one per operation, unless a table states another cost. A path\n" +
    `with an endpoint key selects the node; on such a path, an operation that no node serves fails with ${
      errorLink("UnavailableOnNode")
    }.`,
  `Every call can also fail with these errors, besides its operation's own: ${errorLinks(commonFailures.map(tagOf))}.`,
  `A gateway can also refuse its caller: ${
    errorLinks(callerFailures.map(tagOf))
  }. Of these, an embedded service raises only ${errorLinks(["QuotaExceeded"])}.`,
  ...sections.map(sectionText),
  ...familiesText
)

/** The docstring of each error class: written once, where the class is declared. */
const docstrings: ReadonlyMap<string, string> = new Map(
  fs.globSync("packages/domain/src/**/*.ts", { cwd: root }).flatMap((file) =>
    [
      ...fs.readFileSync(path.join(root, file), "utf8")
        .matchAll(/\/\*\*((?:(?!\*\/)[^])*)\*\/\nexport class (\w+) /gu)
    ].map(([, comment = "", name = ""]) => [name, comment.replaceAll(/^ *\* ?/gmu, "").trim()] as const)
  )
)

const meaningOf = (tag: string): string => {
  const meaning = docstrings.get(tag)
  if (meaning === undefined) throw new Error(`The class ${tag} has no docstring`)
  return meaning
}

const firstSentence = (meaning: string): string =>
  (/^[^]*?\.(?=\s|$)/u.exec(meaning)?.[0] ?? meaning).replaceAll(/\s+/gu, " ")

interface Member {
  readonly name: string
  readonly type: string
  readonly optional: boolean
  readonly description: string | undefined
}

const textOf = (value: unknown): string | undefined => typeof value === "string" ? value : undefined

const isSchema = (value: unknown): value is JsonSchema.JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const resolve = (schema: unknown, definitions: JsonSchema.Definitions): JsonSchema.JsonSchema => {
  if (!isSchema(schema)) return {}
  const reference = textOf(schema["$ref"])?.split("/").at(-1)
  return reference === undefined ? schema : definitions[reference] ?? {}
}

const literalsOf = (schema: unknown): ReadonlyArray<string> =>
  isSchema(schema) && Array.isArray(schema["enum"]) ? schema["enum"].map(String) : []

const typeText = (schema: JsonSchema.JsonSchema, definitions: JsonSchema.Definitions): string => {
  if (schema["type"] === "array") return `array of ${typeText(resolve(schema["items"], definitions), definitions)}`
  if (isSchema(schema["properties"])) return code(`{ ${Object.keys(schema["properties"]).join(", ")} }`)
  const literals = literalsOf(schema)
  if (literals.length > 0) return literals.length === 1 ? codes(literals) : `one of ${codes(literals)}`
  return textOf(schema["type"]) ?? "any value"
}

const problemMembers = new Set(["_tag", "type", "title", "status", "detail", "instance"])

/** The members of an error on the wire, and the fixed ones of its problem document. */
const shapeOf = (error: AnyCodec) => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(error)
  const { properties, required } = resolve(schema, definitions)
  const entries = isSchema(properties) ? Object.entries(properties) : []
  const fixed = new Map(entries.map(([name, property]) => [name, literalsOf(property).join("")]))
  const members = entries.filter(([name]) => !problemMembers.has(name)).map(([name, property]): Member => {
    const member = resolve(property, definitions)
    return {
      name,
      type: typeText(member, definitions),
      optional: !(Array.isArray(required) && required.includes(name)),
      description: textOf(member["description"])
    }
  })
  return { members, status: fixed.get("status") ?? "", type: fixed.get("type") ?? "" }
}

const typedText = ({ description, type }: Member): string =>
  `${type}${description === undefined ? "" : `. ${description}`}`

/** The fields that several errors have with one meaning, each described once. */
const sharedFields: ReadonlyMap<string, string> = new Map(
  [...Map.groupBy(gatewayErrors.flatMap((error) => shapeOf(error).members), ({ name }) => name)].flatMap(
    ([name, members]) => {
      const [text = "", ...others] = new Set(members.map(typedText))
      return members.length > 1 && others.length === 0 && text.includes(". ") ? [[name, text] as const] : []
    }
  )
)

const memberText = (member: Member): string => {
  const { name, optional } = member
  const text = typedText(member)
  return `- ${code(name)}${optional ? ", optional" : ""}${sharedFields.get(name) === text ? "" : `: ${text}`}`
}

const errorText = (error: (typeof gatewayErrors)[number]): string => {
  const tag = error.fields._tag.schema.literal
  const { members } = shapeOf(error)
  return [
    `### ${tag}`,
    meaningOf(tag),
    ...members.length === 0 ? [] : [members.map(memberText).join("\n")]
  ].join("\n\n")
}

const errorRow = (error: (typeof gatewayErrors)[number]): ReadonlyArray<string> => {
  const tag = error.fields._tag.schema.literal
  const { status } = shapeOf(error)
  return [errorLink(tag, ""), status, String(rpcCodes[tag]), code(error.prototype.group)]
}

/** The errors that no route answers with: the embedded services and the typed client read them out of answers. */
const readErrors = [ActionRejected, StillUnknown] as const

const readErrorText = (error: (typeof readErrors)[number]): string =>
  [
    `### ${error.identifier}`,
    code(error.prototype.group satisfies ErrorGroup),
    meaningOf(error.identifier),
    shapeOf(error).members.map(memberText).join("\n")
  ].join("\n\n")

const reasonLinks = (reasons: ReadonlyArray<(typeof gatewayErrors)[number]>): string =>
  reasons.map((reason) => errorLink(tagOf(reason), "")).join(", ")

const errorsText = document(
  "Errors",
  "Every error is one class of `packages/domain`. Over HTTP it is an `application/problem+json` document (RFC 9457): `type`\n" +
    `(${code("urn:trigate:problem:invalid-request")} for ${code("InvalidRequest")}), ${
      codes(["title", "status", "detail"])
    }, then ${codes(["_tag"])} and the error's own fields. On the JSON-RPC\n` +
    "routes the same document is in `error.data`. On `/exchange` and `/info` it also has `code` (the HTTP status) and `msg`\n" +
    "(the `detail`), which the venue's SDKs read.",
  "The typed client decodes the document into this class. A gateway whose upstream is another gateway does the same, except for\n" +
    `${callerFailures.map((failure) => errorLink(tagOf(failure), "")).join(", ")}.\n` +
    "With these errors the upstream refuses the gateway, not the gateway's caller, so the gateway interprets only their HTTP status.",
  "The JSON-RPC code is -32700 for a request that is not JSON, and -32600 for one with a broken envelope; `error.data` is an\n" +
    "`InvalidRequest` in both cases. Errors that no JSON-RPC route raises have the code -32603.",
  table(
    ["Error", "HTTP", "JSON-RPC", "Group"],
    gatewayErrors.map(errorRow)
  ),
  "## Groups",
  "Each error belongs to a group, which says what a caller should do.",
  table(["Group", "What to do"], Object.entries(errorGroups).map(([group, advice]) => [code(group), advice])),
  "## Errors with a reason",
  "The error type of each method, in an embedded service or the typed client, has at most six tags. Two of these errors wrap an error from\n" +
    "the first table as their `reason`, and have its `message`, `group` and `retryAfter`. `Effect.catchReason` handles one reason,\n" +
    "`Effect.catchReasons` several. HTTP and JSON-RPC responses have only the reason.",
  table(["Error", "Reasons"], [
    ["`RequestError`: the request was refused before any of it was sent", reasonLinks(requestReasons)],
    ["`UpstreamError`: the upstream did not serve the call", reasonLinks(upstreamReasons)]
  ]),
  "## Each error and its fields",
  "Fields that several errors have:",
  [...sharedFields].map(([name, text]) => `- ${code(name)}: ${text}`).join("\n"),
  ...gatewayErrors.map(errorText),
  "## Errors that are decoded from responses",
  "Embedded services and the typed client decode the venue's response to a signed action, and fail with:",
  ...readErrors.map(readErrorText)
)

const exampleText = (kind: string): string => {
  const file = `docs/config/trigate.config.${kind}`
  return `\`trigate.config.${kind}\`:\n\n\`\`\`${kind}\n${fs.readFileSync(path.join(root, file), "utf8")}\`\`\``
}

/** The member of a settings file, which is named after the flag but for a few. */
const memberName = (flag: string): string => flag.replaceAll(/-(\w)/gu, (_, letter: string) => letter.toUpperCase())

const configurationText = document(
  "Configuration",
  "Each setting is an environment variable, a flag of `trigate serve` or a member of a [settings file](#settings-file). `TRIGATE_READ_DEADLINE`\n" +
    "is the flag `--read-deadline` and the member `readDeadline`; `OTEL_SERVICE_NAME` is `--otel-service-name` and `otelServiceName`.\n" +
    "The tables name the member only if its name differs from this rule. A flag overrides the environment, and the environment overrides the file. An empty value\n" +
    `counts as unset. A duration has a unit (${code("500ms")}, ${
      code("10 seconds")
    }); integers and numbers without a range are above zero.`,
  "The gateway does not start with an invalid value or an unknown flag, member or `TRIGATE_…` variable: it prints one line that\n" +
    "locates the mistake, never the value, and exits with code 2. Without any upstream address it serves the\n" +
    "[sandbox](decisions/0013-sandbox-or-live.md). Embedded services [read the same settings](guides/embed.md#from-the-configuration).",
  "## Settings",
  ...grouped.flatMap(({ group, members }) => [
    `### ${group}`,
    table(
      ["Variable", "Meaning", "Accepts", "Default", "Restart"],
      members.map(([name, { env, flag, meaning, needsRestart, takes, unset }]) => [
        name === memberName(flag) ? code(env) : `${code(env)}, member ${code(name)}`,
        meaning,
        takes.replace(duration, "a duration").replace(/^(an integer|a number) above zero$/u, "$1")
          .replace(/^an? (?=integer|number|duration|port|text)/u, ""),
        unset.replace(/^unset(?:: |$)/u, ""),
        needsRestart === true ? "✓" : ""
      ])
    )
  ]),
  "All processes of a machine can see flags: put addresses with endpoint keys into the environment or a file.",
  "## Settings file",
  "The gateway reads `trigate.config.json`, `trigate.config.yaml` or `trigate.config.toml` in its working folder, or the file of\n" +
    "`--config FILE`. Two of these files in one folder are refused. A list may be an array, and `on` and `off` may be `true` and `false`.",
  ...["json", "yaml", "toml"].map(exampleText),
  "## Environment file",
  "`--env-file FILE` reads `NAME=value` lines, in the format of Docker, systemd and `node --env-file`. The environment overrides the file.",
  "## Changing settings while the gateway serves",
  "On `SIGHUP` (`kill -HUP PID`, `systemctl reload`, `docker kill -s HUP`) the gateway reads its settings file and its environment\n" +
    "file again.",
  "- A setting marked under Restart keeps its value until a restart; the log names such settings if they changed.\n" +
    "- The gateway refuses all changes if a setting is invalid, or if they would change the network or switch between the sandbox and\n" +
    "  real chains. The log then reports the reason in one line, and the previous settings stay in effect.\n" +
    "- Otherwise the changes apply to new requests; requests in flight end with the previous settings. Nonces, rate-limit windows,\n" +
    "  cached responses and ejected addresses are not lost.",
  "To check settings first, run [`trigate serve --check`](cli.md#a-gateway) with the same files\n" +
    "([decision 26](decisions/0026-settings-change-over-what-stays.md))."
)

/** The bounds that no setting changes: the file of each constant, its name and its unit. */
const fixedLimits: ReadonlyArray<readonly [file: string, name: string, unit: "bytes" | "" | "milliseconds"]> = [
  ["server/src/requests/RequestBody", "bodyLimit", "bytes"],
  ["server/src/requests/RequestBody", "signedLimit", "bytes"],
  ["server/src/process/NodeServer", "maxHeaderBytes", "bytes"],
  ["server/src/requests/CallerSocket", "maxFrameBytes", "bytes"],
  ["server/src/process/NodeServer", "maxParked", ""],
  ["server/src/process/Pipelining", "maxWaiting", ""],
  ["server/src/streams/SocketTransportWs", "maxPayload", "bytes"],
  ["server/src/requests/LiveRequests", "most", ""],
  ["server/src/requests/RequestCaller", "maxCached", ""],
  ["server/src/stores/SandboxPrices", "maxBars", ""],
  ["signing/src/actions/MsgPack", "maxDepth", ""],
  ["signing/src/multisig/MultiSig", "maxSigners", ""],
  ["signing/src/inspection/SignedReading", "maxHashed", "bytes"],
  ["signing/src/inspection/SignedReading", "maxSearched", "bytes"],
  ["trading/src/SignatureDiagnosis", "maxRecoveries", ""],
  ["trading/src/actionLog/ActionLogQuota", "maxSigners", ""],
  ["trading/src/accounts/AccountEvents", "mostPending", ""],
  ["tokens/src/transactions/AccountHistory", "maxPages", ""],
  ["tokens/src/transactions/Transactions", "maxAccounts", ""],
  ["sandbox/src/evm/EvmChain", "gasLimit", ""],
  ["sandbox/src/venue/VenueAccounts", "mostRows", ""],
  ["api/src/SandboxApi", "maxSnapshots", ""],
  ["cli/src/commands/InspectCommand", "maxBodies", ""]
]

const grouping = (value: number): string => String(value).replaceAll(/\B(?=(?:\d{3})+$)/gu, " ")

const bytesText = (value: number): string =>
  value % 1_048_576 === 0 ? `${value / 1_048_576} MiB` : value % 1024 === 0 ? `${value / 1024} KiB` : `${value} bytes`

/** The docstring and the value of a constant that is a number, or a product of numbers. */
const fixedLimit = ([file, name, unit]: (typeof fixedLimits)[number]): ReadonlyArray<string> => {
  const source = fs.readFileSync(path.join(root, `packages/${file}.ts`), "utf8")
  const found = new RegExp(
    `/\\*\\*((?:(?!\\*/)[^])*)\\*/\\n(?:export )?const ${name}(?::[^=]+)? = ([\\d_n* ]+)\\n`,
    "u"
  ).exec(source)
  if (found === null) throw new Error(`packages/${file}.ts has no constant ${name} with a docstring and a number`)
  const [, comment = "", factors = ""] = found
  const value = factors.split("*").reduce((product, factor) => product * Number(factor.replaceAll(/[_n ]/gu, "")), 1)
  const limit = unit === "bytes" ? bytesText(value) : grouping(value)
  const meaning = firstSentence(comment.replaceAll(/^ *\* ?/gmu, "").trim()).replace(/\.$/u, "")
    .replace(/^Maximum (?:number of )?(?:bytes of )?/u, "").replace(`: ${limit}`, "")
    .replaceAll(/\{@link ([^}]+)\}/gu, "`$1`")
  return [meaning, limit, code(`packages/${file}.ts`)]
}

const limitsText = document(
  "Limits",
  "These bounds of a gateway are fixed. Bounds with a setting are in [configuration](configuration.md#limits), the venue's limits in\n" +
    "[upstreams](upstreams.md#rate-limit), and the limits of streams, with their effects, in [streams](streams.md#limits).",
  table(["Bounds", "At most", "Declared in"], fixedLimits.map(fixedLimit))
)

const isOwn = ({ name }: (typeof rows)[number]): boolean => name.startsWith("trigate_")

const metricsText = document(
  "Metrics",
  "`GET /metrics` prints these metrics in Prometheus text, and a gateway with a collector exports them over OTLP\n" +
    "([guide](guides/observability.md)). For a metric without a series, only the lines `# HELP` and `# TYPE` are printed. Every label has a\n" +
    "bounded set of values; none contains an address, a key, or a text of a caller.",
  table(
    ["Metric", "Kind", "Labels", "Meaning"],
    rows.filter(isOwn).map(({ kind, labels, meaning, name }) => [code(name), kind, codes(labels), meaning])
  ),
  `These metrics have the names and meanings of prom-client: ${
    rows.filter((row) => !isOwn(row)).map(({ name, onLinux }) => `${code(name)}${onLinux === true ? " (Linux)" : ""}`)
      .join(", ")
  }.`,
  "## The election of a recorder",
  "Where replicas share a Postgres and record candles, Effect's cluster adds `effect_cluster_…`. `effect_cluster_singletons` is 1 on the\n" +
    "replica that records, and `effect_cluster_runners_healthy` counts the replicas with a recent heartbeat in the database.",
  "## Labels",
  table(["Label", "Value"], Object.entries(labels).map(([name, value]) => [code(name), value])),
  "## Known queries",
  "A pass-through query of one of these types is counted under its type, any other one under `info`:",
  `${codes(passthroughQueries.map(({ name }) => name))}.`
)

/** The members of a request as it is sent. */
const membersOf = (schema: AnyCodec): ReadonlyArray<string> => {
  const { ast } = Schema.toEncoded(schema)
  return SchemaAST.isObjects(ast) ? ast.propertySignatures.map(({ name }) => String(name)) : []
}

const refillTexts = (subscription: Subscription): string =>
  subscription.refill !== undefined
    ? code(subscription.refill.query)
    : subscription.delivery === "state"
    ? "the next state"
    : subscription.delivery === "snapshot"
    ? "the next snapshot"
    : (subscription.rows?.replayed ?? 0) > 0
    ? "the venue's replay"
    : "nothing"

const subscriptionsText = document(
  "Subscriptions",
  "The subscriptions of `GET /ws`, under the venue's own names. [Streams](streams.md#subscriptions) explains the kinds.",
  table(
    ["Type", "Members", "Kind", "Sends", "Missed data comes from"],
    subscriptionTable.map((subscription) => [
      code(subscription.name),
      codes(membersOf(subscription.request)),
      subscription.delivery,
      subscription.summary,
      refillTexts(subscription)
    ])
  )
)

const sorted = <A>(entries: Readonly<Record<string, A>>): Readonly<Record<string, A>> =>
  Object.fromEntries(Object.entries(entries).toSorted(([a], [b]) => a < b ? -1 : 1))

/** The contract, with paths and components by name: their order means nothing, and a sorted one gives small differences. */
const openApiText = (): string => {
  const { components, paths, ...rest } = OpenApi.fromApi(GatewayApi)
  const ordered = {
    ...rest,
    paths: sorted(paths),
    components: { ...components, schemas: sorted(components.schemas) }
  }
  return `${JSON.stringify(ordered, undefined, 2)}\n`
}

const documents: ReadonlyMap<string, string> = new Map([
  ["docs/subscriptions.md", subscriptionsText],
  ["deploy/grafana/trigate.json", monitoring.dashboard()],
  ["deploy/prometheus/alerts.yaml", monitoring.alertRules()],
  ["docs/configuration.md", configurationText],
  ["docs/errors.md", errorsText],
  ["docs/limits.md", limitsText],
  ["docs/metrics.md", metricsText],
  ["docs/openapi.json", openApiText()],
  ["docs/operations.md", operationsText],
  ...clientModules,
  ...entryModules
])

const isChecking = process.argv.includes("--check")
const isCurrent = (file: string, text: string): boolean => {
  const target = path.join(root, file)
  return fs.existsSync(target) && fs.readFileSync(target, "utf8") === text
}
const outdated = [...documents].filter(([file, text]) => !isCurrent(file, text))

for (const [file, text] of outdated) {
  if (isChecking) console.error(`${file}: differs from the code; write it with npm run docs:generate`)
  else fs.writeFileSync(path.join(root, file), text)
}
console.log(`docs: ${documents.size} generated files, ${outdated.length} ${isChecking ? "outdated" : "written"}`)
const mistakes = monitoring.mistakes()
for (const mistake of mistakes) console.error(`deploy: ${mistake}`)
process.exitCode = (isChecking && outdated.length > 0) || mistakes.length > 0 ? 1 : 0
