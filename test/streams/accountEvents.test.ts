/**
 * Random kills with a printed seed: of connections to the venue and of callers. The union of what a caller
 * received over all its streams is the venue's ledger, once and in order, or the caller was told that something may be missing.
 */
import { assert, describe, layer as tests } from "@effect/vitest"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { openEvents } from "./eventSource.ts"
import type { TestEvents } from "./eventSource.ts"
import { alice, bob, lab, layer, meanwhile } from "./lab.ts"
import { randomBy } from "./venue/clock.ts"
import type { Command } from "./venue/control.ts"

const users = [alice, bob]
const coins = ["BTC", "ETH"]

const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

/** The subscriptions whose events are logged: where a frame lists its rows. */
const members: Readonly<Record<string, string | undefined>> = {
  userFills: "fills",
  orderUpdates: undefined,
  userFundings: "fundings",
  userNonFundingLedgerUpdates: "nonFundingLedgerUpdates",
  userTwapSliceFills: "twapSliceFills"
}

interface Frame {
  readonly channel: string
  readonly data: unknown
}

const rows = ({ channel, data }: Frame): ReadonlyArray<string> => {
  const member = members[channel]
  return list(member === undefined ? data : JsonParts.at(data, member)).map((row) => JSON.stringify(row))
}

const isRows = ({ channel }: Frame): boolean => Object.keys(members).includes(channel)

/** One caller, who follows an account over as many streams as it takes. */
class Follower {
  readonly user: string
  /** The rows of each subscription, as they came since a stream last began anew. */
  received = new Map<string, Array<string>>()
  /** Times that the caller was told that something may be missing, after the first. */
  restarts = -1
  stream: TestEvents | undefined
  scope: Scope.Closeable | undefined
  lastId: string | undefined
  #read = 0

  constructor(user: string) {
    this.user = user
  }

  get subscriptions() {
    return Object.keys(members).map((type) => ({ type, user: this.user }))
  }

  /** Reads what came; a snapshot replaces what was received before. */
  read(): void {
    const { events = [], lastId } = this.stream ?? {}
    for (const event of events.slice(this.#read)) {
      if (event.event === "resume") {
        if (JsonParts.at(JSON.parse(event.text), "recovered") !== true) {
          this.restarts++
          this.received = new Map()
        }
      } else if (isRows(event)) {
        this.received.set(event.channel, [...this.received.get(event.channel) ?? [], ...rows(event)])
      }
    }
    this.#read = events.length
    this.lastId = lastId ?? this.lastId
  }

  connect(url: string) {
    return Effect.gen({ self: this }, function*() {
      yield* this.leave()
      this.scope = yield* Scope.make()
      this.stream = yield* Scope.provide(openEvents(url, this.subscriptions, this.lastId), this.scope)
      this.#read = 0
    })
  }

  leave() {
    return Effect.gen({ self: this }, function*() {
      this.read()
      if (this.scope !== undefined) yield* Scope.close(this.scope, Exit.void)
      this.scope = undefined
    })
  }

  /** Whether all rows have come of which each subscription's last one is the venue's. */
  isUpTo(last: ReadonlyMap<string, string>): boolean {
    this.read()
    return [...last].every(([channel, row]) => this.received.get(channel)?.includes(row) === true)
  }
}

/** The last thing that happens to each subscription. */
const ending: ReadonlyArray<Command> = users.flatMap((user): ReadonlyArray<Command> => [
  { do: "fill", user, coin: "HYPE" },
  { do: "funding", user },
  { do: "transfer", user },
  { do: "twap", user }
])

const play = Effect.fnUntraced(function*(seed: number, steps: number) {
  const random = randomBy(seed)
  const below = (count: number): number => Math.floor(random() * count)
  const { ledger, run, state, url } = yield* lab({}, {
    do: "switches",
    set: {
      // so short that it seldom reaches back to what was missed
      snapshotItems: 3,
      snapshotOrder: random() < 0.5 ? "ascending" : "descending"
    }
  }, { do: "step", coins, users, count: 10 })
  const script: Array<string> = []
  const followers = users.map((user) => new Follower(user))
  const happen = Effect.suspend(() => {
    const count = 1 + below(8)
    script.push(`events ${count}`)
    return run({ do: "step", coins, users, count })
  })
  const lose = Effect.suspend(() => {
    const count = below(12)
    script.push(`lose the venue's connections, then ${count} events`)
    return run({ do: "faults", set: { refuse: 503 } }, { do: "drop" }, { do: "step", coins, users, count }, {
      do: "faults",
      set: {}
    })
  })
  const killCaller = Effect.gen(function*() {
    const follower = followers[below(followers.length)] ?? assert.fail("no follower")
    script.push(`kill the caller of ${follower.user}`)
    yield* follower.leave()
    yield* run({ do: "step", coins, users, count: below(6) })
    yield* follower.connect(url)
  })
  for (const follower of followers) {
    yield* follower.connect(url)
    yield* meanwhile(
      Effect.promise(() =>
        follower.stream?.until(
          (events) => events.filter((each) => JsonParts.at(each.data, "isSnapshot") === true).length >= 4,
          "snapshots"
        ) ??
          Promise.resolve()
      )
    )
  }
  const begun = (yield* ledger).length
  for (let step = 0; step < steps; step++) {
    const dice = random()
    yield* dice < 0.6 ? happen : dice < 0.8 ? lose : killCaller
  }
  yield* meanwhile(run({ until: "subscribed", key: `{"type":"orderUpdates","user":"${alice}"}`, count: 1 }))
  yield* meanwhile(run({ until: "subscribed", key: `{"type":"orderUpdates","user":"${bob}"}`, count: 1 }))
  yield* run(...ending)
  const happened = yield* ledger
  for (const follower of followers) {
    const what = `seed ${seed}, ${follower.user}\n${script.join("\n")}`
    const all = new Map(
      Object.keys(members).map((channel) => [
        channel,
        happened.filter(({ key }) =>
          key.includes(`"${channel}"`) && key.includes(follower.user) && !key.includes("true")
        )
          .map((entry) => ({ seq: entry.seq, rows: rows(entry) }))
      ])
    )
    const last = new Map([...all].flatMap(([channel, entries]) => {
      const row = entries.at(-1)?.rows.at(-1)
      return row === undefined ? [] : [[channel, row] as const]
    }))
    const { stream } = follower
    yield* meanwhile(Effect.promise(() => stream?.until(() => follower.isUpTo(last), what) ?? Promise.resolve()))
    for (const [channel, entries] of all) {
      const expected = entries.flatMap((entry) => entry.rows)
      const received = follower.received.get(channel) ?? []
      // what was received since the stream last began anew ends as the ledger does, without a hole or a duplicate
      const since = entries.filter(({ seq }) => seq >= begun).flatMap((entry) => entry.rows)
      const seen = received.toSorted((a, b) => expected.indexOf(a) - expected.indexOf(b))
      assert.deepStrictEqual(seen, expected.slice(expected.length - received.length), `${channel}: ${what}`)
      if (follower.restarts === 0) assert.isAtLeast(received.length, since.length, `${channel}: ${what}`)
      const live = received.slice(received.length - since.length)
      if (follower.restarts === 0) assert.deepStrictEqual(live, since, `order of ${channel}: ${what}`)
    }
  }
  assert.deepStrictEqual((yield* state).violations, [], `seed ${seed}`)
  return followers.map(({ restarts }) => restarts)
})

const given = process.env["TRIGATE_TEST_SEED"]
const firstSeed = given === undefined
  ? 1
  : Array.from(given).reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7)

describe("the events of accounts", () => {
  tests(layer)((it) => {
    for (const seed of Array.from({ length: 4 }, (_, index) => firstSeed + index)) {
      it.effect(`are the venue's ledger, whatever is killed (seed ${seed})`, () =>
        Effect.gen(function*() {
          // everything can be refilled here: nobody may be told that something is missing
          assert.deepStrictEqual(yield* play(seed, 25), [0, 0])
        }))
    }
  })
})
