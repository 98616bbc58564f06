/**
 * The calls of the typed client that follow from the tables of operations: one function each, so that a page loads those
 * that it calls.
 */
import { evmOperations } from "@trigate/domain/evm/EvmOperations"
import { evmReads } from "@trigate/domain/evm/EvmReads"
import { layer2Operations } from "@trigate/domain/evm/Layer2Operations"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import type { Operation } from "@trigate/domain/operations/Operation"
import * as Struct from "effect/Struct"

const module = (title: string, imports: ReadonlyArray<string>, calls: ReadonlyArray<string>): string =>
  `/** ${title} Written by \`npm run docs:generate\` from the operations; change those, not this file. */\n` +
  [imports.join("\n"), ...calls].join("\n\n") + "\n"

const calls = (
  operations: { readonly [name: string]: Operation },
  made: (name: string) => string
): ReadonlyArray<string> =>
  Object.entries(operations).map(([name, { summary }]) => `/** ${summary}. */\nexport const ${name} = ${made(name)}`)

const evmCalls = (title: string, path: string, declared: string, operations: { readonly [name: string]: Operation }) =>
  module(title, [
    `import * as Paths from "@trigate/api/Paths"`,
    ...["EvmReads", declared].toSorted().map((name) => `import * as ${name} from "@trigate/domain/evm/${name}"`),
    `import { callAt } from "./internal/JsonRpc.ts"`
  ], [
    `const method = callAt(Paths.${path})`,
    ...calls(
      operations,
      (name) => `method(${name in evmReads ? `EvmReads.${name}(${declared}.serving)` : `${declared}.${name}`})`
    )
  ])

const queries = Struct.omit(infoOperations, ["candleSnapshot"])

/** The text of each module, by its path in the repository. */
export const clientModules: ReadonlyMap<string, string> = new Map([
  [
    "packages/client/src/internal/InfoQueries.ts",
    module("The queries without a form of their own.", [
      `import * as InfoOperations from "@trigate/domain/info/InfoOperations"`,
      `import { query } from "./Query.ts"`
    ], calls(queries, (name) => `query(InfoOperations.${name})`))
  ],
  ["packages/client/src/Evm.ts", evmCalls("The trading chain's EVM.", "evm", "EvmOperations", evmOperations)],
  ["packages/client/src/Layer2.ts", evmCalls("The layer 2.", "layer2", "Layer2Operations", layer2Operations)]
])
