/** Valid requests of every route, from a seed and the time: queries, candle windows, JSON-RPC, token calls and signed actions. */
import * as Json from "@trigate/domain/encoding/Encoding"
import { passthroughQueries } from "@trigate/domain/unstable/info/InfoQueries"
import { keys, tokens, transactions } from "@trigate/sandbox/SandboxExamples"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Signer from "@trigate/signing/Signer"
import * as SignerRecovery from "@trigate/signing/unstable/actions/CanonicalAction"
import { mainnet } from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as path from "node:path"
import type { Dice } from "../../packages/server/test/malformedBodies.ts"
import type { Body } from "../inspector/samples.ts"
import * as Samples from "../inspector/samples.ts"
import { fields } from "./generate.ts"
import type { FuzzRequest } from "./request.ts"
import { intervals, sparseCoin, unknownCoin } from "./script.ts"

/** The time of the first request: actions that the samples sign are valid then. */
export const began = Samples.nonce + 60_000

const Document = Schema.Struct({
  components: Schema.Struct({
    schemas: Schema.Struct({
      InfoRequest: Schema.Struct({ examples: Schema.Array(Schema.Record(Schema.String, Schema.Unknown)) })
    })
  })
})
const reference = Schema.decodeUnknownSync(Schema.fromJsonString(Document))(
  fs.readFileSync(path.join(import.meta.dirname, "../../docs/openapi.json"), "utf8")
)

const queries = [
  ...reference.components.schemas.InfoRequest.examples,
  ...Object.entries(passthroughQueries).map(([type, { about, example }]) =>
    Object.assign({ type }, example ?? (about === "user" ? { user: keys.trader.address } : {}))
  )
]

const users = [keys.trader, keys.leader, keys.stranger, keys.multiSigUser].map(({ address }) => address)
const coins = ["BTC", "ETH", "kPEPE", "xyz:XYZ100", sparseCoin, unknownCoin]

const query = (some: Dice): object => {
  const asked = some.pick(queries)
  return {
    ...asked,
    ...("user" in asked ? { user: some.pick(users) } : {}),
    ...("coin" in asked ? { coin: some.pick(coins) } : {})
  }
}

/** A window of bars: mostly the newest ones, which roll on with the time, or one that is long past. */
const candles = (some: Dice, now: number): object => {
  const interval = some.pick(Object.keys(intervals))
  const length = intervals[interval] ?? 0
  const newest = Math.floor(now / length) * length
  const count = some.pick([1, 20, 20, 100, 100, 300, some.roll(8) === 0 ? 6000 : 50])
  const endTime = some.pick([now, now, newest, newest - 1, newest - length * some.roll(200), now + length])
  const startTime = endTime - count * length + some.pick([0, 0, some.roll(1000), -1])
  const req = { coin: some.pick(coins), interval, startTime }
  return { type: "candleSnapshot", req: some.roll(6) === 0 ? req : { ...req, endTime } }
}

const decodeBatch = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Array(Schema.Record(Schema.String, Schema.Unknown)))
)

const contracts = [...users, "0x5555555555555555555555555555555555555555", `0x${"00".repeat(19)}01`]
const hashes = [...Object.values(transactions), `0x${"ab".repeat(32)}`]
const blocks = ["latest", "latest", "latest", "pending", "finalized", "0x1", "0x10"]

type Params = (some: Dice) => unknown

const none: Params = () => []
const atBlock: Params = (some) => [some.pick(contracts), some.pick(blocks)]
const ofHash: Params = (some) => [some.pick(hashes)]
const called = (some: Dice) => ({ to: some.pick(contracts), data: some.pick(["0x", "0x06fdde03", "0x95d89b41"]) })

const methods: ReadonlyArray<readonly [method: string, params: Params]> = [
  ["eth_chainId", none],
  ["eth_blockNumber", none],
  ["eth_gasPrice", none],
  ["eth_bigBlockGasPrice", none],
  ["eth_maxPriorityFeePerGas", none],
  ["eth_syncing", none],
  ["eth_accounts", none],
  ["web3_clientVersion", none],
  ["web3_sha3", () => ["0x68656c6c6f"]],
  ["net_version", none],
  ["eth_getBalance", atBlock],
  ["eth_getTransactionCount", atBlock],
  ["eth_getCode", atBlock],
  ["eth_usingBigBlocks", (some) => [some.pick(users)]],
  ["eth_getStorageAt", (some) => [some.pick(contracts), `0x${some.roll(40).toString(16)}`, some.pick(blocks)]],
  ["eth_call", (some) => [called(some), some.pick(blocks)]],
  ["eth_estimateGas", (some) => [called(some)]],
  ["eth_feeHistory", () => ["0x4", "latest", [25, 75]]],
  ["eth_getBlockByNumber", (some) => [some.pick(["latest", "latest", "0x1", "0x2d"]), some.roll(2) === 0]],
  ["eth_getBlockByHash", (some) => [some.pick(hashes), some.roll(2) === 0]],
  ["eth_getBlockReceipts", (some) => [some.pick(blocks)]],
  ["eth_getTransactionByHash", ofHash],
  ["eth_getTransactionReceipt", ofHash],
  ["eth_getTransactionReceipt", (some) => [`0x${some.roll(2 ** 30).toString(16).padStart(64, "0")}`]],
  ["eth_getLogs", (some) => {
    const from = some.roll(5000)
    const range = {
      fromBlock: `0x${from.toString(16)}`,
      toBlock: `0x${(from + some.pick([0, 9, 99, 900, 1500])).toString(16)}`
    }
    return [some.roll(3) === 0 ? { ...range, address: some.pick(contracts), topics: [some.pick(hashes)] } : range]
  }],
  ["eth_newBlockFilter", none],
  ["eth_newFilter", () => [{ fromBlock: "latest" }]],
  ["eth_getFilterChanges", (some) => [`0x${some.roll(9).toString(16).padStart(32, "0")}`]],
  ["eth_sendRawTransaction", (some) => [`0x02${some.roll(2 ** 30).toString(16).padStart(200, "0")}`]],
  ["zks_L1BatchNumber", none]
]

const call = (some: Dice): object => {
  const [method, params] = some.pick(methods)
  return { jsonrpc: "2.0", id: some.pick([1, some.roll(1000), `id-${some.roll(9)}`]), method, params: params(some) }
}

/** The calls of a batch without repetitions: it is left to chance whether equal calls share a response. */
const distinct = (all: ReadonlyArray<object>): ReadonlyArray<object> => {
  const known = new Set<string>()
  return all.filter((each) => {
    const text = JSON.stringify({ ...each, id: 0 })
    return !known.has(text) && known.add(text)
  })
}

/** Whether a batch has equal calls. */
export const repeats = ({ body }: FuzzRequest): boolean => {
  if (body[0] !== 0x5b) return false
  const calls = Option.getOrElse(decodeBatch(new TextDecoder().decode(body)), () => [])
  return distinct(calls).length < calls.length
}

const calls = (some: Dice): unknown =>
  some.roll(4) > 0 ? call(some) : distinct(Array.from({ length: some.pick([1, 2, 3, 10, 40]) }, () => call(some)))

const addresses = Object.values(tokens)

const tokenCall = (some: Dice): readonly [method: string, params: { readonly [name: string]: unknown }] => {
  const address = some.pick(addresses)
  return some.pick<readonly [string, { readonly [name: string]: unknown }]>([
    ["getTokenData", { address }],
    ["getTokenData", { address }],
    ["getMasterchainInfo", {}],
    ["getAddressInformation", { address }],
    ["getAddressBalance", { address }],
    ["getWalletInformation", { address }],
    ["detectAddress", { address }],
    ["unpackAddress", { address }],
    ["getTransactions", { address, limit: 1 + some.roll(20) }],
    ["runGetMethod", { address, method: some.pick(["seqno", "get_jetton_data"]), stack: [] }],
    ["getConfigParam", { config_id: some.roll(40) }],
    ["shards", { seqno: some.roll(9) }],
    ["getBlockHeader", { workchain: -1, shard: "-9223372036854775808", seqno: some.roll(9) }],
    ["estimateFee", { address, body: "te6cckEBAQEAAgAAAEysuc0=" }],
    ["sendBoc", { boc: "te6cckEBAQEAAgAAAEysuc0=" }]
  ])
}

const post = (target: string, body: string): FuzzRequest => ({
  method: "POST",
  target,
  headers: [["host", "localhost"], ["content-type", "application/json"]],
  body: new TextEncoder().encode(body),
  framing: "length"
})

const get = (target: string): FuzzRequest => ({
  method: "GET",
  target,
  headers: [["host", "localhost"]],
  body: new Uint8Array(0),
  framing: "none"
})

const tokenRequest = (some: Dice): FuzzRequest => {
  const [method, params] = tokenCall(some)
  if (some.roll(2) === 0) {
    return post("/api/v2/jsonRPC", JSON.stringify({ jsonrpc: "2.0", id: some.roll(100), method, params }))
  }
  if (some.roll(2) === 0) return post(`/api/v2/${method}`, JSON.stringify(params))
  const members = Object.entries(params).map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
  return get(`/api/v2/${method}${members.length === 0 ? "" : `?${members.join("&")}`}`)
}

const resources = [
  "/health/live",
  "/health/ready",
  "/metrics",
  "/openapi.json",
  "/docs",
  "/candles",
  "/candles/BTC/1d",
  "/candles/BTC/1m?from=1795230000000&format=csv",
  "/actions",
  "/admin/actions",
  "/admin/keys",
  "/admin/rate-limits",
  "/admin/requests",
  "/admin/settings",
  "/admin/history",
  "/admin/sandbox",
  "/nowhere"
]

const admin: ReadonlyArray<readonly [target: string, body: string]> = [
  ["/admin/sandbox/books", `{"coin":"BTC","book":{"bids":[{"px":"59990","sz":"0.1"}],"asks":[]}}`],
  ["/admin/sandbox/accounts", `{"user":"${keys.stranger.address}","usd":"10000"}`],
  ["/admin/sandbox/prices", `{"coin":"BTC","points":[{"time":0,"price":60000},{"time":60000,"price":58000}]}`],
  ["/admin/sandbox/snapshots", "{}"]
]

/** Members of a user-signed action that repeat the nonce. */
const repeatsNonce = new Set(["nonce", "time"])

/** Signs the samples, and returns what makes the requests for one gateway: some repeat an action that it got before. */
export const make = Effect.gen(function*() {
  const samples = (yield* Effect.promise(Samples.ofPeer)).filter(({ network }) => network === "mainnet")
  const engine = yield* Secp256k1.Secp256k1
  const signers = yield* Effect.forEach(
    [keys.trader, keys.trader, keys.leader, keys.stranger, keys.agent],
    ({ privateKey }) =>
      Signer.makePrivateKey(Redacted.make(privateKey)).pipe(Effect.provideService(Secp256k1.Secp256k1, engine))
  )
  const run = Effect.runSyncWith(yield* Effect.context())

  return () => {
    const sent: Array<readonly [body: string, signer: string, nonce: number]> = []

    /** The action of a sample, or some orders, signed anew. */
    const signed = (some: Dice, now: number): string => {
      const nonce = now - some.pick([0, 0, 0, some.roll(10_000)])
      const { action } = some.pick(samples).body
      const members = Object.fromEntries(
        Object.entries(some.roll(2) === 0 ? orders(some) : action).map(([name, value]) => [
          name,
          repeatsNonce.has(name) && value === Samples.nonce ? nonce : value
        ])
      )
      const context = {
        ...(some.roll(20) === 0 ? { vaultAddress: keys.validator.address } : {}),
        ...(some.roll(10) === 0 ? { expiresAfter: now + some.pick([60_000, 1, -1]) } : {})
      }
      const signer = some.pick(signers)
      const signable = SignerRecovery.requestSignable(mainnet, { action: members, nonce, ...context })
      if (Result.isFailure(signable)) return Json.stringify(some.pick(samples).body)
      const signature = run(signer.sign(signable.success.outer))
      const body = Json.stringify({ action: members, nonce, signature, ...context })
      sent.push([body, signer.address, nonce])
      if (sent.length > 1000) sent.shift()
      return body
    }

    const action = (some: Dice, now: number): FuzzRequest => {
      const before = sent.length > 0 && some.roll(6) === 0 ? some.pick(sent) : undefined
      if (before !== undefined && some.roll(2) === 0) {
        return get(`/actions?signer=${before[1]}&nonce=${before[2]}${some.pick(["", "", "&wait=0", "&wait=2"])}`)
      }
      return post(
        some.pick(["/exchange", "/exchange", "/exchange", "/exchange/inspect"]),
        before?.[0] ?? signed(some, now)
      )
    }

    const any = (some: Dice, now: number): FuzzRequest => {
      const kind = some.roll(100)
      if (kind < 15) return post("/info", JSON.stringify(query(some)))
      if (kind < 35) return post("/info", JSON.stringify(candles(some, now)))
      if (kind < 65) return post(some.pick(["/evm", "/l2"]), JSON.stringify(calls(some)))
      if (kind < 75) return tokenRequest(some)
      if (kind < 95) return action(some, now)
      if (kind < 99) return get(some.pick(resources))
      return post(...some.pick(admin))
    }

    return (some: Dice, now: number): FuzzRequest => {
      const request = any(some, now)
      if (some.roll(6) > 0) return request
      const [name, values] = some.pick(fields)
      return { ...request, headers: [...request.headers, [name, some.pick(values)]] }
    }
  }
}).pipe(Effect.provide(Secp256k1.layer))

const limits = [{ limit: { tif: "Gtc" } }, { limit: { tif: "Ioc" } }, { limit: { tif: "Alo" } }]

/** An order action of one or more legs, a cancellation, or a change. */
const orders = (some: Dice): Body["action"] => {
  const order = () => ({
    a: some.roll(3),
    b: some.roll(2) === 0,
    p: String(1000 + some.roll(100_000)),
    s: some.pick(["0.01", "0.2", "3"]),
    r: some.roll(8) === 0,
    t: some.pick(limits),
    ...(some.roll(2) === 0 ? { c: `0x${some.roll(2 ** 30).toString(16).padStart(32, "0")}` } : {})
  })
  const many = <A>(make: () => A) => Array.from({ length: some.pick([1, 1, 1, 2, 5, 50]) }, make)
  return some.pick<() => Body["action"]>([
    () => ({ type: "order", orders: many(order), grouping: "na" }),
    () => ({ type: "order", orders: many(order), grouping: "na" }),
    () => ({ type: "order", orders: many(order), grouping: "na" }),
    () => ({ type: "cancel", cancels: many(() => ({ a: some.roll(3), o: 1 + some.roll(50) })) }),
    () => ({
      type: "cancelByCloid",
      cancels: many(() => ({ asset: some.roll(3), cloid: `0x${some.roll(2 ** 30).toString(16).padStart(32, "0")}` }))
    }),
    () => ({ type: "modify", oid: 1 + some.roll(50), order: order() }),
    () => ({ type: "batchModify", modifies: many(() => ({ oid: 1 + some.roll(50), order: order() })) })
  ])()
}
