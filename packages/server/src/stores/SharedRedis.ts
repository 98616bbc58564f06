/**
 * The connection to the Redis that replicas share. It is made in the background, so that a gateway starts and works
 * while Redis is unreachable.
 */
import type * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redis from "effect/persistence/Redis"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"

const connection = (driver: typeof NodeRedis, url: Redacted.Redacted, signal: AbortSignal) =>
  driver.layer({
    url: Redacted.value(url),
    // a command without a connection fails at once instead of being queued
    disableOfflineQueue: true,
    // limits the memory of commands to which a hanging Redis does not respond
    commandsQueueMaxLength: 10_000,
    socket: { connectTimeout: 2000, signal }
  }).pipe(
    // the services that use Redis already log when it is unreachable, so connection attempts are not logged
    Layer.provide(Logger.layer([]))
  )

const connect = Effect.fnUntraced(function*(url: Redacted.Redacted, signal: AbortSignal) {
  // imported only here, so that a gateway without Redis starts faster
  const driver = yield* Effect.promise(() => import("@effect/platform-node/NodeRedis"))
  // an interruption would close the client, and closing waits for responses that a hanging Redis never sends; `signal`
  // ends the attempt instead
  const context = yield* Effect.uninterruptible(Layer.build(connection(driver, url, signal)))
  const { client } = Context.get(context, driver.NodeRedis)
  // closing would wait for responses that a hanging Redis never sends
  yield* Effect.addFinalizer(() => Effect.sync(() => client.destroy()))
  return Context.get(context, Redis.Redis)
})

const make = Effect.fnUntraced(function*(url: Redacted.Redacted) {
  const scope = yield* Effect.scope
  const connections = yield* Scope.make()
  const signal = yield* Scope.provide(Effect.abortSignal, connections)
  let connected: Redis.Redis["Service"] | undefined
  const attempt = Effect.gen(function*() {
    const own = yield* Scope.make()
    const close = (exit: Exit.Exit<unknown, unknown>) => Scope.close(own, exit)
    connected = yield* connect(url, signal).pipe(
      Scope.provide(own),
      Effect.onExit((exit) => Exit.isFailure(exit) ? close(exit) : Scope.addFinalizerExit(scope, close))
    )
  })
  const connecting = yield* Effect.forkScoped(
    Effect.retry(attempt, Schedule.min([Schedule.exponential("250 millis"), Schedule.spaced("5 seconds")]))
  )
  // finalizers run in reverse order: this one ends the connection attempts before the scope waits for the forked fiber
  yield* Effect.addFinalizer((exit) => Scope.close(connections, exit))
  // waits at most one second, in which the connection is usually made, so that the first request can use it
  yield* Effect.timeoutOption(Fiber.await(connecting), "1 second")
  const absent = new Redis.RedisError({ cause: "not connected yet" })
  const use = <A>(f: (redis: Redis.Redis["Service"]) => Effect.Effect<A, Redis.RedisError>) =>
    Effect.suspend(() => connected === undefined ? Effect.fail(absent) : f(connected))
  return Redis.Redis.of({
    send: (command, ...args) => use((redis) => redis.send(command, ...args)),
    eval: (script) => (...params) => use((redis) => redis.eval(script)(...params)),
    reserve: Effect.suspend(() => connected === undefined ? Effect.fail(absent) : connected.reserve),
    subscribe: (channel) =>
      Effect.suspend(() => connected === undefined ? Effect.die(absent) : connected.subscribe(channel))
  })
})

/**
 * Provides the client of the Redis at a URL. While the client is not connected, its commands fail with `RedisError`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (url: Redacted.Redacted): Layer.Layer<Redis.Redis> => Layer.effect(Redis.Redis, make(url))
