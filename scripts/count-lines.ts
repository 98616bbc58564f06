/**
 * Counts the lines of code of each package: the lines of `packages/<name>/src` that are neither blank nor a comment.
 *
 * A line that begins with `//`, `/*` or `*` is a comment. `testing` is not counted, because only tests use it.
 * Run it with `npm run lines`.
 */
import * as fs from "node:fs"
import * as path from "node:path"

const packages = path.resolve(import.meta.dirname, "..", "packages")

const isCode = (line: string): boolean => !/^\s*(?:$|\/\/|\/\*|\*)/u.test(line)

const rows = fs.readdirSync(packages).filter((name) => name !== "testing").map((name) => {
  const source = path.join(packages, name, "src")
  const modules = fs.readdirSync(source, { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/u.test(file))
  const texts = modules.map((file) => fs.readFileSync(path.join(source, file), "utf8"))
  return {
    name,
    modules: modules.length,
    lines: texts.reduce((sum, text) => sum + text.split("\n").filter(isCode).length, 0)
  }
})

const total = {
  name: "total",
  modules: rows.reduce((sum, { modules }) => sum + modules, 0),
  lines: rows.reduce((sum, { lines }) => sum + lines, 0)
}

for (const { lines, modules, name } of [...rows.toSorted((a, b) => b.lines - a.lines), total]) {
  console.log(`${name.padEnd(10)}${String(lines).padStart(7)} lines in ${String(modules).padStart(3)} modules`)
}
