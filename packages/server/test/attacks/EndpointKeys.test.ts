import { assert, describe, it } from "@effect/vitest"
import type { GatewayResponse } from "@trigate/testing/Gateway"
import { gateway, get, post } from "@trigate/testing/Gateway"
import type { Reply, Seen } from "@trigate/testing/RecordingUpstream"
import { recordingUpstream, rpcId } from "@trigate/testing/RecordingUpstream"
import { isExhaustive, sample } from "@trigate/testing/Sample"
import * as SpanTree from "@trigate/testing/SpanTree"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Logger from "effect/Logger"
import * as Tracer from "effect/Tracer"
import { bigBlocks, bodyOf } from "../bodies.ts"

const key = "Node-Secret.5d0c1f77ab2e"

const base64 = (text: string): string => Buffer.from(text, "utf8").toString("base64")

const codeUnit = (letter: string): string => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`
const percent = (letter: string): string => `%${letter.charCodeAt(0).toString(16).padStart(2, "0")}`
const each = (text: string, spell: (letter: string, at: number) => string): string => Array.from(text, spell).join("")

/** How a server may write a text that it puts into a JSON string. */
const spellings: { readonly [name: string]: (text: string) => string } = {
  plain: (text) => text,
  "JSON escapes": (text) => each(text, codeUnit),
  "one JSON escape, in capitals": (text) =>
    `${text.slice(0, 3)}${codeUnit(text.slice(3, 4)).toUpperCase().replace("U", "u")}${text.slice(4)}`,
  "JSON within JSON": (text) => each(text, (letter) => `\\${codeUnit(letter)}`),
  percent: (text) => each(text, percent),
  "percent, in capitals": (text) => each(text, (letter) => percent(letter).toUpperCase()),
  "percent twice": (text) => each(text, (letter) => percent(letter).replace("%", "%25")),
  "JSON escapes of percent": (text) =>
    each(text, (letter, at) => at % 2 === 0 ? letter : percent(letter).replace("%", codeUnit("%"))),
  base64: base64,
  "base64, shifted by one": (text) => base64(`/${text}`),
  "base64, shifted by two": (text) => base64(`x/${text}/info`),
  "base64url": (text) => Buffer.from(`?>${text}`).toString("base64url"),
  "base64 of an address": (text) => base64(`http://node.example/${text}`)
}

const unescaped = (text: string): string =>
  text.replaceAll(/\\+u([0-9a-f]{4})/giu, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .replaceAll(/%([0-9a-f]{2})/giu, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))

/** Whether somebody who decodes a text in any of the ways finds the key. */
const reveals = (text: string): boolean => {
  const read = [text]
  for (let round = 0; round < 3; round++) read.push(unescaped(read.at(-1) ?? ""))
  const decoded = read.flatMap((one) =>
    (one.match(/[\w+/-]{8,}/gu) ?? []).flatMap((run) =>
      [0, 1, 2, 3].map((start) => Buffer.from(run.slice(start), "base64").toString("latin1"))
    )
  )
  return [...read, ...decoded].some((one) => one.includes(key))
}

const token = "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs"

let last = 0
const next = () => last += 1
const word = () => `0x${next().toString(16).padStart(64, "0")}`

type Ask = (gateway: string) => Effect.Effect<GatewayResponse>

const rpc = (method: string, params: string) => `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`

const slot = () => rpc("eth_getStorageAt", `["0x${"ab".repeat(20)}","${word()}","latest"]`)
const receipt = () => rpc("eth_getTransactionReceipt", `["${word()}"]`)

/** Requests that no cached response answers. */
const asks: { readonly [name: string]: Ask } = {
  "/info": (url) => post(`${url}/info`, `{"type":"userFees","user":"0x${word().slice(-40)}"}`),
  "/info spotMeta": (url) => post(`${url}/info`, `{"type":"spotMeta","n":${next()}}`),
  "/exchange": (url) =>
    Effect.flatMap(
      Clock.currentTimeMillis,
      (now) => post(`${url}/exchange`, bodyOf(now - next(), bigBlocks))
    ),
  "/evm": (url) => post(`${url}/evm`, slot()),
  "/evm batch": (url) => post(`${url}/evm`, `[${slot()},${slot()}]`),
  "/evm raw transaction": (url) => post(`${url}/evm`, rpc("eth_sendRawTransaction", `["0x02"]`)),
  "/l2": (url) => post(`${url}/l2`, receipt()),
  "/api/v2/getTokenData": (url) => get(`${url}/api/v2/getTokenData?address=${token}`),
  "/api/v2/shards": (url) => get(`${url}/api/v2/shards?seqno=${next()}`),
  "/api/v2/jsonRPC": (url) => post(`${url}/api/v2/jsonRPC`, rpc("shards", `{"seqno":${next()}}`)),
  "sendBoc": (url) => post(`${url}/api/v2/jsonRPC`, rpc("sendBoc", `{"boc":"te6cckEBAQEA"}`)),
  "sendBoc over REST": (url) => post(`${url}/api/v2/sendBoc`, `{"boc":"te6cckEBAQEA"}`)
}

type Say = (spelled: string, request: Seen) => Reply

/** Where a server may put a text. */
const places: { readonly [name: string]: Say } = {
  "an error of the venue": (it) => ({ body: `{"status":"err","response":"unknown key ${it}"}` }),
  "a refusal within an accepted action": (it) => ({
    body: `{"status":"ok","response":{"type":"order","data":{"statuses":[{"error":"no ${it}"}]}}}`
  }),
  "a message": (it) => ({ body: `{"message":"unknown key ${it}"}` }),
  "an error": (it) => ({ body: `{"error":"unknown key ${it}"}` }),
  "a name": (it) => ({ body: `{"${it}":"unknown"}` }),
  "a list": (it) => ({ body: `["${it}"]` }),
  "a text": (it) => ({ body: `"/${it}/info"` }),
  "a text that is not JSON": (it) => ({ body: `no such key: ${it}` }),
  "the second part of a long text": (it) => ({ status: 500, body: `${"no ".repeat(35)}${it}` }),
  "a type": (it) => ({ type: `application/json; key="${it}"`, body: `{"a":1}` }),
  "a page": (it) => ({ status: 403, type: "text/html", body: `<p>/${it}/info</p>` }),
  "a refusal": (it) => ({ status: 404, type: "text/plain", body: `Cannot POST /${it}/info` }),
  "a refused shape": (it) => ({ status: 422, type: "text/plain", body: `Failed to deserialize /${it}/info` }),
  "a fault": (it) => ({ status: 500, type: "text/plain", body: `panicked at /${it}/info` }),
  "an error of JSON-RPC": (it, request) => ({
    body: `{"jsonrpc":"2.0","id":${rpcId(request)},"error":{"code":-32000,"message":"no ${it}","data":"${it}"}}`
  }),
  "an error of JSON-RPC with a status": (it, request) => ({
    status: 401,
    body: `{"jsonrpc":"2.0","id":${rpcId(request)},"error":{"code":-32602,"message":"no ${it}"}}`
  }),
  "a result of JSON-RPC": (it, request) => ({ body: `{"jsonrpc":"2.0","id":${rpcId(request)},"result":"${it}"}` }),
  "a problem": (it) => ({
    status: 400,
    type: "application/problem+json",
    body: `{"_tag":"UpstreamMalformed","status":502,"title":"x","upstream":"x","issue":"${it}","detail":"${it}"}`
  }),
  "a failure of the token chain": (it) => ({ body: `{"ok":false,"error":"LITE_SERVER ${it}","code":500}` }),
  "a result of the token chain": (it) => ({ body: `{"ok":true,"result":{"text":"${it}"},"@extra":"${it}"}` }),
  "tonlib's own error": (it) => ({ body: `{"ok":true,"result":{"@type":"error","code":1,"message":"${it}"}}` })
}

/** What a read is asked again after, with pauses: a few spellings are enough there. */
const slow = new Set(["the second part of a long text", "a page", "a fault"])
const fewSpellings = new Set(["plain", "JSON escapes of percent", "base64 of an address"])
const sent = new Set(["/exchange", "/evm raw transaction", "sendBoc", "sendBoc over REST"])

/** Asks a gateway for everything while its upstreams quote their key, and gives the combinations that told it. */
const revealed = Effect.fnUntraced(function*(spelled: ReadonlyArray<string>) {
  let say: (request: Seen) => Reply = () => "hang-up"
  const upstream = yield* recordingUpstream((request) => say(request))
  const address = `${upstream.url}/${key}`
  const { url } = yield* gateway({
    TRIGATE_TRADING_API_URL: address,
    TRIGATE_TRADING_NODE_URL: address,
    TRIGATE_TOKEN_CHAIN_URL: address,
    TRIGATE_LAYER2_URL: address,
    TRIGATE_TRADING_API_WEIGHT: "1000000"
  })
  const found: Array<string> = []
  const pairs = Object.entries(places).flatMap(([place, put]) => spelled.map((spelling) => ({ place, put, spelling })))
  // every spelling, and two places of each
  const written = sample("spellings of a key", pairs, 2 * spelled.length, ({ spelling }) => spelling)
  for (const { place, put, spelling } of written) {
    const spell = spellings[spelling] ?? identity
    say = (request) => put(spell(key), request)
    const isRepeated = slow.has(place) && !fewSpellings.has(spelling)
    const answers = yield* Effect.forEach(
      Object.entries(asks).filter(([name]) => !isRepeated || sent.has(name)),
      ([name, ask]) => Effect.map(ask(url), (answer) => [name, answer] as const),
      { concurrency: "unbounded" }
    )
    for (const [name, { headers, text }] of answers) {
      if (reveals(`${text} ${JSON.stringify([...headers])}`)) found.push(`${name}: ${place}, ${spelling}`)
    }
  }
  return { found, asked: upstream.seen.length }
})

describe("the key of an upstream", () => {
  it.live("is in no answer, whichever way and wherever the upstream writes it", () =>
    Effect.gen(function*() {
      const { asked, found } = yield* revealed(Object.keys(spellings))
      assert.deepStrictEqual(found, [])
      assert.isAtLeast(asked, isExhaustive ? 2500 : 250)
    }))

  it.live("is in no span and no line of the log either", () => {
    const { text, tracer } = SpanTree.make()
    const lines: Array<string> = []
    const logger = Logger.make(({ cause, message }) => void lines.push(JSON.stringify([message, cause])))
    return Effect.gen(function*() {
      yield* revealed([...fewSpellings])
      assert.include(text(), "sendBoc")
      assert.isFalse(reveals(text()))
      assert.isFalse(reveals(lines.join("\n")))
    }).pipe(
      Effect.scoped,
      Effect.provideService(Tracer.Tracer, tracer),
      Effect.provideService(Logger.CurrentLoggers, new Set([logger]))
    )
  }, 60_000)
})
