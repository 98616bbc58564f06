/**
 * The pages of the library: one for each module that a program may import, from its docstrings.
 *
 * The modules are those that the packages export; `internal` and the barrels are left out.
 */
import * as path from "node:path"
import { libraries, modulesOf } from "./library.mjs"

const root = path.resolve(import.meta.dirname, "..")

export default {
  name: "Trigate library",
  plugin: [path.join(import.meta.dirname, "modules.mjs")],
  entryPoints: libraries.flatMap((name) =>
    modulesOf(name).map((file) => path.join(root, "packages", name, "src", file))
  ),
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
