/**
 * What programs import first has a docstring with `@since` and `@category`, and an example: services, layers, builders of actions
 * and the calls of the client.
 *
 * `npm run docs:check` runs it. The tests of `test/guides` run the examples. One example serves the services and layers of a
 * module; each builder and each call has its own.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { libraries, root, sharedModulesOf } from "./packages/manifest.ts"

/** An export with the docstring before it. */
interface Documented {
  readonly file: string
  readonly name: string
  readonly docstring: string
}

const declaration =
  /(?<docstring>\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n)?^export (?:class (?<service>\w+) extends Context\.Service<|const (?<name>\w+)\b)/gmu

/** The parts of `trigate serve`, which no program provides alone; `Gateway` has the layers for programs. */
const isPartOfServer = (file: string): boolean => /^packages\/server\/src\/(?!Gateway\.ts$)/u.test(file)

const isBuilder = (file: string): boolean => file.endsWith("/actions/ActionBuilder.ts")
const isCall = (file: string): boolean =>
  /^packages\/client\/src\/(?:internal\/InfoQueries|[A-Z]\w+)\.ts$/u.test(file) &&
  !/\/(?:Connection|GatewayClient|Streams)\.ts$/u.test(file)

const files = libraries.flatMap(([name, folder]) =>
  sharedModulesOf(folder).filter((module) => module !== "index").map((module) => `packages/${name}/src/${module}.ts`)
).concat("packages/client/src/internal/InfoQueries.ts")

const documentedIn = (file: string): ReadonlyArray<Documented> =>
  [...fs.readFileSync(path.join(root, file), "utf8").matchAll(declaration)].flatMap(({ groups = {} }) => {
    const { docstring = "", name = "", service } = groups
    const isWanted = service !== undefined || /^layer(?:[A-Z]|$)/u.test(name) || isBuilder(file) || isCall(file)
    return isWanted ? [{ file, name: service ?? name, docstring }] : []
  })

const failures = files.flatMap((file) => {
  const documented = documentedIn(file)
  const hasExample = ({ docstring }: Documented): boolean => docstring.includes("@example")
  const untagged = documented.flatMap(({ docstring, name }) =>
    ["@since", "@category"].filter((tag) => !docstring.includes(tag)).map((tag) => `${file}: ${name} has no ${tag}`)
  )
  if (isPartOfServer(file)) return untagged
  const unshown = isBuilder(file) || isCall(file)
    ? documented.filter((one) => !hasExample(one)).map(({ name }) => `${file}: ${name} has no @example`)
    : documented.length > 0 && !documented.some(hasExample)
    ? [`${file}: no @example of ${documented.map(({ name }) => name).join(", ")}`]
    : []
  return untagged.concat(unshown)
})

for (const failure of failures) console.error(failure)
console.log(`docs: docstrings of services, layers, builders and calls, ${failures.length} mistakes`)
process.exitCode = failures.length === 0 ? 0 : 1
