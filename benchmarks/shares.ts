/**
 * Where the processor time of a profiled gateway went, by step of a call: `node benchmarks/shares.ts FILE.cpuprofile [SKIP]`.
 *
 * SKIP is how many seconds at the beginning are left out, for the start and until the code is compiled; 15 when not given.
 */
import { formatShares, readShares } from "./harness/profile.ts"

const [file, skip = "15"] = process.argv.slice(2)
if (file === undefined) {
  console.error("usage: node benchmarks/shares.ts FILE.cpuprofile [SECONDS TO SKIP]")
  process.exitCode = 2
} else {
  for (const line of formatShares(readShares(file, Number(skip)))) console.log(line)
}
