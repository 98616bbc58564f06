/** Reads of many callers at the same moment, through a gateway process that sends them to its node in batches. */
import { assert, describe, it } from "@effect/vitest"
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import * as JsonParts from "@trigate/testing/JsonParts"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import { isExhaustive } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Http from "node:http"
import { keyFile } from "./keyFile.ts"

const Call = Schema.Struct({ id: Schema.Int, method: Schema.String, params: Schema.Array(Schema.Unknown) })
const decodeBody = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Union([Call, Schema.Array(Call)])))

const callers = 50
const reads = Array.from({ length: isExhaustive ? 1000 : 400 }, (_, index) => index)
const largest = 100
const hashAt = (index: number): string => `0x${index.toString(16).padStart(64, "0")}`

const chainId = `{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`

/** The node's response to this read has another id. */
const poisoned = 277

interface Sent {
  /** Settles when the kernel has the request. */
  readonly written: Promise<void>
  readonly response: Promise<{ readonly status: number; readonly body: string; readonly reused: boolean }>
}

/** A client whose connections stay open; a request takes a free one. */
const client = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => new Http.Agent({ keepAlive: true, maxFreeSockets: reads.length })),
    (agent) => Effect.sync(() => agent.destroy())
  ),
  (agent) => (url: string, body: string): Sent => {
    const written = Promise.withResolvers<void>()
    const response = Promise.withResolvers<Awaited<Sent["response"]>>()
    const headers = { "content-type": "application/json" }
    const request = Http.request(url, { agent, method: "POST", headers }, (incoming) => {
      let text = ""
      incoming.setEncoding("utf8")
      incoming.on("data", (chunk: string) => (text += chunk))
      incoming.on("end", () => {
        response.resolve({ status: incoming.statusCode ?? 0, body: text, reused: request.reusedSocket })
      })
    })
    request.on("finish", written.resolve)
    request.on("error", (error) => {
      written.reject(error)
      response.reject(error)
    })
    request.end(body)
    return { written: written.promise, response: response.promise }
  }
)

const all = <A>(promises: ReadonlyArray<Promise<A>>) => Effect.promise(() => Promise.all(promises))

describe("reads of 50 callers at the same moment", () => {
  it.live("take few requests, each has its own response, and the one that the node spoils fails alone", () =>
    Effect.gen(function*() {
      const respond = ({ id, method, params }: typeof Call.Type) => ({
        jsonrpc: "2.0",
        id: params[0] === hashAt(poisoned) ? 1_000_000_000 + id : id,
        result: method === "eth_chainId" ? "0x1" : { hash: params[0], from: `sender of ${String(params[0])}` }
      })
      const node = yield* recordingUpstream(({ body }) => {
        const request = decodeBody(body)
        return { body: JSON.stringify("method" in request ? respond(request) : request.map(respond)) }
      })
      const { file, keys } = yield* keyFile(
        ...Array.from({ length: callers }, (_, index) => ({ name: `caller-${index}` }))
      )
      const gateway = yield* gatewayProcess({
        TRIGATE_ACCESS_LOG: "off",
        TRIGATE_CALLERS: file,
        TRIGATE_LAYER2_URL: node.url,
        TRIGATE_LAYER2_BATCH: `${largest}`,
        TRIGATE_MAX_CONNECTIONS: "8192",
        // no machine reaches these
        TRIGATE_MAX_LAG: "1 minute",
        TRIGATE_READ_DEADLINE: "5 minutes"
      })
      const keyAt = (index: number) => keys[index % callers] ?? ""
      const send = yield* client
      // opens the connections
      const first = reads.map((index) => send(`${gateway.url}/${keyAt(index)}/l2`, chainId))
      yield* all(first.map(({ response }) => response))
      node.seen.length = 0
      // the process does not run until all requests have arrived, so that one turn of its event loop reads them
      gateway.signal("SIGSTOP")
      const sent = reads.map((index) =>
        send(
          `${gateway.url}/${keyAt(index)}/l2`,
          `{"jsonrpc":"2.0","id":"own ${index}","method":"eth_getTransactionByHash","params":["${hashAt(index)}"]}`
        )
      )
      yield* all(sent.map(({ written }) => written))
      gateway.signal("SIGCONT")
      const responses = yield* all(sent.map(({ response }) => response))

      for (const [index, { body, reused, status }] of responses.entries()) {
        assert.deepStrictEqual([status, reused, JsonParts.value(body, "id")], [200, true, `own ${index}`])
        if (index === poisoned) {
          assert.strictEqual(JsonParts.value(body, "error", "data", "_tag"), "UpstreamMalformed")
        } else {
          const hash = hashAt(index)
          assert.deepStrictEqual(JsonParts.value(body, "result"), { hash, from: `sender of ${hash}` })
        }
      }
      const requests = node.seen.map(({ body }) => decodeBody(body))
        .map((request) => "method" in request ? [request] : request)
        .filter(([first]) => first?.method === "eth_getTransactionByHash")
      // full batches; the event loop may read the requests in a few turns. After 20 batches, a late one would be known.
      assert.isBelow(requests.length, 20)
      // each read is sent once
      assert.deepStrictEqual(
        requests.flat().map(({ params: [hash] }) => String(hash)).toSorted(),
        reads.map(hashAt)
      )
      assert.isAtMost(Math.max(...requests.map(({ length }) => length)), largest)
      console.log(`${reads.length} reads of ${callers} callers took ${requests.length} upstream requests`)
      // no key of a caller is sent upstream
      const seen = node.seen.map(({ body, headers, path }) => `${path} ${JSON.stringify(headers)} ${body}`).join("\n")
      assert.deepStrictEqual(keys.filter((key) => seen.includes(key)), [])
    }))
})
