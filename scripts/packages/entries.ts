/**
 * The entry module of each published package: every public module that loads no optional peer dependency, as a
 * namespace.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { isProgram, libraries, manifestOf, modulesOf, root } from "./manifest.ts"

/** What a module loads: `import type` does not load anything. */
const loadedBy = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/^(?:import|export)\s(?!type\s)(?:[^"]*?\sfrom\s)?"([^"]+)"/gmu)].flatMap((match) => match.slice(1))

// these load the driver of an optional peer, although their name begins with that of a peer that is always there
const optionalModules = ["@effect/platform-node/NodeRedis"]

const loadsOptional = (file: string, peers: ReadonlyArray<string>): boolean => {
  const reached = new Set([file])
  for (const module of reached) {
    for (const specifier of loadedBy(fs.readFileSync(module, "utf8"))) {
      if (specifier.startsWith(".")) reached.add(path.resolve(path.dirname(module), specifier))
      else if ([...peers, ...optionalModules].some((peer) => `${specifier}/`.startsWith(`${peer}/`))) return true
    }
  }
  return false
}

/** The text of the comment at the head of a module, which says what the module is. */
const headOf = (file: string, text: string): string => {
  const head = /^\/\*\*\n? ?(?<body>[\s\S]*?)\*\//u.exec(text)?.groups?.["body"]
  if (head === undefined) throw new Error(`${file} does not begin with a comment that says what it is`)
  const lines = head.split("\n").map((line) => line.replace(/^\s*\*? ?/u, "").trimEnd())
  const end = lines.findIndex((line, index) => line === "" && index > 0)
  return lines.slice(0, end < 0 ? undefined : end).filter((line) => line !== "").join("\n")
}

const comment = (text: string): string =>
  text.includes("\n") ? `/**\n${text.replace(/^/gmu, " * ")}\n */` : `/** ${text} */`

const entryOf = (name: string, folder: string): string => {
  const peers = Object.entries(manifestOf(folder).peerDependenciesMeta ?? {})
    .filter(([, { optional }]) => optional).map(([peer]) => peer)
  const lines = modulesOf(folder).flatMap((module) => {
    const file = path.join(folder, "src", `${module}.ts`)
    const text = fs.readFileSync(file, "utf8")
    if (module === "index" || isProgram(file) || loadsOptional(file, peers)) return []
    return [`${comment(headOf(file, text))}\nexport * as ${path.basename(module)} from "./${module}.ts"`]
  })
  const title =
    `Every public module of \`@trigate/${name}\` that needs no optional peer dependency, as a namespace.\n\n` +
    "Written by `npm run docs:generate`. To reduce startup time, import single modules, such as\n" +
    `\`@trigate/${name}/…\`: Node then loads only those.`
  return `${[comment(title).replaceAll(" * \n", " *\n"), ...lines].join("\n\n")}\n`
}

/** Their entry modules are written by hand: they export functions and services, for programs with a single import. */
const writtenByHand: ReadonlySet<string> = new Set(["chains", "sdk"])

/** The text of each entry module, by its path in the repository; a package without public modules has none. */
export const entryModules: ReadonlyMap<string, string> = new Map(
  libraries
    .filter(([name, folder]) => !writtenByHand.has(name) && modulesOf(folder).length > 0)
    .map(([name, folder]) => [path.relative(root, path.join(folder, "src/index.ts")), entryOf(name, folder)])
)
