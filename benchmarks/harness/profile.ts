/**
 * Where the processor time of a profiled gateway went, by step of a call.
 *
 * A sample belongs to the innermost function that has a file: what V8 and the kernel do for a function, such as parsing JSON
 * or writing to a socket, is a part of its step.
 */
import * as Schema from "effect/Schema"
import { readFileSync } from "node:fs"

const Frame = Schema.Struct({ functionName: Schema.String, url: Schema.String })
const Profile = Schema.fromJsonString(Schema.Struct({
  nodes: Schema.Array(Schema.Struct({
    id: Schema.Int,
    callFrame: Frame,
    children: Schema.optionalKey(Schema.Array(Schema.Int))
  })),
  samples: Schema.Array(Schema.Int),
  timeDeltas: Schema.Array(Schema.Int)
}))

/** The steps of a call, in its order; the first whose pattern matches the file of a function has the function's time. */
const steps: ReadonlyArray<readonly [step: string, file: RegExp]> = [
  ["node:http, sockets and the kernel", /^node:/u],
  ["undici", /node_modules\/undici\/|^wasm:/u],
  ["other libraries", /node_modules\/(?!effect\/|@effect\/)/u],
  ["Effect: metrics", /effect\/dist\/Metric/u],
  ["Effect: schemas", /effect\/dist\/(?:Schema|internal\/schema)/u],
  ["Effect: fibers, contexts and the rest", /node_modules\/(?:@effect|effect)\//u],
  ["accept the request, write the response", /server\/src\/requests\/Listener/u],
  ["observe the request: record, headers, log, metrics", /server\/src\/requests\/Observe|DeclaredMetric/u],
  ["read the body", /server\/src\/requests\/Request/u],
  ["identify and count the caller", /server\/src\/requests\/Callers|packages\/callers\/|server\/src\/process\/Load/u],
  ["route the call", /server\/src\//u],
  ["parse and encode JSON", /domain\/src\/encoding\//u],
  ["decode, validate and judge by protocol", /packages\/domain\//u],
  ["sign and recover", /packages\/signing\//u],
  ["admit and log actions, hold bars", /packages\/(?:trading|tokens|evm)\//u],
  ["cache and coalesce", /upstream\/src\/(?:cache|Pipeline)/u],
  ["limit the rate", /upstream\/src\/limits\//u],
  ["attempt: addresses, retries, outliers", /upstream\/src\/(?:attempts|Upstream)/u],
  ["send and receive", /upstream\/src\/transport\//u],
  ["rest of Trigate", /packages\//u]
]

const outside = "V8: compiler and garbage collection"

const findStep = (url: string): string => steps.find(([, file]) => file.test(url))?.[0] ?? outside

/** Returns the share of each step of the processor time in a profile, without its first `skip` seconds. */
export const readShares = (file: string, skip: number): ReadonlyMap<string, number> => {
  const { nodes, samples, timeDeltas } = Schema.decodeUnknownSync(Profile)(readFileSync(file, "utf8"))
  const parents = new Map(nodes.flatMap(({ children = [], id }) => children.map((child) => [child, id] as const)))
  const frames = new Map(nodes.map(({ callFrame, id }) => [id, callFrame]))
  const found = new Map<number, string>()
  const stepAt = (id: number): string => {
    const known = found.get(id)
    if (known !== undefined) return known
    const parent = parents.get(id)
    const url = frames.get(id)?.url ?? ""
    const step = url === "" && parent !== undefined ? stepAt(parent) : findStep(url)
    found.set(id, step)
    return step
  }
  const spent = new Map(steps.map(([step]) => [step, 0]))
  let time = 0
  let busy = 0
  for (const [index, sample] of samples.entries()) {
    const delta = timeDeltas[index] ?? 0
    time += delta
    if (time < skip * 1e6 || frames.get(sample)?.functionName === "(idle)") continue
    busy += delta
    const step = stepAt(sample)
    spent.set(step, (spent.get(step) ?? 0) + delta)
  }
  return new Map([...spent].map(([step, micros]) => [step, micros / busy]))
}

/** The lines of a table of steps, with the microseconds of a request where its processor time is known. */
export const formatShares = (shares: ReadonlyMap<string, number>, micros?: number): ReadonlyArray<string> =>
  [...shares].filter(([, share]) => share >= 0.002).toSorted(([, a], [, b]) => b - a).map(([step, share]) => {
    const cost = micros === undefined ? "" : `${(share * micros).toFixed(1).padStart(7)} µs`
    return `${cost}${(share * 100).toFixed(1).padStart(6)} %  ${step}`
  })
