/**
 * Runs the command line. For the commands `serve` and `sandbox`, the first import enables compiled schema decoders,
 * because these processes decode continuously. Only schemas that are made after this import use compiled decoders.
 */
if (process.argv[2] === "serve" || process.argv[2] === "sandbox") await import("effect/schema/SchemaJITCompiler/enable")
await import("@trigate/cli/Program")
