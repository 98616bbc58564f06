import { assert, describe, it } from "@effect/vitest"
import type { Observed } from "./compare.ts"
import { differences, masked } from "./compare.ts"
import type { FuzzAnswer } from "./connection.ts"
import type { FuzzRequest } from "./request.ts"

const request = (body: string, header: readonly [string, string] = ["x-a", "b"]): FuzzRequest => ({
  method: "POST",
  target: "/l2",
  headers: [["host", "localhost"], header],
  body: new TextEncoder().encode(body),
  framing: "length"
})

const answer = (body: string, id = "000000-1", more = ""): FuzzAnswer => ({
  head: `HTTP/1.1 200 OK\r\nDate: ${
    new Date(Number.parseInt(id.slice(7), 36)).toUTCString()
  }\r\nx-request-id: ${id}${more}`,
  status: 200,
  headers: new Map([["x-request-id", id]]),
  body: Buffer.from(body)
})

const observed = (answers: Observed["answers"], node: ReadonlyArray<string> = [], ports = [8001, 8002]): Observed => ({
  answers,
  received: { node },
  ports
})

const one = request("{\"id\":1}")

describe("the comparison of two gateways", () => {
  it("masks ports, dates, request IDs and the metrics of the process, and nothing else", () => {
    assert.strictEqual(
      masked("host: 127.0.0.1:8001\r\nDate: today\r\nage: 3", [8001]),
      "host: 127.0.0.1:<port>\r\nDate: <date>\r\nage: 3"
    )
    assert.strictEqual(masked("localhost:8003, 8001", [8001]), "localhost:8003, 8001")
    assert.strictEqual(masked("{\"id\":\"000000-1\"}", [], "000000-1"), "{\"id\":\"<request id>\"}")
    assert.strictEqual(masked("# HELP x\nprocess_cpu 1\nx 1", []), "# HELP x\nprocess_cpu <value>\nx 1")
  })

  it("finds no difference where only the masked parts differ", () => {
    const ours = observed([answer("{\"id\":\"000000-1\"}")], ["POST / HTTP/1.1\r\nhost: 127.0.0.1:8002\r\n\r\n{}"])
    const theirs = observed(
      [answer("{\"id\":\"000000-2\"}", "000000-2")],
      ["POST / HTTP/1.1\r\nhost: 127.0.0.1:9002\r\n\r\n{}"],
      [9001, 9002]
    )
    assert.deepStrictEqual(differences(one, ours, theirs), [])
  })

  it("compares an ID that the caller gave", () => {
    const mine = request("{}", ["x-request-id", "mine"])
    const found = differences(mine, observed([answer("{}", "mine")]), observed([answer("{}", "000000-2")]))
    assert.deepStrictEqual(found.slice(1), [
      "  answer 1, head:",
      "    ours:   \"x-request-id: mine\"",
      "    theirs: \"x-request-id: <request id>\""
    ])
  })

  it("shows where answers differ", () => {
    const found = (ours: Observed, theirs: Observed) => differences(one, ours, theirs).slice(1)
    assert.deepStrictEqual(found(observed([answer("{\"a\":1}")]), observed([answer("{\"a\":2}")])), [
      "  answer 1, body (7 and 7 bytes), from byte 5:",
      "    ours:   \"{\\\"a\\\":1}\"",
      "    theirs: \"{\\\"a\\\":2}\""
    ])
    assert.deepStrictEqual(
      found(observed([answer("", "000000-1", "\r\nage: 1")]), observed([answer("", "000000-1", "\r\nage: 2")])),
      ["  answer 1, head:", "    ours:   \"age: 1\"", "    theirs: \"age: 2\""]
    )
    // the same headers in another order
    assert.lengthOf(
      found(
        observed([answer("", "000000-1", "\r\na: 1\r\nb: 2")]),
        observed([answer("", "000000-1", "\r\nb: 2\r\na: 1")])
      ),
      3
    )
    assert.deepStrictEqual(found(observed(["closed"]), observed(["silent"])), [
      "  answer 1, answer (6 and 6 bytes), from byte 0:",
      "    ours:   \"closed\"",
      "    theirs: \"silent\""
    ])
    assert.deepStrictEqual(found(observed([]), observed([answer("{}")])).slice(0, 3), [
      "  number of answers (1 and 1 bytes), from byte 0:",
      "    ours:   \"0\"",
      "    theirs: \"1\""
    ])
  })

  it("compares what upstreams received in its order, except where calls are under way together", () => {
    const [first, second] = ["POST /a\r\n\r\n{\"id\":1,\"m\":1}", "POST /a\r\n\r\n{\"id\":2,\"m\":2}"]
    const [ours, theirs] = [observed([], [first, second]), observed([], [second, first])]
    assert.lengthOf(differences(one, ours, theirs), 7)
    assert.deepStrictEqual(differences(request("[{},{}]"), ours, theirs), [])
    assert.isAbove(differences(request("[{},{}]"), ours, observed([], [first, first])).length, 0)
    assert.isAbove(differences(one, ours, observed([], [first])).length, 0)
  })
})
