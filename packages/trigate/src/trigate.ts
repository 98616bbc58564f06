#!/usr/bin/env node
/**
 * The launcher of the program `trigate`: checks the version of Node before it loads modules that an old version cannot parse.
 *
 * The command line is the separate module `program.ts`: if this module imported it statically, the import would run
 * before the check.
 */
import module from "node:module"

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)

if (major > 22 || (major === 22 && minor >= 19)) {
  // With the compile cache, the start takes two thirds of the time. The cache is next to the modules, because write access to
  // it allows code execution. If it cannot be written, the start only takes longer. Deno does not support Node's compile cache.
  const enableCompileCache: typeof module.enableCompileCache | undefined = module.enableCompileCache
  enableCompileCache?.(`${import.meta.dirname}/../.cache`)
  await import("./program.ts")
} else {
  process.stderr.write(`trigate: Node ${process.versions.node} is too old; it needs Node 22.19 or later\n`)
  process.exitCode = 1
}
