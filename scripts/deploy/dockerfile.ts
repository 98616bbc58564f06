/**
 * Runs the steps of a Dockerfile without Docker. Each stage has a tree that is empty at first; only COPY and RUN fill it.
 *
 * A tree is no container: commands are those of this machine, and a path that begins with `/` is put below the tree. Every stage
 * has the same path while it runs, because what a program caches may depend on where it is. Users and owners take root. What
 * is skipped is said.
 */
import { Copy, DockerfileParser, Env, From } from "dockerfile-ast"
import type { Instruction } from "dockerfile-ast"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as path from "node:path"
import { run } from "../steps.ts"
import { filesOf } from "./context.ts"

/** A user by number. */
export interface User {
  readonly uid: number
  readonly gid: number
}

/** What a stage has become. */
export interface Stage {
  readonly base: string
  readonly name: string
  /** Who runs what follows; root where there was no USER. */
  user: User
  /** The working folder, below the tree. */
  folder: string
  readonly environment: { [name: string]: string }
  entrypoint: ReadonlyArray<string>
  command: ReadonlyArray<string>
  health: ReadonlyArray<string>
  readonly ports: Array<number>
  stopSignal: string
}

/** What is done instead of a RUN step in its working folder; says what. */
export type Instead = (folder: string) => string

/** How the steps are run. */
export interface Options {
  /** The tree of the stage that runs. */
  readonly tree: string
  /** The folder to which COPY steps refer. */
  readonly context: string
  readonly instead: ReadonlyMap<string, Instead>
  readonly say: (line: string) => void
}

/** Whether users can be changed here. */
export const isRoot = process.getuid?.() === 0

/** A command or path of the image, with its absolute paths put below the tree. */
export const below = (tree: string, text: string): string => text.replaceAll(/(?<=^|[\s=])\/(?=[a-z])/gu, `${tree}/`)

// what npm needs to reach the registry from this machine; settings are the image's alone
const surroundings = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(?:TRIGATE_|OTEL_|npm_|NODE_COMPILE_CACHE$)/u.test(name))
)

/** As whom and with which variables a program of a stage runs. */
export const startOf = ({ environment, user }: Stage) => ({
  env: { ...surroundings, ...environment },
  ...(isRoot ? user : {})
})

// as a list of words: else a shell would run it, and get the signals
const words = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.NonEmptyArray(Schema.String)))

const userOf = (text: string): User => {
  const { gid, uid } = /^(?<uid>\d+):(?<gid>\d+)$/u.exec(text)?.groups ?? {}
  if (uid === undefined || gid === undefined) throw new Error(`${text} is no user and group by number`)
  return { uid: Number(uid), gid: Number(gid) }
}

/** Runs all steps, and tells what the last stage has become. */
export const build = (text: string, { context, instead, say, tree }: Options): Stage => {
  const stages = new Map<string, string>()
  let stage: Stage | undefined
  const current = (): Stage => {
    if (stage === undefined) throw new Error("The first step has to be FROM")
    return stage
  }
  const at = (file: string): string => {
    const absolute = path.isAbsolute(file) ? path.join(tree, file) : path.join(current().folder, file)
    return file.endsWith("/") ? `${absolute}/` : absolute
  }

  const begin = (instruction: From): Stage => {
    if (stage !== undefined) {
      const ended = `${tree}.${stage.name}`
      fs.renameSync(tree, ended)
      stages.set(stage.name, ended)
    }
    fs.mkdirSync(path.join(tree, "tmp"), { recursive: true })
    const name = instruction.getBuildStage()
    const [base = ""] = instruction.getExpandedArguments().map((argument) => argument.getValue())
    if (name === null) throw new Error(`The stage from ${base} has no name`)
    return {
      base,
      name,
      user: { uid: 0, gid: 0 },
      folder: tree,
      environment: {},
      entrypoint: [],
      command: [],
      health: [],
      ports: [],
      stopSignal: ""
    }
  }

  const copy = (instruction: Copy): void => {
    const paths = instruction.getArguments().map((argument) => argument.getValue())
    const sources = paths.slice(0, -1)
    const [from = ""] = sources
    const to = paths.at(-1) ?? ""
    const flags = new Map(instruction.getFlags().map((flag) => [flag.getName(), flag.getValue()]))
    const other = flags.get("from")
    const target = at(to)
    if (other === undefined || other === null) {
      const files = filesOf(context, fs.readFileSync(path.join(context, ".dockerignore"), "utf8")).filter((file) =>
        sources.some((source) => source === "." || file.startsWith(`${source}/`) || path.matchesGlob(file, source))
      )
      for (const file of files) fs.cpSync(path.join(context, file), path.join(target, file))
      say(`COPY ${sources.join(" ")} ${to}: ${files.length} files`)
    } else {
      if (sources.length > 1) throw new Error("A COPY step from a stage has one source here")
      fs.cpSync(path.join(stages.get(other) ?? "", from), target, { recursive: true, verbatimSymlinks: true })
      say(`COPY ${from} ${to}: from the stage ${other}`)
    }
    const owner = flags.get("chown")
    if (isRoot && owner) run("chown", ["--recursive", "--no-dereference", owner, target], tree)
  }

  const runStep = (command: string): void => {
    const { folder } = current()
    const other = instead.get(command)
    if (other !== undefined) return say(`RUN ${command}: not run, ${other(folder)}`)
    if (!isRoot && command.startsWith("chown ")) return say(`RUN ${command}: skipped, because it takes root`)
    run("bash", ["-euo", "pipefail", "-c", below(tree, command)], folder, startOf(current()))
    say(`RUN ${command}: done${isRoot ? ` by user ${current().user.uid}` : ""}`)
  }

  const steps: { readonly [keyword: string]: (instruction: Instruction, text: string) => void } = {
    COPY: (instruction) => instruction instanceof Copy && copy(instruction),
    RUN: (_, text) => runStep(text),
    WORKDIR: (_, text) => {
      current().folder = at(text)
      fs.mkdirSync(current().folder, { recursive: true })
    },
    USER: (_, text) => {
      current().user = userOf(text)
      if (!isRoot) say(`USER ${text}: skipped, because it takes root to change the user`)
    },
    ENV: (instruction) => {
      if (!(instruction instanceof Env)) return
      for (const property of instruction.getProperties()) {
        current().environment[property.getName()] = property.getValue() ?? ""
      }
    },
    EXPOSE: (_, text) => current().ports.push(Number(text)),
    STOPSIGNAL: (_, text) => {
      current().stopSignal = text
    },
    ENTRYPOINT: (_, text) => {
      current().entrypoint = words(text)
    },
    CMD: (_, text) => {
      current().command = words(text)
    },
    HEALTHCHECK: (_, text) => {
      current().health = words(text.replace(/^CMD /u, ""))
    },
    ARG: () => {},
    LABEL: () => {}
  }

  for (const instruction of DockerfileParser.parse(text).getInstructions()) {
    if (instruction instanceof From) {
      stage = begin(instruction)
      say(`FROM ${stage.base} AS ${stage.name}: an empty tree, and the Node of this machine`)
      continue
    }
    const step = steps[instruction.getKeyword()]
    if (step === undefined) throw new Error(`The step ${instruction.getKeyword()} is not known here`)
    step(instruction, instruction.getRawArgumentsContent() ?? "")
  }
  return current()
}
