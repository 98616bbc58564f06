/**
 * Compiles the contracts of the sandbox's token chain, `packages/sandbox/contracts/*.tolk`, into the module that holds their code.
 *
 * Run it with `npm run contracts`. A test of the sandbox compiles them again and compares.
 */
import { runTolkCompiler } from "@ton/tolk-js"
import * as fs from "node:fs"
import * as path from "node:path"

const root = path.resolve(import.meta.dirname, "..")
const folder = path.join(root, "packages/sandbox/contracts")

const target = path.join(root, "packages/sandbox/src/tokens/JettonCode.ts")

const compile = async (name: string): Promise<string> => {
  const result = await runTolkCompiler({
    entrypointFileName: `${name}.tolk`,
    fsReadCallback: (file) => fs.readFileSync(path.join(folder, file.replace(/(?:\.tolk)?$/u, ".tolk")), "utf8")
  })
  if (result.status === "error") throw new Error(result.message)
  return result.codeBoc64
}

const constant = (name: string, description: string, code: string): ReadonlyArray<string> => [
  "",
  `/** ${description} */`,
  `export const ${name} =`,
  ...(code.match(/.{1,110}/gu) ?? []).map((part, index) => `  ${index === 0 ? "" : "+ "}"${part}"`)
]

fs.writeFileSync(
  target,
  [
    "/** Code cells of the sandbox's jettons, as bags of cells in base64. Written by `npm run contracts` from `contracts/*.tolk`. */",
    ...constant("minterCode", "The master contract of a jetton.", await compile("jetton-minter")),
    ...constant("walletCode", "The wallet of a jetton's owner.", await compile("jetton-wallet")),
    ""
  ].join("\n")
)
