/**
 * Compares the declared actions, queries and subscriptions with those of the client libraries.
 *
 * `npm run catalog` prints each type and each member that a library knows and the declarations lack, and fails if one is
 * not listed in `accepted`, or if an entry of `accepted` is obsolete. `-- --python FOLDER` also reads a checkout of the
 * Python SDK, `-- --ours` also prints the types that only the declarations have.
 *
 * @nktkas/hyperliquid is compared by its request schemas, the others by the object literals with a `type` in their code,
 * of which only the outer members are compared.
 */
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import { actionSchemas } from "@trigate/domain/unstable/actions/ActionSchemas"
import { passthroughQueries } from "@trigate/domain/unstable/info/InfoQueries"
import * as Subscriptions from "@trigate/domain/unstable/streams/Subscriptions"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as path from "node:path"
import { parseArgs } from "node:util"

const usage = `Usage: npm run catalog -- [--python FOLDER] [--ours]

  --python FOLDER  also compare with a checkout of hyperliquid-python-sdk
  --ours           also print the types that no library has`

const readOptions = () => {
  try {
    return parseArgs({
      options: {
        python: { type: "string" },
        ours: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false }
      }
    }).values
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`)
    return process.exit(2)
  }
}

const options = readOptions()

if (options.help) {
  console.log(usage)
  process.exit(0)
}

const root = path.resolve(import.meta.dirname, "..")

const kinds = ["action", "query", "subscription"] as const
type Kind = (typeof kinds)[number]

/** The paths of the members of each type, such as `orders[].t.limit.tif`; `undefined` if any member passes. */
type Types = Map<string, ReadonlySet<string> | undefined>
type Catalog = { readonly [K in Kind]: Types }

/** Differences that are as they should be, by library, kind and type or member, with the reason. */
const accepted: ReadonlyMap<string, string> = new Map(Object.entries({
  "@nktkas/hyperliquid action activateOutcomeDeployer: isDeactivate": "the venue documents activate and deactivate",
  "@nktkas/hyperliquid action convertToMultiSigUser: signers.authorizedUsers": "signers is a text of JSON",
  "@nktkas/hyperliquid action convertToMultiSigUser: signers.threshold": "signers is a text of JSON",
  "ccxt action accountClassTransfer": "a type of a ledger update",
  "ccxt action order: data": "a response",
  "ccxt action action": "a description of ccxt",
  "ccxt action crypto": "a description of ccxt",
  "ccxt action default": "a description of ccxt",
  "ccxt action funding": "a description of ccxt",
  "ccxt action info": "a description of ccxt",
  "ccxt action isolated": "a description of ccxt",
  "ccxt action oneWay": "a description of ccxt",
  "ccxt action spot": "a description of ccxt",
  "ccxt action swap": "a description of ccxt",
  "hyperliquid action activeSpotAssetCtx": "a channel of the subscription activeAssetCtx",
  "hyperliquid action builderFeeApproval": "no other source has this query, whose documented name is maxBuilderFee",
  "hyperliquid action cancelAll": "a command of the library, which sends cancel",
  "hyperliquid action userOrderHistory": "no other source has this query, whose documented name is historicalOrders"
}))

/** The types of typed data, which libraries declare as `{ name, type }`. */
const fieldTypes: ReadonlySet<string> = new Set(["address", "bool", "bytes32", "string", "uint256", "uint64"])

/** A member of descriptions of actions, which are not requests. */
const descriptive = "signingMethod"

const property = (value: unknown, name: string): unknown => Predicate.hasProperty(value, name) ? value[name] : undefined
const entries = (value: unknown): ReadonlyArray<[string, unknown]> =>
  Predicate.isObject(value) ? Object.entries(value) : []
const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []
const join = (at: string, name: string): string => at === "" ? name : `${at}.${name}`

/** Adds the paths of the properties of a JSON schema; `within` has the references that lead to it. */
const walkJsonSchema = (
  node: unknown,
  definitions: unknown,
  at: string,
  found: Set<string>,
  within: ReadonlyArray<string> = []
): void => {
  const walk = (each: unknown, path: string) => walkJsonSchema(each, definitions, path, found, within)
  const reference = property(node, "$ref")
  if (Predicate.isString(reference)) {
    const name = reference.split("/").at(-1) ?? ""
    // JSON of any shape refers to itself
    if (!within.includes(name)) walkJsonSchema(property(definitions, name), definitions, at, found, [...within, name])
    return
  }
  for (const [name, value] of entries(property(node, "properties"))) {
    found.add(join(at, name))
    walk(value, join(at, name))
  }
  for (const name of ["anyOf", "oneOf", "allOf"]) for (const each of list(property(node, name))) walk(each, at)
  if (Predicate.hasProperty(node, "items")) walk(node.items, `${at}[]`)
  for (const each of list(property(node, "prefixItems"))) walk(each, `${at}[]`)
}

const membersOf = (schema: Schema.Constraint): ReadonlySet<string> => {
  const { definitions, schema: node } = Schema.toJsonSchemaDocument(schema)
  const found = new Set(["type"])
  walkJsonSchema(node, definitions, "", found)
  return found
}

const ours: Catalog = {
  action: new Map(Object.entries(actionSchemas).map(([type, schema]) => [type, membersOf(schema)])),
  query: new Map([
    ...Object.keys(passthroughQueries).map((type) => [type, undefined] as const),
    ...Object.values(infoOperations).map(({ name, request }) => [name, membersOf(request)] as const)
  ]),
  subscription: new Map(Subscriptions.table.map(({ name, request }) => [name, membersOf(request)]))
}

/** Adds the paths of the members of a valibot schema. */
const walkValibot = (node: unknown, at: string, found: Set<string>): void => {
  for (const [name, value] of entries(property(node, "entries"))) {
    found.add(join(at, name))
    walkValibot(value, join(at, name), found)
  }
  walkValibotIn(property(node, "wrapped"), at, found)
  for (const each of list(property(node, "options"))) walkValibotIn(each, at, found)
  for (const each of [property(node, "item"), ...list(property(node, "items"))]) walkValibotIn(each, `${at}[]`, found)
}

const walkValibotIn = (node: unknown, at: string, found: Set<string>): void => {
  if (Predicate.isObject(node)) walkValibot(node, at, found)
}

/** The requests in a valibot schema: itself, or the members of a union. */
const alternativesIn = (node: unknown): ReadonlyArray<unknown> => {
  const options = list(property(node, "options")).filter((each) => property(each, "entries") !== undefined)
  return options.length > 0 ? options.flatMap(alternativesIn) : [node]
}

const addMembers = (types: Types, type: string, members: Iterable<string>): void => {
  types.set(type, new Set([...types.get(type) ?? [], ...members]))
}

/** Reads the request schemas that a module exports; `at` is the member that contains the request. */
const readValibot = (module: object, at: string | undefined): Types => {
  const types: Types = new Map()
  for (const [name, exported] of Object.entries(module)) {
    if (!name.endsWith("Request")) continue
    for (const body of alternativesIn(exported)) {
      const request = at === undefined ? body : property(property(body, "entries"), at)
      for (const each of alternativesIn(request)) {
        const type = property(property(property(each, "entries"), "type"), "literal")
        if (!Predicate.isString(type)) continue
        const found = new Set<string>()
        walkValibot(each, "", found)
        addMembers(types, type, found)
      }
    }
  }
  return types
}

const empty = (): Catalog => ({ action: new Map(), query: new Map(), subscription: new Map() })

const literal = /(?<quote>["']?)type\k<quote>\s*:\s*(?<word>["'])(?<type>[A-Za-z]\w*)\k<word>/gu

/** Returns the outer members of the object literal around an offset. */
const outerMembers = (text: string, offset: number): ReadonlySet<string> => {
  let depth = 0
  let start = offset
  while (start > 0) {
    start--
    if ("}])".includes(text[start] ?? "")) depth++
    else if ("{[(".includes(text[start] ?? "") && depth-- === 0) break
  }
  const found = new Set<string>()
  depth = 0
  for (
    const { 0: token, groups } of text.slice(start).matchAll(/[{[(]|[}\])]|(?<=[{,]\s*)["']?(?<name>\w+)["']?\s*:/gu)
  ) {
    if ("{[(".includes(token)) depth++
    else if ("}])".includes(token)) {
      if (--depth === 0) break
    } else if (depth === 1 && groups?.["name"] !== undefined) found.add(groups["name"])
  }
  return found
}

/** Reads the object literals of source files. A type that the declarations have is of their kind, else an action. */
const readLiterals = (files: ReadonlyArray<string>): Catalog => {
  const found = empty()
  for (const file of files) {
    const text = fs.readFileSync(file, "utf8")
    for (const match of text.matchAll(literal)) {
      const type = match.groups?.["type"] ?? ""
      const members = outerMembers(text, match.index)
      if (fieldTypes.has(type) || members.has(descriptive)) continue
      const known = kinds.filter((kind) => ours[kind].has(type))
      const kind = known.find((each) => isWithin(members, ours[each].get(type))) ?? known[0] ?? "action"
      addMembers(found[kind], type, members)
    }
  }
  return found
}

const isWithin = (members: ReadonlySet<string>, declared: ReadonlySet<string> | undefined): boolean =>
  declared === undefined || [...members].every((member) => declared.has(member))

const sources = (folder: string, pattern: string): ReadonlyArray<string> =>
  fs.globSync(pattern, { cwd: folder }).map((file) => path.join(folder, file))

const pythonFiles = (folder: string): ReadonlyArray<string> => {
  const files = sources(folder, "hyperliquid/**/*.py")
  if (files.length > 0) return files
  console.error(`${folder} is not a checkout of hyperliquid-python-sdk: it has no hyperliquid/**/*.py`)
  return process.exit(2)
}

const libraries: ReadonlyArray<readonly [name: string, Catalog]> = [
  ["@nktkas/hyperliquid", {
    action: readValibot(await import("@nktkas/hyperliquid/api/exchange"), "action"),
    query: readValibot(await import("@nktkas/hyperliquid/api/info"), undefined),
    subscription: readValibot(await import("@nktkas/hyperliquid/api/subscription"), undefined)
  }],
  ["ccxt", readLiterals(sources(root, "node_modules/ccxt/js/src/{,pro/}hyperliquid.js"))],
  ["hyperliquid", readLiterals(sources(root, "node_modules/hyperliquid/dist/index.mjs"))],
  ...(options.python === undefined ? [] : [
    ["hyperliquid-python-sdk", readLiterals(pythonFiles(options.python))] as const
  ])
]

/** What a library knows and the declarations lack, such as `action trailingStop` or `action order: orders[].x`. */
const missing = (theirs: Catalog): ReadonlyArray<string> =>
  kinds.flatMap((kind) =>
    [...theirs[kind]].flatMap(([type, members]) => {
      if (!ours[kind].has(type)) return [`${kind} ${type}`]
      const declared = ours[kind].get(type)
      return declared === undefined
        ? []
        : [...members ?? []].filter((member) => !declared.has(member)).map((member) => `${kind} ${type}: ${member}`)
    })
  )

const unused = new Set(accepted.keys())
let failures = 0
for (const [name, theirs] of libraries) {
  const differences = missing(theirs).map((difference) => ({ difference, key: `${name} ${difference}` }))
  for (const { key } of differences) unused.delete(key)
  const open = differences.filter(({ key }) => !accepted.has(key))
  failures += open.length
  const counts = kinds.map((kind) => `${theirs[kind].size} ${kind === "query" ? "queries" : `${kind}s`}`).join(", ")
  console.log(
    `${name}: ${counts}; ${open.length} missing here, ${differences.length - open.length} accepted differences`
  )
  for (const { difference } of open) console.log(`  missing: ${difference}`)
}
for (const key of unused) {
  // without its checkout, the Python SDK's differences are not seen
  if (options.python === undefined && key.startsWith("hyperliquid-python-sdk ")) continue
  failures++
  console.log(`obsolete: ${key} (${accepted.get(key)})`)
}
if (options.ours) {
  for (const kind of kinds) {
    const only = [...ours[kind].keys()].filter((type) => libraries.every(([, theirs]) => !theirs[kind].has(type)))
    console.log(`only here, ${kind}: ${only.join(", ")}`)
  }
}
process.exitCode = failures === 0 ? 0 : 1
