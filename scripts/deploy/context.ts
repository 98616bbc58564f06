/** The files that a build of the image may copy: what `.dockerignore` leaves of the checkout. */
import * as fs from "node:fs"
import * as path from "node:path"

interface Rule {
  readonly matches: RegExp
  readonly start: string
  readonly includes: boolean
}

const wildcards: { readonly [wildcard: string]: string } = {
  "**/": "(?:.*/)?",
  "**": ".*",
  "*": "[^/]*",
  "?": "[^/]"
}

// a pattern is about what it names and about everything below that
const ruleOf = (line: string): Rule => {
  const start = line.replace(/^!/u, "")
  const source = start.replaceAll(/\*\*\/|\*\*|[*?]|[.+^${}()|[\]\\]/gu, (sign) => wildcards[sign] ?? `\\${sign}`)
  return { matches: new RegExp(`^${source}(?:/|$)`, "u"), start, includes: line.startsWith("!") }
}

/** The files of a folder as paths in it, without those that the lines of a `.dockerignore` leave out: the last match decides. */
export const filesOf = (folder: string, ignore: string): ReadonlyArray<string> => {
  const rules = ignore.split("\n").map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("#"))
    .map(ruleOf)
  const isIncluded = (file: string): boolean => rules.findLast(({ matches }) => matches.test(file))?.includes ?? true
  const holdsIncluded = (file: string): boolean =>
    rules.some(({ includes, start }) => includes && start.startsWith(`${file}/`))
  const walk = (below: string): ReadonlyArray<string> =>
    fs.readdirSync(path.join(folder, below), { withFileTypes: true }).flatMap((entry) => {
      const file = path.join(below, entry.name)
      if (!entry.isDirectory()) return isIncluded(file) ? [file] : []
      return isIncluded(file) || holdsIncluded(file) ? walk(file) : []
    })
  return walk("")
}
