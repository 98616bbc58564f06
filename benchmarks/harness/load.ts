/** Load on one server, from a process of its own, with every answer checked. */
import * as Schema from "effect/Schema"
import * as path from "node:path"
import { has } from "./machine.ts"
import { plan } from "./plan.ts"
import { outputOf } from "./processes.ts"

/** Requests of which no two are alike, and what their answers look like. */
export interface Workload {
  readonly path: string
  /**
   * A template whose `%d` and `%064x` become the number of the request, or a file with one body in each line, of which the
   * numbered one is sent. `first` moves on from run to run, so that no number comes twice.
   */
  readonly bodies: { readonly template: string } | { readonly file: string }
  first: number
  /** Whether each run begins again with the same requests: for what keeps nothing of them. */
  readonly repeats?: boolean
  readonly answer: {
    /** Text that it holds. */
    readonly contains: string
    /** Its length in bytes, where all answers have the same. */
    readonly length?: number
    /** Whether it carries the id of a JSON-RPC request that is waiting for one. */
    readonly echoesId?: boolean
  }
  readonly connections: number
}

/** What the generator saw. */
const Outcome = Schema.Struct({
  /** Requests made, answered or not. */
  sent: Schema.Number,
  requests: Schema.Number,
  seconds: Schema.Number,
  p50Millis: Schema.Number,
  p99Millis: Schema.Number,
  /** Answers that are not 200, or not what they have to be. */
  wrong: Schema.Number,
  /** Requests that broke or that nothing came back for. */
  broken: Schema.Number
})
export type Outcome = typeof Outcome.Type

/** How requests come: on every connection the next as soon as the last is answered, or at a fixed rate. */
export type Arrival =
  | { readonly seconds: number }
  | { readonly requests: number }
  | { readonly seconds: number; readonly perSecond: number }

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Outcome))

/** The generator that keeps a server busy: wrk costs a fifth of the own one, but takes a second at least. */
const saturating = has("wrk") && plan.seconds >= 1 ? "wrk" : "sender"

const wrk = (url: string, { answer, bodies, connections, first, path: target }: Workload, seconds: number) => {
  const [kind, source] = "file" in bodies ? ["file", bodies.file] : ["template", bodies.template]
  return outputOf({
    name: "wrk",
    program: "wrk",
    core: "load",
    args: ["--threads", "1", "--connections", String(connections), "--duration", `${seconds}s`, "--timeout", "20s"]
      .concat("--script", path.join(import.meta.dirname, "wrk.lua"), url + target, "--", kind, source, String(first))
      .concat(answer.contains, String(answer.length ?? 0), answer.echoesId === true ? "id" : "-")
  })
}

const sender = (url: string, workload: Workload, arrival: Arrival) =>
  outputOf({
    name: "sender",
    program: process.execPath,
    core: "load",
    args: [path.join(import.meta.dirname, "sender.ts"), JSON.stringify({ url, workload, arrival })]
  })

/** What {@link load} keeps a server busy with. */
export const generator = saturating === "wrk" ? "wrk" : "benchmarks/harness/sender.ts"

/** Loads a server; fails when a single answer is wrong, since then its figures mean nothing. */
export const load = async (url: string, workload: Workload, arrival: Arrival): Promise<Outcome> => {
  const saturates = !("perSecond" in arrival) && !("requests" in arrival)
  const output = saturates && saturating === "wrk"
    ? await wrk(url, workload, arrival.seconds)
    : await sender(url, workload, arrival)
  const outcome = decode(output.trim().split("\n").at(-1) ?? "")
  if (workload.repeats !== true) workload.first += outcome.sent
  if (outcome.wrong > 0 || outcome.broken > 0) {
    throw new Error(`${url}${workload.path}: ${outcome.wrong} answers wrong, ${outcome.broken} missing:\n${output}`)
  }
  return outcome
}
