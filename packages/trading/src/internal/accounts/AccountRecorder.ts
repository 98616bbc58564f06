/** Records the events of watched accounts in the event store of the context. */
import type { Topic } from "@trigate/upstream/streams/Topic"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import type { AccountEvents, Options, Phase } from "../../accounts/AccountEvents.ts"
import { metrics } from "../../accounts/AccountMetrics.ts"
import { EventLog } from "../../accounts/EventLog.ts"
import * as EventStore from "../../accounts/EventStore.ts"
import type { NewEntry } from "../../accounts/EventStore.ts"
import * as AccountRecording from "./AccountRecording.ts"
import * as LogOwnership from "./LogOwnership.ts"
import * as LogWriter from "./LogWriter.ts"
import * as WatchedAccounts from "./WatchedAccounts.ts"

/** Milliseconds between two reads of the event log by a replica that does not write the log. */
const pollEvery = 200

/** Makes the event log of watched accounts. The log's fibers end with the scope. */
export const make = Effect.fnUntraced(function*(source: WatchedAccounts.Source, options: Options = {}) {
  const clock = yield* Clock.Clock
  const scope = yield* Scope.Scope
  const context = yield* Effect.context()
  const runFork = Effect.runForkWith(context)
  const fork = (effect: Effect.Effect<void>) => void Fiber.runIn(runFork(effect), scope)
  const log = new EventLog(options.bounds ?? EventStore.defaultBounds)
  const pending = yield* Queue.unbounded<NewEntry>()
  const watchedGauge = metrics.accountsWatched.series({})
  const refillingGauge = metrics.accountsRefilling.series({})
  const unrecordedGauge = metrics.accountsUnrecorded.series({})
  const epochsEnded = metrics.accountEpochsEnded.series({})

  const watched: WatchedAccounts.WatchedAccounts = WatchedAccounts.make({
    ...options,
    log,
    source,
    now: () => clock.currentTimeMillisUnsafe(),
    isOwner: () => ownership.lease() !== undefined,
    isSpared: () => ownership.isSecondAlone(),
    recording: {
      push: (entry) => void Queue.offerUnsafe(pending, entry),
      interrupted: (user) => {
        epochsEnded.updateUnsafe(1, context)
        fork(Effect.logWarning("The event log of an account has a gap: a new epoch of the log begins", { user }))
      },
      fork
    }
  })
  const ownership = yield* LogOwnership.make({
    log,
    acquired: watched.startAll,
    ended: Effect.suspend(() => {
      watched.stopAll()
      return Effect.asVoid(Queue.clear(pending))
    }),
    exchange: (store, isOwner) => isOwner ? watched.takeWanted(store) : watched.request(store)
  })

  const isLive = (user: string): boolean =>
    ownership.role() === "reader"
      ? ownership.isUp() && watched.has(user) && log.since(user) !== undefined
      : watched.phase(user) === "live"
  const phase = (user: string): Phase =>
    isLive(user)
      ? "live"
      : watched.phase(user) ?? (ownership.role() === "reader" ? "subscribing" : "waiting")

  const unrecorded = (): number =>
    [...watched.users()].filter((user) => {
      const at = phase(user)
      return watched.isDue(user) && (at === "waiting" || at === "subscribing")
    }).length

  const publish = (): void => {
    const phases = Array.from(watched.users(), phase)
    watchedGauge.updateUnsafe(phases.length, context)
    refillingGauge.updateUnsafe(phases.filter((each) => each === "refilling").length, context)
    unrecordedGauge.updateUnsafe(unrecorded(), context)
  }

  const everySecond = Effect.andThen(
    ownership.elect,
    Effect.sync(() => {
      log.expire(clock.currentTimeMillisUnsafe())
      watched.tidy()
      publish()
    })
  )

  const repeat = (effect: Effect.Effect<void>, every: number) =>
    Effect.forkIn(Effect.forever(Effect.delay(effect, every)), scope)

  yield* everySecond
  watched.watchConfigured()
  yield* repeat(everySecond, 1000)
  yield* Effect.forkIn(Effect.forever(LogWriter.write(pending, log, ownership)), scope)
  if (ownership.backing !== "memory") yield* repeat(ownership.follow, pollEvery)
  // each step of the store has a timeout, so a store that hangs delays the end of the scope by at most a second
  yield* Scope.addFinalizer(scope, ownership.release)

  const events: AccountEvents = {
    log,
    backing: ownership.backing,
    isLogged: (topic: Topic) =>
      topic.user !== undefined && AccountRecording.isLogged(topic) &&
      source.topicOf(topic.name, topic.user)?.key === topic.key,
    watch: watched.watch,
    catchUp: ownership.catchUp,
    isLive,
    isRecording: (user) => watched.phase(user) === "live",
    interrupt: watched.interrupt,
    status: () => ({
      backing: ownership.backing,
      isUp: ownership.isUp(),
      role: ownership.role(),
      head: log.head,
      accounts: Array.from(watched.users(), (user) => ({ user, phase: phase(user) })),
      unrecorded: unrecorded()
    })
  }
  return events
})
