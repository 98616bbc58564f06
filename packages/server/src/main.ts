/** The bundled gateway: `npm start`. */
import { enableCompileCache } from "node:module"

// what was compiled at one start is read at the next, in two thirds of the time; beside the modules, since whoever may
// write it decides what runs. A directory that cannot be written costs nothing but the time.
enableCompileCache(`${import.meta.dirname}/../../../node_modules/.cache/trigate`)
// schemas that are built from here on decode by compiled code
await import("effect/schema/SchemaJITCompiler/enable")
await import("./Program.ts")
