/** The access log: one JSON line a request on standard output, written off the request's path. */
import type * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"

/** What is written of one request; the path is not, it may hold an endpoint key. */
export interface Entry {
  readonly id: string
  readonly method: string
  readonly route: string
  readonly status: number
  readonly milliseconds: number
  readonly operations: ReadonlyArray<string>
  readonly error: string | undefined
}

/** Takes an entry and returns at once; entries that cannot be written in time are dropped, oldest first. */
export class AccessLog extends Context.Service<AccessLog, {
  readonly write: (entry: Entry) => Effect.Effect<void>
}>()("@trigate/server/AccessLog") {}

/** Takes nothing; for this one nobody has to make an entry. */
export const silent: AccessLog["Service"] = AccessLog.of({ write: () => Effect.void })

/** No access log. */
export const layerOff: Layer.Layer<AccessLog> = Layer.succeed(AccessLog, silent)

const backlog = 8192

const line = (time: number, entry: Entry): string =>
  `${JSON.stringify({ time, level: "info", message: "request", ...entry })}\n`

/** JSON lines on standard output; what is queued is written before the layer's scope closes. */
export const layer: Layer.Layer<AccessLog, never, Stdio.Stdio> = Layer.effect(
  AccessLog,
  Effect.gen(function*() {
    const stdio = yield* Stdio.Stdio
    const lines = yield* Queue.sliding<string, Cause.Done>(backlog)
    const writer = yield* Effect.forkDetach(Effect.ignore(Stream.run(Stream.fromQueue(lines), stdio.stdout())))
    yield* Effect.addFinalizer(() => Effect.andThen(Queue.end(lines), Fiber.await(writer)))
    return AccessLog.of({
      write: (entry) =>
        Effect.flatMap(Clock.currentTimeMillis, (time) =>
          Effect.sync(() => {
            Queue.offerUnsafe(lines, line(time, entry))
          }))
    })
  })
)
