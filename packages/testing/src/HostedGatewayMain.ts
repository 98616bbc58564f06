/** A process that serves gateways on demand, for `HostedGateway.ts`: a gateway for each connection to its socket. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Fs from "node:fs"
import * as Net from "node:net"

// as in the bundled gateway: schemas that are built after this import use compiled decoders
await import("effect/schema/SchemaJITCompiler/enable")
const { gateway } = await import("./Gateway.ts")

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Record(Schema.String, Schema.String)))

/** Runs a gateway until the connection closes, and sends its URL. */
const serve = (connection: Net.Socket, environment: { readonly [name: string]: string }) => {
  const send = (message: object) => Effect.sync(() => void connection.write(`${JSON.stringify(message)}\n`))
  const closed = Effect.callback<void>((resume) => {
    if (connection.destroyed) resume(Effect.void)
    else connection.once("close", () => resume(Effect.void))
  })
  return Effect.flatMap(gateway(environment), ({ url }) => Effect.andThen(send({ url }), closed)).pipe(
    Effect.scoped,
    Effect.catchCause((cause) => send({ failure: Cause.pretty(cause) }))
  )
}

const [, , socket = ""] = process.argv

Net.createServer((connection) => {
  let received = ""
  // `close` follows each error, and stops the gateway
  connection.on("error", () => {})
  connection.setEncoding("utf8").on("data", (chunk: string) => {
    received += chunk
    if (received.endsWith("\n")) Effect.runFork(serve(connection, decode(received)))
  })
}).listen(`${socket}.new`, () => {
  // a socket's file exists a moment before it accepts connections
  Fs.renameSync(`${socket}.new`, socket)
})
