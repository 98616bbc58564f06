/**
 * `EventStore` in a Redis that replicas share. Stores the entries of the event log as a Redis stream, the start of each
 * account's log, and a lease: the exclusive right of one replica to write the log, with a fencing token.
 *
 * Each step is one script, so the check of the fencing token and the write are atomic. A token is a time in
 * milliseconds. If tokens were counted from 1 instead, they would repeat after Redis restarts empty, and the owner
 * would not notice that the log is lost. Each start of the Redis server also ends the lease and begins a new epoch of
 * the log: a server that was restored from a snapshot, or that replaced a failed server, may lack the newest entries.
 */
import * as Json from "@trigate/domain/encoding/Encoding"
import * as SharedStore from "@trigate/stores/unstable/SharedStore"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import * as EventStore from "./AccountEvents.ts"

/** The location and the limits of the event log. */
export interface Options {
  /** The prefix of the keys. Default: `trigate:{events}:`. The braces place all keys in one slot of a Redis cluster. */
  readonly prefix?: string
  readonly bounds?: EventStore.Bounds
}

/** A failed command. */
export type CommandFault = Redis.RedisError | Schema.SchemaError

/** The commands of the event log. Each of them is atomic. See {@link EventStore.EventStore}. */
export interface Commands {
  /** Acquires or renews the lease. `epoch` is the name of the log's new epoch, if it begins one. */
  readonly lease: (owner: string, epoch: string) => Effect.Effect<EventStore.LeaseAttempt, CommandFault>
  readonly release: (token: number) => Effect.Effect<unknown, CommandFault>
  /** Returns the log's position after the entries; `undefined` if the lease is lost. */
  readonly append: (appending: EventStore.Appending) => Effect.Effect<EventStore.Position | undefined, CommandFault>
  /** Returns the log after a sequence number. The IDs of rows are those that were stored. */
  readonly readAfter: (seq: number) => Effect.Effect<EventStore.Tail, CommandFault>
  readonly want: (user: string, until: number) => Effect.Effect<unknown, CommandFault>
  readonly wanted: (now: number) => Effect.Effect<ReadonlyArray<string>, CommandFault>
}

/** Maximum number of entries in one read. */
export const mostRead = 500

/** The maximum number of expired entries that one write drops. */
export const mostExpired = 100

const leaseScript = Redis.script(
  (lease: string, tokens: string, head: string, owner: string, millis: number, epoch: string) => [
    lease,
    tokens,
    head,
    owner,
    millis,
    epoch
  ],
  {
    numberOfKeys: 3,
    lua: `local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
local isNewRun = (redis.call('HGET', KEYS[3], 'run') or run) ~= run
local held = not isNewRun and redis.call('GET', KEYS[1])
local owner, token = string.match(held or '', '^(%S+) (%d+)$')
local time = redis.call('TIME')
local millis = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local now = string.format('%.0f', millis)
if owner and owner ~= ARGV[1] then return now end
if not owner then
  token = string.format('%.0f', math.max(millis, tonumber(redis.call('GET', KEYS[2]) or '0') + 1))
  redis.call('SET', KEYS[2], token)
end
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. token, 'PX', ARGV[2])
if isNewRun then redis.call('HSET', KEYS[3], 'epoch', ARGV[3]) end
redis.call('HSET', KEYS[3], 'run', run)
redis.call('HSETNX', KEYS[3], 'epoch', ARGV[3])
return now .. ' ' .. token`
  }
).withReturnType<unknown>()

const releaseScript = Redis.script((lease: string, token: number) => [lease, token], {
  numberOfKeys: 1,
  lua: `if string.match(redis.call('GET', KEYS[1]) or '', ' (%d+)$') == ARGV[1] then redis.call('DEL', KEYS[1]) end`
})

const appendScript = Redis.script(
  (keys: ReadonlyArray<string>, values: ReadonlyArray<string | number>) => [...keys, ...values],
  {
    numberOfKeys: 4,
    lua: `local lease, head, log, begun = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if string.match(redis.call('GET', lease) or '', ' (%d+)$') ~= ARGV[1] then return '' end
local now, oldest, most = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local seq, after, total = tonumber(redis.call('HGET', head, 'seq') or '0'), tonumber(ARGV[6]), 0
local dropped = cjson.decode(ARGV[7])
for i = 8, #ARGV, 5 do total = total + tonumber(ARGV[i + 3]) end
if seq == after + total then return redis.call('HGET', head, 'epoch') .. ' ' .. string.format('%.0f', seq) end
if seq ~= after then return '' end
for i = 8, #ARGV, 5 do
  local kind, user, name, span, rows = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
  seq = seq + tonumber(span)
  local id = string.format('%.0f', seq)
  redis.call('XADD', log, id .. '-0', 'kind', kind, 'user', user, 'name', name, 'span', span, 'rows', rows, 'at', now)
  if kind == 'begin' then redis.call('HSET', begun, user, id .. ' ' .. now) end
  if kind == 'end' then redis.call('HDEL', begun, user) end
end
redis.call('HSET', head, 'seq', string.format('%.0f', seq))
for _, id in ipairs(dropped.ids) do redis.call('XDEL', log, id) end
for i = 1, #dropped.begun, 2 do
  local found = redis.call('HGET', begun, dropped.begun[i])
  if found and tonumber(string.match(found, '^%d+')) < tonumber(string.match(dropped.begun[i + 1], '^%d+')) then
    redis.call('HSET', begun, dropped.begun[i], dropped.begun[i + 1])
  end
end
local isTrimmed = redis.call('XTRIM', log, 'MAXLEN', most) > 0
for _ = 1, tonumber(ARGV[5]) do
  local first = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
  if not first or tonumber(first[2][12]) >= oldest then break end
  redis.call('XDEL', log, first[1])
  isTrimmed = true
end
if isTrimmed then
  local first = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
  local start = first and tonumber(string.match(first[1], '^%d+')) - tonumber(first[2][8]) or seq
  redis.call('HSET', head, 'start', string.format('%.0f', start))
end
return redis.call('HGET', head, 'epoch') .. ' ' .. string.format('%.0f', seq)`
  }
).withReturnType<unknown>()

const readScript = Redis.script(
  (head: string, begun: string, log: string, after: string, count: number) => [head, begun, log, after, count],
  {
    numberOfKeys: 3,
    lua: `local head = redis.call('HMGET', KEYS[1], 'epoch', 'seq', 'start')
local tail = { epoch = head[1] or '', seq = head[2] or '0', start = head[3] or '0', begun = {}, entries = {} }
local begun = redis.call('HGETALL', KEYS[2])
for i = 1, #begun, 2 do tail.begun[#tail.begun + 1] = begun[i] .. ' ' .. begun[i + 1] end
for _, found in ipairs(redis.call('XRANGE', KEYS[3], '(' .. ARGV[1], '+', 'COUNT', ARGV[2])) do
  local fields = found[2]
  tail.entries[#tail.entries + 1] = { seq = string.match(found[1], '^%d+'), kind = fields[2], user = fields[4],
    name = fields[6], rows = fields[10], at = fields[12] }
end
if #tail.begun == 0 then tail.begun = nil end
if #tail.entries == 0 then tail.entries = nil end
return cjson.encode(tail)`
  }
).withReturnType<unknown>()

const decodeTail = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Struct({
  epoch: Schema.String,
  seq: Schema.FiniteFromString,
  start: Schema.FiniteFromString,
  begun: Schema.optionalKey(Schema.Array(Schema.String)),
  entries: Schema.optionalKey(Schema.Array(Schema.Struct({
    seq: Schema.FiniteFromString,
    kind: EventStore.EntryKind,
    user: Schema.String,
    name: Schema.String,
    rows: EventStore.RowsText,
    at: Schema.FiniteFromString
  })))
})))

const decodeAppended = Schema.decodeUnknownEffect(Schema.String)
const decodeUsers = Schema.decodeUnknownEffect(Schema.Array(Schema.String))
const encodeRows = Schema.encodeSync(EventStore.RowsText)

/** Returns the commands of the event log in a Redis. */
export const makeCommands = (redis: Redis.Redis["Service"], prefix: string): Commands => {
  const key = (name: string) => `${prefix}${name}`
  return {
    lease: (owner, epoch) =>
      Effect.map(
        Effect.flatMap(
          redis.eval(leaseScript)(key("lease"), key("tokens"), key("head"), owner, EventStore.leaseFor, epoch),
          decodeAppended
        ),
        (found) => {
          const [time, token] = found.split(" ")
          return { time: Number(time), token: token === undefined ? undefined : Number(token) }
        }
      ),
    release: (token) => redis.eval(releaseScript)(key("lease"), token),
    append: ({ after, at, bounds, dropped, entries, token }) => {
      const values = entries.flatMap((entry) => [
        entry.kind,
        entry.user,
        entry.name,
        EventStore.span(entry),
        encodeRows(entry.rows)
      ])
      const most = dropped === undefined ? bounds.rows : 2 * bounds.rows
      const drops = Json.stringify({
        ids: dropped?.seqs.map((seq) => `${seq}-0`) ?? [],
        begun: Array.from(dropped?.begun ?? [], ([user, { at, seq }]) => [user, `${seq} ${at}`]).flat()
      })
      const keys = [key("lease"), key("head"), key("log"), key("begun")]
      return Effect.map(
        Effect.flatMap(
          redis.eval(appendScript)(keys, [token, at, at - bounds.age, most, mostExpired, after, drops, ...values]),
          decodeAppended
        ),
        (appended) => {
          if (appended === "") return undefined
          const [epoch = "", seq] = appended.split(" ")
          return { epoch, seq: Number(seq) }
        }
      )
    },
    readAfter: (seq) =>
      Effect.map(
        Effect.flatMap(
          redis.eval(readScript)(key("head"), key("begun"), key("log"), `${seq}-0`, mostRead),
          decodeTail
        ),
        ({ begun = [], entries = [], ...tail }) => ({
          ...tail,
          entries,
          begun: new Map(begun.map((text) => {
            const [user = "", seq, at] = text.split(" ")
            return [user, { seq: Number(seq), at: Number(at) }]
          }))
        })
      ),
    want: (user, until) => redis.send("ZADD", key("wanted"), String(until), user),
    wanted: (now) =>
      Effect.flatMap(
        Effect.andThen(
          redis.send("ZREMRANGEBYSCORE", key("wanted"), "-inf", String(now)),
          redis.send("ZRANGE", key("wanted"), "0", "-1")
        ),
        decodeUsers
      )
  }
}

/** Makes the event store of one replica over the commands. */
export const make = (commands: Commands, bounds = EventStore.defaultBounds): EventStore.EventStore["Service"] => {
  const unavailable = (detail: string) => new EventStore.EventStoreUnavailable({ detail })
  const inTime = SharedStore.within("1 second", unavailable)
  const step = <A>(effect: Effect.Effect<A, CommandFault>) =>
    inTime(Effect.mapError(effect, ({ _tag, message }) => unavailable(`${_tag}: ${message}`)))
  const clock = EventStore.makeStoreClock()

  return EventStore.EventStore.of({
    backing: "Redis",
    lease: (owner) =>
      Effect.flatMap(EventStore.makeName, (epoch) => Effect.flatMap(step(commands.lease(owner, epoch)), clock.set)),
    release: (token) => Effect.asVoid(step(commands.release(token))),
    append: Effect.fnUntraced(function*(token, after, entries, dropped) {
      const at = yield* clock.now
      const appended = yield* step(commands.append({ token, after, at, bounds, entries, dropped }))
      if (appended === undefined) return yield* new EventStore.LeaseLost()
      return { ...appended, at }
    }),
    readAfter: (seq) =>
      Effect.map(
        step(commands.readAfter(seq)),
        (tail) => ({ ...tail, entries: tail.entries.map(EventStore.restored) })
      ),
    want: (user) =>
      Effect.flatMap(
        clock.now,
        (now) => Effect.asVoid(step(commands.want(user, now + EventStore.wantFor)))
      ),
    wanted: Effect.flatMap(clock.now, (now) => step(commands.wanted(now)))
  })
}

/**
 * Provides the event log in the Redis of the context. Layers with the same `prefix` share the log, so set a different
 * `prefix` for each network.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { NodeRedis } from "@effect/platform-node"
 * import { EventStoreRedis } from "@trigate/trading"
 * import { Layer } from "effect"
 *
 * export const shared = Layer.provide(EventStoreRedis.layer(), NodeRedis.layer({ url: "redis://localhost:6379" }))
 * ```
 */
export const layer = (
  { bounds, prefix = "trigate:{events}:" }: Options = {}
): Layer.Layer<EventStore.EventStore, never, Redis.Redis> =>
  Layer.effect(
    EventStore.EventStore,
    Effect.map(Redis.Redis, (redis) => make(makeCommands(redis, prefix), bounds))
  )
