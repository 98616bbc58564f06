/**
 * `ActionLog` of replicas that share only a Redis: the claims are shared, the bytes stay in the process that sends them.
 *
 * Each process claims a nonce in a log of its own first, then in Redis, in one atomic step. While Redis is away or
 * late, signed actions are refused as not sent; with `alone` a process then goes on with its own log, and does not know what other
 * replicas sent. `isUp`, a log line and metrics report it. After a crash the claims are still in Redis, the bytes are lost. Each process
 * has room of its own for unanswered actions; the signers that the log knows are shared.
 */
import * as SharedState from "@trigate/upstream/SharedState"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Redis from "effect/persistence/Redis"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as ActionLog from "./ActionLog.ts"
import { metrics } from "./ActionLogMetrics.ts"
import * as ActionLogQuota from "./ActionLogQuota.ts"

/** How much is remembered, where in Redis, and how long Redis is waited for. */
export interface Options extends ActionLog.Options {
  /** What the keys begin with; `trigate:{actions}:` by default. The braces keep the keys in one cluster slot. */
  readonly prefix?: string
  /** After how long a `sent` action that nobody settled is `unknown`; 1 minute by default. Longer than a sending lasts. */
  readonly lease?: ActionLog.Lease
  /** How long Redis may take for one step; 1 second by default, 250 milliseconds with `alone`. */
  readonly deadline?: Duration.Input
  /** Whether actions are sent while Redis is away or late, so that another replica may send a nonce again; false by default. */
  readonly alone?: boolean
}

// The value of a key is "state fingerprint lease expiry token"; the token tells one claim from the next on the same content.
const read = `local function read(key)
  local found = redis.call('GET', key)
  if not found then return {} end
  local state, fingerprint, lease, expiry, token = string.match(found, '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
  return { state = state, fingerprint = fingerprint, lease = lease, expiry = expiry, token = token }
end
`

interface ClaimArguments {
  readonly key: string
  readonly fingerprint: string
  readonly now: number
  readonly lease: number
  readonly expiry: number
  readonly token: string
}

const claimScript = Redis.script(
  ({ expiry, fingerprint, key, lease, now, token }: ClaimArguments) => [key, fingerprint, now, lease, expiry, token],
  {
    numberOfKeys: 1,
    lua: `${read}
local found, now = read(KEYS[1]), tonumber(ARGV[2])
local state = found.state
if state and tonumber(found.expiry) <= now then state = nil end
if state == 'sent' and tonumber(found.lease) <= now then state = 'unknown' end
local same = found.fingerprint == ARGV[1]
if same and (state == 'accepted' or state == 'rejected') then return state .. ' same' end
if state and (state ~= 'unknown' or not same) then return state end
local value = table.concat({ 'sent', ARGV[1], ARGV[3], ARGV[4], ARGV[5] }, ' ')
redis.call('SET', KEYS[1], value, 'PX', string.format('%.0f', tonumber(ARGV[4]) - now))
return state and 'repeated' or 'claimed'`
  }
).withReturnType<unknown>()

interface SettleArguments {
  readonly key: string
  /** The names of the answered actions, scored by when they expire. */
  readonly answered: string
  readonly token: string
  readonly remains: ActionLog.Remains
  readonly settledCapacity: number
}

const settleScript = Redis.script(
  ({ answered, key, remains, settledCapacity, token }: SettleArguments) => [
    key,
    answered,
    token,
    remains,
    settledCapacity
  ],
  {
    numberOfKeys: 2,
    lua: `${read}
local key, answered, remains = KEYS[1], KEYS[2], ARGV[2]
local found = read(key)
if found.state ~= 'sent' or found.token ~= ARGV[1] then return end
if remains == 'gone' then return redis.call('DEL', key) end
local value = table.concat({ remains, found.fingerprint, found.lease, found.expiry, found.token }, ' ')
redis.call('SET', key, value, 'KEEPTTL')
if remains == 'unknown' then return end
redis.call('ZADD', answered, found.expiry, key)
for _ = 1, redis.call('ZCARD', answered) - tonumber(ARGV[3]) do
  redis.call('DEL', redis.call('ZPOPMIN', answered)[1])
end
redis.call('PEXPIRE', answered, math.max(redis.call('PTTL', answered), redis.call('PTTL', key)))`
  }
)

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
const awayGauge = metrics.actionLogAway.series({})

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
      // refused actions cost more than the wait for a store that may be back
      : { deadline: options.deadline ?? "1 second", pause: 0, meanwhile: "signed actions are refused" })
  })
  const { keep, settledCapacity } = ActionLog.limitsOf(options)
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
      // a settlement at the end of a scope must not wait for what cannot be interrupted there
      Effect.interruptible
    )

  /**
   * Writes the end of a claim. While Redis is away it is written in the background, again and again until the lease is over: another
   * replica would take the nonce for one of unknown outcome then.
   */
  const writeEnd = (
    claim: Pick<SettleArguments, "key" | "token">,
    remains: ActionLog.Remains,
    part: ActionLogQuota.Part = "familiar"
  ) => {
    const answered = `${prefix}answered${part === "familiar" ? "" : `:${part}`}`
    const write = ask(evaluateSettle({ ...claim, answered, remains, settledCapacity: settledCapacity[part] }))
    const later = write.pipe(Effect.retry(Schedule.spaced("1 second")), Effect.timeoutOption(lease()))
    return shared.orElse(Effect.asVoid(write), Effect.asVoid(Effect.forkIn(later, scope)))
  }

  const signerKey = (signer: string) => `${prefix}signer:${signer.toLowerCase()}`

  /** Learns whether another process has had an action of the signer accepted. */
  const learn = Effect.fnUntraced(function*({ isListed, signer }: ActionLog.Sending) {
    if (signer === undefined || isListed || known.has(signer.toLowerCase())) return
    const found = Effect.flatMap(redis.send("EXISTS", signerKey(signer)), (count) => decodeCount(count))
    if ((yield* shared.orElse(ask(found), Effect.succeed(0))) > 0) known.add(signer.toLowerCase())
  })

  /** Tells the other processes that an action of the signer was accepted. */
  const teach = (signer: string) =>
    shared.orElse(
      Effect.asVoid(ask(redis.send("SET", signerKey(signer), "1", "PX", String(ActionLogQuota.knownFor)))),
      Effect.void
    )

  const claim = Effect.fn("ActionLog.claim")(
    function*(sending: ActionLog.Sending): Effect.fn.Return<ActionLog.Claim, ActionLog.Refusal> {
      const { fingerprint, nonce, signer } = sending
      yield* learn(sending)
      const mine = yield* ActionLog.take(own, sending)
      if (signer === undefined) return mine
      const now = yield* Clock.currentTimeMillis
      const key = `${prefix}${ActionLog.keyOf(sending)}`
      claims += 1
      const token = `${run}.${claims}`
      const expiry = ActionLog.expiryOf(nonce, now, keep)
      let asking: Fiber.Fiber<typeof Answer.Type, SharedState.SharedAway> | undefined
      const asked = Effect.flatMap(
        Effect.forkIn(
          ask(Effect.flatMap(
            evaluateClaim({ key, fingerprint, now, lease: now + lease(), expiry, token }),
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
      /** Gives the nonce back, also where Redis grants the claim after its deadline. */
      const withdraw = Effect.suspend(() =>
        Effect.andThen(
          mine.settle("released"),
          asking === undefined ? Effect.void : Effect.forkIn(
            Effect.flatMap(Fiber.await(asking), (exit) => {
              const late = Exit.isSuccess(exit) ? exit.value : undefined
              if (late !== "claimed" && late !== "repeated") return Effect.void
              return writeEnd({ key, token }, late === "claimed" ? "gone" : "unknown")
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
        return yield* ActionLog.notSent("is away (Redis cannot be reached, or answers too late)")
      }
      if (answer !== "claimed" && answer !== "repeated") {
        yield* mine.settle("released")
        if (answer === "accepted same") return yield* ActionLog.alreadyUsed(signer, nonce, "accepted", true)
        if (answer === "rejected same") return yield* ActionLog.alreadyUsed(signer, nonce, "rejected", true)
        return yield* ActionLog.alreadyUsed(signer, nonce, answer, false)
      }
      return ActionLog.claimOf(
        sending,
        mine.isRepeat || answer === "repeated",
        Effect.fnUntraced(function*(remains) {
          const isKnown = known.has(signer.toLowerCase())
          yield* mine.settle(remains === "gone" ? "released" : remains)
          const part = isKnown || sending.isListed || remains === "accepted" ? "familiar" : "strangers"
          yield* writeEnd({ key, token }, remains, part)
          if (remains === "accepted" && !isKnown) yield* teach(signer)
        })
      )
    }
  )

  return ActionLog.ActionLog.of({
    ...own,
    backing: "Redis",
    tryClaim: () => undefined,
    claim,
    isUp: Effect.tap(
      shared.orElse(Effect.as(ask(redis.send("PING")), true), Effect.succeed(false)),
      (up) => Metric.update(awayGauge, alone || up ? 0 : 1)
    )
  })
})

/** The log of everybody with the same Redis and prefix. */
export const layer = (options: Options = {}): Layer.Layer<ActionLog.ActionLog, never, Redis.Redis> =>
  Layer.effect(ActionLog.ActionLog, make(options))
