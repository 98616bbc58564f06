/** Responses that are read at the same time: their bytes are bounded, and a small response is never refused. */
import { assert, describe, it } from "@effect/vitest"
import { local } from "@trigate/domain/Caller"
import { HttpTransport } from "@trigate/upstream/transport/HttpTransport"
import * as HttpTransportUndici from "@trigate/upstream/transport/HttpTransportUndici"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Http from "node:http"

const size = 15 * 1024 * 1024

/** A server whose responses are 15 MiB long and do not end; `/small` responds with two bytes. */
const unending = Effect.acquireRelease(
  Effect.callback<Http.Server>((resume) => {
    const server = Http.createServer((request, response) => {
      if (request.url === "/small") response.end("{}")
      else response.write(Buffer.alloc(size))
    })
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) =>
    Effect.sync(() => {
      server.closeAllConnections()
      server.close()
    })
)

describe("responses that are read at the same time", () => {
  it.live("have at most 128 MiB, and a small one is read although they are used up", () =>
    Effect.gen(function*() {
      const server = yield* unending
      const address = server.address()
      const base = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`
      const { send } = yield* HttpTransport
      const request = (path: string) =>
        send({
          owner: local,
          url: Redacted.make(`${base}${path}`),
          method: "POST",
          headers: {},
          body: new Uint8Array(),
          timeout: 120_000,
          maxAnswerBytes: size + 1
        })
      const count = Math.ceil(HttpTransportUndici.maxReading / size)
      const reading = yield* Effect.forEach(
        Array.from({ length: count }, () => request("/long")),
        (each) => Effect.forkChild(Effect.flip(each))
      )
      const { detail, reason } = yield* Effect.raceAllFirst(reading.map((fiber) => Fiber.join(fiber)))
      assert.strictEqual(reason, "TooLarge")
      assert.strictEqual(
        detail,
        `The responses that are being read are larger than ${HttpTransportUndici.maxReading} bytes`
      )
      assert.strictEqual((yield* request("/small")).status, 200)
    }).pipe(Effect.provide(HttpTransportUndici.layer())))
})
