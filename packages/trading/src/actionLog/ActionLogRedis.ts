/**
 * `ActionLog` of replicas that share only a Redis. Replicas share their claims of nonces; bodies stay in the process
 * that sends them. The data for looking up an action's effect at the venue is shared too, so that any replica can
 * settle an action.
 *
 * Each process claims a nonce first in its own memory, then in Redis in one atomic step. While Redis is unreachable or
 * late, signed actions are refused and nothing is sent. If the option `alone` is set, a process instead continues with
 * its own memory, and does not know which actions other replicas sent. `isUp`, a log line and metrics report this state.
 *
 * A script changes an entry, with its indexes, if the entry meets a condition; each script is atomic.
 *
 * After a crash the claims are still in Redis, but the bodies are lost. Each process has its own capacity for
 * unanswered actions; the known signers are shared.
 */
import { type ActionReference, Settled } from "@trigate/domain/actions/ActionOutcome"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import * as SharedState from "@trigate/upstream/unstable/SharedState"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { identity } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Redis from "effect/persistence/Redis"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
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

/** The end of an attempt, or of the search for its outcome, and the number of settled entries to retain. */
export interface Ending extends Pick<Extract<ActionLog.Change, { readonly state: unknown }>, "settled" | "state"> {
  readonly part: LoggedAction.Part
  /** The number of settled entries of this part that are retained. */
  readonly settledCapacity: number
}

/** The entries that replicas share. Each operation is atomic. */
export interface SharedEntries {
  /** Adds an entry in state `sent`; see {@link ActionLog.Driver}. */
  readonly insert: (
    opening: ActionLog.Opening,
    guard: LoggedAction.Guard
  ) => Effect.Effect<"new" | "repeat" | ActionLog.Standing, SharedState.StoreFault>
  /** Changes the state of an entry if it meets the condition. Returns whether it did. */
  readonly update: (
    key: LoggedAction.EntryKey,
    guard: LoggedAction.Guard,
    ending: Ending
  ) => Effect.Effect<boolean, SharedState.StoreFault>
  /** Changes the time of an entry's next lookup if it is still `from`. Returns whether it was. */
  readonly move: (
    key: LoggedAction.EntryKey,
    from: number | undefined,
    to: number | undefined
  ) => Effect.Effect<boolean, SharedState.StoreFault>
  readonly find: (
    selection: ActionReference | { readonly due: number }
  ) => Effect.Effect<ReadonlyArray<LoggedAction.Entry>, SharedState.StoreFault>
  readonly isKnown: (signer: string) => Effect.Effect<boolean, SharedState.StoreFault>
  readonly know: (signer: string) => Effect.Effect<void, SharedState.StoreFault>
  /** Succeeds if the store is reachable. */
  readonly ping: Effect.Effect<unknown, SharedState.StoreFault>
}

const unsharedCounter = ActionLog.metrics.actionLogUnshared.series({})
const awayGauge = ActionLog.metrics.actionLogDegraded.series({})

// The value of a key is "state fingerprint lease expiry token"; the token distinguishes successive attempts.
const read = `local function read(key)
  local value = redis.call('GET', key)
  if not value then return {} end
  local state, fingerprint, lease, expiry, token = string.match(value, '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
  return { value = value, state = state, fingerprint = fingerprint, lease = lease, expiry = expiry, token = token }
end
`

// whether an entry meets the condition in ARGV[1] to ARGV[4]: states, time, fingerprint, token
const meets = `local function meets(found)
  local state = found.state
  if state == 'sent' and ARGV[2] ~= '' and tonumber(found.lease) <= tonumber(ARGV[2]) then state = 'unknown' end
  return state and string.find(ARGV[1], ' ' .. state .. ' ', 1, true)
    and (ARGV[3] == '' or ARGV[3] == found.fingerprint) and (ARGV[4] == '' or ARGV[4] == found.token)
end
`

/** Returns the arguments that `meets` reads. */
const guardArguments = ({ fingerprint = "", now, states, token = "" }: LoggedAction.Guard) => [
  ` ${states.join(" ")} `,
  now ?? "",
  fingerprint,
  token
]

/**
 * The data of an action in a second Redis key, as JSON. Replicas of the gateway's preceding version do not need this
 * data.
 */
const About = Schema.fromJsonString(Schema.Struct({
  id: Schema.String,
  openedAt: Encoding.Millis,
  trace: LoggedAction.ActionTrace
}))
const encodeAbout = Schema.encodeSync(About)

interface InsertArguments {
  /** The prefix of the Redis keys. */
  readonly prefix: string
  readonly opening: ActionLog.Opening
  readonly guard: LoggedAction.Guard
}

const insertScript = Redis.script(
  ({ guard, opening: { expiresAt, key, leaseUntil, now, sending, token }, prefix }: InsertArguments) => {
    const { fingerprint, trace = { legs: [] } } = sending
    const member = LoggedAction.formatKey(key)
    return [
      `${prefix}${member}`,
      `${prefix}open`,
      `${prefix}about:${member}`,
      `${prefix}id:${fingerprint}`,
      ...LoggedAction.listCloids(trace).map((cloid) => `${prefix}cloid:${cloid}`),
      ...guardArguments(guard),
      `sent ${fingerprint} ${leaseUntil} ${expiresAt} ${token}`,
      leaseUntil,
      expiresAt - now,
      member,
      encodeAbout({ id: fingerprint, openedAt: now, trace })
    ]
  },
  {
    numberOfKeys: ({ opening: { sending: { trace } } }) =>
      4 + (trace === undefined ? 0 : LoggedAction.listCloids(trace).length),
    lua: `${read}${meets}
local found, lease, life, member = read(KEYS[1]), ARGV[6], tonumber(ARGV[7]), ARGV[8]
if found.state and tonumber(found.expiry) <= tonumber(ARGV[2]) then found = {} end
if found.state and not meets(found) then return found.value end
redis.call('SET', KEYS[1], ARGV[5], 'PX', ARGV[7])
redis.call('ZADD', KEYS[2], lease, member)
if redis.call('PTTL', KEYS[2]) < life then redis.call('PEXPIRE', KEYS[2], ARGV[7]) end
redis.call('PEXPIRE', KEYS[3], ARGV[7])
redis.call('PEXPIRE', KEYS[4], ARGV[7])
if found.state then return 'repeat' end
redis.call('SET', KEYS[3], ARGV[9], 'PX', ARGV[7])
redis.call('SET', KEYS[4], member, 'PX', ARGV[7])
for at = 5, #KEYS do
  redis.call('SADD', KEYS[at], member)
  if redis.call('PTTL', KEYS[at]) < life then redis.call('PEXPIRE', KEYS[at], ARGV[7]) end
end
return 'new'`
  }
).withReturnType<unknown>()

interface UpdateArguments extends Ending {
  readonly prefix: string
  readonly key: LoggedAction.EntryKey
  readonly guard: LoggedAction.Guard
}

const updateScript = Redis.script(
  ({ guard, key, part, prefix, settled, settledCapacity, state }: UpdateArguments) => {
    const member = LoggedAction.formatKey(key)
    return [
      `${prefix}${member}`,
      // the settled entries, scored by expiry
      `${prefix}answered${part === "familiar" ? "" : `:${part}`}`,
      `${prefix}open`,
      `${prefix}settled:${member}`,
      `${prefix}about:${member}`,
      ...guardArguments(guard),
      state,
      settledCapacity,
      prefix,
      member,
      settled === undefined ? "" : Encoding.stringify(settled)
    ]
  },
  {
    numberOfKeys: 5,
    lua: `${read}${meets}
local key, answered, state, prefix, member = KEYS[1], KEYS[2], ARGV[5], ARGV[7], ARGV[8]
local found = read(key)
if not meets(found) then return 0 end
if state == 'unknown' then redis.call('ZADD', KEYS[3], 0, member) else redis.call('ZREM', KEYS[3], member) end
if state == 'gone' then return redis.call('DEL', key, KEYS[5]) end
local value = table.concat({ state, found.fingerprint, found.lease, found.expiry, found.token }, ' ')
redis.call('SET', key, value, 'KEEPTTL')
if state == 'unknown' then return 1 end
if ARGV[9] ~= '' then redis.call('SET', KEYS[4], ARGV[9], 'PX', math.max(1, redis.call('PTTL', key))) end
redis.call('ZADD', answered, found.expiry, key)
-- drops the oldest settled entries beyond the limit, and their other keys
for _ = 1, redis.call('ZCARD', answered) - tonumber(ARGV[6]) do
  local oldest = redis.call('ZPOPMIN', answered)[1]
  local name = string.sub(oldest, #prefix + 1)
  local about = redis.call('GET', prefix .. 'about:' .. name)
  if about then
    local decoded = cjson.decode(about)
    redis.call('DEL', prefix .. 'id:' .. decoded.id)
    for _, leg in ipairs(decoded.trace.legs) do
      if leg.cloid then redis.call('SREM', prefix .. 'cloid:' .. leg.cloid, name) end
    end
  end
  redis.call('DEL', oldest, prefix .. 'about:' .. name, prefix .. 'settled:' .. name)
end
redis.call('PEXPIRE', answered, math.max(redis.call('PTTL', answered), redis.call('PTTL', key)))
return 1`
  }
).withReturnType<unknown>()

interface MoveArguments {
  readonly prefix: string
  readonly key: LoggedAction.EntryKey
  /** The time of the entry's next lookup so far. */
  readonly from: number | undefined
  readonly to: number | undefined
}

const moveScript = Redis.script(
  ({ from, key, prefix, to }: MoveArguments) => [`${prefix}open`, LoggedAction.formatKey(key), from ?? "", to ?? ""],
  {
    numberOfKeys: 1,
    lua: `local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not score or tonumber(score) ~= tonumber(ARGV[2]) then return 0 end
if ARGV[3] == '' then redis.call('ZREM', KEYS[1], ARGV[1]) else redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1]) end
return 1`
  }
).withReturnType<unknown>()

interface FindArguments {
  readonly prefix: string
  readonly selection: ActionReference | { readonly due: number }
}

/** Returns the key that names the entries, its kind, the start of their names, and the maximum number of entries. */
const searchArguments = ({ prefix, selection }: FindArguments) => {
  if ("due" in selection) return [`${prefix}open`, "due", selection.due, ActionLog.lookupsAtOnce]
  if ("id" in selection) return [`${prefix}id:${selection.id}`, "id", "", 1]
  const { signer = "" } = selection
  return "cloid" in selection
    ? [
      `${prefix}cloid:${selection.cloid.toLowerCase()}`,
      "cloid",
      signer === "" ? "" : `${signer.toLowerCase()}:`,
      LoggedAction.mostFound
    ]
    : [`${prefix}${signer.toLowerCase()}:${selection.nonce}`, "member", "", 1]
}

const findScript = Redis.script(
  (found: FindArguments) => [...searchArguments(found), found.prefix],
  {
    numberOfKeys: 1,
    lua: `${read}
local kind, start, limit, prefix, members, rows = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], {}, {}
if kind == 'member' then
  members = { string.sub(KEYS[1], #prefix + 1) }
elseif kind == 'id' then
  members = { redis.call('GET', KEYS[1]) or nil }
elseif kind == 'cloid' then
  members = redis.call('SMEMBERS', KEYS[1])
else
  members, start = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', start, 'LIMIT', 0, limit), ''
end
for _, member in ipairs(members) do
  if #rows >= limit then break end
  local found = string.sub(member, 1, #start) == start and read(prefix .. member) or {}
  if found.state or kind == 'due' then
    table.insert(rows, {
      member,
      found.state and found.value or '',
      redis.call('GET', prefix .. 'about:' .. member) or '',
      redis.call('GET', prefix .. 'settled:' .. member) or '',
      redis.call('ZSCORE', prefix .. 'open', member) or '0'
    })
  end
end
return rows`
  }
).withReturnType<unknown>()

const Value = Schema.TemplateLiteralParser([
  Schema.Literals(["sent", "accepted", "rejected", "unknown"]),
  " ",
  Schema.String,
  " ",
  Schema.Finite,
  " ",
  Schema.Finite,
  " ",
  Schema.String
])

const parseValue = ([state, , fingerprint, , leaseUntil, , expiresAt, , token]: typeof Value.Type) => ({
  state,
  fingerprint,
  leaseUntil,
  expiresAt,
  token
})

const Inserted = Schema.Union([Schema.Literals(["new", "repeat"]), Value])
const decodeReply = Schema.decodeUnknownEffect(Inserted)

const decodeInserted = (reply: unknown) =>
  Effect.map(decodeReply(reply), (inserted) => Predicate.isString(inserted) ? inserted : parseValue(inserted))

const Found = Schema.Tuple([
  Schema.String,
  Schema.Union([Schema.Literal(""), Value]),
  Schema.Union([Schema.Literal(""), About]),
  Schema.Union([Schema.Literal(""), Schema.fromJsonString(Settled)]),
  Schema.FiniteFromString
])
const decodeFound = Schema.decodeUnknownEffect(Schema.Array(Found))

const decodeCount = Schema.decodeUnknownEffect(Schema.Natural)

const isAddress = Schema.is(Encoding.Address)

/** The value of an entry that expired, but is still listed for a lookup. */
const expired = { state: "forgotten", fingerprint: "", leaseUntil: 0, expiresAt: 0, token: "" } as const

const entryFrom = ([member, value, about, settled, lookUpAt]: typeof Found.Type): LoggedAction.Entry => {
  const [signer = "", nonce = "0"] = member.split(":")
  return {
    nonce: Number(nonce),
    signer: isAddress(signer) ? signer : undefined,
    ...(value === "" ? expired : parseValue(value)),
    openedAt: about === "" ? 0 : about.openedAt,
    lookUpAt,
    trace: about === "" ? undefined : about.trace,
    vault: about === "" ? undefined : about.trace.vault ?? "",
    settled: settled === "" ? undefined : settled
  }
}

const unreachable = "is unreachable (Redis is not connected, or did not respond in time)"

/** Returns whether the entry of a key is shared: an action without a signer is only in the memory of its process. */
const isShared = ({ claimant }: LoggedAction.EntryKey): boolean => isAddress(claimant)

/** Returns the shared entries in a Redis. */
export const makeEntries = (redis: Redis.Redis["Service"], prefix: string): SharedEntries => {
  const signerKey = (signer: string) => `${prefix}signer:${signer}`
  const evaluateInsert = redis.eval(insertScript)
  const evaluateUpdate = redis.eval(updateScript)
  const evaluateMove = redis.eval(moveScript)
  const evaluateFind = redis.eval(findScript)
  const isCounted = (evaluated: Effect.Effect<unknown, Redis.RedisError>) =>
    Effect.map(Effect.flatMap(evaluated, (reply) => decodeCount(reply)), (count) => count > 0)
  return {
    insert: (opening, guard) =>
      Effect.flatMap(evaluateInsert({ prefix, opening, guard }), (reply) => decodeInserted(reply)),
    update: (key, guard, ending) => isCounted(evaluateUpdate({ prefix, key, guard, ...ending })),
    move: (key, from, to) => isCounted(evaluateMove({ prefix, key, from, to })),
    find: (selection) =>
      Effect.map(
        Effect.flatMap(evaluateFind({ prefix, selection }), (reply) => decodeFound(reply)),
        (rows) => rows.map(entryFrom)
      ),
    isKnown: (signer) => isCounted(redis.send("EXISTS", signerKey(signer))),
    know: (signer) => Effect.asVoid(redis.send("SET", signerKey(signer), "1", "PX", String(LoggedAction.knownFor))),
    ping: redis.send("PING")
  }
}

const makeDriver = Effect.fnUntraced(function*(options: Omit<Options, "prefix">, entries: SharedEntries) {
  const own = ActionLogMemory.makeDriver(yield* Clock.Clock)
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

  /** Runs an operation in Redis within the deadline of a step. */
  const inTime = <A>(operation: Effect.Effect<A, SharedState.StoreFault>) =>
    shared.orElse<A, string, never>(operation, Effect.fail(unreachable))

  const updateShared = (
    key: LoggedAction.EntryKey,
    guard: LoggedAction.Guard,
    { part = "familiar", settled, state }: Extract<ActionLog.Change, { readonly state: unknown }>
  ) => entries.update(key, guard, { state, settled, part, settledCapacity: settledCapacity[part] })

  const insertShared = Effect.fnUntraced(function*(
    opening: ActionLog.Opening,
    guard: LoggedAction.Guard,
    mine: "new" | "repeat"
  ) {
    const { key, token } = opening
    const attempt = { states: LoggedAction.statesBefore.released, token }
    const revert = (inserted: "new" | "repeat") =>
      ({ state: LoggedAction.nextState("sent", inserted === "repeat", "released") ?? "unknown" }) as const
    const revertOwn = own.update(key, attempt, revert(mine))
    const inserting = yield* Effect.forkIn(
      Effect.interruptible(entries.insert(opening, guard)),
      scope,
      { startImmediately: true }
    )
    /** Releases the nonce, even if Redis records the claim only after the deadline. */
    const withdraw = Effect.andThen(
      revertOwn,
      Effect.forkIn(
        Effect.flatMap(Fiber.await(inserting), (exit) =>
          Exit.isSuccess(exit) && ActionLog.isWritten(exit.value)
            ? Effect.ignore(updateShared(key, attempt, revert(exit.value)))
            : Effect.void),
        scope
      )
    )
    const written = yield* shared.orElse<"new" | "repeat" | ActionLog.Standing | undefined, never, never>(
      Fiber.join(inserting),
      Effect.undefined
    ).pipe(Effect.onInterrupt(() => withdraw))
    if (written === undefined && alone) {
      yield* Metric.update(unsharedCounter, 1)
      return mine
    }
    yield* Metric.update(awayGauge, written === undefined ? 1 : 0)
    if (written === undefined) {
      yield* withdraw
      return yield* Effect.fail(unreachable)
    }
    if (!ActionLog.isWritten(written)) yield* revertOwn
    return written === "new" ? mine : written
  })

  const select = (selection: ActionReference | { readonly due: number }) => inTime(entries.find(selection))

  const know = (signer: string) => shared.orElse(entries.know(signer), Effect.void)

  /** Reads the outcomes that other replicas determined for actions of this process. */
  const learnOutcomes = Effect.fnUntraced(function*(now: number) {
    for (const entry of yield* own.find({ due: now }, now)) {
      const { fingerprint, lookUpAt, openedAt, signer, trace } = entry
      const key = LoggedAction.entryKey(entry)
      const next = LoggedAction.nextLookup(openedAt, now, trace?.expiresAfter)
      yield* own.update(key, { states: ["unknown"], lookUpAt }, { lookUpAt: next })
      const [found] = signer === undefined ? [] : yield* select({ id: fingerprint })
      if (found?.settled === undefined || (found.state !== "accepted" && found.state !== "rejected")) continue
      yield* own.update(key, { states: ["unknown"] }, { state: found.state, settled: found.settled })
      if (signer !== undefined && found.state === "accepted") yield* know(signer.toLowerCase())
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
      if ("lookUpAt" in change) return yield* inTime(entries.move(key, guard.lookUpAt, change.lookUpAt))
      // an operator removes an action only from the list of one process
      if (change.state === "forgotten") return yield* ofOwn
      // the end of an attempt counts in this process, even while Redis is unreachable
      if (guard.token !== undefined) return yield* Effect.tap(ofOwn, () => inTime(updateShared(key, guard, change)))
      const isChanged = yield* inTime(updateShared(key, guard, change))
      if (isChanged) yield* ofOwn
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
    isKnown: (signer) => shared.orElse(entries.isKnown(signer), Effect.succeed(false)),
    know,
    step: identity,
    write: identity,
    isUp: Effect.tap(
      shared.orElse(Effect.as(entries.ping, true), Effect.succeed(false)),
      (up) => Metric.update(awayGauge, alone || up ? 0 : 1)
    ),
    untilTurn: Effect.sleep(ActionLog.turnEvery)
  }
  return driver
})

/** Makes the action log of one process over the shared entries. */
export const make = Effect.fnUntraced(function*(options: Omit<Options, "prefix">, entries: SharedEntries) {
  const { log, recount } = yield* ActionLog.make(yield* makeDriver(options, entries), options)
  return ActionLog.ActionLog.of({
    ...log,
    claim: Effect.fn("ActionLog.claim")(log.claim),
    // the driver may have learned outcomes from other replicas
    takeUnknown: Effect.tap(log.takeUnknown, () => recount)
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
export const layer = (
  { prefix = "trigate:{actions}:", ...options }: Options = {}
): Layer.Layer<ActionLog.ActionLog, never, Redis.Redis> =>
  Layer.effect(
    ActionLog.ActionLog,
    Effect.flatMap(Redis.Redis, (redis) => make(options, makeEntries(redis, prefix)))
  )
