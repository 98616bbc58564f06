/** What upstreams write reaches no terminal as it is. */
import { assert, describe, it } from "@effect/vitest"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import { run } from "./run.ts"

/** Moves the cursor in one character (C1), and turns the direction of writing. */
const coin = "BTC\u009b2J\u202e"
const bar = { t: 1689544800000, T: 1689548399999, s: coin, i: "1h", o: "1", c: "2", h: "2", l: "1", v: "3", n: 4 }

const commands: ReadonlyArray<readonly [line: string, lines: number]> = [
  ["info candles BTC 1h --from 2023-07-16T22:00 --to 2023-07-16T22:30 --out ndjson", 1],
  ["info candles BTC 1h --from 2023-07-16T22:00 --to 2023-07-16T22:30 --out json", 1],
  ["info candles BTC 1h --from 2023-07-16T22:00 --to 2023-07-16T22:30 --json", 1],
  ["candles export BTC 1h", 1],
  ["candles export BTC 1h --format ndjson", 1]
]

describe("control characters of an upstream", () => {
  for (const [line, lines] of commands) {
    it.live(`are escaped, so that the JSON stays the same: ${line}`, () =>
      Effect.gen(function*() {
        const gateway = yield* recordingUpstream(({ method }) =>
          method === "GET"
            ? { type: "application/x-ndjson", body: `${JSON.stringify(bar)}\n` }
            : { body: JSON.stringify([bar]) }
        )
        const { code, stdout } = yield* run(line.split(" "), { environment: { TRIGATE_GATEWAY_URL: gateway.url } })
        assert.strictEqual(code, 0)
        assert.match(stdout, /^[\n\x20-\x7e]+$/u)
        const printed: unknown = JSON.parse(stdout)
        assert.deepStrictEqual(printed, stdout.startsWith("[") ? [bar] : bar)
        assert.lengthOf(stdout.trimEnd().split("\n"), lines)
      }))
  }
})
