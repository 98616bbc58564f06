/**
 * The API reference: a page for each module that a program may import, from its docstrings.
 *
 * The modules are those that the packages export; `internal` and the barrels are left out.
 */
import * as fs from "node:fs"
import * as path from "node:path"

const root = path.resolve(import.meta.dirname, "..")

/** Packages that programs import. The others are programs, or what tests share. */
const libraries = [
  "domain",
  "signing",
  "upstream",
  "archive",
  "trading",
  "tokens",
  "layer2",
  "callers",
  "api",
  "client",
  "sandbox",
  "simulation",
  "server"
]

export default {
  name: "Trigate API",
  plugin: [path.join(import.meta.dirname, "modules.mjs")],
  entryPoints: fs.globSync(`packages/{${libraries.join()}}/src/**/*.ts`, { cwd: root })
    .filter((file) => !/\/internal\/|\/index\.ts$|\.d\.ts$/u.test(file))
    .map((file) => path.join(root, file))
    .toSorted(),
  tsconfig: path.join(import.meta.dirname, "tsconfig.reference.json"),
  basePath: path.join(root, "packages"),
  displayBasePath: path.join(root, "packages"),
  out: path.join(import.meta.dirname, ".vitepress/dist/reference"),
  // the site removes its folder first, so the reference is written after it
  cleanOutputDir: true,
  excludeExternals: true,
  excludePrivate: true,
  excludeInternal: true,
  disableSources: false,
  sourceLinkTemplate: "https://github.com/trigate/trigate/blob/main/{path}#L{line}",
  gitRevision: "main",
  readme: "none",
  githubPages: false,
  categorizeByGroup: false,
  defaultCategory: "others",
  navigation: { includeCategories: false, includeGroups: false, includeFolders: true },
  sort: ["source-order"],
  skipErrorChecking: true,
  treatWarningsAsErrors: true,
  hideGenerator: true
}
