/** Upstreams that misbehave as a seed says: three of the four; the layer 2 answers as it should. */
import type { FaultyUpstream, Reaction, ReceivedRequest } from "@trigate/testing/FaultyUpstream"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import { hangUp, reset, say, sayHalf, sayHead, silence, write } from "@trigate/testing/Reactions"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { dice } from "../../packages/server/test/malformedBodies.ts"
import { secrets, soundUpstream } from "./judge.ts"

const Call = Schema.Struct({ id: Schema.Unknown, method: Schema.String, params: Schema.optionalKey(Schema.Unknown) })
/** The JSON-RPC calls in a body. */
export const callsIn = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Union([Call, Schema.Array(Call)])))

const results: { readonly [method: string]: unknown } = {
  eth_getTransactionReceipt: null,
  eth_getLogs: [],
  eth_call: "0x",
  eth_sendRawTransaction: `0x${"ab".repeat(32)}`,
  eth_getStorageAt: `0x${"0".repeat(64)}`
}

/** A sound answer to a JSON-RPC call. */
export const answerTo = ({ id, method }: typeof Call.Type) => ({
  jsonrpc: "2.0",
  id,
  result: Object.hasOwn(results, method) ? results[method] : "0x1"
})

/** A sound answer to whatever was asked. */
const sound = ({ body, path }: ReceivedRequest): string => {
  if (path.includes("/api/v2")) {
    return JSON.stringify({
      ok: true,
      result: { "@type": "ok" },
      jsonrpc: "2.0",
      id: Option.getOrUndefined(callsIn(body))
    })
  }
  if (path.endsWith("/exchange")) return `{"status":"ok","response":{"type":"default"}}`
  if (path.endsWith("/info")) return body.includes("candleSnapshot") ? "[]" : `{"universe":[],"tokens":[]}`
  return Option.match(callsIn(body), {
    onNone: () => `{"jsonrpc":"2.0","id":null,"result":"0x1"}`,
    onSome: (calls) => JSON.stringify("method" in calls ? answerTo(calls) : calls.map(answerTo))
  })
}

/** A sound answer to any request. */
export const good = { body: sound }
const html = [["content-type", "text/html"]] as const

/** Faults that reach a gateway in the same bytes every time. */
export const steadyFaults: ReadonlyArray<Reaction> = [
  hangUp,
  reset,
  say({ ...good, status: 500 }),
  say({ status: 500, body: "null" }),
  say({ status: 502, headers: html, body: "<html></html>" }),
  say({ status: 503, headers: [["retry-after", "1"]], body: "" }),
  say({ status: 429, headers: [["retry-after", "0"]], body: "slow down" }),
  say({ status: 422, body: "Failed to deserialize the JSON body into the target type" }),
  say({ status: 404, body: ({ path }) => `no such path ${path}` }),
  say({
    body: ({ path }) => `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"${decodeURIComponent(path)}"}}`
  }),
  say({ headers: html, body: "<html></html>" }),
  say({ body: "" }),
  say({ body: "\u001B[2J\u202E" }),
  say({ body: new Uint8Array([0xff, 0xfe]) }),
  say({ body: `{"jsonrpc":"2.0","id":"other","result":1}` }),
  say({ ...good, headers: [["content-type", "image/svg+xml"]] }),
  say({ ...good, headers: [["content-encoding", "gzip"]] }),
  say({ status: 302, headers: [["location", "http://localhost/elsewhere"]], body: "" }),
  sayHead(good, hangUp),
  write("HTTP/1.1 two hundred\r\n\r\n", hangUp),
  write("SSH-2.0-OpenSSH\r\n", hangUp)
]

// what came before a reset may be lost
const faults: ReadonlyArray<Reaction> = [...steadyFaults, sayHalf(good, reset)]

const reactionOf = (seed: number): Reaction => {
  const some = dice(seed)
  return (socket, asked) => {
    const rolled = some.roll(1000)
    const react = rolled === 0 ? silence : rolled < 300 ? some.pick(faults) : say(good)
    react(socket, asked)
  }
}

export type Kind = keyof typeof secrets

/** The names of the upstreams in the settings. */
export const kinds = { api: "TRADING_API", node: "TRADING_NODE", tokens: "TOKEN_CHAIN", layer2: "LAYER2" } as const

/** Starts the four upstreams; they end with the scope. */
export const upstreams = Effect.fnUntraced(function*(seed: number) {
  const started: Array<FaultyUpstream> = []
  const environment: { [name: string]: string } = {}
  for (const [at, kind] of (["api", "node", "tokens", "layer2"] satisfies ReadonlyArray<Kind>).entries()) {
    const upstream = yield* faultyUpstream(kind === soundUpstream ? say(good) : reactionOf(seed + at))
    started.push(upstream)
    environment[`TRIGATE_${kinds[kind]}_URL`] = `${upstream.url}/${secrets[kind]}`
  }
  return {
    environment,
    /** How many requests have come; those that were counted are forgotten. */
    takeCount: (): number =>
      started.reduce(
        (count, upstream) => count + upstream.requests.splice(0).length + upstream.probes.splice(0).length,
        0
      )
  }
})
