/**
 * The entries of the action log in Redis, and the scripts that read and write them. A script changes an entry, with its
 * indexes, if the entry meets a condition; each script is atomic.
 */
import { Settled } from "@trigate/domain/actions/ActionRecord"
import type { ActionReference } from "@trigate/domain/actions/ActionRecord"
import { Address } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import { Millis } from "@trigate/domain/Time"
import * as Effect from "effect/Effect"
import * as Redis from "effect/persistence/Redis"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type { Change, Opening } from "../../actionLog/ActionLog.ts"
import { lookupsAtOnce } from "../../actionLog/ActionLog.ts"
import * as LoggedAction from "../../actionLog/LoggedAction.ts"

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
  openedAt: Millis,
  trace: LoggedAction.ActionTrace
}))
const encodeAbout = Schema.encodeSync(About)

const memberOf = ({ claimant, nonce }: LoggedAction.EntryKey): string => `${claimant}:${nonce}`

interface InsertArguments {
  /** The prefix of the Redis keys. */
  readonly prefix: string
  readonly opening: Opening
  readonly guard: LoggedAction.Guard
}

export const insertScript = Redis.script(
  ({ guard, opening: { expiresAt, key, leaseUntil, now, sending, token }, prefix }: InsertArguments) => {
    const { fingerprint, trace = { legs: [] } } = sending
    const member = memberOf(key)
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

interface UpdateArguments extends Pick<Extract<Change, { readonly state: unknown }>, "settled" | "state"> {
  readonly prefix: string
  readonly key: LoggedAction.EntryKey
  readonly guard: LoggedAction.Guard
  readonly part: LoggedAction.Part
  /** The number of settled entries of this part that are retained. */
  readonly settledCapacity: number
}

export const updateScript = Redis.script(
  ({ guard, key, part, prefix, settled, settledCapacity, state }: UpdateArguments) => {
    const member = memberOf(key)
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
      settled === undefined ? "" : Json.stringify(settled)
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

export const moveScript = Redis.script(
  ({ from, key, prefix, to }: MoveArguments) => [`${prefix}open`, memberOf(key), from ?? "", to ?? ""],
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
const placeOf = ({ prefix, selection }: FindArguments) => {
  if ("due" in selection) return [`${prefix}open`, "due", selection.due, lookupsAtOnce]
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

export const findScript = Redis.script(
  (found: FindArguments) => [...placeOf(found), found.prefix],
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
const decodeAnswer = Schema.decodeUnknownEffect(Inserted)

export const decodeInserted = (answer: unknown) =>
  Effect.map(decodeAnswer(answer), (inserted) => Predicate.isString(inserted) ? inserted : parseValue(inserted))

const Found = Schema.Tuple([
  Schema.String,
  Schema.Union([Schema.Literal(""), Value]),
  Schema.Union([Schema.Literal(""), About]),
  Schema.Union([Schema.Literal(""), Schema.fromJsonString(Settled)]),
  Schema.FiniteFromString
])
export const decodeFound = Schema.decodeUnknownEffect(Schema.Array(Found))

export const decodeCount = Schema.decodeUnknownEffect(Schema.Natural)

export const isAddress = Schema.is(Address)

/** The value of an entry that expired, but is still listed for a lookup. */
const expired = { state: "forgotten", fingerprint: "", leaseUntil: 0, expiresAt: 0, token: "" } as const

export const entryFrom = ([member, value, about, settled, lookUpAt]: typeof Found.Type): LoggedAction.Entry => {
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
