/** What whoever runs a gateway sees of its callers: their last requests, and who uses the rate limits. */
import { assert, describe, it } from "@effect/vitest"
import { gateway, get, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"

const spotMeta = `{"type":"spotMeta"}`
const failing = `{"type":"candleSnapshot","req":{"coin":"NOPE","interval":"1h","startTime":1,"endTime":2}}`

const notedAt = (url: string, after?: number) =>
  Effect.map(get(`${url}/admin/requests${after === undefined ? "" : `?after=${after}`}`), ({ json }) => {
    assert(Array.isArray(json))
    return json.map((each: unknown) => JSON.stringify(each))
  })

const member = (name: string) => (text: string) => JsonParts.value(text, name)

describe("the last requests", () => {
  it.effect("are noted while somebody watches: as the access log has them, and none of the watcher's own", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      yield* post(`${url}/info`, spotMeta)
      assert.deepStrictEqual(yield* notedAt(url), [])
      yield* post(`${url}/s3cr3tK3y/info`, spotMeta, { "x-request-id": "one" })
      yield* post(`${url}/info`, failing)
      yield* get(`${url}/health/ready`)
      const [first = "", second = "", ...rest] = yield* notedAt(url)
      assert.deepStrictEqual(rest, [])
      assert.deepStrictEqual(
        ["sequence", "id", "method", "route", "status", "caller", "operations", "error"].map((name) =>
          JsonParts.value(first, name)
        ),
        [1, "one", "POST", "node.info", 200, "address:127.0.0.1", ["spotMeta"], undefined]
      )
      assert.deepStrictEqual(["route", "status", "error"].map((name) => JsonParts.value(second, name)), [
        "info.query",
        404,
        "UnknownAsset"
      ])
      assert.notInclude(first, "s3cr3tK3y")
      assert.deepStrictEqual((yield* notedAt(url, 1)).map(member("sequence")), [2])
      // ten seconds without a question, and nothing is noted any more
      yield* TestClock.adjust("10 seconds")
      yield* post(`${url}/info`, spotMeta)
      assert.deepStrictEqual(yield* notedAt(url), [])
      yield* post(`${url}/info`, spotMeta)
      assert.deepStrictEqual((yield* notedAt(url)).map(member("sequence")), [3])
    }))

  it.effect("are 500 at most, and those of callers also where the admin routes have a listener of their own", () =>
    Effect.gen(function*() {
      const { adminUrl, url } = yield* gateway({ TRIGATE_ADMIN_PORT: "0" })
      yield* notedAt(adminUrl)
      yield* Effect.forEach(Array.from({ length: 501 }), () => get(`${url}/nothing`), {
        concurrency: 20,
        discard: true
      })
      const noted = yield* notedAt(adminUrl)
      assert.deepStrictEqual([noted.length, ...noted.slice(0, 1).map(member("sequence"))], [500, 2])
      assert.strictEqual((yield* get(`${url}/admin/requests`)).status, 404)
    }))
})

describe("who uses the rate limits", () => {
  it.effect("is told by caller, with what calls have used of the last minute", () =>
    Effect.gen(function*() {
      const api = yield* recordingUpstream(() => ({ body: `{"tokens":[],"universe":[]}` }))
      const { url } = yield* gateway({ TRIGATE_TRADING_API_URL: api.url })
      const used = Effect.map(get(`${url}/admin/rate-limits`), ({ json }) => json)
      assert.deepStrictEqual(yield* used, [{ upstream: "trading-api", all: 0, callers: [] }])
      yield* post(`${url}/info`, spotMeta, { "cache-control": "no-cache" })
      yield* post(`${url}/info`, spotMeta, { "cache-control": "no-cache" })
      assert.deepStrictEqual(yield* used, [
        { upstream: "trading-api", all: 40, callers: [{ caller: "address:127.0.0.1", units: 40 }] }
      ])
      yield* TestClock.adjust("2 minutes")
      assert.deepStrictEqual(yield* used, [{ upstream: "trading-api", all: 0, callers: [] }])
    }))

  it.effect("is nobody in the sandbox, which has none", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      assert.deepStrictEqual((yield* get(`${url}/admin/rate-limits`)).json, [])
    }))
})
