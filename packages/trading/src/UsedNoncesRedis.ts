/**
 * `UsedNonces` shared by the replicas of a gateway: one atomic step in Redis for each claim and each settlement.
 *
 * While Redis is away every claim is granted unchecked: an action is worth more than its early refusal, and the venue
 * refuses a nonce that it has seen in any case. `degraded`, a log line and two metrics say so.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Redis from "effect/persistence/Redis"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as UsedNonces from "./UsedNonces.ts"

/** What is kept, where in Redis, and for how long Redis is waited for. */
export interface Options extends UsedNonces.Options {
  /** What the keys begin with; `trigate:{used-nonces}:` when not given. The braces keep the keys in one cluster slot. */
  readonly prefix?: string
  /**
   * After how long a claim that nobody settled counts as `unknown`, as after the crash of a replica; 1 minute when not
   * given. Longer than a sending can last.
   */
  readonly lease?: Duration.Input
  /** How long Redis may take for one step; 250 milliseconds when not given. */
  readonly deadline?: Duration.Input
}

// An entry is "state hash lease doubtful token"; the token tells one claim from the next on the same bytes.
const read = `local function read(key, member)
  local found = redis.call('HGET', key, member)
  if not found then return nil end
  local state, hash, lease, doubtful, token = string.match(found, '^(%a+) (%w+) (%d+) (%d) (%d+)$')
  return { state = state, hash = hash, lease = tonumber(lease), doubtful = doubtful, token = token }
end
local function write(key, member, entry)
  local value = table.concat({ entry.state, entry.hash, string.format('%.0f', entry.lease), entry.doubtful, entry.token }, ' ')
  redis.call('HSET', key, member, value)
end
`

interface ClaimArguments {
  readonly entries: string
  readonly expiries: string
  readonly member: string
  readonly bytesHash: string
  readonly now: number
  readonly lease: number
  readonly expiry: number
  readonly capacity: number
}

const claimScript = Redis.script(
  ({ bytesHash, capacity, entries, expiries, expiry, lease, member, now }: ClaimArguments) => [
    entries,
    expiries,
    member,
    bytesHash,
    now,
    lease,
    expiry,
    capacity
  ],
  {
    numberOfKeys: 2,
    lua: `${read}
local entries, expiries, member = KEYS[1], KEYS[2], ARGV[1]
local now = tonumber(ARGV[3])
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', expiries, '-inf', now, 'LIMIT', 0, 100)) do
  redis.call('ZREM', expiries, gone)
  redis.call('HDEL', entries, gone)
end
local found = read(entries, member)
if found then
  if found.state == 'inFlight' and found.lease <= now then found.state = 'unknown' end
  if found.state ~= 'unknown' or found.hash ~= ARGV[2] then return { found.state, '' } end
end
local token = string.format('%.0f', redis.call('HINCRBY', entries, 'token', 1))
write(entries, member, {
  state = 'inFlight', hash = ARGV[2], lease = tonumber(ARGV[4]), doubtful = found and '1' or '0', token = token
})
redis.call('ZADD', expiries, ARGV[5], member)
for _ = 1, redis.call('ZCARD', expiries) - tonumber(ARGV[6]) do
  redis.call('HDEL', entries, redis.call('ZPOPMIN', expiries)[1])
end
local last = redis.call('ZRANGE', expiries, -1, -1, 'WITHSCORES')[2]
local idle = string.format('%.0f', tonumber(last or ARGV[5]) - now)
redis.call('PEXPIRE', entries, idle)
redis.call('PEXPIRE', expiries, idle)
return { 'claimed', token }`
  }
).withReturnType<unknown>()

const settleScript = Redis.script(
  (entries: string, expiries: string, member: string, token: string, settlement: UsedNonces.Settlement) => [
    entries,
    expiries,
    member,
    token,
    settlement
  ],
  {
    numberOfKeys: 2,
    lua: `${read}
local entry = read(KEYS[1], ARGV[1])
if not entry or entry.state ~= 'inFlight' or entry.token ~= ARGV[2] then return end
entry.state = ARGV[3]
if entry.state == 'released' then
  if entry.doubtful == '0' then
    redis.call('HDEL', KEYS[1], ARGV[1])
    redis.call('ZREM', KEYS[2], ARGV[1])
    return
  end
  entry.state = 'unknown'
end
write(KEYS[1], ARGV[1], entry)`
  }
)

const decodeClaimed = Schema.decodeUnknownEffect(
  Schema.Tuple([Schema.Literals(["claimed", "inFlight", "known", "unknown"]), Schema.String])
)

const degradedGauge = Metric.gauge("trigate_used_nonces_degraded", {
  description: "1 while the shared store of used nonces is away and actions are relayed unchecked, else 0"
})
const uncheckedCounter = Metric.counter("trigate_used_nonces_unchecked_total", {
  description: "Actions relayed without a check of their nonce, because the shared store was away",
  incremental: true
})

const make = Effect.fnUntraced(function*(options: Options) {
  const redis = yield* Redis.Redis
  const { capacity, keep } = UsedNonces.limitsOf(options)
  const prefix = options.prefix ?? "trigate:{used-nonces}:"
  const entries = `${prefix}entries`
  const expiries = `${prefix}expiries`
  const lease = Duration.toMillis(Duration.fromInputUnsafe(options.lease ?? "1 minute"))
  const deadline = Duration.fromInputUnsafe(options.deadline ?? "250 millis")
  const evaluateClaim = redis.eval(claimScript)
  const evaluateSettle = redis.eval(settleScript)
  let away = false

  const tell = Effect.fnUntraced(function*(isAway: boolean, detail: string) {
    if (away === isAway) return
    away = isAway
    yield* Metric.update(degradedGauge, isAway ? 1 : 0)
    yield* isAway
      ? Effect.logWarning(`The store of used nonces is away: actions are relayed unchecked (${detail})`)
      : Effect.logInfo("The store of used nonces is back")
  })

  /** What Redis says in time; its absence is told, not raised. */
  const ask = <A>(asked: Effect.Effect<A, Redis.RedisError | Schema.SchemaError>) =>
    asked.pipe(
      Effect.mapError((error) => error._tag === "RedisError" ? String(error.cause) : error.message),
      // a settlement at the end of a scope must not wait for what cannot be interrupted there
      Effect.interruptible,
      Effect.timeoutOrElse({
        duration: deadline,
        orElse: () => Effect.fail(`no answer within ${Duration.format(deadline)}`)
      }),
      Effect.result,
      Effect.tap((said) => tell(Result.isFailure(said), Result.isFailure(said) ? said.failure : ""))
    )

  const claim = Effect.fn("UsedNonces.claim")(function*(use: UsedNonces.Use) {
    const now = yield* Clock.currentTimeMillis
    const member = UsedNonces.keyOf(use)
    const said = yield* ask(Effect.flatMap(
      evaluateClaim({
        entries,
        expiries,
        member,
        bytesHash: use.bytesHash,
        now,
        lease: now + lease,
        expiry: UsedNonces.expiryOf(use, now, keep),
        capacity
      }),
      decodeClaimed
    ))
    if (Result.isFailure(said)) {
      yield* Metric.update(uncheckedCounter, 1)
      return { settle: () => Effect.void }
    }
    const [word, token] = said.success
    if (word !== "claimed") return yield* UsedNonces.refusal(use, word)
    let isOpen = true
    const settle = (settlement: UsedNonces.Settlement) =>
      Effect.suspend(() => {
        if (!isOpen) return Effect.void
        isOpen = false
        return Effect.asVoid(ask(evaluateSettle(entries, expiries, member, token, settlement)))
      })
    yield* Effect.addFinalizer(() => settle("unknown"))
    return { settle }
  })

  const degraded = Effect.map(ask(redis.send("PING")), Result.isFailure)

  return UsedNonces.UsedNonces.of({ claim, degraded })
})

/** The used nonces of everybody with the same Redis and prefix. */
export const layer = (options: Options = {}): Layer.Layer<UsedNonces.UsedNonces, never, Redis.Redis> =>
  Layer.effect(UsedNonces.UsedNonces, make(options))
