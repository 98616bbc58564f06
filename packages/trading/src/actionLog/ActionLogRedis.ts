/**
 * `ActionLog` of replicas that share only a Redis. Claims are shared; bodies stay in the process that sends them.
 * Traces are shared too, so that any replica can settle an action.
 *
 * Each process claims a nonce first in its own log, then in Redis in one atomic step. While Redis is unreachable or
 * late, signed actions are refused and nothing is sent. With `alone`, a process instead continues with its own log,
 * without knowing what other replicas sent; `isUp`, a log line and metrics report this.
 *
 * After a crash the claims are still in Redis, but the bodies are lost. Each process has its own capacity for
 * unanswered actions; the known signers are shared.
 */
import type { ActionReference } from "@trigate/domain/actions/ActionRecord"
import { Settled } from "@trigate/domain/actions/ActionRecord"
import { Address } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import { Millis } from "@trigate/domain/Time"
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
import * as Schema from "effect/Schema"
import * as ActionLog from "./ActionLog.ts"
import { metrics } from "./ActionLogMetrics.ts"
import * as ActionLogQuota from "./ActionLogQuota.ts"
import * as ActionTrace from "./ActionTrace.ts"

/** The retention limits, the key prefix in Redis, and the timeouts. */
export interface Options extends ActionLog.Options {
  /** Prefix of the keys. Default: `trigate:{actions}:`. The braces place all keys in one cluster slot. */
  readonly prefix?: string
  /**
   * The time after which an unsettled `sent` action becomes `unknown`. It must exceed the duration of an attempt.
   * Default: 1 minute.
   */
  readonly lease?: ActionLog.Lease
  /** Timeout of one step in Redis. Default: 1 second; with `alone`, 250 milliseconds. */
  readonly deadline?: Duration.Input
  /**
   * Whether actions are sent while Redis is unreachable or late. Another replica may then send the same nonce. Default:
   * false.
   */
  readonly alone?: boolean
}

// The value of a key is "state fingerprint lease expiry token"; the token distinguishes successive claims of the same content.
const read = `local function read(key)
  local found = redis.call('GET', key)
  if not found then return {} end
  local state, fingerprint, lease, expiry, token = string.match(found, '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
  return { state = state, fingerprint = fingerprint, lease = lease, expiry = expiry, token = token }
end
`

/**
 * The data that a claim stores next to its value, as JSON. Replicas of the preceding version neither read nor need it.
 */
const About = Schema.fromJsonString(Schema.Struct({
  id: Schema.String,
  openedAt: Millis,
  trace: ActionTrace.ActionTrace
}))
const encodeAbout = Schema.encodeSync(About)

interface ClaimArguments {
  readonly key: string
  /** The prefix of the keys. */
  readonly prefix: string
  /** The claimant and the nonce. */
  readonly member: string
  readonly about: string
  readonly cloids: ReadonlyArray<string>
  readonly fingerprint: string
  readonly now: number
  readonly lease: number
  readonly expiry: number
  readonly token: string
}

const claimScript = Redis.script(
  ({ about, cloids, expiry, fingerprint, key, lease, member, now, prefix, token }: ClaimArguments) => [
    key,
    `${prefix}open`,
    `${prefix}about:${member}`,
    `${prefix}id:${fingerprint}`,
    ...cloids.map((cloid) => `${prefix}cloid:${cloid}`),
    fingerprint,
    now,
    lease,
    expiry,
    token,
    member,
    about
  ],
  {
    numberOfKeys: ({ cloids }) => 4 + cloids.length,
    lua: `${read}
local found, now = read(KEYS[1]), tonumber(ARGV[2])
local state = found.state
if state and tonumber(found.expiry) <= now then state = nil end
if state == 'sent' and tonumber(found.lease) <= now then state = 'unknown' end
local same = found.fingerprint == ARGV[1]
if same and (state == 'accepted' or state == 'rejected') then return state .. ' same' end
if state and (state ~= 'unknown' or not same) then return state end
local value = table.concat({ 'sent', ARGV[1], ARGV[3], ARGV[4], ARGV[5] }, ' ')
local life = string.format('%.0f', tonumber(ARGV[4]) - now)
redis.call('SET', KEYS[1], value, 'PX', life)
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[6])
if redis.call('PTTL', KEYS[2]) < tonumber(life) then redis.call('PEXPIRE', KEYS[2], life) end
redis.call('PEXPIRE', KEYS[3], life)
redis.call('PEXPIRE', KEYS[4], life)
if not state then
  redis.call('SET', KEYS[3], ARGV[7], 'PX', life)
  redis.call('SET', KEYS[4], ARGV[6], 'PX', life)
  for at = 5, #KEYS do
    redis.call('SADD', KEYS[at], ARGV[6])
    if redis.call('PTTL', KEYS[at]) < tonumber(life) then redis.call('PEXPIRE', KEYS[at], life) end
  end
end
return state and 'repeated' or 'claimed'`
  }
).withReturnType<unknown>()

// drops the oldest settled actions beyond the limit, with the data stored next to them
const drop = `local function drop(prefix, answered, limit)
  for _ = 1, redis.call('ZCARD', answered) - limit do
    local key = redis.call('ZPOPMIN', answered)[1]
    local member = string.sub(key, #prefix + 1)
    local about = redis.call('GET', prefix .. 'about:' .. member)
    if about then
      local decoded = cjson.decode(about)
      redis.call('DEL', prefix .. 'id:' .. decoded.id)
      for _, leg in ipairs(decoded.trace.legs) do
        if leg.cloid then redis.call('SREM', prefix .. 'cloid:' .. leg.cloid, member) end
      end
    end
    redis.call('DEL', key, prefix .. 'about:' .. member, prefix .. 'settled:' .. member)
  end
end
`

interface SettleArguments {
  readonly key: string
  readonly prefix: string
  readonly member: string
  /** How the outcome was determined, as JSON; empty if there is nothing to record. */
  readonly settled: string
  /** The key of the set of settled actions, scored by expiry. */
  readonly answered: string
  readonly token: string
  readonly remains: ActionLog.Remains
  readonly settledCapacity: number
}

const settleScript = Redis.script(
  ({ answered, key, member, prefix, remains, settled, settledCapacity, token }: SettleArguments) => [
    key,
    answered,
    `${prefix}open`,
    `${prefix}settled:${member}`,
    `${prefix}about:${member}`,
    token,
    remains,
    settledCapacity,
    prefix,
    member,
    settled
  ],
  {
    numberOfKeys: 5,
    lua: `${read}${drop}
local key, answered, remains = KEYS[1], KEYS[2], ARGV[2]
local found = read(key)
if found.state ~= 'sent' or found.token ~= ARGV[1] then return end
if remains == 'unknown' then redis.call('ZADD', KEYS[3], 0, ARGV[5]) else redis.call('ZREM', KEYS[3], ARGV[5]) end
if remains == 'gone' then return redis.call('DEL', key, KEYS[5]) end
local value = table.concat({ remains, found.fingerprint, found.lease, found.expiry, found.token }, ' ')
redis.call('SET', key, value, 'KEEPTTL')
if remains == 'unknown' then return end
if ARGV[6] ~= '' then redis.call('SET', KEYS[4], ARGV[6], 'PX', math.max(1, redis.call('PTTL', key))) end
redis.call('ZADD', answered, found.expiry, key)
drop(ARGV[4], answered, tonumber(ARGV[3]))
redis.call('PEXPIRE', answered, math.max(redis.call('PTTL', answered), redis.call('PTTL', key)))`
  }
)

interface TakeArguments {
  readonly prefix: string
  readonly now: number
  readonly count: number
}

const takeScript = Redis.script(({ count, now, prefix }: TakeArguments) => [`${prefix}open`, prefix, now, count], {
  numberOfKeys: 1,
  lua: `${read}
local prefix, now, taken = ARGV[1], tonumber(ARGV[2]), {}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[3])) do
  local found, about = read(prefix .. member), redis.call('GET', prefix .. 'about:' .. member)
  local state = found.state
  if state == 'sent' and tonumber(found.lease) <= now then state = 'unknown' end
  if state == 'unknown' and about then
    local wait = math.max(1000, math.min(300000, (now - cjson.decode(about).openedAt) / 2))
    redis.call('ZADD', KEYS[1], string.format('%.0f', now + wait), member)
    table.insert(taken, { member, about })
  elseif state == 'sent' then
    redis.call('ZADD', KEYS[1], found.lease, member)
  else
    redis.call('ZREM', KEYS[1], member)
  end
end
return taken`
}).withReturnType<unknown>()

interface ConcludeArguments {
  readonly prefix: string
  readonly fingerprint: string
  readonly now: number
  readonly state: "accepted" | "rejected"
  readonly settled: string
  readonly settledCapacity: number
}

const concludeScript = Redis.script(
  ({ fingerprint, now, prefix, settled, settledCapacity, state }: ConcludeArguments) => [
    `${prefix}id:${fingerprint}`,
    `${prefix}answered`,
    `${prefix}open`,
    prefix,
    fingerprint,
    now,
    state,
    settled,
    settledCapacity
  ],
  {
    numberOfKeys: 3,
    lua: `${read}${drop}
local prefix, member = ARGV[1], redis.call('GET', KEYS[1])
if not member then return 0 end
local key = prefix .. member
local found = read(key)
local open = found.state == 'unknown' or found.state == 'sent' and tonumber(found.lease) <= tonumber(ARGV[3])
if found.fingerprint ~= ARGV[2] or not open then return 0 end
local value = table.concat({ ARGV[4], found.fingerprint, found.lease, found.expiry, found.token }, ' ')
redis.call('SET', key, value, 'KEEPTTL')
redis.call('SET', prefix .. 'settled:' .. member, ARGV[5], 'PX', math.max(1, redis.call('PTTL', key)))
redis.call('ZREM', KEYS[3], member)
redis.call('ZADD', KEYS[2], found.expiry, key)
drop(prefix, KEYS[2], tonumber(ARGV[6]))
redis.call('PEXPIRE', KEYS[2], math.max(redis.call('PTTL', KEYS[2]), redis.call('PTTL', key)))
return 1`
  }
).withReturnType<unknown>()

interface FindArguments {
  readonly prefix: string
  /** The key whose value lists the names of the entries; absent if the name is known. */
  readonly key: string
  readonly kind: "id" | "cloid" | "member"
  readonly now: number
}

const findScript = Redis.script(({ key, kind, now, prefix }: FindArguments) => [key, prefix, kind, now], {
  numberOfKeys: 1,
  lua: `${read}
local prefix, now, members, rows = ARGV[1], tonumber(ARGV[3]), {}, {}
if ARGV[2] == 'member' then
  members = { string.sub(KEYS[1], #prefix + 1) }
elseif ARGV[2] == 'id' then
  members = { redis.call('GET', KEYS[1]) or nil }
else
  members = redis.call('SMEMBERS', KEYS[1])
end
for at, member in ipairs(members) do
  local found = read(prefix .. member)
  if found.state and tonumber(found.expiry) > now and at <= 100 then
    local state = found.state
    if state == 'sent' and tonumber(found.lease) <= now then state = 'unknown' end
    local about, settled = redis.call('GET', prefix .. 'about:' .. member), redis.call('GET', prefix .. 'settled:' .. member)
    table.insert(rows, { member, state, found.fingerprint, about or '', settled or '' })
  end
end
return rows`
}).withReturnType<unknown>()

const Taken = Schema.Tuple([Schema.String, About])
const decodeTaken = Schema.decodeUnknownEffect(Schema.Array(Taken))
const Found = Schema.Tuple([
  Schema.String,
  Schema.Literals(["sent", "accepted", "rejected", "unknown"]),
  Schema.String,
  Schema.Union([About, Schema.Literal("")]),
  Schema.Union([Schema.fromJsonString(Settled), Schema.Literal("")])
])
const decodeFound = Schema.decodeUnknownEffect(Schema.Array(Found))

const isAddress = Schema.is(Address)

/** Parses the signer and the nonce from the name of an entry. */
const parseIdentity = (member: string) => {
  const [signer = "", nonce = "0"] = member.split(":")
  return { nonce: Number(nonce), ...(isAddress(signer) ? { signer } : {}) }
}

const recordedFrom = ([member, state, fingerprint, about, settled]: typeof Found.Type): ActionLog.Recorded => {
  const expiresAfter = about === "" || (state !== "sent" && state !== "unknown") ? undefined : about.trace.expiresAfter
  return {
    ...parseIdentity(member),
    fingerprint,
    state: ActionLog.shownState(state, settled === "" ? undefined : settled),
    ...(settled === "" ? {} : { settled }),
    ...(expiresAfter === undefined ? {} : { expiresAfter })
  }
}

const unsettledFrom = ([member, { id, openedAt, trace }]: typeof Taken.Type): ActionLog.Unsettled => ({
  ...parseIdentity(member),
  fingerprint: id,
  openedAt,
  trace
})

const printSettled = (settled: Settled | undefined): string => settled === undefined ? "" : Json.stringify(settled)

const decodeCount = Schema.decodeUnknownEffect(Schema.Natural)

const Answer = Schema.Literals([
  "claimed",
  "repeated",
  "sent",
  "accepted",
  "accepted same",
  "rejected",
  "rejected same",
  "unknown"
])
const decodeAnswer = Schema.decodeUnknownEffect(Answer)

const unsharedCounter = metrics.actionLogUnshared.series({})
const awayGauge = metrics.actionLogDegraded.series({})

const make = Effect.fnUntraced(function*(options: Options) {
  const redis = yield* Redis.Redis
  const known = ActionLogQuota.makeSigners()
  const own = yield* ActionLog.makeMemory(options, known)
  const { alone = false } = options
  const scope = yield* Effect.scope
  const shared = yield* SharedState.make({
    use: "action-log",
    ...(alone
      ? { deadline: options.deadline ?? "250 millis" }
      // waiting for a store that may be reachable again is better than refusing an action
      : { deadline: options.deadline ?? "1 second", pause: 0, meanwhile: "signed actions are refused" })
  })
  const { keep, settledCapacity } = ActionLog.resolveLimits(options)
  const prefix = options.prefix ?? "trigate:{actions}:"
  const lease = ActionLog.leaseMillis(options.lease)
  const run = (yield* Random.nextInt).toString(36)
  const evaluateClaim = redis.eval(claimScript)
  const evaluateSettle = redis.eval(settleScript)
  let claims = 0

  const ask = <A>(asked: Effect.Effect<A, Redis.RedisError | Schema.SchemaError>) =>
    asked.pipe(
      Effect.mapError((error) =>
        new SharedState.SharedAway({ detail: error._tag === "RedisError" ? String(error.cause) : error.message })
      ),
      // a settlement at the end of a scope must not wait for an uninterruptible step
      Effect.interruptible
    )

  /**
   * Writes the end of a claim. While Redis is unreachable, retries in the background until the lease ends. After that,
   * other replicas consider the outcome unknown.
   */
  const writeEnd = (
    claim: Pick<SettleArguments, "key" | "member" | "token">,
    remains: ActionLog.Remains,
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
        settled: printSettled(settled),
        settledCapacity: settledCapacity[part]
      })
    )
    const later = write.pipe(Effect.retry(Schedule.spaced("1 second")), Effect.timeoutOption(lease()))
    return shared.orElse(Effect.asVoid(write), Effect.asVoid(Effect.forkIn(later, scope)))
  }

  const signerKey = (signer: string) => `${prefix}signer:${signer.toLowerCase()}`

  /** Checks whether another process recorded an accepted action of the signer. */
  const learn = Effect.fnUntraced(function*({ isListed, signer }: ActionLog.Sending) {
    if (signer === undefined || isListed || known.has(signer.toLowerCase())) return
    const found = Effect.flatMap(redis.send("EXISTS", signerKey(signer)), (count) => decodeCount(count))
    if ((yield* shared.orElse(ask(found), Effect.succeed(0))) > 0) known.add(signer.toLowerCase())
  })

  /** Notifies the other processes of an accepted action of the signer. */
  const teach = (signer: string) =>
    shared.orElse(
      Effect.asVoid(ask(redis.send("SET", signerKey(signer), "1", "PX", String(ActionLogQuota.knownFor)))),
      Effect.void
    )

  const claim = Effect.fn("ActionLog.claim")(
    function*(sending: ActionLog.Sending): Effect.fn.Return<ActionLog.Claim, ActionLog.ClaimRefusal> {
      const { fingerprint, nonce, signer } = sending
      yield* learn(sending)
      const mine = yield* ActionLog.take(own, sending)
      if (signer === undefined) return mine
      const now = yield* Clock.currentTimeMillis
      const member = ActionLog.entryKey(sending)
      const key = `${prefix}${member}`
      const { trace = { legs: [] } } = sending
      claims += 1
      const token = `${run}.${claims}`
      const expiry = ActionLog.expiryTime(nonce, now, keep)
      let asking: Fiber.Fiber<typeof Answer.Type, SharedState.SharedAway> | undefined
      const asked = Effect.flatMap(
        Effect.forkIn(
          ask(Effect.flatMap(
            evaluateClaim({
              key,
              prefix,
              member,
              about: encodeAbout({ id: fingerprint, openedAt: now, trace }),
              cloids: ActionTrace.cloids(trace),
              fingerprint,
              now,
              lease: now + lease(),
              expiry,
              token
            }),
            (answered) => decodeAnswer(answered)
          )),
          scope,
          { startImmediately: true }
        ),
        (fiber) => {
          asking = fiber
          return Fiber.join(fiber)
        }
      )
      /** Releases the nonce, even if Redis grants the claim only after the deadline. */
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
      const answer = yield* shared.orElse<typeof Answer.Type | undefined, never, never>(asked, Effect.undefined).pipe(
        Effect.onInterrupt(() => withdraw)
      )
      if (answer === undefined && alone) {
        yield* Metric.update(unsharedCounter, 1)
        return mine
      }
      yield* Metric.update(awayGauge, answer === undefined ? 1 : 0)
      if (answer === undefined) {
        yield* withdraw
        return yield* ActionLog.notSent("is unreachable (Redis is not connected, or did not respond in time)")
      }
      if (answer !== "claimed" && answer !== "repeated") {
        yield* mine.settle("released")
        if (answer === "accepted same") return yield* ActionLog.alreadyUsed(signer, nonce, "accepted", true)
        if (answer === "rejected same") return yield* ActionLog.alreadyUsed(signer, nonce, "rejected", true)
        return yield* ActionLog.alreadyUsed(signer, nonce, answer, false)
      }
      return ActionLog.makeClaim(
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

  /** Runs a query in Redis within the deadline. */
  const askShared = <A>(question: Effect.Effect<A, Redis.RedisError | Schema.SchemaError>) =>
    shared.orElse<A | undefined, never, never>(ask(question), Effect.undefined).pipe(
      Effect.filterOrFail(
        Predicate.isNotUndefined,
        () => ActionLog.unreadable("is unreachable (Redis is not connected, or did not respond in time)")
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
      Effect.flatMap(redis.eval(findScript)({ ...named, prefix, now }), (answer) => decodeFound(answer))
    )
    const found = rows.map(recordedFrom).filter((each) => ActionLog.isNamed(reference, each))
    // an action without a signer has no claim in Redis
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
        redis.eval(takeScript)({ prefix, now, count: ActionLog.lookupsAtOnce }),
        (answer) => decodeTaken(answer)
      )
    )
    return taken.map(unsettledFrom)
  })

  const conclude = Effect.fnUntraced(function*(fingerprint: string, conclusion: ActionLog.Conclusion) {
    const now = yield* Clock.currentTimeMillis
    const concluded = yield* askShared(
      Effect.flatMap(
        redis.eval(concludeScript)({
          prefix,
          fingerprint,
          now,
          state: ActionLog.storedState(conclusion),
          settled: printSettled(conclusion.settled),
          settledCapacity: settledCapacity.familiar
        }),
        (answer) => decodeCount(answer)
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
 * Provides the log that all processes with the same Redis and prefix share.
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
