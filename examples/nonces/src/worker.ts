/** One process: takes its share of the signer's nonces, a hundred at a time, and prints them in the order of their arrival. */
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NonceSource from "@trigate/signing/NonceSource"
import { Console, Effect, Layer, Redacted } from "effect"
import * as Settings from "./settings.ts"

const program = Effect.gen(function*() {
  const nonces = yield* NonceSource.NonceSource
  const signer = yield* Settings.signer
  const taken = yield* Effect.forEach(
    Array.from({ length: yield* Settings.count }),
    () => nonces.next(signer),
    { concurrency: 100 }
  )
  yield* Console.log(taken.join(" "))
})

const redis = Layer.unwrap(
  // without the offline queue a call fails at once while Redis is away
  Effect.map(Settings.redisUrl, (url) => NodeRedis.layer({ url: Redacted.value(url), disableOfflineQueue: true }))
)

// a hundred calls at once wait for one another on a busy machine, and nobody waits for a nonce here
const nonces = NonceSource.layerRedis({ deadline: "1 minute" })

NodeRuntime.runMain(Effect.provide(program, nonces.pipe(Layer.provide(redis))))
