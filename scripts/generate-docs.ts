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
import { families } from "@trigate/domain/evm/EvmMethodTable"
import { evmMethods, serving } from "@trigate/domain/evm/EvmOperations"
import { layer2Methods } from "@trigate/domain/evm/Layer2Operations"
import { infoOperations, passthroughQueries, passthroughQuery } from "@trigate/domain/info/InfoOperations"
import type { AnyCodec, Cost, Operation } from "@trigate/domain/operations/Operation"
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

interface Route {
  readonly method: string
  readonly path: string
}

const { evm, exchange, info, layer2, node, tokens } = GatewayApi.groups

interface Section {
  readonly title: string
  readonly routes: ReadonlyArray<Route>
  readonly operations: ReadonlyArray<Operation>
}

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
    operations: evmMethods
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
    operations: layer2Methods
  }
]

const routeText = ({ method, path }: Route): string => code(`${method} ${path.replaceAll(/:(\w+)/gu, "{$1}")}`)

const costText = ({ entriesPerWeight, requestUnits, rowsPerWeight, weight }: Cost): string => {
  const units = `${requestUnits} request unit${requestUnits === 1 ? "" : "s"}`
  const rows = rowsPerWeight === undefined ? "" : ` + 1 per ${rowsPerWeight} rows`
  const entries = entriesPerWeight === undefined ? "" : ` + 1 per ${entriesPerWeight} entries`
  return weight === 0 ? units : `weight ${weight}${rows}${entries}, ${units}`
}

const sourceTexts = { "official-api": "official API", node: "node" } as const

/** What is said of an operation besides its name and summary. */
const facts: ReadonlyArray<readonly [head: string, of: (operation: Operation) => string]> = [
  ["Class", (operation) => code(operation.class)],
  ["Served by", (operation) => operation.sources.map((source) => sourceTexts[source]).join(", then ")],
  ["Cost", (operation) => costText(operation.cost)]
]

const failureTags = (operation: Operation): ReadonlyArray<string> => operation.failures.map(tagOf)

const errorLinks = (tags: ReadonlyArray<string>): string => tags.map((tag) => errorLink(tag)).join(", ") || "none"

/** The own errors that all operations of a section have, and those that only some have. */
const errorColumns = (operations: ReadonlyArray<Operation>) => {
  const [first = [], ...others] = operations.map(failureTags)
  const shared = first.filter((tag) => others.every((tags) => tags.includes(tag)))
  const further = operations.map((operation) => failureTags(operation).filter((tag) => !shared.includes(tag)))
  const hasFurther = further.some((tags) => tags.length > 0)
  return [
    ...shared.length === 0 && hasFurther
      ? []
      : [{ head: "Own errors", values: operations.map(() => errorLinks(shared)) }],
    ...hasFurther
      ? [{ head: shared.length === 0 ? "Own errors" : "Further errors", values: further.map(errorLinks) }]
      : []
  ]
}

/** A fact that all operations of a section share is said once, above its table. */
const sectionText = ({ operations, routes, title }: Section): string => {
  const [first, ...keyed] = routes.map(routeText)
  const columns = [...facts.map(([head, of]) => ({ head, values: operations.map(of) })), ...errorColumns(operations)]
  const shared = columns.filter(({ values }) => new Set(values).size === 1)
  const own = columns.filter((column) => !shared.includes(column))
  return [
    `## ${title}`,
    [
      `- Route: ${String(first)}; behind an endpoint key ${keyed.join(", ")}`,
      ...shared.map(({ head, values }) => `- ${head}: ${String(values[0])}`)
    ].join("\n"),
    table(
      ["Operation", "What it does", ...own.map(({ head }) => head)],
      operations.map((
        { name, summary },
        row
      ) => [code(name), summary, ...own.map(({ values }) => String(values[row]))])
    )
  ].join("\n\n")
}

const familiesText = [
  "## Families of EVM methods",
  `Only some nodes have these reads. ${code(`${settings.relayMethods.env}=zks_*,trace_*`)} makes ${code("/evm")} and ${
    code("/l2")
  } relay the families that it names. The errors are those on ${code("/evm")}, whose nodes know the latest block only.`,
  ...Object.keys(families).map((family) => {
    const reads = configuredReads(family, serving)
    return `### ${code(family)}\n\n${
      table(
        ["Operation", "What it does", "Own errors"],
        reads.map((read) => [
          code(read.name),
          read.summary,
          errorLinks(failureTags(read))
        ])
      )
    }`
  })
]

const operationsText = document(
  "Operations",
  "A `read` may be sent again; a `once` call never after a byte may have reached the upstream. The official API is named\n" +
    "first where both serve an operation. Weight counts against the official API's rate limit, request units against that\n" +
    `of a node provider's plan. An operation that no node serves answers ${
      errorLink("UnavailableOnNode")
    } behind an endpoint\n` +
    "key.",
  `Besides its own errors every call can end in: ${errorLinks(commonFailures.map(tagOf))}.`,
  `A gateway can also refuse its caller: ${errorLinks(callerFailures.map(tagOf))}. An embedded service raises only ${
    errorLinks(["QuotaExceeded"])
  } of them.`,
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

const memberText = ({ description, name, optional, type }: Member): string =>
  `- ${code(name)}: ${type}${optional ? ", optional" : ""}${description === undefined ? "" : `. ${description}`}`

const errorText = (error: (typeof gatewayErrors)[number]): string => {
  const tag = error.fields._tag.schema.literal
  const { members, status, type } = shapeOf(error)
  return [
    `### ${tag}`,
    `HTTP ${status} · JSON-RPC ${rpcCodes[tag]} · ${code(error.prototype.group)} · ${code(type)}`,
    meaningOf(tag),
    ...members.length === 0 ? [] : [members.map(memberText).join("\n")]
  ].join("\n\n")
}

const errorRow = (error: (typeof gatewayErrors)[number]): ReadonlyArray<string> => {
  const tag = error.fields._tag.schema.literal
  const { status } = shapeOf(error)
  return [errorLink(tag, ""), status, String(rpcCodes[tag]), code(error.prototype.group), firstSentence(meaningOf(tag))]
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
  "Every error is one class of `packages/domain`. Over HTTP it is an `application/problem+json` document (RFC 9457): `type`,\n" +
    "`title`, `status`, `detail`, then `_tag` and the error's own fields as extension members. On the JSON-RPC routes the\n" +
    "same document is in `error.data`. The typed client decodes both into the same class, and so does a gateway in front of\n" +
    "another one. The exceptions are the errors with which a gateway refuses its caller:\n" +
    `${
      callerFailures.map((failure) => errorLink(tagOf(failure), "")).join(", ")
    }. The gateway in front reads them as what their status says,\n` +
    "since it is not its own caller who was refused.",
  "On `/exchange` and `/info` the document also has `code`, the HTTP status, and `msg`, the `detail`: the venue's SDKs read these two.",
  "A JSON-RPC request that is not JSON gets the code -32700, and one with a broken envelope -32600; `error.data` is an\n" +
    "`InvalidRequest` in both cases. Errors that no JSON-RPC route raises have the code -32603.",
  table(
    ["Error", "HTTP", "JSON-RPC", "Group", "When"],
    gatewayErrors.map(errorRow)
  ),
  "## Groups",
  "The group of an error says what a caller does about it. Every class declares its own as `group`. Only the group\n" +
    "`outcome-unknown` leaves open whether something took effect.",
  table(["Group", "What to do"], Object.entries(errorGroups).map(([group, advice]) => [code(group), advice])),
  "## Errors with a reason",
  "A method of an embedded service or of the typed client fails with at most six tags. Two errors have a `reason`, which is one of\n" +
    "the errors above; `message`, `group` and `retryAfter` are those of the reason. `Effect.catchReason` handles one reason,\n" +
    "`Effect.catchReasons` several. The wire carries the reason alone, and the errors that are not listed here are tags themselves.",
  table(["Error", "Reasons"], [
    ["`RequestError`: refused here, and nothing of the request was sent", reasonLinks(requestReasons)],
    ["`UpstreamError`: the upstream did not serve the call", reasonLinks(upstreamReasons)]
  ]),
  "## Each error and its fields",
  ...gatewayErrors.map(errorText),
  "## Errors that are read out of answers",
  "The HTTP route relays the venue's own answer to a signed action as it is. Embedded services and the typed client read it and\n" +
    "can fail with:",
  ...readErrors.map(readErrorText)
)

const exampleText = (kind: string): string => {
  const file = `docs/config/trigate.config.${kind}`
  return `\`trigate.config.${kind}\`:\n\n\`\`\`${kind}\n${fs.readFileSync(path.join(root, file), "utf8")}\`\`\``
}

const configurationText = document(
  "Configuration",
  "Each setting is a flag of `trigate serve`, an environment variable, or a member of a settings file. The flag beats the\n" +
    "environment, and the environment beats the file. An empty value counts as not given. All three take the same texts.",
  "The gateway does not start with a value that does not decode, or with a flag, a member or a name `TRIGATE_…` that is not in\n" +
    "these tables. It prints one line, which says where the mistake is, and ends with the exit code 2. It never prints the value,\n" +
    "which may hold an endpoint key. Without any upstream address it serves the sandbox\n" +
    "([decision 13](decisions/0013-sandbox-or-live.md)).",
  "`Trading.layerConfig()`, `Tokens.layerConfig()` and `Layer2Chain.layerConfig()` of the library packages read the same settings\n" +
    "in the same way, each those that concern its chain. There `Config.nested` puts a prefix before the names\n" +
    "([how](guides/embed.md#from-the-configuration)).",
  "## Settings",
  ...grouped.flatMap(({ group, members }) => [
    `### ${group}`,
    table(
      ["Variable", "Flag", "Member", "Meaning", "Takes", "Default", "Restart"],
      members.map((
        [name, { env, flag, meaning, needsRestart, takes, unset }]
      ) => [code(env), code(`--${flag}`), code(name), meaning, takes, unset, needsRestart === true ? "✓" : ""])
    )
  ]),
  "Every process of a machine can see flags. Put addresses with endpoint keys into the environment or into a file.",
  "## Settings file",
  "The gateway reads `trigate.config.json`, `trigate.config.yaml` or `trigate.config.toml` of its working folder, or the file of\n" +
    "`--config FILE`. Two of them in one folder are refused. A list may be an array, and `on` and `off` may be `true` and\n" +
    "`false`. The three examples say the same.",
  ...["json", "yaml", "toml"].map(exampleText),
  "## Environment file",
  "`--env-file FILE` names a file of `NAME=value` lines, as Docker, systemd and `node --env-file` read it. A variable of the\n" +
    "file counts where the environment does not set it.",
  "## Changing settings while the gateway serves",
  "On `SIGHUP` (`kill -HUP PID`, `systemctl reload`, `docker kill -s HUP`) the gateway reads its settings file and its environment\n" +
    "file again. Flags and the environment of a process do not change, and still beat the files.",
  "- Settings with a mark under Restart keep their value until the gateway starts again. The log names those that changed.\n" +
    "- Another network, and real chains instead of the sandbox or the sandbox instead of them, are another gateway. Such settings\n" +
    "  are refused whole, and so are settings of which one is wrong. The log says why in one line, and the old settings stay.\n" +
    "- Everything else is applied at once. Requests from then on are served by the new settings; those in flight end by the\n" +
    "  settings with which they began. Nonces, the windows of rate limits, cached responses and ejected addresses are kept.",
  "To try settings before the gateway gets them, run [`trigate serve --check`](cli.md#a-gateway) with the same files.\n" +
    "([decision 26](decisions/0026-settings-change-over-what-stays.md))"
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
  ["server/src/stores/SandboxPrices", "mostBars", ""],
  ["signing/src/actions/MsgPack", "maxDepth", ""],
  ["signing/src/multisig/MultiSig", "maxSigners", ""],
  ["signing/src/inspection/SignedReading", "maxHashed", "bytes"],
  ["signing/src/inspection/SignedReading", "maxSearched", "bytes"],
  ["trading/src/SignatureDiagnosis", "maxRecoveries", ""],
  ["trading/src/actionLog/ActionLogQuota", "maxSigners", ""],
  ["trading/src/accounts/AccountEvents", "mostPending", ""],
  ["tokens/src/transactions/AccountHistory", "mostPages", ""],
  ["tokens/src/transactions/Transactions", "mostAccounts", ""],
  ["sandbox/src/evm/EvmChain", "gasLimit", ""],
  ["sandbox/src/venue/VenueAccounts", "mostRows", ""],
  ["api/src/SandboxApi", "mostSnapshots", ""],
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
  const meaning = firstSentence(comment.replaceAll(/^ *\* ?/gmu, "").trim()).replace(/\.$/u, "")
    .replaceAll(/\{@link ([^}]+)\}/gu, "`$1`")
  return [meaning, unit === "bytes" ? bytesText(value) : grouping(value), code(`packages/${file}.ts`)]
}

const isBound = (takes: string): boolean => /^(?:an integer|a number|a duration)\b/u.test(takes)

const limitsText = document(
  "Limits",
  "The bounds of a gateway. The venue's own limits are in [upstreams](upstreams.md#rate-limit), what happens beyond those of streams in\n" +
    "[streams](streams.md#limits), and the guarantees under load in [reliability](reliability.md#under-load). The quotas of a caller are\n" +
    "set [with its key](guides/callers.md).",
  "## With a setting",
  table(
    ["Variable", "Bounds", "Takes", "Default"],
    grouped.filter(({ group }) => group !== "Telemetry").flatMap(({ members }) =>
      members.filter(([, { takes }]) => isBound(takes)).map(([, { env, meaning, takes, unset }]) => [
        code(env),
        firstSentence(meaning).replace(/\.$/u, ""),
        takes.replace(/ with its unit, like `500ms` or `10 seconds`/u, ""),
        unset
      ])
    )
  ),
  "## Fixed",
  table(["Bounds", "At most", "Declared in"], fixedLimits.map(fixedLimit))
)

/** What Effect's cluster writes where a recorder is elected. */
const clusterMetrics: ReadonlyArray<readonly [name: string, kind: string, meaning: string]> = [
  ["effect_cluster_runners", "gauge", "Replicas that take part, as this one knows"],
  ["effect_cluster_runners_healthy", "gauge", "Those of them that the database has heard of lately"],
  ["effect_cluster_singletons", "gauge", "1 on the replica that records, else 0"],
  ["effect_cluster_shards", "gauge", "1 on the replica that holds the lock of the recorder, else 0"],
  ["effect_cluster_shards_releasing", "gauge", "1 while this replica gives the lock back, else 0"],
  ["effect_cluster_shard_release", "histogram", "How long giving the lock back took, in milliseconds"],
  ["effect_cluster_entities", "gauge", "Always 0: the recorder is no entity"],
  ["effect_cluster_entity_mailbox_size", "gauge", "Not written: there are no entities"],
  ["effect_cluster_entity_mailbox_size_max", "gauge", "Not written: there are no entities"]
]

const metricsText = document(
  "Metrics",
  "`GET /metrics` prints these in Prometheus text, and a gateway with a collector exports them over OTLP\n" +
    "([guide](guides/observability.md)). A metric without a series yet is printed with its head only. Every label has a\n" +
    "bounded set of values; none holds an address, a key, or a text of a caller. The names that do not begin with `trigate_`\n" +
    "are those of prom-client, but those of [the election](#the-election-of-a-recorder).",
  table(
    ["Metric", "Kind", "Labels", "Meaning"],
    rows.map(({ kind, labels, meaning, name, onLinux }) => [
      code(name),
      kind,
      codes(labels),
      onLinux === true ? `${meaning}; on Linux only` : meaning
    ])
  ),
  "A histogram `x` has the series `x_bucket` (with the label `le`), `x_sum` and `x_count`.",
  "## The election of a recorder",
  "Where replicas share a Postgres and record candles, Effect's cluster adds these. No alert needs them.",
  table(
    ["Metric", "Kind", "Meaning"],
    clusterMetrics.map(([name, kind, meaning]) => [code(name), kind, meaning])
  ),
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
    ? "the replay"
    : "nothing"

const subscriptionsText = document(
  "Subscriptions",
  "What can be subscribed to at `GET /ws` ([streams](streams.md)), with the venue's own names.",
  table(
    ["Type", "Members", "Kind", "Sends", "A hole is filled by"],
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
