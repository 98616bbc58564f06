/** Reads the image that a Dockerfile describes: its last stage. The workflow's job `image` builds and runs it. */
import { DockerfileParser, Env, From } from "dockerfile-ast"
import * as Schema from "effect/Schema"

/** What the last stage sets. */
export interface Image {
  readonly base: string
  readonly user: { readonly uid: number; readonly gid: number }
  readonly environment: { readonly [name: string]: string }
  readonly entrypoint: ReadonlyArray<string>
  readonly command: ReadonlyArray<string>
  readonly ports: ReadonlyArray<number>
  readonly stopSignal: string
}

// as a list of words: else a shell would run it, and get the signals
const words = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.NonEmptyArray(Schema.String)))

const userOf = (text: string): Image["user"] => {
  const { gid, uid } = /^(?<uid>\d+):(?<gid>\d+)$/u.exec(text)?.groups ?? {}
  if (uid === undefined || gid === undefined) throw new Error(`${text} is no user and group by number`)
  return { uid: Number(uid), gid: Number(gid) }
}

/** Reads the last stage. */
export const read = (text: string): Image => {
  const instructions = DockerfileParser.parse(text).getInstructions()
  const from = instructions.findLastIndex((instruction) => instruction instanceof From)
  const stage = instructions.slice(from)
  const all = (keyword: string): ReadonlyArray<string> =>
    stage.flatMap((step) => step.getKeyword() === keyword ? [step.getRawArgumentsContent() ?? ""] : [])
  const last = (keyword: string): string => all(keyword).at(-1) ?? ""
  return {
    base: instructions[from]?.getExpandedArguments()[0]?.getValue() ?? "",
    user: userOf(last("USER")),
    environment: Object.fromEntries(
      stage.flatMap((step) => step instanceof Env ? step.getProperties() : [])
        .map((property) => [property.getName(), property.getValue() ?? ""])
    ),
    entrypoint: words(last("ENTRYPOINT")),
    command: words(last("CMD")),
    ports: all("EXPOSE").map(Number),
    stopSignal: last("STOPSIGNAL")
  }
}
