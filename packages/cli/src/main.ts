#!/usr/bin/env node
/** The command line `trigate`. */
import { enableCompileCache } from "node:module"

// A start that reads the code compiled by an earlier one takes two thirds of the time. The cache lies beside the modules,
// because who can write it decides what runs. Where it cannot be written, the start only takes longer.
enableCompileCache(`${import.meta.dirname}/../../../node_modules/.cache/trigate`)
// a gateway decodes all day: schemas that are built after this import decode by compiled code
if (process.argv[2] === "serve") await import("effect/schema/SchemaJITCompiler/enable")
await import("./Program.ts")
