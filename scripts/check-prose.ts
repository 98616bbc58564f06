/**
 * Counts the constructions of `prose/constructions.ts` in sources and documents, and fails where a folder has more of one than
 * `prose/allowed.json` says.
 *
 * The allowed counts only go down: `--write` lowers them to what was counted. `--list FOLDER` prints each use. Code is read by the
 * lint rule `trigate/prose`.
 */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { constructions, exemptFiles, findIn } from "./prose/constructions.ts"

const root = path.resolve(import.meta.dirname, "..")
const baseline = path.join(root, "scripts/prose/allowed.json")

const { values: options } = parseArgs({
  options: { write: { type: "boolean", default: false }, list: { type: "string" } }
})

interface Use {
  readonly file: string
  readonly line: number
  readonly name: string
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

const member = (value: unknown, ...keys: ReadonlyArray<string | number>): unknown =>
  keys.reduce<unknown>((inner, key) => isRecord(inner) ? inner[String(key)] : undefined, value)

/** Returns the uses in TypeScript, as the lint rule reports them. */
const usesInCode = (): ReadonlyArray<Use> => {
  const oxlint = path.join(root, "node_modules/.bin/oxlint")
  const folders = fs.readdirSync(path.join(root, "packages")).map((name) => `packages/${name}/src`)
  const args = ["-c", "scripts/prose/oxlintrc.json", "--format", "json", ...folders]
  const { stderr, stdout } = spawnSync(oxlint, args, { cwd: root, encoding: "utf8", maxBuffer: 256 * 1024 * 1024 })
  if (!stdout.startsWith("{")) throw new Error(`oxlint did not run:\n${stdout}${stderr}`)
  const found = member(JSON.parse(stdout), "diagnostics")
  if (!Array.isArray(found)) throw new Error("oxlint printed no diagnostics")
  return found.map((each: unknown) => {
    const name = String(member(each, "message")).split(": write ", 1)[0] ?? ""
    if (!constructions.some((construction) => construction.name === name)) {
      throw new Error(`oxlint reports something else: ${String(member(each, "message"))}`)
    }
    return {
      file: String(member(each, "filename")),
      line: Number(member(each, "labels", 0, "span", "line")),
      name
    }
  })
}

/** Returns the uses in the prose of a document: outside of code. */
const usesInDocument = (file: string): ReadonlyArray<Use> => {
  let isCode = false
  return fs.readFileSync(path.join(root, file), "utf8").split("\n").flatMap((line, index) => {
    if (/^\s*```/u.test(line)) isCode = !isCode
    return isCode
      ? []
      : findIn("text", line.replaceAll(/`[^`]*`/gu, "")).map(({ name }) => ({ file, line: index + 1, name }))
  })
}

const documents = spawnSync("git", ["ls-files", "*.md"], { cwd: root, encoding: "utf8" }).stdout.split("\n")
  .filter((file) => /^(?:docs|packages\/[^/]+\/README|README|CONTRIBUTING|SECURITY)/u.test(file))

const uses = [...usesInCode(), ...documents.flatMap(usesInDocument)]
  .filter(({ file }) => !exemptFiles.some(({ pattern }) => pattern.test(file)))

/** Returns the folder that a file is counted in: a package's sources, or the documents. */
const folderOf = (file: string): string => /^packages\/[^/]+\/src/u.exec(file)?.[0] ?? "documents"

type Counts = { readonly [folder: string]: { readonly [construction: string]: number } }

const counted: Counts = Object.fromEntries(
  [...Map.groupBy(uses, ({ file }) => folderOf(file))].toSorted(([a], [b]) => a < b ? -1 : 1).map(([folder, own]) => [
    folder,
    Object.fromEntries(
      constructions.map(({ name }) => [name, own.filter((use) => use.name === name).length] as const)
        .filter(([, count]) => count > 0)
    )
  ])
)

if (options.list !== undefined) {
  for (const { file, line, name } of uses) {
    if (folderOf(file) === options.list) console.log(`${file}:${line}: ${name}`)
  }
}

const saved: unknown = fs.existsSync(baseline) ? JSON.parse(fs.readFileSync(baseline, "utf8")) : undefined
const allowed = (folder: string, name: string): number => {
  const count = member(saved, folder, name)
  return typeof count === "number" ? count : saved === undefined ? Number.POSITIVE_INFINITY : 0
}

const folders = [...new Set([...Object.keys(counted), ...(isRecord(saved) ? Object.keys(saved) : [])])]
const more = folders.flatMap((folder) =>
  constructions.flatMap(({ instead, name }) => {
    const count = counted[folder]?.[name] ?? 0
    const most = allowed(folder, name)
    return count <= most ? [] : [`${folder}: "${name}" ${count} times, at most ${most} are allowed: write ${instead}`]
  })
)
for (const line of more) console.error(line)
if (more.length > 0) {
  console.error("prose: node scripts/check-prose.ts --list FOLDER prints each use")
  process.exitCode = 1
} else if (options.write) {
  fs.writeFileSync(baseline, `${JSON.stringify(counted, undefined, 2)}\n`)
}

const totals = constructions.map(({ name }) => `${name} ${uses.filter((use) => use.name === name).length}`)
console.log(`prose: ${uses.length} uses: ${totals.join(", ")}`)
