/** A caller that follows the events of one account over any number of streams, and compares them with the venue's ledger. */
import { assert } from "@effect/vitest"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { openEvents } from "./eventSource.ts"
import type { TestEvents } from "./eventSource.ts"
import type { Entry } from "./fakeVenue.ts"
import type { Command } from "./venue/control.ts"

const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

/** The subscriptions whose events are logged, each with the member of a frame that lists its rows. */
const members: Readonly<Record<string, string | undefined>> = {
  userFills: "fills",
  orderUpdates: undefined,
  userFundings: "fundings",
  userNonFundingLedgerUpdates: "nonFundingLedgerUpdates",
  userTwapSliceFills: "twapSliceFills"
}

const channels = Object.keys(members)

/** The number of subscriptions that begin with a snapshot. */
const snapshots = channels.length - 1

interface Frame {
  readonly channel: string
  readonly data: unknown
}

const rows = ({ channel, data }: Frame): ReadonlyArray<string> => {
  const member = members[channel]
  return list(member === undefined ? data : JsonParts.at(data, member)).map((row) => JSON.stringify(row))
}

/** What the venue's ledger has of one subscription. */
interface Happened {
  readonly rows: ReadonlyArray<string>
  /** Those since a position of the ledger. */
  readonly since: ReadonlyArray<string>
}

/** The last thing that happens to each subscription of some users. */
export const ending = (users: ReadonlyArray<string>): ReadonlyArray<Command> =>
  users.flatMap((user): ReadonlyArray<Command> => [
    { do: "fill", user, coin: "HYPE" },
    { do: "funding", user },
    { do: "transfer", user },
    { do: "twap", user }
  ])

export class Follower {
  readonly user: string
  /** The number of times after the first that a stream began anew, because events may be missing. */
  restarts = -1
  /** The epochs of the logs that it has read: more than one if a replica went on alone, or the store lost its log. */
  readonly epochs = new Set<unknown>()
  stream: TestEvents | undefined
  /** The rows of each subscription since a stream last began anew: of its snapshot, and those after it. */
  #past = new Map<string, ReadonlyArray<string>>()
  #live = new Map<string, ReadonlyArray<string>>()
  #scope: Scope.Closeable | undefined
  #lastId: string | undefined
  #url: string | undefined
  #read = 0

  constructor(user: string) {
    this.user = user
  }

  /** Whether the gateway ended the stream, for example because no replica can record the account. */
  get isOver(): boolean {
    return this.stream?.isOver === true
  }

  isAt(url: string): boolean {
    return this.#url === url
  }

  /** Opens a stream at a gateway, from the last event of the one before. */
  connect(url: string) {
    return Effect.gen({ self: this }, function*() {
      yield* this.leave()
      this.#url = url
      this.#scope = yield* Scope.make()
      const subscriptions = channels.map((type) => ({ type, user: this.user }))
      this.stream = yield* Scope.provide(openEvents(url, subscriptions, this.#lastId), this.#scope)
      this.#read = 0
    })
  }

  leave() {
    return Effect.gen({ self: this }, function*() {
      this.#take()
      if (this.#scope !== undefined) yield* Scope.close(this.#scope, Exit.void)
      this.#scope = undefined
    })
  }

  /** Waits for the snapshots of a stream that begins. */
  begun() {
    return this.#until(
      (events) => events.filter(({ data }) => JsonParts.at(data, "isSnapshot") === true).length >= snapshots,
      "snapshots"
    )
  }

  /** Waits until the last row of each subscription has come, and compares all of them with the ledger. */
  assertWhole(ledger: ReadonlyArray<Entry>, begun: number, what: string) {
    return Effect.gen({ self: this }, function*() {
      const happened = this.#happened(ledger, begun)
      yield* this.#until(() => {
        this.#take()
        return [...happened].every(([channel, { rows }]) =>
          rows.length === 0 || this.#received(channel).includes(rows.at(-1) ?? "")
        )
      }, what)
      for (const [channel, { rows, since }] of happened) {
        const which = `${channel} of ${this.user}: ${what}`
        const received = this.#received(channel)
        const places = new Map(rows.map((row, place) => [row, place]))
        const byPlace = (some: ReadonlyArray<string>) =>
          some.toSorted((a, b) => (places.get(a) ?? -1) - (places.get(b) ?? -1))
        // no hole and no duplicate since the stream began anew; a snapshot may list its rows from the newest on
        assert.deepStrictEqual(byPlace(received), rows.slice(rows.length - received.length), which)
        const live = this.#live.get(channel) ?? []
        assert.deepStrictEqual(live, byPlace(live), `order of ${which}`)
        if (this.restarts === 0) assert.isAtLeast(received.length, since.length, `not told of a gap: ${which}`)
      }
    })
  }

  #until(isMet: Parameters<TestEvents["until"]>[0], what: string) {
    return Effect.promise(() => this.stream?.until(isMet, what) ?? Promise.reject(new Error(`no stream: ${what}`)))
  }

  #received(channel: string): ReadonlyArray<string> {
    return [...this.#past.get(channel) ?? [], ...this.#live.get(channel) ?? []]
  }

  #happened(ledger: ReadonlyArray<Entry>, begun: number): ReadonlyMap<string, Happened> {
    return new Map(channels.map((channel) => {
      const entries = ledger.filter(({ key }) =>
        key.includes(`"${channel}"`) && key.includes(this.user) && !key.includes("true")
      )
      return [channel, {
        rows: entries.flatMap(rows),
        since: entries.filter(({ seq }) => seq >= begun).flatMap(rows)
      }]
    }))
  }

  /** Reads the events that came; a stream that begins anew replaces what was received before. */
  #take(): void {
    const { events = [], lastId } = this.stream ?? {}
    for (const event of events.slice(this.#read)) {
      if (event.event === "resume") {
        const resumption: unknown = JSON.parse(event.text)
        this.epochs.add(JsonParts.at(resumption, "epoch"))
        if (JsonParts.at(resumption, "recovered") === true) continue
        this.restarts++
        this.#past = new Map()
        this.#live = new Map()
      } else if (channels.includes(event.channel)) {
        const into = JsonParts.at(event.data, "isSnapshot") === true ? this.#past : this.#live
        into.set(event.channel, [...into.get(event.channel) ?? [], ...rows(event)])
      }
    }
    this.#read = events.length
    this.#lastId = lastId ?? this.#lastId
  }
}
