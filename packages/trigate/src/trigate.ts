#!/usr/bin/env node
/**
 * The launcher of the program `trigate`: checks the version of Node before it loads modules that an old version cannot parse.
 *
 * The command line is the separate module `program.ts`: if this module imported it statically, the import would run
 * before the check.
 */
import module from "node:module"
import v8 from "node:v8"

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)

if (major > 22 || (major === 22 && minor >= 19)) {
  // The compile cache shortens the start of the program by a third. Anyone who can write to the cache can execute code,
  // so it is stored next to the modules, with the same access rights. If the cache cannot be written, the program still
  // starts. Deno does not support Node's compile cache.
  const enableCompileCache: typeof module.enableCompileCache | undefined = module.enableCompileCache
  enableCompileCache?.(`${import.meta.dirname}/../.cache`)
  // The closures of a request that waits for its upstream survive a few collections. V8 would then allocate all closures
  // of their kind in the old generation, and a cached or relayed read would take a tenth more processor time.
  v8.setFlagsFromString("--no-allocation-site-pretenuring")
  await import("./program.ts")
} else {
  process.stderr.write(`trigate: Node ${process.versions.node} is too old; Node 22.19 or later is required\n`)
  process.exitCode = 1
}
