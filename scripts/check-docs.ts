/**
 * Every relative link of the documents leads to a file and to a heading in it, every npm script and every path in
 * backticks that they name exists, and the documents are no longer than {@link mostWords}.
 *
 * Run it with `npm run docs:check`.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { anchorsOf } from "./headings.ts"

const root = path.resolve(import.meta.dirname, "..")
const patterns = ["*.md", "docs/**/*.md", "packages/*/README.md", "examples/*/README.md"]
const documents = fs.globSync(patterns, { cwd: root })
const failures: Array<string> = []

/** Maximum number of words in all documents: a reader has to find what they look for. */
const mostWords = 50_000

/** Counts what has a letter or a digit, outside of code blocks and comments. */
const wordsOf = (text: string): number =>
  text.replace(/^( *)(```+)[\s\S]*?^\1\2/gmu, "").replace(/<!--[\s\S]*?-->/gu, "").split(/\s+/u)
    .filter((word) => /[\p{L}\p{N}]/u.test(word)).length

let words = 0

const scriptsOf = (folder: string): ReadonlyArray<string> => {
  const manifest = path.join(root, folder, "package.json")
  if (!fs.existsSync(manifest)) return []
  const content: unknown = JSON.parse(fs.readFileSync(manifest, "utf8"))
  if (typeof content !== "object" || content === null || !("scripts" in content)) return []
  return typeof content.scripts === "object" && content.scripts !== null ? Object.keys(content.scripts) : []
}

/** What stands in a fence or in backticks shows a link instead of making one. */
const withoutCode = (text: string): string => text.replace(/^(```+)[\s\S]*?^\1/gmu, "").replace(/`[^`\n]*`/gu, "")

const linksOf = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/\]\(\s*<?([^)\s>]+)|^\s*\[[^\]]+\]:\s*(\S+)/gmu)].flatMap(([, inline, reference]) =>
    inline ?? reference ?? []
  )

/** `npm run x`, `npm start` and `npm test`; the options of npm between the words are skipped. */
const scriptsNamedIn = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/\bnpm (?:-\S+ )*(?:run (?:-\S+ )*([\w:.-]*[\w])|(start|test)\b)/gu)].flatMap(([, named, built]) =>
    named ?? built ?? []
  )

const folders = new Set(["benchmarks", "deploy", "docs", "examples", "packages", "scripts", "site", "test"])

/** What commands write, so that a clean checkout lacks it. */
const written = new Set(["site/.vitepress/dist"])

/** Paths, from the root of the repository or beside the document, that stand alone in backticks; `*` is a pattern, `…` stands for any name. */
const pathsNamedIn = (text: string): ReadonlyArray<string> =>
  [...text.replace(/^(```+)[\s\S]*?^\1/gmu, "").matchAll(/`([\w./*…@-]+\/[\w./*…@-]*)`/gu)].flatMap(([, named = ""]) =>
    folders.has(named.split("/", 1)[0] ?? "") && !written.has(named) ? named : []
  )

for (const document of documents) {
  const folder = path.dirname(document)
  const text = fs.readFileSync(path.join(root, document), "utf8")
  words += wordsOf(text)
  for (const link of linksOf(withoutCode(text))) {
    if (/^[a-z][a-z+.-]*:/iu.test(link)) continue
    const [, target = "", anchor] = /^([^#]*)(?:#(.*))?$/u.exec(decodeURIComponent(link)) ?? []
    const file = target === ""
      ? path.join(root, document)
      : path.join(root, target.startsWith("/") ? "" : folder, target)
    if (!fs.existsSync(file)) {
      failures.push(`${document}: ${link} leads nowhere`)
    } else if (anchor !== undefined && file.endsWith(".md") && !anchorsOf(fs.readFileSync(file, "utf8")).has(anchor)) {
      failures.push(`${document}: ${link} leads to no heading`)
    }
  }
  const scripts = new Set([...scriptsOf("."), ...scriptsOf(folder)])
  for (const name of scriptsNamedIn(text)) {
    if (!scripts.has(name)) failures.push(`${document}: there is no script ${name}`)
  }
  for (const named of pathsNamedIn(text)) {
    const pattern = named.replaceAll("…", "*")
    if ([root, path.join(root, folder)].every((cwd) => fs.globSync(pattern, { cwd }).length === 0)) {
      failures.push(`${document}: there is no file ${named}`)
    }
  }
}

if (words > mostWords) failures.push(`the documents have ${words} words, and may have ${mostWords}: cut what repeats`)

for (const failure of failures) console.error(failure)
console.log(`docs: ${documents.length} documents, ${words} words, ${failures.length} mistakes`)
process.exitCode = failures.length === 0 ? 0 : 1
