/**
 * Runs the benchmarks that are named, or all of them, one after the other and each in a process of its own: what the
 * compiler learned from one must not help or hinder the next.
 */
import { spawnSync } from "node:child_process"
import * as path from "node:path"

const benchmarks = ["signing"]

const named = process.argv.slice(2)
const unknown = named.filter((name) => !benchmarks.includes(name))

if (unknown.length > 0) {
  console.error(`No benchmark ${unknown.join(", ")}; there are: ${benchmarks.join(", ")}`)
  process.exitCode = 1
} else {
  for (const name of named.length > 0 ? named : benchmarks) {
    const { status } = spawnSync(process.execPath, [path.join(import.meta.dirname, `${name}.ts`)], { stdio: "inherit" })
    if (status !== 0) process.exitCode = 1
  }
}
