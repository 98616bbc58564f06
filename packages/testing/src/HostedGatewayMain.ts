/** A process that serves gateways on demand, for `HostedGateway.ts`. It ends when its parent process ends. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"

// as in the bundled gateway: schemas that are built after this import use compiled decoders
await import("effect/schema/SchemaJITCompiler/enable")
const { gateway } = await import("./Gateway.ts")

const decode = Schema.decodeUnknownSync(
  Schema.Struct({ id: Schema.Int, environment: Schema.NullOr(Schema.Record(Schema.String, Schema.String)) })
)

const scopes = new Map<number, Scope.Closeable>()

const start = (id: number, environment: { readonly [name: string]: string }) =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    scopes.set(id, scope)
    const { url } = yield* Effect.provideService(gateway(environment), Scope.Scope, scope)
    process.send?.({ id, url })
  }).pipe(Effect.catchCause((cause) => Effect.sync(() => process.send?.({ id, failure: Cause.pretty(cause) }))))

const stop = (id: number) =>
  Effect.suspend(() => {
    const scope = scopes.get(id)
    scopes.delete(id)
    return scope === undefined ? Effect.void : Scope.close(scope, Exit.void)
  })

process.on("message", (message) => {
  const { environment, id } = decode(message)
  Effect.runFork(environment === null ? stop(id) : start(id, environment))
})
process.on("disconnect", () => process.exit())
