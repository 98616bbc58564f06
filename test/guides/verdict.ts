/** Whether a program of a document did what the document shows. */
import type { Output, Program } from "./blocks.ts"

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

const failure = /^(?:trigate|curl): |^HTTP\/1\.1 [45]|"_tag": ?"/mu
const errorLine = /^trigate: /mu

/** Whether the document shows that a program fails: then it may end with another exit code than 0. */
const failureIsShown = ({ output }: Program): boolean => output !== undefined && failure.test(output.text)

/** Whether the document shows what a terminal would: standard error in its place among the output. */
export const showsErrors = ({ output }: Program): boolean => output !== undefined && errorLine.test(output.text)

/** JSON without the spaces between its parts; digits stay as they are. */
const compact = (json: string): string => json.replaceAll(/(?<text>"(?:[^"\\]|\\.)*")|\s+/gu, "$<text>")

/** The end of what was printed, which is where a failure is told. */
const end = (text: string): string => text.length > 2000 ? `…${text.slice(-2000)}` : text

const canonical = ({ format, text }: Output): string => format === "json" ? compact(text) : text.trimEnd()

/** What is wrong, in words that lead to the line of the document; nothing if all is as shown. */
export const of = (program: Program, ended: Ended): string | undefined => {
  const at = `${program.path}:${program.line}`
  const { output } = program
  if (ended.code !== 0 && !failureIsShown(program)) {
    return `${at}: ended with ${ended.code ?? "a signal"}\n${end(ended.stdout)}${end(ended.stderr)}`
  }
  if (output === undefined) return undefined
  const printed = canonical({ ...output, text: ended.stdout })
  const wanted = canonical(output)
  return printed === wanted ? undefined : `${at}: prints\n${end(printed)}\ninstead of\n${wanted}\n${end(ended.stderr)}`
}
