/**
 * What real clients sent, played back without them: the gateway sends on what it sent on then, and answers as it did.
 *
 * A recording is made anew by the client's own test, see `session.ts`.
 */
import { assert, describe, it } from "@effect/vitest"
import { gateway, send } from "@trigate/testing/Gateway"
import type { Seen } from "@trigate/testing/RecordingUpstream"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import type { Exchange, Recording } from "./recording.ts"
import { isRole, names, read, roles } from "./recording.ts"

const line = ({ body, method, path }: Pick<Exchange, "body" | "method" | "path">) => `${method} ${path} ${body}`

/** An upstream that answers what it was asked then, each question as often as then. */
const playedUpstream = (exchanges: ReadonlyArray<Exchange>) => {
  const left = [...exchanges]
  return recordingUpstream((request: Seen) => {
    const index = left.findIndex((exchange) => line(exchange) === line(request))
    const [found] = index < 0 ? [] : left.splice(index, 1)
    if (found === undefined) return { status: 500, body: `{"never sent":${JSON.stringify(line(request))}}` }
    return found.answer.status === 0 ? "hang-up" : found.answer
  })
}

const behind = ({ upstreams }: Recording) =>
  Effect.forEach(
    Object.entries(upstreams).flatMap(([role, exchanges]) => isRole(role) ? [{ role, exchanges }] : []),
    ({ exchanges, role }) => Effect.map(playedUpstream(exchanges), (upstream) => ({ role, exchanges, upstream }))
  )

describe("recorded clients", () => {
  it("are there", () => assert.isAbove(names.length, 0))

  for (const name of names) {
    const recording = read(name)
    it.effect(`${name} of ${recording.client}`, () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(recording.time)
        const upstreams = yield* behind(recording)
        const { url } = yield* gateway({
          ...recording.environment,
          ...Object.fromEntries(upstreams.map(({ role, upstream }) => [roles[role], upstream.url]))
        })
        assert.isAbove(recording.exchanges.length, 0)
        for (const exchange of recording.exchanges) {
          const { body, headers, method, path } = exchange
          const answer = yield* send(url + path, { method, headers, ...(body === "" ? {} : { body }) })
          assert.deepStrictEqual(
            { status: answer.status, type: answer.type, body: answer.text },
            exchange.answer,
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
      }))
  }
})
