/**
 * `ActionLog` of replicas that share only a Redis. Replicas share their claims of nonces; bodies stay in the process
 * that sends them. The data for looking up an action's effect at the venue is shared too, so that any replica can
 * settle an action.
 *
 * Each process claims a nonce first in its own log, then in Redis in one atomic step. While Redis is unreachable or
 * late, signed actions are refused and nothing is sent. If the option `alone` is set, a process instead continues with
 * its own log, and does not know which actions other replicas sent. `isUp`, a log line and metrics report this state.
 *
 * After a crash the claims are still in Redis, but the bodies are lost. Each process has its own capacity for
 * unanswered actions; the known signers are shared.
 */
import type { ActionReference, Settled } from "@trigate/domain/actions/ActionRecord"
import * as SharedState from "@trigate/upstream/SharedState"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Redis from "effect/persistence/Redis"
import * as Predicate from "effect/Predicate"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import type * as Schema from "effect/Schema"
import * as ActionLogScripts from "../internal/actionLog/ActionLogScripts.ts"
import * as ActionLog from "./ActionLog.ts"
import * as ActionLogMemory from "./ActionLogMemory.ts"
import { metrics } from "./ActionLogMetrics.ts"
import * as ActionLogQuota from "./ActionLogQuota.ts"
import * as ActionTrace from "./ActionTrace.ts"
import * as LoggedAction from "./LoggedAction.ts"

/** The retention limits, the key prefix in Redis, and the timeouts. */
export interface Options extends ActionLog.Options {
  /** Prefix of the keys. Default: `trigate:{actions}:`. The braces place all keys in one slot of a Redis cluster. */
  readonly prefix?: string
  /**
   * The time after which an unsettled `sent` action becomes `unknown`. It must exceed the duration of an attempt.
   * Default: 1 minute.
   */
  readonly lease?: ActionLog.Lease
  /** Timeout of one step in Redis. Default: 1 second, or 250 milliseconds if `alone` is set. */
  readonly deadline?: Duration.Input
  /**
   * Whether actions are sent while Redis is unreachable or late. If they are, another replica can send the same nonce.
   * Default: false.
   */
  readonly alone?: boolean
}

const unsharedCounter = metrics.actionLogUnshared.series({})
const awayGauge = metrics.actionLogDegraded.series({})

const make = Effect.fnUntraced(function*(options: Options) {
  const redis = yield* Redis.Redis
  const known = ActionLogQuota.makeSigners()
  const own = yield* ActionLogMemory.make(options, known)
  const { alone = false } = options
  const scope = yield* Effect.scope
  const shared = yield* SharedState.make({
    use: "action-log",
    ...(alone
      ? { deadline: options.deadline ?? "250 millis" }
      // without a pause, because waiting for a store that may be reachable again is better than refusing an action
      : { deadline: options.deadline ?? "1 second", pause: 0, meanwhile: "signed actions are refused" })
  })
  const { keep, settledCapacity } = ActionLog.resolveLimits(options)
  const prefix = options.prefix ?? "trigate:{actions}:"
  const lease = ActionLog.leaseMillis(options.lease)
  const run = (yield* Random.nextInt).toString(36)
  const evaluateClaim = redis.eval(ActionLogScripts.claimScript)
  const evaluateSettle = redis.eval(ActionLogScripts.settleScript)
  let claims = 0

  const ask = <A>(asked: Effect.Effect<A, Redis.RedisError | Schema.SchemaError>) =>
    asked.pipe(
      Effect.mapError(SharedState.unreachable),
      // a settlement at the end of a scope must not wait for an uninterruptible step
      Effect.interruptible
    )

  /**
   * Writes the state of an action whose attempt has ended. While Redis is unreachable, retries in the background until
   * the action's lease ends. After that, other replicas consider the outcome unknown.
   */
  const writeEnd = (
    claim: Pick<ActionLogScripts.SettleArguments, "key" | "member" | "token">,
    remains: LoggedAction.Remains,
    part: ActionLogQuota.Part = "familiar",
    settled?: Settled
  ) => {
    const answered = `${prefix}answered${part === "familiar" ? "" : `:${part}`}`
    const write = ask(
      evaluateSettle({
        ...claim,
        prefix,
        answered,
        remains,
        settled: ActionLogScripts.printSettled(settled),
        settledCapacity: settledCapacity[part]
      })
    )
    const later = write.pipe(Effect.retry(Schedule.spaced("1 second")), Effect.timeoutOption(lease()))
    return shared.orElse(Effect.asVoid(write), Effect.asVoid(Effect.forkIn(later, scope)))
  }

  const signerKey = (signer: string) => `${prefix}signer:${signer.toLowerCase()}`

  /** Checks whether another process recorded an accepted action of the signer. */
  const learn = Effect.fnUntraced(function*({ isListed, signer }: LoggedAction.Sending) {
    if (signer === undefined || isListed || known.has(signer.toLowerCase())) return
    const found = Effect.flatMap(
      redis.send("EXISTS", signerKey(signer)),
      (count) => ActionLogScripts.decodeCount(count)
    )
    if ((yield* shared.orElse(ask(found), Effect.succeed(0))) > 0) known.add(signer.toLowerCase())
  })

  /** Notifies the other processes of an accepted action of the signer. */
  const teach = (signer: string) =>
    shared.orElse(
      Effect.asVoid(ask(redis.send("SET", signerKey(signer), "1", "PX", String(ActionLogQuota.knownFor)))),
      Effect.void
    )

  const claim = Effect.fn("ActionLog.claim")(
    function*(sending: LoggedAction.Sending): Effect.fn.Return<LoggedAction.Claim, LoggedAction.ClaimRefusal> {
      const { fingerprint, nonce, signer } = sending
      yield* learn(sending)
      const mine = yield* LoggedAction.take(own, sending)
      if (signer === undefined) return mine
      const now = yield* Clock.currentTimeMillis
      const member = LoggedAction.entryKey(sending)
      const key = `${prefix}${member}`
      const { trace = { legs: [] } } = sending
      claims += 1
      const token = `${run}.${claims}`
      const expiry = LoggedAction.expiryTime(nonce, now, keep)
      let asking: Fiber.Fiber<typeof ActionLogScripts.Answer.Type, SharedState.SharedStoreUnreachable> | undefined
      const asked = Effect.flatMap(
        Effect.forkIn(
          ask(Effect.flatMap(
            evaluateClaim({
              key,
              prefix,
              member,
              about: ActionLogScripts.encodeAbout({ id: fingerprint, openedAt: now, trace }),
              cloids: ActionTrace.cloids(trace),
              fingerprint,
              now,
              lease: now + lease(),
              expiry,
              token
            }),
            (answered) => ActionLogScripts.decodeAnswer(answered)
          )),
          scope,
          { startImmediately: true }
        ),
        (fiber) => {
          asking = fiber
          return Fiber.join(fiber)
        }
      )
      /** Releases the nonce, even if Redis records the claim only after the deadline. */
      const withdraw = Effect.suspend(() =>
        Effect.andThen(
          mine.settle("released"),
          asking === undefined ? Effect.void : Effect.forkIn(
            Effect.flatMap(Fiber.await(asking), (exit) => {
              const late = Exit.isSuccess(exit) ? exit.value : undefined
              if (late !== "claimed" && late !== "repeated") return Effect.void
              return writeEnd({ key, member, token }, late === "claimed" ? "gone" : "unknown")
            }),
            scope
          )
        )
      )
      const answer = yield* shared.orElse<typeof ActionLogScripts.Answer.Type | undefined, never, never>(
        asked,
        Effect.undefined
      ).pipe(
        Effect.onInterrupt(() => withdraw)
      )
      if (answer === undefined && alone) {
        yield* Metric.update(unsharedCounter, 1)
        return mine
      }
      yield* Metric.update(awayGauge, answer === undefined ? 1 : 0)
      if (answer === undefined) {
        yield* withdraw
        return yield* LoggedAction.notSent("is unreachable (Redis is not connected, or did not respond in time)")
      }
      if (answer !== "claimed" && answer !== "repeated") {
        yield* mine.settle("released")
        if (answer === "accepted same") return yield* LoggedAction.alreadyUsed(signer, nonce, "accepted", true)
        if (answer === "rejected same") return yield* LoggedAction.alreadyUsed(signer, nonce, "rejected", true)
        return yield* LoggedAction.alreadyUsed(signer, nonce, answer, false)
      }
      return LoggedAction.makeClaim(
        sending,
        mine.isRepeat || answer === "repeated",
        Effect.fnUntraced(function*(remains, settled) {
          const isKnown = known.has(signer.toLowerCase())
          yield* mine.settle(remains === "gone" ? "released" : remains, undefined, settled?.entries)
          const part = isKnown || sending.isListed || remains === "accepted" ? "familiar" : "strangers"
          yield* writeEnd({ key, member, token }, remains, part, settled)
          if (remains === "accepted" && !isKnown) yield* teach(signer)
        })
      )
    }
  )

  /** Runs a query in Redis within the deadline of a step. */
  const askShared = <A>(question: Effect.Effect<A, Redis.RedisError | Schema.SchemaError>) =>
    shared.orElse<A | undefined, never, never>(ask(question), Effect.undefined).pipe(
      Effect.filterOrFail(
        Predicate.isNotUndefined,
        () => LoggedAction.unreadable("is unreachable (Redis is not connected, or did not respond in time)")
      )
    )

  const find = Effect.fnUntraced(function*(reference: ActionReference) {
    const now = yield* Clock.currentTimeMillis
    const named = "id" in reference
      ? { kind: "id" as const, key: `${prefix}id:${reference.id}` }
      : "cloid" in reference
      ? { kind: "cloid" as const, key: `${prefix}cloid:${reference.cloid.toLowerCase()}` }
      : { kind: "member" as const, key: `${prefix}${reference.signer.toLowerCase()}:${reference.nonce}` }
    const rows = yield* askShared(
      Effect.flatMap(
        redis.eval(ActionLogScripts.findScript)({
          ...named,
          claimant: "cloid" in reference && reference.signer !== undefined ? `${reference.signer.toLowerCase()}:` : "",
          prefix,
          now
        }),
        (answer) => ActionLogScripts.decodeFound(answer)
      )
    )
    const found = rows.map(ActionLogScripts.recordedFrom).filter((each) => LoggedAction.isNamed(reference, each))
    // an action without a signer is only in this process's log
    return found.length > 0 ? found : (yield* own.find(reference)).filter(({ signer }) => signer === undefined)
  })

  /** Reads the outcomes that other replicas determined for actions of this process. */
  const learnOutcomes = Effect.gen(function*() {
    for (const { fingerprint } of yield* own.takeUnknown) {
      const [found] = yield* find({ id: fingerprint })
      if (found?.settled === undefined) continue
      if (found.state !== "accepted" && found.state !== "neverArrived") continue
      yield* own.conclude(fingerprint, { state: found.state, settled: found.settled })
    }
  })

  const takeUnknown = Effect.gen(function*() {
    yield* learnOutcomes
    const now = yield* Clock.currentTimeMillis
    const taken = yield* askShared(
      Effect.flatMap(
        redis.eval(ActionLogScripts.takeScript)({ prefix, now, count: ActionLog.lookupsAtOnce }),
        (answer) => ActionLogScripts.decodeTaken(answer)
      )
    )
    return taken.map(ActionLogScripts.unsettledFrom)
  })

  const conclude = Effect.fnUntraced(function*(fingerprint: string, conclusion: LoggedAction.Conclusion) {
    const now = yield* Clock.currentTimeMillis
    const concluded = yield* askShared(
      Effect.flatMap(
        redis.eval(ActionLogScripts.concludeScript)({
          prefix,
          fingerprint,
          now,
          state: LoggedAction.storedState(conclusion),
          settled: ActionLogScripts.printSettled(conclusion.settled),
          settledCapacity: settledCapacity.familiar
        }),
        (answer) => ActionLogScripts.decodeCount(answer)
      )
    )
    if (concluded === 0) return false
    yield* own.conclude(fingerprint, conclusion)
    return true
  })

  return ActionLog.ActionLog.of({
    ...own,
    find,
    takeUnknown,
    untilTurn: Effect.sleep(ActionLog.turnEvery),
    conclude,
    backing: "Redis",
    tryClaim: () => undefined,
    claim,
    isUp: Effect.tap(
      shared.orElse(Effect.as(ask(redis.send("PING")), true), Effect.succeed(false)),
      (up) => Metric.update(awayGauge, alone || up ? 0 : 1)
    )
  })
})

/**
 * Provides the action log that all processes with the same Redis and prefix share.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { NodeRedis } from "@effect/platform-node"
 * import { ActionLogRedis } from "@trigate/trading"
 * import { Layer } from "effect"
 *
 * export const shared = Layer.provide(ActionLogRedis.layer(), NodeRedis.layer({ url: "redis://localhost:6379" }))
 * ```
 */
export const layer = (options: Options = {}): Layer.Layer<ActionLog.ActionLog, never, Redis.Redis> =>
  Layer.effect(ActionLog.ActionLog, make(options))
