import { assert, describe, it } from "@effect/vitest"
import { gateway } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import * as Http from "node:http"
import { run } from "./run.ts"

/** A server that is no gateway: it does the same to every request. */
const stranger = (answer: (response: Http.ServerResponse) => void) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<Http.Server>((resume) => {
        const server = Http.createServer((request, response) => {
          request.resume()
          answer(response)
        })
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) =>
        Effect.sync(() => {
          server.closeAllConnections()
          server.close()
        })
    ),
    (server) => {
      const address = server.address()
      return `http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`
    }
  )

const html = (status: number) => (response: Http.ServerResponse) =>
  response.writeHead(status, { "content-type": "text/html" }).end("<h1>\nWelcome</h1>")

const told = Effect.fn(function*(
  answer: (response: Http.ServerResponse) => void,
  line: (origin: string) => string,
  args: ReadonlyArray<string> = ["evm", "gas"]
) {
  const origin = yield* stranger(answer)
  // a path may hold an endpoint key
  const ended = yield* run([...args, "--gateway", `${origin}/SECRET`], {
    environment: { TRIGATE_PRIVATE_KEY: `0x${"ac".repeat(32)}` }
  })
  assert.deepStrictEqual(ended, { code: 5, stdout: "", stderr: `trigate: ${line(origin)}\n` })
})

/** A venue whose account has the side of an outcome; `balance` is the row of that side. */
const venue = (balance: object) =>
  recordingUpstream(({ body }) => {
    const type = JsonParts.at(JSON.parse(body), "type")
    const usd = { accountValue: "0.0", totalNtlPos: "0.0", totalRawUsd: "0.0", totalMarginUsed: "0.0" }
    const responses: { readonly [type: string]: unknown } = {
      clearinghouseState: { marginSummary: usd, crossMarginSummary: usd, withdrawable: "0.0", assetPositions: [] },
      frontendOpenOrders: [],
      perpDexs: [null],
      spotClearinghouseState: { balances: [{ coin: "USDC", token: 0, total: "10.0", hold: "0.0" }, balance] }
    }
    return { body: JSON.stringify(responses[String(type)] ?? null) }
  })

const positions = Effect.fn(function*(balance: object) {
  const { url } = yield* gateway({ TRIGATE_TRADING_API_URL: (yield* venue(balance)).url })
  return yield* run(["positions", "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", "--gateway", url])
})

describe("what the venue sends", () => {
  it.live("may have balances of outcomes, which have no token", () =>
    Effect.gen(function*() {
      const { code, stderr, stdout } = yield* positions({ coin: "+50", total: "20.0", hold: "0.0", entryNtl: "12.4" })
      assert.deepStrictEqual([code, stderr], [0, ""])
      assert.match(stdout, /^\+50 +20\.0 +0\.0$/mu)
    }))

  it.live("is named with the member that does not decode", () =>
    Effect.gen(function*() {
      const ended = yield* positions({ coin: "+50", hold: "0.0" })
      assert.deepStrictEqual(ended, {
        code: 5,
        stdout: "",
        stderr: `trigate: trading-api sent a response that does not decode: Missing key at ["balances"][1]["total"]\n`
      })
    }))
})

describe("what answers is no gateway", () => {
  const notOne = (origin: string) =>
    `${origin} is not a Trigate gateway (Not a JSON document); name another with --gateway`

  it.live("is told in one line, as a table or as JSON, before anything is signed", () =>
    Effect.gen(function*() {
      yield* told(html(200), notOne)
      yield* told(html(200), notOne, ["info", "spot-meta", "--json"])
      yield* told(html(200), notOne, ["token", "EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz"])
      yield* told(html(200), notOne, ["receipt", `0x${"1".repeat(64)}`])
      yield* told(html(200), notOne, ["big-blocks", "on"])
    }))

  it.live("has the member told that does not decode, if it is of another version", () =>
    told(
      (response) => response.writeHead(200, { "content-type": "application/json" }).end(`{"balances":1}`),
      (origin) =>
        `The response of ${origin} has another form than this version of trigate expects (Missing key at ["universe"]); ` +
        "use the version of the gateway, or name another gateway with --gateway",
      ["info", "spot-meta"]
    ))

  it.live("has its status told", () =>
    Effect.gen(function*() {
      yield* told(html(502), (origin) => `gateway responded with HTTP 502: <h1> Welcome</h1> (${origin})`)
      yield* told(
        (response) => response.writeHead(503, { "retry-after": "7" }).end(),
        (origin) => `gateway responded with HTTP 503 (${origin}); try again in 7 s`
      )
    }))

  it.live("sends on to another address, which is not followed: nothing that is signed goes where nobody sent it", () =>
    Effect.gen(function*() {
      let heard = 0
      const elsewhere = yield* stranger((response) => {
        heard += 1
        html(200)(response)
      })
      const moved = (response: Http.ServerResponse) => response.writeHead(307, { location: `${elsewhere}/evm` }).end()
      const line = (origin: string) => `gateway responded with HTTP 307 (${origin})`
      yield* told(moved, line)
      yield* told(moved, line, ["big-blocks", "on"])
      const chain = `{"mode":"sandbox","upstreams":{}}`
      const ready = `{"status":"ready","sandbox":true,"network":"mainnet","chains":{"trading":${chain},` +
        `"tokens":${chain},"layer2":${chain}}}`
      const movedAction = yield* stranger((response) =>
        response.req.url === "/exchange"
          ? moved(response)
          : response.writeHead(200, { "content-type": "application/json" }).end(ready)
      )
      const ended = yield* run(["big-blocks", "on", "--gateway", movedAction], {
        environment: { TRIGATE_PRIVATE_KEY: `0x${"ac".repeat(32)}` }
      })
      assert.strictEqual(ended.code, 7, ended.stderr)
      assert.strictEqual(heard, 0)
    }))

  it.live("breaks its answer off", () =>
    told(
      (response) => {
        response.writeHead(200, { "content-length": "100" })
        response.write("{", () => response.destroy())
      },
      (origin) => `The gateway closed the connection during its response (${origin})`
    ))
})
