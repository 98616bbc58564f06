/** The machine that measures, and the versions of what it measures. */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

export const root = path.resolve(import.meta.dirname, "../..")

const outputOf = (command: string, args: ReadonlyArray<string>): string => {
  const { stderr, stdout } = spawnSync(command, [...args], { cwd: root, encoding: "utf8" })
  return `${stdout ?? ""}${stderr ?? ""}`.trim()
}

/** Whether a program is installed. */
export const has = (program: string): boolean =>
  (process.env["PATH"] ?? "").split(path.delimiter).concat("/usr/sbin").some((folder) =>
    fs.existsSync(path.join(folder, program))
  )

/** Which cores the peers and the load have; no pinning where there is no `taskset` or only one core. */
export const pinning: { readonly peer: string; readonly load: string } | undefined =
  has("taskset") && os.availableParallelism() > 1 ? { peer: "0", load: "1" } : undefined

const versionOf = (module: string): string => {
  const manifest: unknown = JSON.parse(
    fs.readFileSync(path.join(root, "node_modules", module, "package.json"), "utf8")
  )
  return typeof manifest === "object" && manifest !== null && "version" in manifest ? String(manifest.version) : ""
}

/** Facts that a figure depends on. */
export const facts = () => ({
  commit: outputOf("git", ["rev-parse", "HEAD"]),
  commitDate: outputOf("git", ["show", "-s", "--format=%cs", "HEAD"]),
  // the results of the last run are no change of what is measured
  modified: outputOf("git", ["status", "--porcelain", "--", ".", ":!benchmarks/results", ":!docs"]) !== "",
  machine: {
    processor: os.cpus()[0]?.model ?? "unknown",
    cores: String(os.availableParallelism()),
    memory: `${Math.round(os.totalmem() / 2 ** 30)} GiB`,
    system: `${os.type()} ${os.release()} ${os.arch()}`,
    pinned: pinning === undefined
      ? "no"
      : `peers to core ${pinning.peer}, upstream and load generator to core ${pinning.load}`
  },
  versions: {
    node: process.versions.node,
    effect: versionOf("effect"),
    undici: versionOf("undici"),
    fastify: versionOf("fastify"),
    "@fastify/http-proxy": versionOf("@fastify/http-proxy"),
    viem: versionOf("viem"),
    wrk: has("wrk") ? (/^wrk \S+/u.exec(outputOf("wrk", ["-v"]))?.[0] ?? "unknown") : "not installed",
    nginx: has("nginx")
      ? (/nginx\/(\S+)/u.exec(outputOf("nginx", ["-v"]))?.[1] ?? "unknown")
      : "not installed"
  }
})
