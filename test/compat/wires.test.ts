/**
 * What real clients sent, played back without them: the gateway sends on what it sent on then, and answers as it did.
 *
 * A recording is made anew by the client's own test, see `session.ts`.
 */
import { assert, describe, it } from "@effect/vitest"
import { gateway, send } from "@trigate/testing/Gateway"
import type { Seen } from "@trigate/testing/RecordingUpstream"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import { sample } from "@trigate/testing/Sample"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import type { Exchange, Recording } from "./recording.ts"
import { isRole, names, read, roles } from "./recording.ts"

const line = ({ body, method, path }: Pick<Exchange, "body" | "method" | "path">) => `${method} ${path} ${body}`

/** An upstream was sent what no recording has. */
class Unrecorded extends Schema.TaggedError<Unrecorded>()("Unrecorded", { message: Schema.String }) {}

const around = (text: string, at: number) => JSON.stringify(text.slice(Math.max(0, at - 20), at + 20))

/** Where a request first differs from the recorded one that begins most like it. */
const difference = (sent: string, recorded: ReadonlyArray<string>): string => {
  const places = recorded.map((text) => {
    let at = 0
    while (at < text.length && text[at] === sent[at]) at += 1
    return { text, at }
  })
  const [closest] = places.toSorted((one, other) => other.at - one.at)
  return closest === undefined
    ? `${sent}, after all that was recorded`
    : `${sent}\nwhich differs at ${closest.at}: ${around(sent, closest.at)} instead of ${
      around(closest.text, closest.at)
    }`
}

/** An upstream that answers what it was asked then, each question as often as then, and tells of any other question. */
const playedUpstream = (exchanges: ReadonlyArray<Exchange>, tell: (what: string) => void) => {
  const left = [...exchanges]
  return recordingUpstream((request: Seen) => {
    const index = left.findIndex((exchange) => line(exchange) === line(request))
    const [found] = index < 0 ? [] : left.splice(index, 1)
    if (found === undefined) {
      tell(difference(line(request), left.map(line)))
      // what is not sent again, so that the gateway can close
      return { status: 400, body: "{}" }
    }
    return found.answer.status === 0 ? "hang-up" : found.answer
  })
}

const behind = ({ upstreams }: Recording, tell: (what: string) => void) =>
  Effect.forEach(
    Object.entries(upstreams).flatMap(([role, exchanges]) => isRole(role) ? [{ role, exchanges }] : []),
    ({ exchanges, role }) =>
      Effect.map(
        playedUpstream(exchanges, (what) => tell(`the upstream ${role} was sent ${what}`)),
        (upstream) => ({ role, exchanges, upstream })
      )
  )

/** Plays a client's requests to a gateway, and compares what comes back, and what the upstreams are sent. */
const play = Effect.fnUntraced(function*(recording: Recording) {
  yield* TestClock.setTime(recording.time)
  const stranger = Deferred.makeUnsafe<never, Unrecorded>()
  const upstreams = yield* behind(recording, (what) => {
    Deferred.doneUnsafe(stranger, Effect.fail(new Unrecorded({ message: what })))
  })
  const { url } = yield* gateway({
    ...recording.environment,
    ...Object.fromEntries(upstreams.map(({ role, upstream }) => [roles[role], upstream.url]))
  })
  assert.isAbove(recording.exchanges.length, 0)
  /** Ids of filters are random: those of the recording, and what this gateway made instead. */
  const ids = new Map<string, string>()
  const renamed = (text: string, names: Iterable<readonly [string, string]>) => {
    let result = text
    for (const [from, to] of names) result = result.replaceAll(from, to)
    return result
  }
  for (const exchange of recording.exchanges) {
    const { headers, method, path } = exchange
    const body = renamed(exchange.body, ids)
    // time stands still: what waits for a pause or a deadline waits for ever, unless the cause of the wait ends the test
    const answer = yield* Effect.raceFirst(
      send(url + path, { method, headers, ...(body === "" ? {} : { body }) }),
      Deferred.await(stranger)
    )
    const [made, recorded] = [answer.text, exchange.answer.body].map((text) =>
      /"result":"(0x[0-9a-f]{32})"\}/u.exec(text)?.[1]
    )
    if (body.includes("Filter\"") && made !== undefined && recorded !== undefined) ids.set(recorded, made)
    assert.deepStrictEqual(
      { status: answer.status, type: answer.type, body: answer.text },
      { ...exchange.answer, body: renamed(exchange.answer.body, ids) },
      line(exchange)
    )
  }
  for (const { exchanges, role, upstream } of upstreams) {
    assert.deepStrictEqual(
      upstream.seen.map(line).toSorted(),
      exchanges.map(line).toSorted(),
      `what the upstream ${role} was sent`
    )
  }
})

describe("recorded clients", () => {
  it("are there", () => assert.isAbove(names.length, 0))

  for (const name of sample("recordings of clients", names, 28, (name) => name.split("/")[0] ?? "")) {
    const recording = read(name)
    it.effect(`${name} of ${recording.client}`, () => play(recording))
  }

  it.effect("fail where a gateway sends something else: with the wire and the first difference", () =>
    Effect.gen(function*() {
      const recording = read("ethers/static-network")
      const [exchange] = recording.upstreams.node ?? []
      assert(exchange !== undefined)
      const other = { ...exchange, body: exchange.body.replace("eth_getBalance", "eth_getBlance") }
      const { message } = yield* Effect.flip(play({ ...recording, upstreams: { node: [other] } }))
      const [first, second] = message.split("\n")
      assert.match(first ?? "", /^the upstream node was sent POST \/evm \{.*"eth_getBalance".*\}$/u)
      assert.strictEqual(
        second,
        "which differs at 52: \"1,\\\"method\\\":\\\"eth_getBalance\\\",\\\"params\\\":[\\\"0\" instead of " +
          "\"1,\\\"method\\\":\\\"eth_getBlance\\\",\\\"params\\\":[\\\"0x\""
      )
    }))
})
