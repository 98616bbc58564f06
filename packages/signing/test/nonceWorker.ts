/** A process that takes nonces from a shared Redis: `node nonceWorker.ts <url> <signer> <count> <clock offset>`. */
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NonceSource from "@trigate/signing/NonceSource"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { isAddress } from "viem"

const [url = "", signer = "", count = "", offset = ""] = process.argv.slice(2)

const program = Effect.gen(function*() {
  const source = yield* NonceSource.NonceSource
  const clock = yield* Clock.Clock
  const skewed: Clock.Clock = {
    sleep: (duration) => clock.sleep(duration),
    currentTimeNanos: clock.currentTimeNanos,
    currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
    monotonicTimeNanos: clock.monotonicTimeNanos,
    monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
    currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + Number(offset),
    currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + Number(offset))
  }
  if (!isAddress(signer)) return yield* Effect.die("no signer")
  const taken = yield* Effect.forEach(
    Array.from({ length: Number(count) }),
    () => Effect.provideService(source.next(signer), Clock.Clock, skewed),
    { concurrency: 100 }
  )
  process.stdout.write(JSON.stringify(taken))
})

program.pipe(
  Effect.provide(NonceSource.layerRedis({ deadline: "20 seconds" }).pipe(Layer.provide(NodeRedis.layer({ url })))),
  NodeRuntime.runMain
)
