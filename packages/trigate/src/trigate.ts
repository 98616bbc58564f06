#!/usr/bin/env node
/**
 * The launcher of the program `trigate`: it checks the version of Node before it loads anything that an old one cannot read.
 *
 * The program is a module of its own, because static imports run before the code of the module that holds them.
 */
import module from "node:module"

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)

if (major > 22 || (major === 22 && minor >= 19)) {
  // A start that reads the code compiled by an earlier one takes two thirds of the time. The cache lies beside the modules,
  // because who can write it decides what runs. Where it cannot be written, the start only takes longer.
  // Deno has no such cache of Node's.
  const enableCompileCache: typeof module.enableCompileCache | undefined = module.enableCompileCache
  enableCompileCache?.(`${import.meta.dirname}/../.cache`)
  await import("./program.ts")
} else {
  process.stderr.write(`trigate: Node ${process.versions.node} is too old; it needs Node 22.19 or later\n`)
  process.exitCode = 1
}
