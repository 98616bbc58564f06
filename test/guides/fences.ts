/** The fenced blocks of a markdown document, with the comment that stands before each. */

export interface Fence {
  /** The line of the opening fence, from 1. */
  readonly line: number
  /** What stands behind the backticks: the language. */
  readonly info: string
  /** The lines between the fences, each ended; an indented block loses the indentation of its fence. */
  readonly text: string
  /** The HTML comment right before it, which no reader sees. */
  readonly comment: string | undefined
}

const opening = /^(?<indent> *)(?<ticks>`{3,}|~{3,})(?<info>.*)$/u
const comment = /^ *<!--(?<said>.*?)-->\s*$/u

/** The blocks in their order; one that is never closed reaches to the end. */
export const parse = (markdown: string): ReadonlyArray<Fence> => {
  const lines = markdown.split("\n")
  const fences: Array<Fence> = []
  let said: string | undefined
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? ""
    const { indent = "", info = "", ticks } = opening.exec(line)?.groups ?? {}
    if (ticks === undefined) {
      if (line.trim() !== "") said = comment.exec(line)?.groups?.["said"]?.trim()
      continue
    }
    const body: Array<string> = []
    const isEnd = (text: string) => text.trim().startsWith(ticks) && text.replaceAll(ticks[0] ?? "", "").trim() === ""
    const first = at
    for (at += 1; at < lines.length && !isEnd(lines[at] ?? ""); at += 1) {
      const inner = lines[at] ?? ""
      body.push(`${inner.startsWith(indent) ? inner.slice(indent.length) : inner.trimStart()}\n`)
    }
    fences.push({ line: first + 1, info: info.trim(), text: body.join(""), comment: said })
    said = undefined
  }
  return fences
}
