/** docs/operations.md: every operation, by route. */
import { GatewayApi } from "@trigate/api/GatewayApi"
import { exchangeOperations } from "@trigate/domain/actions/Action"
import { callerFailures, commonFailures } from "@trigate/domain/errors/GatewayError"
import { evmMethods, serving } from "@trigate/domain/evm/EvmProtocol"
import { layer2Methods } from "@trigate/domain/evm/Layer2Operations"
import { infoOperations, passthroughQuery } from "@trigate/domain/info/InfoOperations"
import type { Cost, Operation } from "@trigate/domain/operations/Operation"
import { getTokenData, tokenRpcOperations, tokenSendOperations } from "@trigate/domain/tokens/TokenOperations"
import { configuredReads, families, standardMethods } from "@trigate/domain/unstable/evm/EvmMethods"
import { settings } from "@trigate/server/unstable/settings/Settings"
import { errorLink, failureTags, tagOf } from "./errorTags.ts"
import { code, codes, document, table } from "./markdown.ts"

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

/** The methods that do the same on both EVM routes; only the venue's nodes refuse a block. */
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
    title: "Queries of the venue",
    routes: [info.endpoints.query, node.endpoints.info],
    operations: [...Object.values(infoOperations), passthroughQuery]
  },
  {
    title: "HyperEVM",
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
      "The other methods of [HyperEVM](#hyperevm) have the same meaning, class and errors here, but they read\nany block and never fail with `UnsupportedBlock`. Only these are missing",
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

const sourceTexts = { "official-api": "venue's API", node: "node" } as const

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
  const [most = ""] = [...counts].toSorted(([, one], [, other]) => other.length - one.length).map(([value]) => value)
  return most
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

/** The document. */
export const operationsText = document(
  "Operations",
  "A `read` may be sent again. A `once` call is never sent again after a byte may have reached the upstream. Weight counts against the\n" +
    "venue's rate limit. A node provider's plan counts request units: one per operation, unless a table states another cost. A path\n" +
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
