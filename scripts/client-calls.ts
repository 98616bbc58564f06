/**
 * The calls of the typed client that follow from the tables of operations: one function each, so that a page loads those
 * that it calls.
 */
import { evmOperations } from "@trigate/domain/evm/EvmProtocol"
import { layer2Operations } from "@trigate/domain/evm/Layer2Operations"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import type { Operation } from "@trigate/domain/operations/Operation"
import { evmReads } from "@trigate/domain/unstable/evm/EvmMethods"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { specifierOf } from "./packages/manifest.ts"

const module = (title: string, imports: ReadonlyArray<string>, calls: ReadonlyArray<string>): string =>
  `/** ${title} Written by \`npm run docs:generate\` from the operations; change the operations, not this file. */\n` +
  [imports.join("\n"), ...calls].join("\n\n") + "\n"

/** A value as TypeScript writes it. */
const literal = (value: unknown): string =>
  typeof value === "bigint"
    ? `${value}n`
    : Array.isArray(value)
    ? `[${value.map(literal).join(", ")}]`
    : Predicate.isObject(value)
    ? `{ ${Object.entries(value).map(([name, member]) => `${name}: ${literal(member)}`).join(", ")} }`
    : JSON.stringify(value)

/** The request of the declared example as an argument; none for a call without members. */
const argument = ({ example, request }: Operation): string => {
  const decoded = Schema.decodeUnknownSync(request)(example)
  return !Predicate.isObject(decoded) || Object.keys(decoded).length === 0 ? "" : literal(decoded)
}

const failures = (operation: Operation): string => {
  const names = operation.failures.map(({ ast }) => `\`${String(ast.annotations?.["identifier"])}\``)
  return ["`CallFailure`", ...names].join(" or ")
}

const docstring = (group: string, name: string, operation: Operation): string =>
  [
    `${operation.summary}.`,
    "",
    `Fails with ${failures(operation)}.`,
    "",
    "@since 0.1.0",
    "@category calls",
    "@example",
    "```ts",
    `import { Connection, ${group} } from "@trigate/client"`,
    `import { Effect } from "effect"`,
    "",
    `const program = ${group}.${name}(${argument(operation)})`,
    "",
    `await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))`,
    "```"
  ].map((line) => line === "" ? " *" : ` * ${line}`).join("\n")

const calls = (
  group: string,
  operations: { readonly [name: string]: Operation },
  made: (name: string) => string
): ReadonlyArray<string> =>
  Object.entries(operations).map(([name, operation]) =>
    `/**\n${docstring(group, name, operation)}\n */\nexport const ${name} = ${made(name)}`
  )

/** The modules that declare the calls of an EVM chain, where the name of a call's group is not that of its module. */
const joined: ReadonlyMap<string, string> = new Map([["EvmReads", "EvmMethods"], ["EvmOperations", "EvmProtocol"]])

/** The call that sends a signed transaction. */
const sendCall = (group: string, declared: string): string =>
  [
    "/**",
    ` * Sends a signed transaction once, and returns its hash. Fails with \`OutcomeUnknown\` if the response is lost.`,
    " *",
    " * @since 0.1.0",
    " * @category calls",
    " * @example",
    " * ```ts",
    ` * import { Connection, ${group} } from "@trigate/client"`,
    ` * import { Console, Effect } from "effect"`,
    " *",
    ` * const program = ${group}.sendRawTransaction({ transaction: "0x02" }).pipe(`,
    ` *   Effect.flatMap(Console.log),`,
    ` *   Effect.catchTag("RequestError", ({ reason }) => Console.log(reason._tag))`,
    " * )",
    " *",
    ` * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))`,
    " * ```",
    " * ```text",
    " * InvalidRequest",
    " * ```",
    " */",
    `export const sendRawTransaction = send(${declared}.sendRawTransaction)`
  ].join("\n")

const evmCalls = (
  title: string,
  group: string,
  path: string,
  declared: string,
  operations: { readonly [name: string]: Operation }
) =>
  module(title, [
    `import * as Paths from "${specifierOf("api", "Paths")}"`,
    ...["EvmReads", declared]
      .map((name) => ({ name, from: specifierOf("domain", `evm/${joined.get(name) ?? name}`) }))
      .toSorted((one, other) => one.from < other.from ? -1 : 1)
      .map(({ from, name }) => `import * as ${name} from "${from}"`),
    `import { callAt, sendAt } from "./internal/Served.ts"`
  ], [
    `const method = callAt(Paths.${path}, ${declared}.serving.chain)\n` +
    `const send = sendAt(Paths.${path}, ${declared}.serving.chain)`,
    sendCall(group, declared),
    ...calls(
      group,
      operations,
      (name) => `method(${name in evmReads ? `EvmReads.${name}(${declared}.serving)` : `${declared}.${name}`})`
    )
  ])

const queries = Struct.omit(infoOperations, ["candleSnapshot"])

/** The text of each module, by its path in the repository. */
export const clientModules: ReadonlyMap<string, string> = new Map([
  [
    "packages/client/src/internal/InfoQueries.ts",
    module("The queries that are sent without conversion.", [
      `import * as InfoOperations from "${specifierOf("domain", "info/InfoOperations")}"`,
      `import { query } from "./Served.ts"`
    ], calls("Info", queries, (name) => `query(InfoOperations.${name})`))
  ],
  ["packages/client/src/Evm.ts", evmCalls("HyperEVM.", "Evm", "evm", "EvmOperations", evmOperations)],
  ["packages/client/src/Layer2.ts", evmCalls("The layer 2.", "Layer2", "layer2", "Layer2Operations", layer2Operations)]
])
