/**
 * Writes a page for each library into the folder `library`: its modules with their docstrings, and every exported name with
 * its first sentence. The search of the site finds them beside the guides; their links lead to the pages of typedoc.
 */
import * as fs from "node:fs"
import * as path from "node:path"

const root = path.resolve(import.meta.dirname, "..")

/** The packages that programs import, in the order in which a reader needs them. The others are programs, or shared by tests. */
export const libraries = [
  "sdk",
  "client",
  "chains",
  "signing",
  "trading",
  "tokens",
  "evm",
  "domain",
  "api",
  "sandbox",
  "simulation",
  "server",
  "callers",
  "archive",
  "upstream"
]

/** The modules of a package that programs can import, as paths in its folder `src`. */
export const modulesOf = (name) =>
  fs.globSync("**/*.ts", { cwd: path.join(root, "packages", name, "src") })
    .filter((file) => !/(?:^|\/)internal\/|(?:^|\/)index\.ts$|\.d\.ts$/u.test(file))
    .toSorted()

/** The text of a docstring without its stars and tags. */
export const docstring = (comment) =>
  comment.replaceAll(/^ *\* ?/gmu, "").split(/^@/mu, 1)[0]
    .replaceAll(/\{@link ([^}|]+)(?:\|[^}]*)?\}/gu, "`$1`").trim()

/** Escapes a text for a page, in which Vue reads tags and double braces. */
const escaped = (text) =>
  text.split(/(`[^`]*`)/u).map((part, at) =>
    at % 2 === 1 ? part : part.replaceAll("<", "&lt;").replaceAll("{{", "{&#8203;{")
  ).join("")

const firstSentence = (text) => (/^[^]*?[.:](?=\s|$)/u.exec(text)?.[0] ?? text).replaceAll(/\s+/gu, " ")

const exported =
  /(?:^\/\*\*((?:(?!\*\/)[^])*)\*\/\n)?^export (?:declare )?(?:abstract )?(?:const|class|interface|type|function) (\w+)/gmu

const sectionOf = (name, file) => {
  const module = file.replace(/\.ts$/u, "")
  const text = fs.readFileSync(path.join(root, "packages", name, "src", file), "utf8")
  const [, about = ""] = /^\/\*\*((?:(?!\*\/)[^])*)\*\//u.exec(text) ?? []
  const page = `/reference/modules/_trigate_${name}_${module.replaceAll(/\W/gu, "_")}.html`
  const names = new Map()
  for (const [, comment = "", exportedName] of text.matchAll(exported)) {
    // a schema and its type have one name
    if (!names.get(exportedName)) names.set(exportedName, firstSentence(docstring(comment)))
  }
  return [
    `## ${module}`,
    "",
    escaped(docstring(about)),
    "",
    `[Types and examples](${page}){target="_self"}`,
    "",
    ...[...names].map(([each, sentence]) => `- \`${each}\`${sentence === "" ? "" : `: ${escaped(sentence)}`}`),
    ""
  ].join("\n")
}

const folder = path.join(import.meta.dirname, "library")

if (process.argv[1] === import.meta.filename) {
  const rows = libraries.map((name) => {
    const { description } = JSON.parse(fs.readFileSync(path.join(root, "packages", name, "package.json"), "utf8"))
    const text = [`# @trigate/${name}`, "", description, "", ...modulesOf(name).map((file) => sectionOf(name, file))]
    fs.writeFileSync(path.join(folder, `${name}.md`), text.join("\n"))
    return `| [@trigate/${name}](${name}.md) | ${description} |`
  })
  fs.writeFileSync(path.join(folder, "packages.md"), ["| Package | Content |", "| --- | --- |", ...rows, ""].join("\n"))
}
