/** One call of each kind that a gateway relays: how it is asked, what a sound upstream says, what the caller then gets. */
import { assert } from "@effect/vitest"
import type { ReceivedRequest } from "@trigate/testing/FaultyUpstream"
import { idIn } from "@trigate/testing/FaultyUpstream"
import type { GatewayResponse } from "@trigate/testing/Gateway"
import { get, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import type { Said } from "@trigate/testing/Reactions"
import * as Recordings from "@trigate/testing/Recordings"
import type * as Effect from "effect/Effect"

/** How a route tells of failures. */
export type Protocol = "http" | "json-rpc" | "token-rpc"

/** Which upstream a route asks. */
export type Kind = "api" | "node" | "tokens" | "layer2"

export interface Route {
  readonly name: string
  readonly kind: Kind
  readonly protocol: Protocol
  /** The label of the upstream in errors. */
  readonly label: string
  readonly ask: (gateway: string) => Effect.Effect<GatewayResponse>
  /** A sound answer of the upstream. */
  readonly good: Said
  /** The text that a caller gets of it. */
  readonly expected: string
}

/** The body of a sound JSON-RPC answer with a raw result. */
export const result = (raw: string) => ({ body }: ReceivedRequest): string =>
  `{"jsonrpc":"2.0","id":${idIn(body)},"result":${raw}}`

const candles = JsonParts.raw(Recordings.text("candleSnapshot-kPEPE-1h.json"), ["response"])
const candleQuestion =
  `{"type":"candleSnapshot","req":{"coin":"kPEPE","interval":"1h","startTime":1689544800000,"endTime":1689630000000}}`

/** A question for the receipt of a transaction. */
export const receiptQuestion = (hash: string, id = "1"): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"eth_getTransactionReceipt","params":["${hash}"]}`

/** The hash of some transaction, a word or a slot of storage. */
export const hashOf = (index: number): string => `0x${index.toString(16).padStart(64, "0")}`

let lastSlot = 0

/** A question for a word of storage that nobody asked for before: no answer to it can have been kept. */
export const storageQuestion = (): string => {
  lastSlot += 1
  return `{"jsonrpc":"2.0","id":1,"method":"eth_getStorageAt","params":` +
    `["0x0123456789abcdef0123456789abcdef01234567","${hashOf(lastSlot)}","latest"]}`
}

const token = "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs"
const tokenQuestion = `{"jsonrpc":"2.0","id":1,"method":"getAddressBalance","params":{"address":"${token}"}}`
const flatToken =
  `{"name":"Tether USD","symbol":"USDT","decimals":6,"totalSupply":"1000","mintable":true,"burnable":false}`
const tokenAnswer = `{"decimals":6,"totalSupply":"1000","mintable":true,"burnable":false,"name":"Tether USD",` +
  `"symbol":"USDT","address":"${token}","metadata":"offchain"}`

export const info: Route = {
  name: "/info",
  kind: "api",
  protocol: "http",
  label: "trading-api",
  ask: (gateway) => post(`${gateway}/info`, candleQuestion),
  good: { body: candles },
  expected: candles
}

export const evm: Route = {
  name: "/evm",
  kind: "node",
  protocol: "json-rpc",
  label: "trading-node",
  ask: (gateway) => post(`${gateway}/evm`, storageQuestion()),
  good: { body: result(`"${hashOf(7)}"`) },
  expected: `{"jsonrpc":"2.0","id":1,"result":"${hashOf(7)}"}`
}

export const layer2: Route = {
  name: "/l2",
  kind: "layer2",
  protocol: "json-rpc",
  label: "layer2",
  ask: (gateway) => post(`${gateway}/l2`, receiptQuestion(hashOf(1))),
  good: { body: result("null") },
  expected: `{"jsonrpc":"2.0","id":1,"result":null}`
}

export const tokenData: Route = {
  name: "/api/v2/getTokenData",
  kind: "tokens",
  protocol: "http",
  label: "token-chain",
  ask: (gateway) => get(`${gateway}/api/v2/getTokenData?address=${token}`),
  good: { body: flatToken },
  expected: tokenAnswer
}

export const tokenRpc: Route = {
  name: "/api/v2/jsonRPC",
  kind: "tokens",
  protocol: "token-rpc",
  label: "token-chain",
  ask: (gateway) => post(`${gateway}/api/v2/jsonRPC`, tokenQuestion),
  good: { body: `{"ok":true,"result":"1400"}` },
  expected: `{"ok":true,"result":"1400","jsonrpc":"2.0","id":1}`
}

/** Every kind of read. */
export const reads: ReadonlyArray<Route> = [info, evm, layer2, tokenData, tokenRpc]

/** The reads that reach an upstream each time that they are asked; an answer about a token is kept for a while. */
export const neverCached: ReadonlyArray<Route> = [info, evm, layer2, tokenRpc]

/** The reads whose answers are JSON-RPC 2.0. */
export const jsonRpcReads: ReadonlyArray<Route> = [evm, layer2]

/** Asserts that a caller got a route's sound answer. */
export const assertGood = (route: Route, answer: GatewayResponse): void => {
  assert.strictEqual(answer.status, 200, answer.text.slice(0, 400))
  if (route.kind === "tokens") assert.deepStrictEqual(answer.json, JSON.parse(route.expected))
  else assert.strictEqual(answer.text, route.expected)
}

const failures: { readonly [tag: string]: readonly [status: number, code: number] } = {
  UpstreamUnavailable: [503, -32603],
  UpstreamRateLimited: [429, -32005],
  UpstreamTimeout: [504, -32603],
  UpstreamMalformed: [502, -32603],
  UpstreamForbidden: [502, -32004],
  OutcomeUnknown: [504, -32050],
  NonceAlreadyUsed: [409, -32603]
}

/** Asserts that a caller got a typed error in the words of a protocol, and gives the error. */
export const assertFailure = (protocol: Protocol, answer: GatewayResponse, tag: string): unknown => {
  const [status, code] = failures[tag] ?? [0, 0]
  const error = protocol === "http"
    ? answer.json
    : JsonParts.at(answer.json, ...(protocol === "json-rpc" ? ["error", "data"] : ["data"]))
  assert.strictEqual(JsonParts.at(error, "_tag"), tag, answer.text.slice(0, 400))
  assert.strictEqual(JsonParts.at(error, "status"), status)
  assert.strictEqual(answer.status, protocol === "http" ? status : 200)
  assert.strictEqual(answer.type, protocol === "http" ? "application/problem+json" : "application/json")
  if (protocol === "json-rpc") assert.strictEqual(JsonParts.at(answer.json, "error", "code"), code)
  if (protocol === "token-rpc") assert.strictEqual(JsonParts.at(answer.json, "code"), code)
  return error
}
