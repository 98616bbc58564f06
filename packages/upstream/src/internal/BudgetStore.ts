/** Where buckets are kept: in this process always, and in a store that replicas share while it answers. */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as RateLimiter from "effect/persistence/RateLimiter"
import type { Share } from "./BudgetShare.ts"

/** A bucket after a charge. */
export interface Level {
  /** Tokens left; below zero in debt. */
  readonly remaining: number
  /** Milliseconds until it is full. */
  readonly fullIn: number
}

/** Takes tokens from a bucket, into debt if need be; a negative number returns them. */
export type Charge = (share: Share, tokens: number) => Effect.Effect<Option.Option<Level>>

const consume = (limiter: RateLimiter.RateLimiter, share: Share, tokens: number) =>
  Effect.map(
    limiter.consume({
      algorithm: "token-bucket",
      onExceeded: "delay",
      key: share.key,
      limit: share.capacity,
      window: Duration.millis(share.capacity * share.tick),
      tokens
    }),
    ({ remaining, resetAfter }): Level => ({ remaining, fullIn: Duration.toMillis(resetAfter) })
  )

// fresh: each process of a test that runs several counts for itself
const memory = Layer.fresh(RateLimiter.layer.pipe(Layer.provide(RateLimiter.layerStoreMemory)))

/** Buckets of this process. */
export const own = Effect.map(
  Layer.build(memory),
  (context) => (share: Share, tokens: number): Effect.Effect<Level> =>
    Effect.orDie(consume(Context.get(context, RateLimiter.RateLimiter), share, tokens))
)

/** No store that is shared. */
export const none: Charge = () => Effect.succeedNone

const degraded = Metric.withAttributes(
  Metric.gauge("trigate_shared_state_degraded", {
    description: "1 while the store that replicas share is away and this process counts for itself, else 0"
  }),
  { use: "budgets" }
)

/** After a failure the store is left alone for so long: who waits for it once a second does not notice it. */
const pause = 1000

/**
 * Buckets of a limiter that may be away: no level then, and no call waits longer than the deadline for it.
 */
export const shared = Effect.fnUntraced(function*(limiter: RateLimiter.RateLimiter, deadline: Duration.Duration) {
  let away = false
  let notBefore = Number.NEGATIVE_INFINITY
  yield* Metric.update(degraded, 0)

  const tell = Effect.fnUntraced(function*(isAway: boolean, detail: string) {
    notBefore = isAway ? (yield* Clock.currentTimeMillis) + pause : Number.NEGATIVE_INFINITY
    if (away === isAway) return
    away = isAway
    yield* Metric.update(degraded, isAway ? 1 : 0)
    yield* isAway
      ? Effect.logWarning(`The shared store of budgets is away: this process counts for itself (${detail})`)
      : Effect.logInfo("The shared store of budgets is back")
  })

  const late = () => Effect.fail(`no answer within ${Duration.format(deadline)}`)

  const ask: Charge = (share, tokens) =>
    consume(limiter, share, tokens).pipe(
      Effect.mapError((error) => "cause" in error.reason ? String(error.reason.cause) : error.message),
      Effect.interruptible,
      Effect.timeoutOrElse({ duration: deadline, orElse: late }),
      Effect.matchEffect({
        onFailure: (detail) => Effect.as(tell(true, detail), Option.none()),
        onSuccess: (level) => away ? Effect.as(tell(false, ""), Option.some(level)) : Effect.succeedSome(level)
      })
    )

  const charge: Charge = (share, tokens) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (now < notBefore) return Effect.succeedNone
      // one of those that come at once asks whether it is back
      if (away) notBefore = now + pause
      return ask(share, tokens)
    })
  return charge
})
