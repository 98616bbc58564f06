/** The entries of the action log in Redis, and the scripts that read and write them. Each script is atomic. */
import { Settled } from "@trigate/domain/actions/ActionRecord"
import { Address } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import { Millis } from "@trigate/domain/Time"
import * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import * as ActionTrace from "../../actionLog/ActionTrace.ts"
import * as LoggedAction from "../../actionLog/LoggedAction.ts"

// The value of a key is "state fingerprint lease expiry token"; the token distinguishes successive claims of the same content.
const read = `local function read(key)
  local found = redis.call('GET', key)
  if not found then return {} end
  local state, fingerprint, lease, expiry, token = string.match(found, '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
  return { state = state, fingerprint = fingerprint, lease = lease, expiry = expiry, token = token }
end
`

/**
 * The data that a claim (the reservation of a nonce for an action) stores in a second Redis key, as JSON. Replicas of
 * the gateway's preceding version do not need this data.
 */
const About = Schema.fromJsonString(Schema.Struct({
  id: Schema.String,
  openedAt: Millis,
  trace: ActionTrace.ActionTrace
}))
export const encodeAbout = Schema.encodeSync(About)

interface ClaimArguments {
  readonly key: string
  /** The prefix of the Redis keys. */
  readonly prefix: string
  /** The name of the entry: its claimant (the owner of the nonce) and the nonce. */
  readonly member: string
  readonly about: string
  readonly cloids: ReadonlyArray<string>
  readonly fingerprint: string
  readonly now: number
  readonly lease: number
  readonly expiry: number
  readonly token: string
}

export const claimScript = Redis.script(
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

// drops the oldest settled actions beyond the limit, and the other Redis keys of these actions
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

export interface SettleArguments {
  readonly key: string
  readonly prefix: string
  readonly member: string
  /** How the outcome of the action was determined, as JSON; empty if there is nothing to record. */
  readonly settled: string
  /** The Redis key of the set of settled actions, scored by expiry. */
  readonly answered: string
  readonly token: string
  readonly remains: LoggedAction.Remains
  readonly settledCapacity: number
}

export const settleScript = Redis.script(
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

export const takeScript = Redis.script(
  ({ count, now, prefix }: TakeArguments) => [`${prefix}open`, prefix, now, count],
  {
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
  }
).withReturnType<unknown>()

interface ConcludeArguments {
  readonly prefix: string
  readonly fingerprint: string
  readonly now: number
  readonly state: "accepted" | "rejected"
  readonly settled: string
  readonly settledCapacity: number
}

export const concludeScript = Redis.script(
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
  /**
   * The Redis key to read first. If `kind` is `"id"` or `"cloid"`, the key contains names of log entries; if `kind` is
   * `"member"`, the key is a log entry.
   */
  readonly key: string
  readonly kind: "id" | "cloid" | "member"
  /** The start of the names of entries to return: a signer; empty for all. */
  readonly claimant: string
  readonly now: number
}

export const findScript = Redis.script(
  ({ claimant, key, kind, now, prefix }: FindArguments) => [key, prefix, kind, now, claimant, LoggedAction.mostFound],
  {
    numberOfKeys: 1,
    lua: `${read}
local prefix, now, claimant, members, rows = ARGV[1], tonumber(ARGV[3]), ARGV[4], {}, {}
if ARGV[2] == 'member' then
  members = { string.sub(KEYS[1], #prefix + 1) }
elseif ARGV[2] == 'id' then
  members = { redis.call('GET', KEYS[1]) or nil }
else
  members = redis.call('SMEMBERS', KEYS[1])
end
for _, member in ipairs(members) do
  if #rows >= tonumber(ARGV[5]) then break end
  local found = string.sub(member, 1, #claimant) == claimant and read(prefix .. member) or {}
  if found.state and tonumber(found.expiry) > now then
    local state = found.state
    if state == 'sent' and tonumber(found.lease) <= now then state = 'unknown' end
    local about, settled = redis.call('GET', prefix .. 'about:' .. member), redis.call('GET', prefix .. 'settled:' .. member)
    table.insert(rows, { member, state, found.fingerprint, about or '', settled or '' })
  end
end
return rows`
  }
).withReturnType<unknown>()

const Taken = Schema.Tuple([Schema.String, About])
export const decodeTaken = Schema.decodeUnknownEffect(Schema.Array(Taken))
const Found = Schema.Tuple([
  Schema.String,
  Schema.Literals(["sent", "accepted", "rejected", "unknown"]),
  Schema.String,
  Schema.Union([About, Schema.Literal("")]),
  Schema.Union([Schema.fromJsonString(Settled), Schema.Literal("")])
])
export const decodeFound = Schema.decodeUnknownEffect(Schema.Array(Found))

const isAddress = Schema.is(Address)

/** Parses the signer and the nonce from the name of an entry. */
const parseIdentity = (member: string) => {
  const [signer = "", nonce = "0"] = member.split(":")
  return { nonce: Number(nonce), ...(isAddress(signer) ? { signer } : {}) }
}

export const recordedFrom = (
  [member, state, fingerprint, about, settled]: typeof Found.Type
): LoggedAction.Recorded => {
  const expiresAfter = about === "" || (state !== "sent" && state !== "unknown") ? undefined : about.trace.expiresAfter
  return LoggedAction.recordedFrom({
    ...parseIdentity(member),
    fingerprint,
    state,
    settled: settled === "" ? undefined : settled,
    expiresAfter,
    vault: about === "" ? undefined : about.trace.vault ?? ""
  })
}

export const unsettledFrom = ([member, { id, openedAt, trace }]: typeof Taken.Type): LoggedAction.Unsettled => ({
  ...parseIdentity(member),
  fingerprint: id,
  openedAt,
  trace
})

export const printSettled = (settled: Settled | undefined): string =>
  settled === undefined ? "" : Json.stringify(settled)

export const decodeCount = Schema.decodeUnknownEffect(Schema.Natural)

export const Answer = Schema.Literals([
  "claimed",
  "repeated",
  "sent",
  "accepted",
  "accepted same",
  "rejected",
  "rejected same",
  "unknown"
])
export const decodeAnswer = Schema.decodeUnknownEffect(Answer)
