/** Upstreams whose answer follows from the request, from how often it came at that moment, and from a clock that the fuzzer moves. */
import type { ReceivedRequest } from "@trigate/testing/FaultyUpstream"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import type { Said } from "@trigate/testing/Reactions"
import { say, silence } from "@trigate/testing/Reactions"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as path from "node:path"
import { evmAnswers, infoAnswers, layer2Answers } from "../../packages/domain/test/answers.ts"
import { secrets } from "./judge.ts"
import type { Kind } from "./plan.ts"
import { answerTo, callsIn, good, kinds, steadyFaults } from "./plan.ts"

/** A 32-bit hash of a text (FNV-1a). */
export const hash = (text: string, seed = 0): number => {
  let state = 0x811c9dc5 ^ seed
  for (let at = 0; at < text.length; at++) state = Math.imul(state ^ text.charCodeAt(at), 0x01000193)
  state = Math.imul(state ^ (state >>> 15), 0x85ebca6b)
  return (state ^ (state >>> 13)) >>> 0
}

const pick = <A>(from: ReadonlyArray<A>, number: number): A | undefined => from[number % from.length]

const fixture = (file: string): unknown =>
  JSON.parse(fs.readFileSync(path.join(import.meta.dirname, "../../packages", file), "utf8"))

const Bodies = Schema.Struct({
  bodies: Schema.Array(Schema.Struct({
    http: Schema.Int,
    body: Schema.optionalKey(Schema.Unknown),
    text: Schema.optionalKey(Schema.String)
  }))
})
const actionBodies = Schema.decodeUnknownSync(Bodies)(fixture("server/test/fixtures/exchange-bodies.json"))
  .bodies.map(({ body, http, text }) => ({ status: http, body: text ?? JSON.stringify(body) }))

const Recorded = Schema.Struct({ body: Schema.Unknown })
const tokenBodies = ["usdt", "jusdt", "nft-item", "documented-onchain"].map((name) =>
  JSON.stringify(Schema.decodeUnknownSync(Recorded)(fixture(`server/test/fixtures/ton-getTokenData-${name}.json`)).body)
)

/** The lengths of the intervals that are asked for, in milliseconds. */
export const intervals: { readonly [name: string]: number } = {
  "1m": 60_000,
  "15m": 900_000,
  "1h": 3_600_000,
  "1d": 86_400_000
}

/** A coin that the venue does not know. */
export const unknownCoin = "NOSUCHCOIN"

/** A coin of which every seventh bar is missing. */
export const sparseCoin = "@107"

const Query = Schema.Struct({
  type: Schema.String,
  req: Schema.optionalKey(Schema.Struct({
    coin: Schema.String,
    interval: Schema.String,
    startTime: Schema.Finite,
    endTime: Schema.optionalKey(Schema.NullOr(Schema.Finite))
  }))
})
const queryIn = Schema.decodeUnknownOption(Schema.fromJsonString(Query))

const bars = ({ coin, endTime, interval, startTime }: NonNullable<typeof Query.Type["req"]>, now: number): string => {
  const length = intervals[interval] ?? 60_000
  const last = Math.floor(Math.min(endTime ?? now, now) / length)
  const first = Math.max(Math.floor(startTime / length), last - 4999)
  const list: Array<string> = []
  for (let index = first; index <= last; index++) {
    if (coin === sparseCoin && index % 7 === 0) continue
    const price = 1000 + index % 97
    const t = index * length
    // the bar that forms changes as time passes
    const close = t + length > now ? price + now % 1000 / 1000 : price
    list.push(
      `{"t":${t},"T":${t + length - 1},"s":"${coin}","i":"${interval}","o":"${price}.0","c":"${close}","h":"${
        price + 2
      }.5","l":"${price - 1}.25","v":"12.5","n":${index % 50}}`
    )
  }
  return `[${list.join(",")}]`
}

const info = (body: string, number: number, now: number): Said =>
  Option.match(queryIn(body), {
    onNone: () => ({ status: 422, body: "Failed to deserialize the JSON body into the target type" }),
    onSome: ({ req, type }) => {
      if (body.includes(unknownCoin)) return { status: 500, body: "null" }
      if (type === "candleSnapshot" && req !== undefined) return { body: bars(req, now) }
      const known = Object.entries(infoAnswers).find(([name]) => name === type)?.[1].texts
      return { body: (known === undefined ? undefined : pick(known, number)) ?? `{"of":"${type}","number":${number}}` }
    }
  })

const Filter = Schema.Struct({ fromBlock: Schema.String, toBlock: Schema.optionalKey(Schema.String) })
const filterIn = Schema.decodeUnknownOption(Schema.Tuple([Filter]))

/** The most blocks in a call of `eth_getLogs`. */
const mostBlocks = 1000

const tooWide = (params: unknown): boolean => {
  const filter = Option.getOrUndefined(filterIn(params))?.[0]
  return filter !== undefined && Number(filter.toBlock ?? Number.NaN) - Number(filter.fromBlock) >= mostBlocks
}

const methodOf = (name: string): string => name.replace(/^eth_(?:get)?/u, "").toLowerCase()

const rpcResult = (kind: Kind, method: string, number: number): string | undefined => {
  const answers = Object.entries(kind === "layer2" ? layer2Answers : evmAnswers)
  const texts = answers.find(([name]) => name.toLowerCase().replace(/^get/u, "") === methodOf(method))?.[1].texts
  return texts === undefined ? undefined : pick(texts, number)
}

const rpc = (kind: Kind, call: Parameters<typeof answerTo>[0], number: number, now: number): string => {
  const id = JSON.stringify(call.id ?? null)
  if (call.method === "eth_chainId") return `{"jsonrpc":"2.0","id":${id},"result":"0x3e7"}`
  if (call.method === "eth_blockNumber") {
    return `{"jsonrpc":"2.0","id":${id},"result":"0x${Math.floor(now / 2000 - 897_000_000).toString(16)}"}`
  }
  if (call.method === "eth_getLogs" && tooWide(call.params)) {
    return `{"jsonrpc":"2.0","id":${id},"error":{"code":-32005,"message":"query exceeds max block range ${mostBlocks}"}}`
  }
  if (number % 20 === 0 && call.method !== "eth_getLogs") {
    return `{"jsonrpc":"2.0","id":${id},"error":{"code":3,"message":"execution reverted: no","data":"0x08c379a0"}}`
  }
  const result = rpcResult(kind, call.method, number)
  return result === undefined ? JSON.stringify(answerTo(call)) : `{"jsonrpc":"2.0","id":${id},"result":${result}}`
}

const sound = (kind: Kind, { body, path }: ReceivedRequest, number: number, now: number): Said => {
  if (path.endsWith("/exchange")) {
    return pick(number % 3 === 0 ? actionBodies : actionBodies.slice(0, 3), number) ?? good
  }
  if (path.endsWith("/info")) return info(body, number, now)
  if (kind === "tokens") {
    const isToken = /getTokenData/u.test(path + body)
    return { body: (isToken ? pick(tokenBodies, number) : undefined) ?? `{"ok":true,"result":{"number":${number}}}` }
  }
  return Option.match(callsIn(body), {
    onNone: () => ({ status: 400, body: "" }),
    onSome: (calls) => ({
      body: "method" in calls
        ? rpc(kind, calls, number, now)
        : `[${calls.map((call, at) => rpc(kind, call, number + at, now)).join(",")}]`
    })
  })
}

/** The upstreams of one gateway. */
export interface Script {
  readonly environment: { readonly [name: string]: string }
  readonly ports: ReadonlyArray<number>
  /** Takes the bytes of the requests that each upstream has received since the last time. */
  readonly take: () => { readonly [K in Kind]: ReadonlyArray<string> }
  /** How much has been received that is not taken. */
  readonly count: () => number
  /** Calls a function whenever the number of requests that are never answered changes. */
  readonly watch: (unanswered: (count: number) => void) => void
}

/** Starts the upstreams of one gateway; `clock` is the time of both. They end with the scope. */
export const script = Effect.fnUntraced(function*(seed: number, clock: () => number) {
  const received: { readonly [K in Kind]: Array<string> } = { api: [], node: [], tokens: [], layer2: [] }
  const environment: { [name: string]: string } = {}
  const ports: Array<number> = []
  const silent = new Set<object>()
  let tell = (_unanswered: number) => {}
  for (const [at, kind] of (["api", "node", "tokens", "layer2"] satisfies ReadonlyArray<Kind>).entries()) {
    const seen = new Map<number, number>()
    const upstream = yield* faultyUpstream((socket, asked) => {
      upstream.requests.length = 0
      upstream.probes.length = 0
      received[kind].push(Buffer.from(asked.bytes).toString("latin1"))
      // calls that are under way together are numbered in any order, and all answers of a moment are alike
      const number = hash(asked.body.replaceAll(/"id":\d+/gu, ""), hash(`${clock()}${asked.path}`, seed + at))
      const times = seen.get(number) ?? 0
      seen.set(number, times + 1)
      // where a part of a range of logs fails, it is left to chance how many of the others have ended
      const share = asked.body.includes("eth_getLogs") ? 2000 : hash(String(times), number) % 2000
      if (share === 0) {
        silent.add(socket)
        tell(silent.size)
        socket.once("close", () => {
          silent.delete(socket)
          tell(silent.size)
        })
        silence(socket, asked)
      } else {
        const react = share < 160 ? pick(steadyFaults, share) : undefined
        const answer = react ?? say(sound(kind, asked, number, clock()))
        answer(socket, asked)
      }
    })
    upstream.reactToProbe = upstream.react
    ports.push(upstream.port)
    environment[`TRIGATE_${kinds[kind]}_URL`] = `${upstream.url}/${secrets[kind]}`
  }
  const made: Script = {
    environment,
    ports,
    take: () => ({
      api: received.api.splice(0),
      node: received.node.splice(0),
      tokens: received.tokens.splice(0),
      layer2: received.layer2.splice(0)
    }),
    count: () => Object.values(received).reduce((sum, { length }) => sum + length, 0),
    watch: (watching) => {
      tell = watching
    }
  }
  return made
})
