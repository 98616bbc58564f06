/** The command line. A gateway decodes all day: schemas that are built after the first import decode by compiled code. */
if (process.argv[2] === "serve" || process.argv[2] === "sandbox") await import("effect/schema/SchemaJITCompiler/enable")
await import("@trigate/cli/Program")
