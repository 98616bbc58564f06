import { assert, describe, it } from "@effect/vitest"
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
