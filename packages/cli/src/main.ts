#!/usr/bin/env node
/** The command line `trigate`. */
import { enableCompileCache } from "node:module"

// as the gateway does: what was compiled at one start is read at the next
enableCompileCache(`${import.meta.dirname}/../../../node_modules/.cache/trigate`)
await import("./Program.ts")
