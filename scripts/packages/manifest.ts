/** The packages that are published, and their manifests. */
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as path from "node:path"

export const root = path.resolve(import.meta.dirname, "../..")

const Manifest = Schema.StructWithRest(
  Schema.Struct({
    name: Schema.String,
    version: Schema.String,
    private: Schema.optionalKey(Schema.Boolean),
    bin: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
    exports: Schema.optionalKey(Schema.Record(Schema.String, Schema.NullOr(Schema.String))),
    dependencies: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
    peerDependencies: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
    peerDependenciesMeta: Schema.optionalKey(
      Schema.Record(Schema.String, Schema.Struct({ optional: Schema.Boolean }))
    )
  }),
  [Schema.Record(Schema.String, Schema.Json)]
)

export type Manifest = typeof Manifest.Type

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Manifest))

export const manifestOf = (folder: string): Manifest =>
  decode(fs.readFileSync(path.join(folder, "package.json"), "utf8"))

const decodeVersion = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ version: Schema.String })))

/** The version of any package. */
export const versionOf = (folder: string): string =>
  decodeVersion(fs.readFileSync(path.join(folder, "package.json"), "utf8")).version

/** The folders of the packages that are published, by the name of the folder. */
export const published: ReadonlyMap<string, string> = new Map(
  fs.readdirSync(path.join(root, "packages")).toSorted()
    .map((name): [string, string] => [name, path.join(root, "packages", name)])
    .filter(([, folder]) => manifestOf(folder).private !== true)
)

/** Those that programs import; the others are programs themselves. */
export const libraries: ReadonlyArray<readonly [name: string, folder: string]> = [...published].filter(([, folder]) =>
  manifestOf(folder).bin === undefined
)

/** The modules of a package that its siblings may import, as paths in its `src` without the extension. */
export const sharedModulesOf = (folder: string): ReadonlyArray<string> =>
  fs.globSync("**/*.ts", { cwd: path.join(folder, "src") }).toSorted()
    .filter((file) => !file.startsWith("internal/") && !file.endsWith(".d.ts"))
    .map((file) => file.replace(/\.ts$/u, ""))

/** The modules that programs import: those that the manifest names. All others are under `./unstable`. */
export const modulesOf = (folder: string): ReadonlyArray<string> =>
  Object.values(manifestOf(folder).exports ?? {}).flatMap((target) => {
    const module = /^\.\/src\/(?<module>[^*]+)\.ts$/u.exec(target ?? "")?.groups?.["module"]
    return module === undefined ? [] : [module]
  }).toSorted()

/** The specifier of a package's module. */
export const specifierOf = (name: string, module: string): string => {
  const isPublic = modulesOf(path.join(root, "packages", name)).includes(module)
  return `@trigate/${name}/${isPublic ? "" : "unstable/"}${module}`
}

/** Whether a module is a program, which runs when it is imported. */
export const isProgram = (file: string): boolean => /\brunMain\(|^await import\(/mu.test(fs.readFileSync(file, "utf8"))
