/** A program that lacks a layer is led to one: the message names the service's module, and its docstring names the layers. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as fs from "node:fs"
import * as path from "node:path"
import { isProgram, libraries, root, sharedModulesOf } from "../../scripts/packages/manifest.ts"
import { read } from "./blocks.ts"
import { check } from "./types.ts"

const declaration = /\/\*\*(?<docstring>(?:(?!\*\/)[\s\S])*)\*\/\nexport class (?<name>\w+) extends Context\.Service</gu

/** The parts of `trigate serve`, which no program provides alone. */
const files = libraries.filter(([name]) => name !== "server").flatMap(([name, folder]) =>
  sharedModulesOf(folder).map((module) => `packages/${name}/src/${module}.ts`)
).filter((file) => !isProgram(path.join(root, file)))

const load = async (file: string): Promise<{ readonly [name: string]: unknown }> => {
  const module: unknown = await import(path.join(root, file))
  return Predicate.isObject(module) ? Object.fromEntries(Object.entries(module)) : {}
}

const readFromEmpty = (key: Context.Key<unknown, unknown>): unknown => Context.getUnsafe(Context.empty(), key)

const services = files.flatMap((file) =>
  [...fs.readFileSync(path.join(root, file), "utf8").matchAll(declaration)].map(({ groups = {} }) => ({
    file,
    name: groups["name"] ?? "",
    docstring: groups["docstring"] ?? ""
  }))
)

/** The exports that a docstring lists, such as `Trading.layer`. */
const providers = (docstring: string): ReadonlyArray<readonly [module: string, name: string]> => {
  const [, list = ""] = docstring.split(" * Provided by ")
  const [paragraph = ""] = list.split("\n *\n")
  return [...paragraph.matchAll(/`(\w+)\.(\w+)`/gu)].map(([, module = "", name = ""]) => [module, name])
}

/** The modules in which `Trading.layer` may be, and the service itself, which can have a static member. */
const places = (file: string, module: string): Promise<ReadonlyArray<unknown>> =>
  Promise.all([
    ...files.filter((candidate) => candidate.endsWith(`/${module}.ts`)).map(load),
    load(file).then((own) => module === "Layer" ? Layer : own[module])
  ])

describe("a service without its layer", () => {
  it("is reported by the path of its module, which exports it", async () => {
    assert.strictEqual(services.length, 48)
    for (const { file, name } of services) {
      const service = (await load(file))[name]
      if (!Context.isKey(service)) return assert.fail(`${file}: ${name} is not a service`)
      const module = file.replace(/^packages\/(.+?)\/src\/(.+)\.ts$/u, "@trigate/$1/$2")
      const key = path.basename(module) === name ? module : `${module}/${name}`
      assert.throws(() => readFromEmpty(service), `Service not found: ${key}`)
      assert.strictEqual(service.key, key)
    }
  })

  it("has a docstring that names existing layers", async () => {
    const missing: Array<string> = []
    for (const { docstring, file, name } of services) {
      const listed = providers(docstring)
      if (listed.length === 0) missing.push(`${file}: ${name} is provided by nothing`)
      for (const [module, member] of listed) {
        const found = await places(file, module)
        if (!found.some((place) => Predicate.hasProperty(place, member))) missing.push(`${file}: ${module}.${member}`)
      }
    }
    assert.deepStrictEqual(missing, [])
  })

  it.live("is named by the compiler", () =>
    Effect.gen(function*() {
      const program = [
        "import { Signer } from \"@trigate/signing/Signer\"",
        "import * as Effect from \"effect/Effect\"",
        "Effect.runSync(Signer)"
      ]
      const said = yield* check([read("a.md", `\`\`\`ts\n${program.join("\n")}\n\`\`\`\n`)])
      assert.deepStrictEqual(said.map((text) => text.split("\n").at(-1)?.trim()), [
        "Type 'Signer' is not assignable to type 'never'.",
        "a.md:4: error TS377004: This Effect requires a service that is missing from the expected Effect context: " +
        "`Signer`. effect(missingEffectContext)"
      ])
    }))
})
