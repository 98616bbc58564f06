/**
 * Every row of the table of errors that a gateway of today can produce, over a socket: as raw HTTP shows it, and as the
 * typed client gives it back.
 *
 * Not reached yet: `QuotaExceeded` (needs callers' keys). `NotPermitted` has its tests in `attacks/CrossSite.test.ts`.
 */
import { describe, it } from "@effect/vitest"
import { actionCatalog } from "@trigate/domain/actions/Action"
import type { SignedAction } from "@trigate/domain/actions/Action"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import type { Client } from "@trigate/testing/Client"
import { get, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { rpcReply } from "@trigate/testing/RecordingUpstream"
import { sample } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { gzipSync } from "node:zlib"
import { bigBlocks, bodyOf, delegate, validator } from "./bodies.ts"
import type { Row } from "./errorRow.ts"
import { check, dead } from "./errorRow.ts"
import { deadline } from "./faults/time.ts"

const DAY = 86_400_000
const limit = 1024 * 1024
const signedLimit = 64 * 1024
const address = "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs"
const badAddress = `${address.slice(0, -1)}t`
const hash = `0x${"ab".repeat(32)}` as const
const slot = `0x${"0".repeat(64)}` as const
const html = () => ({ type: "text/html", body: "<html></html>" })
const silence = () => "silence" as const
const hangUp = () => "hang-up" as const

const bigBlocksOf = (nonce: number): SignedAction => ({
  action: { type: "evmUserModify", usingBigBlocks: true },
  nonce,
  signature: { r: "0x1", s: "0x2", v: 27 }
})
const receiptCall = `{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["${hash}"]}`
const gasCall = `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`
const detectCall = `{"jsonrpc":"2.0","id":1,"method":"detectAddress","params":{"address":"${address}"}}`
const candles = `{"type":"candleSnapshot","req":{"coin":"NOPE","interval":"1h","startTime":0}}`

/** The address that a made-up signature recovers to: another one under each nonce. */
const signerIn = (error: unknown, member: string): string | undefined =>
  /^0x[0-9a-f]{40}$/u.exec(String(JsonParts.at(error, member)))?.[0]

/** How each route is asked and which call of the client asks it. */
const exchange = {
  ask: (url: string, now: number) => post(`${url}/exchange`, bodyOf(now, bigBlocks)),
  client: (client: Client, now: number) => client.exchange.submit(bigBlocksOf(now))
}
const spotMeta = {
  ask: (url: string) => post(`${url}/info`, `{"type":"spotMeta"}`),
  client: (client: Client) => client.info.spotMeta()
}
const candleSnapshot = {
  ask: (url: string) => post(`${url}/info`, candles),
  client: (client: Client) => client.info.candleSnapshot({ coin: "NOPE", interval: "1h", startTime: 0 })
}
const gasPrice = {
  ask: (url: string) => post(`${url}/evm`, gasCall),
  client: (client: Client) => client.evm.gasPrice()
}
const receipt = {
  ask: (url: string) => post(`${url}/l2`, receiptCall),
  client: (client: Client) => client.layer2.getTransactionReceipt({ hash })
}
const tokenData = {
  ask: (url: string) => get(`${url}/api/v2/getTokenData?address=${address}`),
  client: (client: Client) => client.tokens.getTokenData({ address })
}
const detect = {
  ask: (url: string) => post(`${url}/api/v2/jsonRPC`, detectCall),
  client: (client: Client) => client.tokens.detectAddress({ address })
}
const rpc = (code: number, id?: unknown) => ({
  protocol: "json-rpc" as const,
  code,
  ...(id === undefined ? {} : { id })
})
const tokenRpc = (code: number, id?: unknown) => ({
  protocol: "token-rpc" as const,
  code,
  ...(id === undefined ? {} : { id })
})

const faults = (...errors: ReadonlyArray<readonly [path: ReadonlyArray<string | number>, message: string]>) => () => ({
  errors: errors.map(([path, message]) => ({ path, message }))
})
const refusedBody = (
  what: string,
  body: string | Uint8Array<ArrayBuffer>,
  fields: Row["fields"],
  type?: string
): Row => ({
  what: `/exchange, ${what}`,
  tag: "InvalidRequest",
  ask: (url) => post(`${url}/exchange`, body, type === undefined ? {} : { "content-type": type }),
  status: 400,
  fields,
  sent: 0,
  client: exchange.client,
  replay: true
})

const invalidRequest: ReadonlyArray<Row> = [
  refusedBody("no JSON", "{", faults([[], "Not a JSON document"])),
  refusedBody("nothing at all", "", faults([[], "Not a JSON document"])),
  refusedBody("a key twice", `{"nonce":1,"nonce":1}`, faults([["nonce"], `Duplicate key "nonce"`])),
  refusedBody("nested too deep", "[".repeat(65), faults([[0, 0, 0, 0, 0, 0, 0, 0], "Nested deeper than 64 levels"])),
  refusedBody("no UTF-8", Uint8Array.of(0x22, 0xff, 0x22), faults([[], "Not valid UTF-8"])),
  refusedBody(
    "another content type",
    bodyOf(1, bigBlocks),
    faults([[], "The content type must be application/json"]),
    "text/plain"
  ),
  refusedBody(
    "members missing",
    `{"action":{"type":"evmUserModify","usingBigBlocks":1},"signature":{"r":"0x1","s":"0x2","v":29}}`,
    (_now, error) => ({ errors: JsonParts.at(error, "errors") })
  ),
  {
    what: "/exchange, a form that strict mode refuses",
    tag: "InvalidRequest",
    environment: { TRIGATE_STRICT: "on" },
    ask: (url, now) => post(`${url}/exchange`, bodyOf(now, `{"type":"evmUserModify","modifications":[]}`)),
    status: 400,
    fields: faults([["action", "modifications"], "evmUserModify takes `usingBigBlocks`, not `modifications`"]),
    sent: 0,
    client: (client, now) =>
      client.exchange.submit({ ...bigBlocksOf(now), action: { type: "evmUserModify", modifications: [] } })
  },
  {
    what: "/info, an unknown type",
    tag: "InvalidRequest",
    environment: { TRIGATE_RELAY_INFO: "off" },
    ask: (url) => post(`${url}/info`, `{"type":"exchangeStatus"}`),
    status: 400,
    fields: faults([["type"], `Expected one of ${Object.keys(infoOperations).join(", ")}`.slice(0, 240)]),
    sent: 0,
    client: spotMeta.client,
    replay: true
  },
  {
    what: "/api/v2/getTokenData, no address",
    tag: "InvalidRequest",
    ask: (url) => get(`${url}/api/v2/getTokenData`),
    status: 400,
    fields: faults([["query", "address"], "Missing key"]),
    sent: 0,
    client: tokenData.client,
    replay: true
  },
  {
    what: "/{key}/info, a key that is none",
    tag: "InvalidRequest",
    ask: (url) => post(`${url}/k.e.y/info`, `{"type":"spotMeta"}`),
    status: 400,
    fields: (_now, error) => ({
      errors: [{ path: ["path", "endpointKey"], message: JsonParts.at(error, "errors", 0, "message") }]
    }),
    sent: 0,
    client: spotMeta.client,
    endpointKey: "k.e.y"
  },
  {
    what: "/evm, no JSON",
    tag: "InvalidRequest",
    ask: (url) => post(`${url}/evm`, "{"),
    status: 400,
    rpc: rpc(-32700, null),
    fields: faults([[], "Not a JSON document"]),
    sent: 0,
    client: gasPrice.client,
    replay: true
  },
  {
    what: "/evm, no JSON-RPC",
    tag: "InvalidRequest",
    ask: (url) => post(`${url}/evm`, `{"id":1,"method":"eth_gasPrice"}`),
    status: 400,
    rpc: rpc(-32600),
    fields: faults([[], `Expected "jsonrpc": "2.0"`]),
    sent: 0,
    client: gasPrice.client,
    replay: true
  },
  {
    what: "/evm, params of another shape",
    tag: "InvalidRequest",
    ask: (url) => post(`${url}/evm`, `{"jsonrpc":"2.0","id":1,"method":"eth_usingBigBlocks","params":["0x1"]}`),
    status: 400,
    rpc: rpc(-32602),
    fields: (_now, error) => ({
      errors: [{ path: ["params", 0], message: JsonParts.at(error, "errors", 0, "message") }]
    }),
    sent: 0,
    client: (client) => client.evm.usingBigBlocks({ address: validator }),
    replay: true
  },
  {
    what: "/evm, another content type",
    tag: "InvalidRequest",
    ask: (url) => post(`${url}/evm`, gasCall, { "content-type": "text/plain" }),
    status: 400,
    http: 400,
    rpc: rpc(-32600, null),
    fields: faults([[], "The content type must be application/json"]),
    sent: 0,
    client: gasPrice.client,
    replay: true
  },
  {
    what: "/l2, a hash that is none",
    tag: "InvalidRequest",
    ask: (url) => post(`${url}/l2`, `{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["0x12"]}`),
    status: 400,
    rpc: rpc(-32602),
    fields: (_now, error) => ({
      errors: [{ path: ["params", 0], message: JsonParts.at(error, "errors", 0, "message") }]
    }),
    sent: 0,
    client: receipt.client,
    replay: true
  },
  {
    what: "/api/v2/jsonRPC, an unknown member of params",
    tag: "InvalidRequest",
    ask: (url) =>
      post(
        `${url}/api/v2/jsonRPC`,
        `{"jsonrpc":"2.0","id":1,"method":"detectAddress","params":{"address":"${address}","seqno":1}}`
      ),
    status: 400,
    rpc: tokenRpc(-32602),
    fields: (_now, error) => ({
      errors: [{ path: ["params", "seqno"], message: JsonParts.at(error, "errors", 0, "message") }]
    }),
    sent: 0,
    client: detect.client,
    replay: true
  }
]

const notSupported: ReadonlyArray<Row> = [
  {
    what: "an action outside the catalog",
    tag: "UnsupportedAction",
    ask: (url, now) => post(`${url}/exchange`, bodyOf(now, `{"type":"fromTheFuture"}`)),
    status: 422,
    fields: () => ({ actionType: "fromTheFuture", supported: Object.keys(actionCatalog) }),
    sent: 0,
    client: exchange.client,
    replay: true
  },
  ...(["evm", "l2"] as const).map((route): Row => ({
    what: `/${route}, a method beyond its own`,
    tag: "UnsupportedMethod",
    ask: (url) => post(`${url}/${route}`, `{"jsonrpc":"2.0","id":1,"method":"debug_traceCall","params":[{},"latest"]}`),
    status: 404,
    rpc: rpc(-32601),
    fields: () => ({ method: "debug_traceCall" }),
    sent: 0,
    client: route === "evm" ? gasPrice.client : receipt.client,
    replay: true
  })),
  {
    what: "/api/v2/jsonRPC, a method beyond its own",
    tag: "UnsupportedMethod",
    ask: (url) =>
      post(`${url}/api/v2/jsonRPC`, `{"jsonrpc":"2.0","id":1,"method":"sendBocUnsafe","params":{"boc":"te6"}}`),
    status: 404,
    rpc: tokenRpc(-32601),
    fields: () => ({ method: "sendBocUnsafe" }),
    sent: 0,
    client: detect.client,
    replay: true
  },
  {
    what: "state at another block than latest",
    tag: "UnsupportedBlock",
    ask: (url) =>
      post(
        `${url}/evm`,
        `{"jsonrpc":"2.0","id":1,"method":"eth_getStorageAt","params":["${validator}","0x0","0x10"]}`
      ),
    status: 400,
    rpc: rpc(-32602),
    fields: () => ({ method: "eth_getStorageAt", block: "0x10", supported: ["latest"] }),
    sent: 0,
    client: (client) => client.evm.getStorageAt({ address: validator, slot }),
    replay: true
  }
]

const unavailable: ReadonlyArray<Row> = [
  {
    what: "/{key}/exchange",
    tag: "UnavailableOnNode",
    ask: (url, now) => post(`${url}/some-key/exchange`, bodyOf(now, bigBlocks)),
    status: 501,
    fields: () => ({ operation: "exchange", availableOn: ["official-api"] }),
    sent: 0,
    client: exchange.client,
    endpointKey: "some-key"
  },
  {
    what: "/{key}/info, candleSnapshot",
    tag: "UnavailableOnNode",
    ask: (url) => post(`${url}/some-key/info`, candles),
    status: 501,
    fields: () => ({ operation: "candleSnapshot", availableOn: ["official-api"] }),
    sent: 0,
    client: candleSnapshot.client,
    endpointKey: "some-key"
  },
  {
    what: "/info, candleSnapshot with a node only",
    tag: "UnavailableOnNode",
    environment: { TRIGATE_TRADING_API_URL: "" },
    status: 501,
    fields: () => ({ operation: "candleSnapshot", availableOn: ["official-api"] }),
    sent: 0,
    ...candleSnapshot
  },
  {
    what: "/exchange",
    tag: "ChainNotConfigured",
    environment: { TRIGATE_TRADING_API_URL: "", TRIGATE_TRADING_NODE_URL: "" },
    status: 501,
    fields: () => ({ chain: "trading" }),
    sent: 0,
    ...exchange
  },
  {
    what: "/info",
    tag: "ChainNotConfigured",
    environment: { TRIGATE_TRADING_API_URL: "", TRIGATE_TRADING_NODE_URL: "" },
    status: 501,
    fields: () => ({ chain: "trading" }),
    sent: 0,
    ...spotMeta
  },
  {
    what: "/evm",
    tag: "ChainNotConfigured",
    environment: { TRIGATE_TRADING_NODE_URL: "" },
    status: 501,
    rpc: rpc(-32004),
    fields: () => ({ chain: "trading" }),
    sent: 0,
    ...gasPrice
  },
  {
    what: "/l2",
    tag: "ChainNotConfigured",
    environment: { TRIGATE_LAYER2_URL: "" },
    status: 501,
    rpc: rpc(-32004),
    fields: () => ({ chain: "layer2" }),
    sent: 0,
    ...receipt
  },
  {
    what: "/api/v2/getTokenData",
    tag: "ChainNotConfigured",
    environment: { TRIGATE_TOKEN_CHAIN_URL: "" },
    status: 501,
    fields: () => ({ chain: "tokens" }),
    sent: 0,
    ...tokenData
  },
  {
    what: "/api/v2/jsonRPC",
    tag: "ChainNotConfigured",
    environment: { TRIGATE_TOKEN_CHAIN_URL: "" },
    status: 501,
    rpc: tokenRpc(-32004),
    fields: () => ({ chain: "tokens" }),
    sent: 0,
    ...detect
  }
]

const history = {
  ask: (url: string) => get(`${url}/candles`),
  client: (client: Client) => client.candles.list()
}
const candleFile = {
  ask: (url: string) => get(`${url}/candles/BTC/1m`),
  client: (client: Client) => Stream.runDrain(client.candles.bars({ coin: "BTC", interval: "1m" }))
}

const nowhere = { TRIGATE_ARCHIVE: "BTC:1m", TRIGATE_DATABASE_URL: "/proc/nowhere/trigate.sqlite" }

const archive: ReadonlyArray<Row> = [
  {
    what: "/candles",
    tag: "ArchiveNotConfigured",
    status: 501,
    fields: () => ({ setting: "TRIGATE_ARCHIVE" }),
    sent: 0,
    ...history
  },
  {
    what: "/candles/BTC/1m",
    tag: "ArchiveNotConfigured",
    status: 501,
    fields: () => ({ setting: "TRIGATE_ARCHIVE" }),
    sent: 0,
    ...candleFile
  },
  {
    what: "/candles, a database that cannot be opened",
    tag: "ArchiveUnavailable",
    environment: nowhere,
    status: 503,
    fields: () => ({ reason: "away" }),
    sent: 0,
    ...history
  },
  {
    what: "/candles/BTC/1m, a database that cannot be opened",
    tag: "ArchiveUnavailable",
    environment: nowhere,
    status: 503,
    fields: () => ({ reason: "away" }),
    sent: 0,
    ...candleFile
  }
]

const signed: ReadonlyArray<Row> = [
  ...([["two days ago", -2 * DAY], ["a day from now", DAY + 60_000]] as const).map(([what, shift]): Row => ({
    what: `a nonce of ${what}`,
    tag: "NonceOutOfWindow",
    ask: (url, now) => post(`${url}/exchange`, bodyOf(now + shift, bigBlocks)),
    status: 422,
    fields: (now, error) => {
      const seen = Number(JsonParts.at(error, "now"))
      return { nonce: now + shift, now: seen, earliest: seen - 2 * DAY, latest: seen + DAY }
    },
    sent: 0,
    client: (client, now) => client.exchange.submit(bigBlocksOf(now + shift))
  })),
  {
    what: "another nonce in the action",
    tag: "NonceMismatch",
    ask: (url, now) => post(`${url}/exchange`, bodyOf(now, delegate(now + 1))),
    status: 422,
    fields: (now) => ({ nonce: now, actionNonce: now + 1 }),
    sent: 0,
    client: (client, now) =>
      client.exchange.submit({
        ...bigBlocksOf(now),
        action: {
          type: "tokenDelegate",
          signatureChainId: "0x66eee",
          hyperliquidChain: "Mainnet",
          validator,
          wei: 1n,
          isUndelegate: false,
          nonce: now + 1
        }
      })
  },
  {
    what: "a form of which nobody can tell the signer, where signers are listed",
    tag: "InvalidSignature",
    environment: { TRIGATE_SIGNERS: validator },
    ask: (url, now) => post(`${url}/exchange`, bodyOf(now, `{"type":"evmUserModify","modifications":[]}`)),
    status: 422,
    fields: (_now, error) => ({ reason: JsonParts.at(error, "reason") }),
    sent: 0,
    client: (client, now) =>
      client.exchange.submit({ ...bigBlocksOf(now), action: { type: "evmUserModify", modifications: [] } })
  },
  {
    what: "another signer than the caller expects",
    tag: "InvalidSignature",
    ask: (url, now) => post(`${url}/exchange`, bodyOf(now, bigBlocks), { "x-trigate-expected-signer": validator }),
    status: 422,
    fields: (_now, error) => ({
      reason: "another signer was expected",
      recovered: signerIn(error, "recovered"),
      expected: validator
    }),
    sent: 0,
    client: exchange.client,
    replay: true
  },
  {
    what: "the identical bytes, after the venue has answered",
    tag: "NonceAlreadyUsed",
    upstreams: { api: () => ({ body: `{"status":"ok","response":{"type":"default"}}` }) },
    ask: (url, now) => Effect.andThen(exchange.ask(url, now), exchange.ask(url, now)),
    status: 409,
    fields: (now, error) => ({ signer: signerIn(error, "signer"), nonce: now, settled: "accepted" }),
    sent: 1,
    client: exchange.client,
    replay: true
  },
  {
    what: "a signer that is not listed",
    tag: "SignerNotAllowed",
    environment: { TRIGATE_SIGNERS: validator },
    status: 403,
    fields: (_now, error) => ({ signer: signerIn(error, "signer") }),
    sent: 0,
    ...exchange
  }
]

const outcomes: ReadonlyArray<Row> = [
  {
    what: "an action that nobody sent",
    tag: "ActionNotFound",
    ask: (url) => get(`${url}/actions/0xabc`),
    status: 404,
    fields: () => ({}),
    sent: 0,
    client: (client) => client.exchange.outcome({ id: "0xabc" })
  },
  {
    what: "an action that is named by half",
    tag: "InvalidRequest",
    ask: (url) => get(`${url}/actions?signer=${validator}`),
    status: 400,
    fields: () => ({
      errors: [{
        path: [],
        message: "Expected the path /actions/{id}, the query parameters signer and nonce, or the query parameter cloid"
      }]
    }),
    sent: 0,
    client: (client) => client.exchange.outcome({ id: "0xabc" }),
    replay: true
  }
]

const callers: ReadonlyArray<Row> = [
  {
    what: "a route's name for a key",
    tag: "Unauthorized",
    ask: (url) => post(`${url}/health/info`, `{"type":"spotMeta"}`),
    status: 401,
    fields: () => ({}),
    sent: 0,
    client: spotMeta.client,
    endpointKey: "health"
  },
  {
    what: "a route's name for a key, JSON-RPC",
    tag: "Unauthorized",
    ask: (url) => post(`${url}/health/evm`, gasCall),
    status: 401,
    http: 401,
    rpc: rpc(-32001, null),
    fields: () => ({}),
    sent: 0,
    client: gasPrice.client,
    endpointKey: "health"
  },
  {
    what: "a route's name for a key, the token chain's JSON-RPC",
    tag: "Unauthorized",
    ask: (url) => post(`${url}/health/api/v2/jsonRPC`, detectCall),
    status: 401,
    http: 401,
    rpc: tokenRpc(-32001, null),
    fields: () => ({}),
    sent: 0,
    client: detect.client,
    endpointKey: "health"
  }
]

const bomb = new Uint8Array(gzipSync(Buffer.alloc(64 * 1024 * 1024, 0x20)))
const tooLarge: ReadonlyArray<Row> = ([
  ["exchange", exchange.client],
  ["info", spotMeta.client],
  ["evm", gasPrice.client],
  ["l2", receipt.client],
  ["api/v2/jsonRPC", detect.client]
] as const).flatMap(([route, client]) => {
  const most = route === "exchange" ? signedLimit : limit
  const spaces = " ".repeat(most + 1)
  const shape = {
    tag: "PayloadTooLarge" as const,
    status: 413,
    http: 413,
    ...(route === "evm" || route === "l2" ? { rpc: rpc(-32600, null) } : {}),
    ...(route === "api/v2/jsonRPC" ? { rpc: tokenRpc(-32600, null) } : {}),
    fields: () => ({ limit: most }),
    sent: 0,
    client,
    replay: true as const
  }
  return [
    { ...shape, what: `/${route}, a byte too long`, ask: (url) => post(`${url}/${route}`, spaces) },
    {
      ...shape,
      what: `/${route}, ${bomb.length} bytes that unpack to 64 MB`,
      ask: (url) => post(`${url}/${route}`, bomb, { "content-encoding": "gzip" })
    }
  ] satisfies ReadonlyArray<Row>
})

const resources: ReadonlyArray<Row> = [
  {
    what: "/api/v2/getTokenData, a wrong checksum",
    tag: "InvalidAddress",
    ask: (url) => get(`${url}/api/v2/getTokenData?address=${badAddress}`),
    status: 400,
    fields: () => ({ address: badAddress, reason: "checksum differs" }),
    sent: 0,
    client: (client) => client.tokens.getTokenData({ address: badAddress })
  },
  {
    what: "/api/v2/jsonRPC, a wrong checksum",
    tag: "InvalidAddress",
    ask: (url) => post(`${url}/api/v2/jsonRPC`, detectCall.replace(address, badAddress)),
    status: 400,
    rpc: tokenRpc(-32602),
    fields: () => ({ address: badAddress, reason: "checksum differs" }),
    sent: 0,
    client: (client) => client.tokens.detectAddress({ address: badAddress })
  },
  {
    what: "an NFT",
    tag: "TokenNotFound",
    upstreams: { tokens: () => ({ body: `{"ok":true,"result":{"contract_type":"nft_item","init":true,"index":0}}` }) },
    status: 404,
    fields: () => ({ address, contractType: "nft_item" }),
    sent: 1,
    ...tokenData
  },
  {
    what: "a contract that is no token",
    tag: "TokenNotFound",
    upstreams: {
      tokens: () => ({ status: 409, body: `{"ok":false,"error":"Smart contract is not a Jetton or NFT","code":409}` })
    },
    status: 404,
    fields: () => ({ address, contractType: "none" }),
    sent: 1,
    ...tokenData
  },
  {
    what: "a coin that the venue does not know",
    tag: "UnknownAsset",
    upstreams: { api: () => ({ status: 500, body: "null" }) },
    status: 404,
    fields: () => ({ coin: "NOPE" }),
    sent: 1,
    ...candleSnapshot
  }
]

// what the upstream asks to wait for lies behind the deadline
const limited = (body: string) => () => ({ status: 429, headers: { "retry-after": "9" }, body })
const overloaded = () => ({ status: 503, headers: { "retry-after": "3" }, body: `{"error":"overloaded"}` })
const outcomeUnknown = ([
  ["the exchange breaks", hangUp],
  ["no response in time", silence],
  ["HTML", html],
  ["an empty answer", () => ({ body: "" })],
  ["HTML under 502", () => ({ ...html(), status: 502 })]
] as const).map(([what, api]): Row => ({
  what: `/exchange, ${what}`,
  tag: "OutcomeUnknown",
  upstreams: { api },
  takesDeadline: api === silence,
  ask: exchange.ask,
  status: 504,
  fields: (now, error) => ({
    upstream: "trading-api",
    nonce: now,
    signer: signerIn(error, "signer"),
    advice: JsonParts.at(error, "advice")
  }),
  sent: 1,
  client: exchange.client
}))

const upstream: ReadonlyArray<Row> = [
  {
    what: "/exchange, nobody listens: nothing was sent",
    tag: "UpstreamUnavailable",
    environment: { TRIGATE_TRADING_API_URL: dead },
    status: 503,
    fields: () => ({ upstream: "trading-api", attempts: 1 }),
    sent: 0,
    ...exchange
  },
  {
    what: "/info, nobody listens at two addresses",
    tag: "UpstreamUnavailable",
    environment: { TRIGATE_TRADING_API_URL: `${dead},${dead}` },
    status: 503,
    fields: () => ({ upstream: "trading-api", attempts: 3 }),
    sent: 0,
    ...candleSnapshot
  },
  {
    what: "/info, HTML under 502",
    tag: "UpstreamUnavailable",
    upstreams: { api: () => ({ ...html(), status: 502 }) },
    status: 503,
    fields: () => ({ upstream: "trading-api", attempts: 3 }),
    sent: 3,
    ...candleSnapshot
  },
  {
    what: "/evm, nobody listens",
    tag: "UpstreamUnavailable",
    environment: { TRIGATE_TRADING_NODE_URL: `${dead}/node-secret` },
    status: 503,
    rpc: rpc(-32603),
    fields: () => ({ upstream: "trading-node", attempts: 3 }),
    sent: 0,
    ...gasPrice
  },
  {
    what: "/l2, 503 with a time",
    tag: "UpstreamUnavailable",
    upstreams: { layer2: overloaded },
    status: 503,
    rpc: rpc(-32603),
    fields: () => ({ upstream: "layer2", attempts: 1, retryAfter: 3 }),
    sent: 1,
    ...receipt
  },
  {
    what: "/api/v2/getTokenData, 503 with a time",
    tag: "UpstreamUnavailable",
    upstreams: { tokens: overloaded },
    status: 503,
    fields: () => ({ upstream: "token-chain", attempts: 1, retryAfter: 3 }),
    sent: 1,
    ...tokenData
  },
  {
    what: "/api/v2/jsonRPC, the exchange breaks",
    tag: "UpstreamUnavailable",
    upstreams: { tokens: hangUp },
    status: 503,
    rpc: tokenRpc(-32603),
    fields: () => ({ upstream: "token-chain", attempts: 3 }),
    sent: 3,
    ...detect
  },
  {
    what: "/evm",
    tag: "UpstreamRateLimited",
    upstreams: { node: limited("null") },
    status: 429,
    rpc: rpc(-32005),
    fields: () => ({ upstream: "trading-node", retryAfter: 9 }),
    sent: 1,
    ...gasPrice
  },
  {
    what: "/l2",
    tag: "UpstreamRateLimited",
    upstreams: { layer2: limited("") },
    status: 429,
    rpc: rpc(-32005),
    fields: () => ({ upstream: "layer2", retryAfter: 9 }),
    sent: 1,
    ...receipt
  },
  {
    what: "/api/v2/getTokenData",
    tag: "UpstreamRateLimited",
    upstreams: { tokens: limited(`{"ok":false,"result":"Ratelimit exceed","code":429}`) },
    status: 429,
    fields: () => ({ upstream: "token-chain", retryAfter: 9 }),
    sent: 1,
    ...tokenData
  },
  {
    what: "/info",
    tag: "UpstreamTimeout",
    upstreams: { api: silence },
    takesDeadline: true,
    status: 504,
    fields: () => ({ upstream: "trading-api", deadline }),
    sent: 1,
    ...candleSnapshot
  },
  {
    what: "/evm",
    tag: "UpstreamTimeout",
    upstreams: { node: silence },
    takesDeadline: true,
    status: 504,
    rpc: rpc(-32603),
    fields: () => ({ upstream: "trading-node", deadline }),
    sent: 1,
    ...gasPrice
  },
  {
    what: "/api/v2/jsonRPC",
    tag: "UpstreamTimeout",
    upstreams: { tokens: silence },
    takesDeadline: true,
    status: 504,
    rpc: tokenRpc(-32603),
    fields: () => ({ upstream: "token-chain", deadline }),
    sent: 1,
    ...detect
  },
  {
    what: "/info, HTML",
    tag: "UpstreamMalformed",
    upstreams: { api: html },
    status: 502,
    fields: () => ({ upstream: "trading-api", issue: "HTML (HTTP 200)" }),
    sent: 1,
    ...candleSnapshot
  },
  {
    what: "/evm, another id",
    tag: "UpstreamMalformed",
    upstreams: { node: () => ({ body: `{"jsonrpc":"2.0","id":77,"result":"0x1"}` }) },
    status: 502,
    rpc: rpc(-32603),
    fields: () => ({ upstream: "trading-node", issue: "The response has a different id than the request" }),
    sent: 1,
    ...gasPrice
  },
  {
    what: "/l2, half a body",
    tag: "UpstreamMalformed",
    upstreams: { layer2: (request) => ({ body: rpcReply(`{"status":"0x1"`)(request).body.slice(0, -1) }) },
    status: 502,
    rpc: rpc(-32603),
    fields: () => ({ upstream: "layer2", issue: "Not a JSON document" }),
    sent: 1,
    ...receipt
  },
  {
    what: "/api/v2/getTokenData, another shape",
    tag: "UpstreamMalformed",
    upstreams: { tokens: () => ({ body: `{"ok":true,"result":{"total_supply":-1,"mintable":true}}` }) },
    status: 502,
    fields: () => ({ upstream: "token-chain", issue: "Expected a total supply of at least 0" }),
    sent: 1,
    ...tokenData
  },
  {
    what: "/api/v2/jsonRPC, no envelope",
    tag: "UpstreamMalformed",
    upstreams: { tokens: () => ({ body: "[]" }) },
    status: 502,
    rpc: tokenRpc(-32603),
    fields: () => ({ upstream: "token-chain", issue: "Expected an object" }),
    sent: 1,
    ...detect
  },
  ...outcomeUnknown
]

const tables = [
  invalidRequest,
  notSupported,
  unavailable,
  signed,
  outcomes,
  callers,
  tooLarge,
  resources,
  archive,
  upstream
]

for (
  const [tag, rows] of Map.groupBy(
    sample("rows of the error table", tables.flat(), 45, ({ tag }) => tag),
    ({ tag }) => tag
  )
) {
  describe(`the error ${tag}`, () => {
    for (const row of rows) it.effect(row.what, () => check(row))
  })
}
