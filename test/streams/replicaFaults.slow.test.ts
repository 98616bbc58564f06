/**
 * Two gateways that are processes of their own, on one Redis, one Postgres or both, while clients send signed orders, poll, and follow
 * accounts over resuming streams. Replicas and stores are stopped, killed and emptied in an order that a printed seed selects.
 *
 * It prints how long the followers of accounts waited for an event after each fault, and the weight at the venue. The limits of these
 * waits in the assertions are far above the aims (2 seconds after SIGTERM, 12 after SIGKILL), because the machine may be busy.
 */
import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { freePort, type GatewayProcess, gatewayProcess } from "@trigate/testing/GatewayProcess"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as PostgresServer from "@trigate/testing/PostgresServer"
import * as RedisServer from "@trigate/testing/RedisServer"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Http from "node:http"
import { openEvents } from "./eventSource.ts"
import type { Event, TestEvents } from "./eventSource.ts"
import type { Entry } from "./fakeVenue.ts"
import { fakeVenue } from "./fakeVenue.ts"
import { alice, bob } from "./lab.ts"
import { machineTime, randomBy } from "./venue/clock.ts"
import type { Command } from "./venue/control.ts"

const trader = keys.trader.address.toLowerCase()
const carol = `0x${"cc".repeat(20)}`

/** Two accounts that the settings name, one that only clients follow, and one whose orders are sent. */
const users = [alice, bob, carol, trader]

/** The milliseconds between two events of an account. */
const eventEvery = 400

const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

/** The logged subscriptions, each with the member of a frame that lists its rows. */
const channels: Readonly<Record<string, string | undefined>> = {
  userFills: "fills",
  orderUpdates: undefined,
  userFundings: "fundings",
  userNonFundingLedgerUpdates: "nonFundingLedgerUpdates",
  userTwapSliceFills: "twapSliceFills"
}

const rowsIn = (channel: string, data: unknown): ReadonlyArray<string> => {
  const member = channels[channel]
  return list(member === undefined ? data : JsonParts.at(data, member)).map((row) => JSON.stringify(row))
}

interface TimedRow {
  readonly row: string
  readonly at: number
}

/** The rows that a follower received from one notice that events may be missing to the next. */
interface Segment {
  readonly since: number
  readonly snapshot: ReadonlyArray<TimedRow>
  readonly live: ReadonlyArray<TimedRow>
}

/** A client that follows an account, and resumes at the other replica when its stream ends. */
class AccountFollower {
  readonly user: string
  readonly name: string
  readonly #urls: ReadonlyArray<string>
  readonly #streams: Array<TestEvents> = []

  constructor(user: string, urls: ReadonlyArray<string>, name: string) {
    this.user = user
    this.#urls = urls
    this.name = name
  }

  get events(): ReadonlyArray<Event> {
    return this.#streams.flatMap(({ events }) => events)
  }

  /** Follows the account until it is interrupted. */
  run() {
    let turn = 0
    const subscriptions = Object.keys(channels).map((type) => ({ type, user: this.user }))
    const one = Effect.gen({ self: this }, function*() {
      const lastId = this.events.findLast(({ id }) => id !== undefined)?.id
      const stream = yield* openEvents(this.#urls[turn % this.#urls.length] ?? "", subscriptions, lastId)
      this.#streams.push(stream)
      yield* Effect.promise(() => stream.over())
    })
    return Effect.scoped(one).pipe(
      Effect.exit,
      Effect.andThen(Effect.sync(() => turn++)),
      Effect.delay("100 millis"),
      Effect.forever
    )
  }

  segments(channel: string): ReadonlyArray<Segment> {
    const segments: Array<{ since: number; snapshot: Array<TimedRow>; live: Array<TimedRow> }> = []
    for (const event of this.events) {
      if (event.event === "resume") {
        if (JsonParts.value(event.text, "recovered") !== true) {
          segments.push({ since: event.at, snapshot: [], live: [] })
        }
      } else if (
        event.channel === "subscriptionResponse" && JsonParts.at(event.data, "subscription", "type") === channel
      ) {
        // the events are complete from the acknowledgement on
        const segment = segments.at(-1)
        if (segment !== undefined && segment.live.length === 0) segment.since = event.at
      } else if (event.event === "message" && event.channel === channel) {
        const isSnapshot = JsonParts.at(event.data, "isSnapshot") === true
        const rows = rowsIn(channel, event.data).map((row) => ({ row, at: event.at }))
        segments.at(-1)?.[isSnapshot ? "snapshot" : "live"].push(...rows)
      }
    }
    return segments
  }

  /** Whether the newest row of each subscription has come. */
  hasAll(ledger: Ledger): boolean {
    const text = new Set(this.events.slice(-2000).flatMap(({ channel, data }) => rowsIn(channel, data)))
    return Object.keys(channels).every((channel) => {
      const last = ledger.rows(this.user, channel).at(-1)
      return last === undefined || text.has(last.row)
    })
  }
}

/** What happened at the venue. */
class Ledger {
  readonly #rows = new Map<string, Array<TimedRow>>()

  constructor(entries: ReadonlyArray<Entry>, times: ReadonlyArray<number>) {
    for (const [index, { channel, data, key }] of entries.entries()) {
      if (!(channel in channels) || key.includes("true")) continue
      const user = String(JsonParts.value(key, "user"))
      const rows = this.#rows.get(`${user} ${channel}`) ?? []
      this.#rows.set(`${user} ${channel}`, rows)
      rows.push(...rowsIn(channel, data).map((row) => ({ row, at: times[index] ?? 0 })))
    }
  }

  rows(user: string, channel: string): ReadonlyArray<TimedRow> {
    return this.#rows.get(`${user} ${channel}`) ?? []
  }
}

/**
 * Fails unless the rows between two notices are a part of the ledger without holes or duplicates, in order, from the notice on, and
 * the last part ends with the ledger.
 */
const assertWhole = (follower: AccountFollower, ledger: Ledger, what: string): void => {
  for (const channel of Object.keys(channels)) {
    const happened = ledger.rows(follower.user, channel)
    const places = new Map(happened.map(({ row }, place) => [row, place]))
    const segments = follower.segments(channel)
    for (const [index, { live, since, snapshot }] of segments.entries()) {
      const which = `${channel} of ${follower.name}, part ${index} of ${segments.length}: ${what}`
      const toPlaces = (rows: ReadonlyArray<TimedRow>) =>
        rows.map(({ row }) => places.get(row) ?? assert.fail(`not in the ledger: ${row}, ${which}`))
      // a snapshot may list its rows from the newest on
      const received = [...toPlaces(snapshot).toSorted((a, b) => a - b), ...toPlaces(live)]
      const [first] = received
      const expected = received.map((_, offset) => (first ?? 0) + offset)
      const wrong = received.findIndex((place, offset) => place !== expected[offset])
      assert.strictEqual(
        wrong,
        -1,
        `row ${wrong} of ${received.length} (${snapshot.length} in snapshots) is missing, doubled or out of order: places ` +
          `${received.slice(Math.max(0, wrong - 2), wrong + 3).join()} of ${which}`
      )
      const isLast = index === segments.length - 1
      if (isLast && happened.length > 0) assert.strictEqual(received.at(-1), happened.length - 1, which)
      const firstAfter = happened.findIndex(({ at }) => at > since)
      if (first !== undefined && firstAfter >= 0) assert.isAtMost(first, firstAfter, `begins too late: ${which}`)
    }
  }
}

/**
 * The longest time in milliseconds for which a follower waited for a row that happened between two times: until that row came, or, if
 * it never came, a later one.
 */
const blindness = (follower: AccountFollower, ledger: Ledger, from: number, to: number): number =>
  Math.max(...["userFills", "orderUpdates"].map((channel) => {
    const arrivals = new Map<string, number>()
    for (const { live, snapshot } of follower.segments(channel)) {
      for (const { at, row } of [...snapshot, ...live]) if (!arrivals.has(row)) arrivals.set(row, at)
    }
    let came = Number.POSITIVE_INFINITY
    return ledger.rows(follower.user, channel).toReversed().reduce((longest, { at, row }) => {
      came = Math.min(came, arrivals.get(row) ?? Number.POSITIVE_INFINITY)
      return at < from || at > to ? longest : Math.max(longest, came - at)
    }, 0)
  }))

/** The highest weight that came within a minute, and what of it came in the given times. */
const heaviestMinute = (
  weights: ReadonlyArray<{ readonly at: number; readonly weight: number }>,
  uncounted: (at: number) => boolean
) => {
  let start = 0
  const sums = { all: 0, counted: 0 }
  const most = { all: 0, counted: 0 }
  for (const { at, weight } of weights) {
    sums.all += weight
    if (!uncounted(at)) sums.counted += weight
    for (let first = weights[start]; first !== undefined && first.at <= at - 60_000; first = weights[start]) {
      sums.all -= first.weight
      if (!uncounted(first.at)) sums.counted -= first.weight
      start++
    }
    most.all = Math.max(most.all, sums.all)
    most.counted = Math.max(most.counted, sums.counted)
  }
  return most
}

/** Sends a request from an address of its own, so that the gateway sees another caller. Returns the status; 0 without a response. */
const requestFrom = (localAddress: string, url: string, body: string) =>
  Effect.callback<number>((resume) => {
    const request = Http.request(
      url,
      { method: "POST", localAddress, headers: { "content-type": "application/json" }, timeout: 30_000 },
      (response) => {
        response.resume()
        response.on("close", () => resume(Effect.succeed(response.statusCode ?? 0)))
      }
    )
    request.on("timeout", () => request.destroy())
    request.on("error", () => resume(Effect.succeed(0)))
    request.end(body)
  })

/** What a gateway responded to a signed action. */
interface Response {
  readonly nonce: number
  readonly status: number
  readonly tag: string
}

/** Sends an action; without a response the status is 0. */
const sendAction = (url: string, nonce: number, body: string) =>
  Effect.promise(async (): Promise<Response> => {
    try {
      const response = await fetch(`${url}/exchange`, {
        method: "POST",
        body,
        headers: { "content-type": "application/json" }
      })
      const text = await response.text()
      return {
        nonce,
        status: response.status,
        tag: String(JsonParts.value(text, "_tag") ?? JsonParts.value(text, "status"))
      }
    } catch {
      return { nonce, status: 0, tag: "none" }
    }
  })

const signedOrder = (nonce: number) =>
  Effect.map(
    Effect.orDie(SandboxSigner.signAction(keys.trader, {
      nonce,
      action: {
        type: "order",
        orders: [{ a: 0, b: true, p: "1000", s: "0.1", r: false, t: { limit: { tif: "Ioc" } } }],
        grouping: "na"
      }
    })),
    (signed) => JSON.stringify(signed)
  )

/** A replica at a fixed port, which can be ended and started again. */
const makeReplica = Effect.fnUntraced(function*(environment: Readonly<Record<string, string>>) {
  const port = yield* freePort
  const outer = yield* Effect.scope
  let running: { readonly process: GatewayProcess; readonly scope: Scope.Closeable } | undefined
  const start = Effect.gen(function*() {
    const scope = yield* Scope.fork(outer)
    const process = yield* Scope.provide(gatewayProcess({ TRIGATE_PORT: String(port), ...environment }), scope)
    running = { process, scope }
  })
  /** Ends the process with a signal. */
  const end = (signal: "SIGKILL" | "SIGTERM") =>
    Effect.suspend(() => {
      if (running === undefined) return Effect.void
      const { process, scope } = running
      process.signal(signal)
      return Effect.andThen(Effect.promise(() => process.ended), Scope.close(scope, Exit.void))
    })
  const url = `http://127.0.0.1:${port}`
  const eventLog = Effect.promise(async () => {
    const response = await fetch(`${url}/health/ready`)
    return JsonParts.value(await response.text(), "eventLog")
  })
  return { url, start, end, eventLog, printed: () => running?.process.printed() ?? "" }
})

type Replica = Effect.Success<ReturnType<typeof makeReplica>>

/** Returns the replica that writes the event log, as soon as it records all accounts and the other one reads its log. */
const findWriter = (replicas: ReadonlyArray<Replica>) =>
  Effect.map(
    Effect.repeat(
      Effect.delay(
        Effect.exit(Effect.forEach(replicas, ({ eventLog }) => eventLog)),
        "50 millis"
      ),
      {
        until: (logs) =>
          Exit.isSuccess(logs) &&
          logs.value.map((log) => String(JsonParts.at(log, "role"))).toSorted().join() === "reader,writer" &&
          logs.value.every((log) =>
            JsonParts.at(log, "state") === "up" &&
            ["waiting", "subscribing", "refilling"].every((phase) => JsonParts.at(log, "accounts", phase) === 0)
          ) &&
          logs.value.some((log) => JsonParts.at(log, "accounts", "live") === users.length)
      }
    ),
    (logs) => {
      const roles = Exit.isSuccess(logs) ? logs.value.map((log) => JsonParts.at(log, "role")) : []
      return replicas[roles.indexOf("writer")] ?? assert.fail("no writer")
    }
  )

/** Where the replicas share what they share. */
interface Stores {
  readonly hasRedis: boolean
  readonly hasPostgres: boolean
}

/** Something that breaks. The last one breaks under full load, and what no replica knew before it is not counted. */
interface Fault {
  readonly name: string
  readonly isLast?: true
  readonly cause: (writer: Replica) => Effect.Effect<void>
}

const play = Effect.fnUntraced(function*(seed: number, { hasPostgres, hasRedis }: Stores) {
  const random = randomBy(seed)
  const below = (count: number): number => Math.floor(random() * count)
  const redis = hasRedis ? yield* RedisServer.redisServer : undefined
  const postgres = hasPostgres ? yield* PostgresServer.postgresServer : undefined
  const venue = yield* fakeVenue(seed)
  const run = (...commands: ReadonlyArray<Command>) => Effect.promise(() => venue.run(...commands))
  const environment = {
    TRIGATE_TRADING_API_URL: venue.url,
    // without Redis, each replica counts for itself
    ...(redis === undefined ? { TRIGATE_TRADING_API_WEIGHT: "600" } : { TRIGATE_REDIS_URL: redis.url }),
    ...(postgres === undefined ? {} : { TRIGATE_DATABASE_URL: postgres.url }),
    TRIGATE_WATCH_ACCOUNTS: `${alice},${bob}`,
    TRIGATE_STREAM_CALLER_USERS: "10",
    TRIGATE_ACCESS_LOG: "off"
  }
  yield* run({ do: "reset", seed }, { do: "set-clock", millis: yield* Clock.currentTimeMillis }, {
    do: "trader",
    user: trader
  })
  const replicas = [yield* makeReplica(environment), yield* makeReplica(environment)]
  const urls = replicas.map(({ url }) => url)
  yield* Effect.forEach(replicas, ({ start }) => start, { concurrency: "unbounded" })
  yield* run({ do: "live", users, every: eventEvery })

  const followers = users.flatMap((user) =>
    [urls, urls.toReversed()].map((each, index) =>
      new AccountFollower(user, each, `${user.slice(0, 6)} first at replica ${index}`)
    )
  )
  for (const follower of followers) yield* Effect.forkScoped(follower.run())

  const statuses = new Map<string, number>()
  const count = (what: string) => statuses.set(what, (statuses.get(what) ?? 0) + 1)
  /** Whether the pollers use all of the weight that they can get. */
  let isBusy = false
  for (const address of ["127.0.0.2", "127.0.0.3"]) {
    const poll = Effect.suspend(() => {
      const body = JSON.stringify({ type: "subAccounts", user: users[below(users.length)] })
      return requestFrom(address, `${urls[below(urls.length)]}/info`, body)
    })
    yield* poll.pipe(
      Effect.map((status) => count(`poll ${status}`)),
      Effect.andThen(Effect.suspend(() => Effect.sleep(isBusy ? 100 : 15_000))),
      Effect.forever,
      Effect.forkScoped
    )
  }

  // each order is sent to both replicas at the same time, and with a database an old one again, too
  const responses: Array<Response> = []
  const bodies: Array<readonly [nonce: number, body: string]> = []
  let lastNonce = yield* Clock.currentTimeMillis
  const sending = yield* Effect.gen(function*() {
    lastNonce = Math.max(lastNonce + 1, yield* Clock.currentTimeMillis)
    const nonce = lastNonce
    const body = yield* signedOrder(nonce)
    const old = postgres === undefined ? undefined : bodies[below(bodies.length + 20)]
    const sent = [[nonce, body] as const, ...(old === undefined ? [] : [old])]
    bodies.push([nonce, body])
    yield* Effect.forkScoped(
      Effect.forEach(
        sent.flatMap(([nonce, body]) => urls.map((url) => sendAction(url, nonce, body))),
        Effect.map((response) => {
          responses.push(response)
          count(`order ${response.status} ${response.tag}`)
        }),
        { concurrency: "unbounded", discard: true }
      )
    )
  }).pipe(Effect.delay("500 millis"), Effect.forever, Effect.forkScoped)

  const someSeconds = Effect.suspend(() => Effect.sleep(`${3 + below(5)} seconds`))
  const stopPostgres = postgres === undefined
    ? Effect.void
    : postgres.kill.pipe(Effect.andThen(someSeconds), Effect.andThen(postgres.restart))
  const stopRedis = redis === undefined
    ? Effect.void
    : redis.save.pipe(Effect.andThen(redis.kill), Effect.andThen(someSeconds), Effect.andThen(redis.restore))
  const emptyRedis = redis === undefined ? Effect.void : Effect.andThen(redis.kill, redis.restart)
  const faults: Array<Fault> = [
    { name: "SIGTERM", cause: (writer) => writer.end("SIGTERM") },
    { name: "SIGKILL", cause: (writer) => writer.end("SIGKILL") },
    ...(hasRedis
      ? [{ name: "Redis stopped", cause: () => stopRedis }, { name: "Redis emptied", cause: () => emptyRedis }]
      : []),
    ...(hasPostgres ? [{ name: "Postgres stopped", cause: () => stopPostgres }] : []),
    {
      name: `SIGKILL, and ${hasRedis ? "Redis emptied" : "Postgres stopped"}, under full load`,
      isLast: true,
      cause: (writer) =>
        Effect.all([writer.end("SIGKILL"), hasRedis ? emptyRedis : stopPostgres], {
          concurrency: "unbounded",
          discard: true
        })
    }
  ]
  const happened: Array<{ readonly name: string; readonly isLast: boolean; readonly from: number; to: number }> = []
  for (let left = faults.length; left > 0; left--) {
    const [fault] = faults.splice(Math.min(below(left - 1), left - 1), 1)
    if (fault === undefined) break
    const writer = yield* findWriter(replicas)
    isBusy = fault.isLast === true
    yield* Effect.sleep(5000 + below(2000))
    const one = { name: fault.name, isLast: isBusy, from: machineTime(), to: 0 }
    happened.push(one)
    yield* fault.cause(writer)
    if (fault.name.includes("SIG")) {
      yield* Effect.sleep(below(4000))
      yield* writer.start
    }
    yield* findWriter(replicas)
    one.to = machineTime()
    yield* Effect.sleep("15 seconds")
  }
  yield* findWriter(replicas)
  yield* Fiber.interrupt(sending)
  yield* Effect.sleep("3 seconds")
  yield* run({ do: "still" })
  const ledger = new Ledger(
    yield* Effect.promise(() => venue.ledger()),
    yield* Effect.promise(() => venue.times())
  )
  yield* Effect.repeat(
    Effect.delay(Effect.sync(() => followers.every((follower) => follower.hasAll(ledger))), "100 millis"),
    { until: (hasAll) => hasAll }
  ).pipe(Effect.timeoutOption("20 seconds"))

  const { actions, violations } = yield* Effect.promise(() => venue.state())
  const weights = yield* Effect.promise(() => venue.weights())
  const what = `seed ${seed}, ${happened.map(({ name }) => name).join(", ")}`
  const joint = happened.filter(({ isLast }) => isLast)
  const isUncounted = (at: number) => joint.some(({ from }) => at > from - 2500 && at <= from + 500)
  const heaviest = heaviestMinute(weights, isUncounted)
  const figures = happened.map(({ from, name, to }, index) => {
    const end = happened[index + 1]?.from ?? to + 15_000
    const waits = followers.map((follower) => Math.round(blindness(follower, ledger, from, end - 2000)))
    const told = followers.filter((follower) =>
      follower.segments("userFills").some(({ since }) => since > from && since < end)
    )
    return { name, longest: Math.max(...waits), told: told.length, whole: Math.round(to - from) }
  })
  const lines = [
    what,
    ...figures.map(({ longest, name, told, whole }) =>
      `${name}: waited at most ${longest} ms, ${told} of ${followers.length} told of a gap, all as before after ${whole} ms`
    ),
    `weight in a minute: at most ${heaviest.all}, ${heaviest.counted} without what no replica knew`,
    `${actions.length} actions at the venue`,
    ...[...statuses].map(([name, times]) => `${name}: ${times}`).toSorted()
  ]
  console.log(lines.join("\n  "))

  const sent = actions.map(({ nonce }) => nonce)
  // this test sends bodies again; after a kill the outcome is unknown, and the gateway may send the same content again
  const isUnanswered = new Set(responses.filter(({ status }) => status === 0).map(({ nonce }) => nonce))
  const repeated = sent.filter((nonce, at) => sent.indexOf(nonce) !== at)
  if (repeated.length > 0) console.log(`came twice: ${repeated.join(", ")}`)
  assert.deepStrictEqual(repeated.filter((nonce) => !isUnanswered.has(nonce)), [], `an action came twice: ${what}`)
  const accepted = responses.filter(({ status, tag }) => status === 200 && tag === "ok").map(({ nonce }) => nonce)
  assert.deepStrictEqual(accepted.filter((nonce) => !sent.includes(nonce)), [], what)
  const refused = Map.groupBy(responses, ({ nonce }) => nonce).entries().filter(([, all]) =>
    all.every(({ status }) => status === 429 || status === 503)
  )
  for (const [nonce] of refused) assert.notInclude(sent, nonce, `was not refused: ${what}`)
  for (const follower of followers) assertWhole(follower, ledger, what)
  // without Redis, nobody knows what an ended process has used
  if (hasRedis) assert.isAtMost(heaviest.counted, 1200, what)
  assert.deepStrictEqual(violations, [], what)
  for (const { longest, name } of figures) {
    if (name === "SIGTERM") assert.isAtMost(longest, 12_000, what)
    if (name === "SIGKILL") assert.isAtMost(longest, 30_000, what)
  }
})

const given = process.env["TRIGATE_TEST_SEED"]
const firstSeed = given === undefined
  ? 1
  : Array.from(given).reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 1_000_003, 7)

describe.each(
  [
    { name: "Redis", hasRedis: true, hasPostgres: false },
    { name: "Postgres and Redis", hasRedis: true, hasPostgres: true },
    { name: "Postgres", hasRedis: false, hasPostgres: true }
  ].filter((stores) =>
    (RedisServer.isInstalled || !stores.hasRedis) && (PostgresServer.isInstalled || !stores.hasPostgres)
  )
)("two replicas on $name, under faults", (stores) => {
  it.live(
    `send each action once, and send each subscriber every event, or report a gap (seed ${firstSeed})`,
    () => play(firstSeed, stores),
    900_000
  )
})
