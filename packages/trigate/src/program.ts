/**
 * The command line. A gateway enables compiled decoders, because it decodes continuously: schemas built after the first import
 * use them.
 */
if (process.argv[2] === "serve" || process.argv[2] === "sandbox") await import("effect/schema/SchemaJITCompiler/enable")
await import("@trigate/cli/Program")
