/** What passes between two sides is kept, also where one of them goes away in the middle of it. */
import { assert, describe, it } from "@effect/vitest"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import { post } from "@trigate/testing/Gateway"
import * as Effect from "effect/Effect"
import { forwarder } from "./forwarder.ts"
import { rejection } from "./rejection.ts"

const half = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\n"

describe("a forwarder", () => {
  it.live("keeps a request whose answer is whole, breaks off or never begins", () =>
    Effect.gen(function*() {
      const upstream = yield* faultyUpstream((socket, { body }) => {
        if (body === "whole") return void socket.write(`${half}complete`)
        if (body === "broken") return void socket.write(`${half}half`, () => socket.destroy())
        return socket.resetAndDestroy()
      })
      const between = yield* forwarder(upstream.url)
      assert.strictEqual((yield* post(between.url, "whole")).text, "complete")
      for (const body of ["broken", "none"]) yield* rejection(() => fetch(between.url, { method: "POST", body }))
      assert.deepStrictEqual(between.exchanges.map(({ answer, body }) => [body, answer.status, answer.body]), [
        ["whole", 200, "complete"],
        ["broken", 0, ""],
        ["none", 0, ""]
      ])
    }))
})
