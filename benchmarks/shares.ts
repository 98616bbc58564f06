/**
 * Where the processor time of a profiled gateway went, by package: `node benchmarks/shares.ts FILE.cpuprofile [SKIP]`.
 *
 * SKIP is how many seconds at the beginning are left out, for the start and until the code is compiled; 15 when not given.
 */
import * as Schema from "effect/Schema"
import { readFileSync } from "node:fs"

const Frame = Schema.Struct({ functionName: Schema.String, url: Schema.String })
const Profile = Schema.Struct({
  nodes: Schema.Array(Schema.Struct({ id: Schema.Int, callFrame: Frame })),
  samples: Schema.Array(Schema.Int),
  timeDeltas: Schema.Array(Schema.Int)
})

const partOf = ({ functionName, url }: typeof Frame.Type): string => {
  const library = /node_modules\/((?:@[^/]+\/)?[^/]+)/u.exec(url)?.[1]
  const own = /\/packages\/([^/]+)\/src/u.exec(url)?.[1]
  if (library !== undefined) return library
  if (own !== undefined) return `trigate ${own}`
  if (functionName.startsWith("RegExp:")) return "regular expressions"
  return url.startsWith("node:") ? "node" : url.startsWith("wasm:") ? "wasm (undici's parser)" : functionName
}

const [file, skip = "15"] = process.argv.slice(2)
if (file === undefined) {
  console.error("usage: node benchmarks/shares.ts FILE.cpuprofile [SECONDS TO SKIP]")
  process.exitCode = 2
} else {
  const profile = Schema.decodeUnknownSync(Schema.fromJsonString(Profile))(readFileSync(file, "utf8"))
  const parts = new Map(profile.nodes.map(({ callFrame, id }) => [id, partOf(callFrame)]))
  const spent = new Map<string, number>()
  let time = 0
  let busy = 0
  for (const [index, sample] of profile.samples.entries()) {
    const delta = profile.timeDeltas[index] ?? 0
    const part = parts.get(sample) ?? ""
    time += delta
    if (time < Number(skip) * 1e6 || part === "(idle)") continue
    busy += delta
    spent.set(part, (spent.get(part) ?? 0) + delta)
  }
  for (const [part, micros] of [...spent].toSorted(([, a], [, b]) => b - a)) {
    const share = micros / busy * 100
    if (share >= 0.5) console.log(`${share.toFixed(1).padStart(5)} %  ${part}`)
  }
}
