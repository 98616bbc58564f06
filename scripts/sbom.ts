/**
 * The software bill of materials of what is published: the program, the packages, and all that comes with them (CycloneDX 1.5).
 *
 * `npm run sbom` writes `sbom.cdx.json`; with `-- --check` it writes nothing. npm lists the whole repository from its lock file;
 * what only builds and tests it is left out. The result has to fit CycloneDX's own schema.
 */
import { Ajv } from "ajv"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import { createRequire } from "node:module"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { manifestOf, published, root } from "./packages/manifest.ts"
import { run } from "./steps.ts"

const { values } = parseArgs({ options: { check: { type: "boolean", default: false } } })

const Json = Schema.Record(Schema.String, Schema.Json)
const Names = Schema.Record(Schema.String, Schema.String)

const Component = Schema.StructWithRest(
  Schema.Struct({ "bom-ref": Schema.String, name: Schema.String, purl: Schema.String }),
  [Json]
)
const Bom = Schema.StructWithRest(
  Schema.Struct({
    metadata: Schema.StructWithRest(Schema.Struct({ component: Component }), [Json]),
    components: Schema.Array(Component),
    dependencies: Schema.Array(Schema.Struct({ ref: Schema.String, dependsOn: Schema.Array(Schema.String) }))
  }),
  [Json]
)
const Locked = Schema.Struct({
  name: Schema.optionalKey(Schema.String),
  version: Schema.optionalKey(Schema.String),
  dependencies: Schema.optionalKey(Names),
  optionalDependencies: Schema.optionalKey(Names),
  peerDependencies: Schema.optionalKey(Names),
  peerDependenciesMeta: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Struct({ optional: Schema.optionalKey(Schema.Boolean) }))
  )
})
const Lock = Schema.Struct({ packages: Schema.Record(Schema.String, Locked) })

const decodeBom = Schema.decodeUnknownSync(Schema.fromJsonString(Bom))
const decodeLock = Schema.decodeUnknownSync(Schema.fromJsonString(Lock))

/** A reference without its version: the package's name. */
const nameOf = (ref: string): string => ref.slice(0, ref.lastIndexOf("@"))

const whole = decodeBom(run("npm", ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only"], root))

/** The names of the packages that an installation of each package brings: not those that it only can work with. */
const brought = new Map<string, ReadonlySet<string>>()
for (
  const [folder, locked] of Object.entries(
    decodeLock(fs.readFileSync(path.join(root, "package-lock.json"), "utf8")).packages
  )
) {
  const { dependencies = {}, optionalDependencies = {}, peerDependencies = {}, peerDependenciesMeta = {}, version } =
    locked
  const peers = Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true)
  const name = locked.name ?? folder.slice(folder.lastIndexOf("node_modules/") + "node_modules/".length)
  brought.set(
    `${name}@${version}`,
    new Set([...Object.keys(dependencies), ...Object.keys(optionalDependencies), ...peers])
  )
}

const dependsOn = new Map(
  whole.dependencies.map((
    { dependsOn, ref }
  ) => [ref, dependsOn.filter((each) => brought.get(ref)?.has(nameOf(each)) === true)])
)

const roots = [...published.values()].map(manifestOf).map(({ name, version }) => `${name}@${version}`)
const reached = new Set<string>()
const reach = (ref: string): void => {
  if (reached.has(ref)) return
  reached.add(ref)
  for (const each of dependsOn.get(ref) ?? []) reach(each)
}
for (const ref of roots) reach(ref)
// the server carries the console, and the console what its page runs
for (const ref of dependsOn.get(`@trigate/console@${manifestOf(path.join(root, "packages/console")).version}`) ?? []) {
  reach(ref)
}

const isEarlier = (one: typeof Component.Type, other: typeof Component.Type) =>
  one["bom-ref"] < other["bom-ref"] ? -1 : 1

const components: Array<typeof Component.Type> = []
for (const component of whole.components.toSorted(isEarlier)) {
  const ref = component["bom-ref"]
  // npm names a package of the repository by its folder
  if (reached.has(ref)) components.push({ ...component, name: nameOf(ref) })
}
const program = components.find(({ name }) => name === "trigate")
if (program === undefined) throw new Error("The bill does not name the program")
const missing = roots.filter((ref) => !components.some((each) => each["bom-ref"] === ref))
if (missing.length > 0) throw new Error(`The bill does not name ${missing.join(", ")}`)

const bill = {
  ...whole,
  metadata: { ...whole.metadata, component: { ...program, type: "application" } },
  components: components.filter((each) => each !== program),
  dependencies: [...reached].toSorted().map((ref) => ({ ref, dependsOn: dependsOn.get(ref) ?? [] }))
}

const schemas = path.join(
  path.dirname(createRequire(import.meta.url).resolve("@cyclonedx/cyclonedx-library/package.json")),
  "res/schema"
)
const schema = (name: string): object => {
  const parsed: unknown = JSON.parse(fs.readFileSync(path.join(schemas, name), "utf8"))
  if (typeof parsed !== "object" || parsed === null) throw new Error(`${name} is no schema`)
  return parsed
}
// the schema writes Unicode patterns that only Ajv's own mode refuses, and formats that no rule here reads
const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true })
for (const name of ["spdx.SNAPSHOT.schema.json", "jsf-0.82.SNAPSHOT.schema.json"]) {
  ajv.addSchema(schema(name), `http://cyclonedx.org/schema/${name}`)
}
const validate = ajv.compile(schema("bom-1.5.SNAPSHOT.schema.json"))
if (!validate(bill)) throw new Error(`The bill does not fit CycloneDX 1.5: ${ajv.errorsText(validate.errors)}`)

const file = path.join(root, "sbom.cdx.json")
if (!values.check) fs.writeFileSync(file, `${JSON.stringify(bill, undefined, 2)}\n`)
console.log(
  `sbom: ${roots.length} packages and ${components.length - roots.length} that come with them, as CycloneDX 1.5` +
    (values.check ? "" : `, in ${path.relative(process.cwd(), file)}`)
)
