/**
 * `ActionLog` of replicas that share only a Redis. Replicas share their claims of nonces; bodies stay in the process
 * that sends them. The data for looking up an action's effect at the venue is shared too, so that any replica can
 * settle an action.
 *
 * Each process claims a nonce first in its own memory, then in Redis in one atomic step. While Redis is unreachable or
 * late, signed actions are refused and nothing is sent. If the option `alone` is set, a process instead continues with
 * its own memory, and does not know which actions other replicas sent. `isUp`, a log line and metrics report this state.
 *
 * After a crash the claims are still in Redis, but the bodies are lost. Each process has its own capacity for
 * unanswered actions; the known signers are shared.
 */
import type { ActionReference } from "@trigate/domain/actions/ActionRecord"
import * as SharedState from "@trigate/upstream/SharedState"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { identity } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Redis from "effect/persistence/Redis"
import type * as Schema from "effect/Schema"
import * as ActionLogScripts from "../internal/actionLog/ActionLogScripts.ts"
import * as ActionLog from "./ActionLog.ts"
import * as ActionLogMemory from "./ActionLogMemory.ts"
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

const unsharedCounter = ActionLog.metrics.actionLogUnshared.series({})
const awayGauge = ActionLog.metrics.actionLogDegraded.series({})

const unreachable = "is unreachable (Redis is not connected, or did not respond in time)"

/** Returns whether the entry of a key is shared: an action without a signer is only in the memory of its process. */
const isShared = ({ claimant }: LoggedAction.EntryKey): boolean => ActionLogScripts.isAddress(claimant)

const makeDriver = Effect.fnUntraced(function*(options: Options) {
  const redis = yield* Redis.Redis
  const own = ActionLogMemory.makeDriver()
  const { alone = false } = options
  const scope = yield* Effect.scope
  const shared = yield* SharedState.make({
    use: "action-log",
    ...(alone
      ? { deadline: options.deadline ?? "250 millis" }
      // without a pause, because waiting for a store that may be reachable again is better than refusing an action
      : { deadline: options.deadline ?? "1 second", pause: 0, meanwhile: "signed actions are refused" })
  })
  const { settledCapacity } = ActionLog.resolveLimits(options)
  const prefix = options.prefix ?? "trigate:{actions}:"
  const signerKey = (signer: string) => `${prefix}signer:${signer}`
  const evaluateInsert = redis.eval(ActionLogScripts.insertScript)
  const evaluateUpdate = redis.eval(ActionLogScripts.updateScript)
  const evaluateMove = redis.eval(ActionLogScripts.moveScript)
  const evaluateFind = redis.eval(ActionLogScripts.findScript)

  const ask = <A>(asked: Effect.Effect<A, Redis.RedisError | Schema.SchemaError>) =>
    asked.pipe(
      Effect.mapError(SharedState.unreachable),
      // a settlement at the end of a scope must not wait for an uninterruptible step
      Effect.interruptible
    )
  /** Runs an operation in Redis within the deadline of a step. */
  const inTime = <A>(asked: Effect.Effect<A, SharedState.SharedStoreUnreachable>) =>
    shared.orElse<A, string, never>(asked, Effect.fail(unreachable))

  const updateShared = (
    key: LoggedAction.EntryKey,
    guard: LoggedAction.Guard,
    { part = "familiar", settled, state }: Extract<ActionLog.Change, { readonly state: unknown }>
  ) =>
    Effect.map(
      ask(Effect.flatMap(
        evaluateUpdate({ prefix, key, guard, state, settled, part, settledCapacity: settledCapacity[part] }),
        (answer) => ActionLogScripts.decodeCount(answer)
      )),
      (count) => count > 0
    )

  const insertShared = Effect.fnUntraced(function*(
    opening: ActionLog.Opening,
    guard: LoggedAction.Guard,
    mine: "new" | "repeat"
  ) {
    const { key, token } = opening
    const attempt = { states: LoggedAction.statesBefore("released"), token }
    const revert = (answer: "new" | "repeat") =>
      ({ state: LoggedAction.nextState("sent", answer === "repeat", "released") ?? "unknown" }) as const
    const revertOwn = own.update(key, attempt, revert(mine))
    const asking = yield* Effect.forkIn(
      ask(
        Effect.flatMap(evaluateInsert({ prefix, opening, guard }), (answer) => ActionLogScripts.decodeInserted(answer))
      ),
      scope,
      { startImmediately: true }
    )
    /** Releases the nonce, even if Redis records the claim only after the deadline. */
    const withdraw = Effect.andThen(
      revertOwn,
      Effect.forkIn(
        Effect.flatMap(Fiber.await(asking), (exit) =>
          Exit.isSuccess(exit) && ActionLog.isWritten(exit.value)
            ? Effect.ignore(updateShared(key, attempt, revert(exit.value)))
            : Effect.void),
        scope
      )
    )
    const answer = yield* shared.orElse<"new" | "repeat" | ActionLog.Standing | undefined, never, never>(
      Fiber.join(asking),
      Effect.undefined
    ).pipe(Effect.onInterrupt(() => withdraw))
    if (answer === undefined && alone) {
      yield* Metric.update(unsharedCounter, 1)
      return mine
    }
    yield* Metric.update(awayGauge, answer === undefined ? 1 : 0)
    if (answer === undefined) {
      yield* withdraw
      return yield* Effect.fail(unreachable)
    }
    if (!ActionLog.isWritten(answer)) yield* revertOwn
    return answer === "new" ? mine : answer
  })

  const select = (selection: ActionReference | { readonly due: number }) =>
    inTime(ask(Effect.map(
      Effect.flatMap(evaluateFind({ prefix, selection }), (answer) => ActionLogScripts.decodeFound(answer)),
      (rows) => rows.map(ActionLogScripts.entryFrom)
    )))

  /** Reads the outcomes that other replicas determined for actions of this process. */
  const learnOutcomes = Effect.fnUntraced(function*(now: number) {
    for (const { fingerprint, lookUpAt, openedAt, ...action } of yield* own.find({ due: now }, now)) {
      const key = LoggedAction.entryKey({ fingerprint, ...action })
      yield* own.update(key, { states: ["unknown"], lookUpAt }, { lookUpAt: LoggedAction.nextLookup(openedAt, now) })
      const [found] = isShared(key) ? yield* select({ id: fingerprint }) : []
      if (found?.settled === undefined || (found.state !== "accepted" && found.state !== "rejected")) continue
      yield* own.update(key, { states: ["unknown"] }, { state: found.state, settled: found.settled })
    }
  })

  const driver: ActionLog.Driver<string> = {
    ...own,
    backing: "Redis",
    insert: Effect.fnUntraced(function*(opening, guard) {
      const mine = yield* own.insert(opening, guard)
      return !ActionLog.isWritten(mine) || !isShared(opening.key) ? mine : yield* insertShared(opening, guard, mine)
    }),
    update: Effect.fnUntraced(function*(key, guard, change) {
      const ofOwn = own.update(key, guard, change)
      if (!isShared(key)) return yield* ofOwn
      if ("lookUpAt" in change) {
        return (yield* inTime(ask(Effect.flatMap(
          evaluateMove({ prefix, key, from: guard.lookUpAt, to: change.lookUpAt }),
          (answer) => ActionLogScripts.decodeCount(answer)
        )))) > 0
      }
      // an operator removes an action only from the list of one process
      if (change.state === "forgotten") return yield* ofOwn
      // the end of an attempt counts in this process, even while Redis is unreachable
      if (guard.token === undefined) {
        return (yield* inTime(updateShared(key, guard, change))) && ((yield* ofOwn) || true)
      }
      const isChanged = yield* ofOwn
      yield* inTime(updateShared(key, guard, change))
      return isChanged
    }),
    find: Effect.fnUntraced(function*(selection, now) {
      if ("key" in selection || "open" in selection) return yield* own.find(selection, now)
      if ("due" in selection) {
        yield* learnOutcomes(now)
        return yield* select(selection)
      }
      const found = (yield* select(selection)).filter((entry) =>
        entry.expiresAt > now && LoggedAction.isNamed(selection, entry)
      )
      return found.length > 0
        ? found
        : (yield* own.find(selection, now)).filter(({ signer }) => signer === undefined)
    }),
    // while Redis is unreachable, a signer counts as unknown
    isKnown: (signer) =>
      Effect.map(
        shared.orElse(
          ask(Effect.flatMap(redis.send("EXISTS", signerKey(signer)), (count) => ActionLogScripts.decodeCount(count))),
          Effect.succeed(0)
        ),
        (count) => count > 0
      ),
    know: (signer) =>
      shared.orElse(
        Effect.asVoid(ask(redis.send("SET", signerKey(signer), "1", "PX", String(ActionLog.knownFor)))),
        Effect.void
      ),
    step: identity,
    write: identity,
    isUp: Effect.tap(
      shared.orElse(Effect.as(ask(redis.send("PING")), true), Effect.succeed(false)),
      (up) => Metric.update(awayGauge, alone || up ? 0 : 1)
    ),
    untilTurn: Effect.sleep(ActionLog.turnEvery)
  }
  return driver
})

const make = Effect.fnUntraced(function*(options: Options) {
  const { log } = yield* ActionLog.make(yield* makeDriver(options), options)
  return ActionLog.ActionLog.of({ ...log, claim: Effect.fn("ActionLog.claim")(log.claim) })
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
