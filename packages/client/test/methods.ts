/** Every method of the client: a call of it, the request that has to leave, an answer, and what that has to read as. */
import type { GatewayClient } from "@trigate/client/GatewayClient"
import type { SignedAction } from "@trigate/domain/actions/Action"
import type { ActionRejected } from "@trigate/domain/actions/ActionOutcome"
import type { StillUnknown } from "@trigate/domain/actions/Resolution"
import * as Json from "@trigate/domain/encoding/Encoding"
import type { CallError } from "@trigate/domain/errors/GatewayError"
import { evmOperations } from "@trigate/domain/evm/EvmProtocol"
import { layer2Operations } from "@trigate/domain/evm/Layer2Operations"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import type { Operation } from "@trigate/domain/operations/Operation"
import type { AccountTransaction, JettonTransfer } from "@trigate/domain/tokens/TokenData"
import { tokenRpcOperations } from "@trigate/domain/tokens/TokenOperations"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { Answers } from "../../domain/test/answers.ts"
import { evmAnswers, infoAnswers, layer2Answers, methodIn } from "../../domain/test/answers.ts"

export const nonce = 1_700_000_000_123
export const validator = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"

/** A delegation of more than a double can tell apart. */
export const signed: SignedAction = {
  action: {
    type: "tokenDelegate",
    signatureChainId: "0x66eee",
    hyperliquidChain: "Mainnet",
    validator,
    wei: 18_446_744_073_709_551_615n,
    isUndelegate: false,
    nonce
  },
  nonce,
  signature: { r: "0x1", s: "0x2", v: 27 }
}

export const signedText =
  `{"action":{"type":"tokenDelegate","signatureChainId":"0x66eee","hyperliquidChain":"Mainnet","validator":"${validator}",` +
  `"wei":18446744073709551615,"isUndelegate":false,"nonce":${nonce}},"nonce":${nonce},` +
  `"signature":{"r":"0x1","s":"0x2","v":27}}`

const coin = { coin: "BTC", interval: "1m", startTime: 60_000, endTime: 119_999 } as const
const candle = { t: 60_000, T: 119_999, s: "BTC", i: "1m", o: "1", c: "2", h: "3", l: "0.5", v: "7.25", n: 4 } as const
const firstCandle = { ...candle, t: 0, T: 59_999 }
const meta = {
  universe: [{ name: "PURR/USDC", tokens: [1, 0], index: 0, isCanonical: true }],
  tokens: []
} as const

const series = {
  coin: "BTC",
  interval: "1m",
  bars: 2,
  bytes: 31,
  known: [{ from: 60_000, to: 179_999 }, { from: 240_000, to: 299_999 }]
}

const account = "0x17281460228691b044e080a5f5257dce8e47f79c"
const word = `0x${"12".padStart(64, "0")}` as const
const hash = `0x${"ab".repeat(32)}` as const
const friendly = "EQDXZ2c5LnA12Eum-DlguTmfYkMOvNeFCh4rBD0tgmwjcFI-"
const raw = "0:d76767392e7035d84ba6f83960b9399f62430ebcd7850a1e2b043d2d826c2370"

const rpc = (method: string, params: string) => ({
  method: "POST",
  type: "application/json",
  body: `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`
})
const result = (text: string) => `{"jsonrpc":"2.0","id":1,"result":${text}}`
const ok = (text: string) => `{"ok":true,"result":${text},"jsonrpc":"2.0","id":1}`

const token = {
  name: "Tether USD",
  symbol: "USD₮",
  decimals: 6,
  totalSupply: "1180591620717411303424123",
  mintable: true,
  burnable: true,
  address: friendly,
  metadata: "onchain"
} as const
const detected = {
  raw_form: raw,
  bounceable: { b64: friendly, b64url: friendly },
  non_bounceable: { b64: friendly, b64url: friendly },
  given_type: "friendly_bounceable",
  test_only: false
} as const
const guarded = {
  policies: { policies: [{ name: "desk", accounts: "*", orderNotional: 1000 }] },
  version: "9f86d081884c7d65",
  halts: [{ coin: "BTC" }],
  accounts: [{
    account: `0x${"ab".repeat(20)}`,
    policies: ["desk"],
    orders: 1,
    reserved: 0,
    losses: [],
    notional: [{ quote: "USDC", open: 10, total: 20.5 }]
  }],
  refusals: []
} as const

const desk = {
  name: "desk",
  prefix: "0123456789",
  state: "valid",
  scope: { classes: ["read"] },
  createdAt: 1_767_225_600_000,
  expiresAt: 1_767_312_000_000
}

const noted = {
  sequence: 12,
  time: 1_767_225_600_000,
  id: "req-1",
  method: "POST",
  route: "info.query",
  status: 200,
  milliseconds: 3,
  caller: "key:desk",
  key: "0123456789",
  operations: ["spotMeta"]
}

const ready = {
  status: "draining",
  sandbox: false,
  network: "mainnet",
  chains: {
    trading: { mode: "live", upstreams: { "trading-api": 1, "trading-node": 2 } },
    tokens: { mode: "not-configured", upstreams: { "token-chain": 0 } },
    layer2: { mode: "live", upstreams: { layer2: 1 } }
  }
} as const
const inspection = {
  actionType: "tokenDelegate",
  form: "wire",
  network: "mainnet",
  scheme: "userSigned",
  outer: { signer: account, digest: hash },
  differences: [{ path: ["action", "type"], sent: "1" }],
  diagnosis: {
    verdict: "unchecked",
    mistakes: [{ mistake: "trailingZero", path: ["action", "orders", 0, "p"], found: "\"1.0\"", expected: "\"1\"" }],
    detail: "a sentence"
  },
  nonce: { value: nonce, now: nonce, earliest: 1, latest: nonce + 1, inWindow: true },
  warnings: ["a warning"]
} as const

type Client = GatewayClient["Service"]

/** A method and one exchange of it. */
const event = (name: string, data: string) => `event: ${name}\nid: 7:${"11".repeat(32)}\ndata: ${data}\n\n`

const position = { lt: "47000001000001", hash: "ab".repeat(32) }

const accountTransaction: AccountTransaction = {
  account: `0:${"11".repeat(32)}`,
  ...position,
  previous: { lt: "47000000000001", hash: "cd".repeat(32) },
  time: 1_760_000_000,
  aborted: false,
  fee: "2000000",
  inMessage: null,
  outMessages: []
}

const jettonTransfer: JettonTransfer = {
  ...position,
  time: 1_760_000_000,
  owner: `0:${"11".repeat(32)}`,
  master: `0:${"22".repeat(32)}`,
  wallet: `0:${"33".repeat(32)}`,
  sender: null,
  amount: "10",
  queryId: "7",
  forwardAmount: "0"
}

export interface Method {
  readonly call: (client: Client) => Effect.Effect<unknown, CallError | ActionRejected | StillUnknown>
  readonly sent: { readonly method: string; readonly type: string | undefined; readonly body: string }
  readonly path: string
  /** Where it goes with an endpoint key; not there for what the gateway tells of itself. */
  /** Whether it is a stream, which connects again after an exchange that breaks. */
  readonly resumes?: true
  readonly keyed: boolean
  readonly status?: number
  readonly answer: string
  readonly result: unknown
}

const post = (body: string) => ({ method: "POST", type: "application/json", body })
const get = { method: "GET", type: undefined, body: "" }

const armedSwitch = {
  name: "desk",
  state: "armed",
  after: 10,
  heartbeats: 1,
  actions: [{ nonce: 1, actionType: "cancel" }]
} as const

const minuteSample = {
  age: 12.5,
  series: [{ name: "trigate_requests_total", labels: { route: "info.query" }, value: 3 }]
}

const historySample = {
  time: 1_790_000_000_000,
  requests: 10,
  failed: 1,
  cached: 4,
  attempts: 6,
  weightSaved: 80,
  weightLeft: 1100,
  sockets: 2,
  deliveries: 300
}

const portSetting = {
  name: "TRIGATE_PORT",
  group: "Listening",
  meaning: "port",
  needsRestart: true,
  default: "8080",
  isSecret: false,
  value: "9000",
  source: "--port"
}

const unanswered = {
  id: hash,
  state: "unknown",
  openedAt: nonce,
  actionType: "tokenDelegate",
  signer: account,
  nonce
} as const

type Operations = { readonly [name: string]: Operation<string, "read"> }

/** The methods of a group that follow from its table: each sends its example and reads the first of its answers. */
const derived = (
  group: "evm" | "info" | "layer2",
  operations: Operations,
  answers: { readonly [name: string]: Answers },
  path: string,
  sent: (operation: Operation<string, "read">) => Method["sent"],
  answer: (text: string) => string = (text) => text
): { readonly [name: string]: Method } =>
  Object.fromEntries(
    Object.entries(operations).map(([name, operation]) => {
      const text = answers[name]?.texts[0] ?? ""
      const decode = Schema.decodeUnknownSync(operation.response)
      const request = Schema.decodeUnknownSync(operation.request)(operation.example)
      return [`${group}.${name}`, {
        call: (client) => methodIn(client[group], name)(request),
        sent: sent(operation),
        path,
        keyed: true,
        answer: answer(text),
        result: decode(Result.getOrThrow(Json.parse(text)))
      }]
    })
  )

export const methods: { readonly [name: string]: Method } = {
  ...derived(
    "info",
    infoOperations,
    infoAnswers,
    "/info",
    ({ example, name }) => post(JSON.stringify({ type: name, ...example as object }))
  ),
  ...derived(
    "evm",
    evmOperations,
    evmAnswers,
    "/evm",
    ({ example, name }) => rpc(name, JSON.stringify(example)),
    result
  ),
  ...derived(
    "layer2",
    layer2Operations,
    layer2Answers,
    "/l2",
    ({ example, name }) => rpc(name, JSON.stringify(example)),
    result
  ),
  "exchange.submit": {
    call: ({ exchange }) => exchange.submit(signed),
    sent: post(signedText),
    path: "/exchange",
    keyed: true,
    answer: `{"status":"ok","response":{"type":"default","id":9007199254740993}}`,
    result: { status: "ok", response: { type: "default", id: 9_007_199_254_740_993n }, entries: [{ _tag: "Done" }] }
  },
  "exchange.resolve": {
    call: ({ exchange }) => exchange.resolve(signed),
    sent: post(signedText),
    path: "/exchange",
    keyed: true,
    answer: `{"status":"ok","response":{"type":"default","id":9007199254740993}}`,
    result: {
      _tag: "Accepted",
      result: { status: "ok", response: { type: "default", id: 9_007_199_254_740_993n }, entries: [{ _tag: "Done" }] }
    }
  },
  "exchange.inspect": {
    call: ({ exchange }) => exchange.inspect(signed),
    sent: post(signedText),
    path: "/exchange/inspect",
    keyed: false,
    answer: JSON.stringify(inspection),
    result: inspection
  },
  "exchange.nonces": {
    call: ({ exchange }) => exchange.nonces(`0x${"ab".repeat(20)}`, 2),
    sent: post(`{"signer":"0x${"ab".repeat(20)}","count":2}`),
    path: "/nonces",
    keyed: false,
    answer: `{"signer":"0x${"ab".repeat(20)}","nonces":[1,2]}`,
    result: [1, 2]
  },
  "switches.arm": {
    call: ({ switches }) => switches.arm("desk", [signed, Json.encode(signedText)], { after: 10 }),
    sent: post(`{"after":10,"presence":false,"actions":[${signedText},${signedText}]}`),
    path: "/switches/desk",
    keyed: false,
    answer: JSON.stringify(armedSwitch),
    result: armedSwitch
  },
  "switches.beat": {
    call: ({ switches }) => switches.beat("desk"),
    sent: post("{}"),
    path: "/switches/desk/heartbeat",
    keyed: false,
    answer: JSON.stringify(armedSwitch),
    result: armedSwitch
  },
  "switches.disarm": {
    call: ({ switches }) => switches.disarm("desk"),
    sent: post("{}"),
    path: "/switches/desk/disarm",
    keyed: false,
    answer: JSON.stringify(armedSwitch),
    result: armedSwitch
  },
  "switches.get": {
    call: ({ switches }) => switches.get("desk"),
    sent: get,
    path: "/switches/desk",
    keyed: false,
    answer: JSON.stringify(armedSwitch),
    result: armedSwitch
  },
  "exchange.outcome": {
    call: ({ exchange }) => exchange.outcome({ id: "0xab" }, { wait: "2 seconds" }),
    sent: get,
    path: "/actions/0xab?wait=2",
    keyed: false,
    answer:
      `{"id":"0xab","state":"accepted","nonce":1,"settled":{"by":"response","entries":[{"_tag":"Resting","oid":9007199254740993}]}}`,
    result: {
      id: "0xab",
      state: "accepted",
      nonce: 1,
      settled: { by: "response", entries: [{ _tag: "Resting", oid: 9007199254740993n }] }
    }
  },
  "info.spotMeta": {
    call: ({ info }) => info.spotMeta(),
    sent: post(`{"type":"spotMeta"}`),
    path: "/info",
    keyed: true,
    answer: JSON.stringify(meta),
    result: meta
  },
  "info.asset": {
    call: ({ info }) => info.asset("BTC"),
    sent: post(`{"type":"meta"}`),
    path: "/info",
    keyed: true,
    answer: `{"universe":[{"name":"BTC","szDecimals":5,"maxLeverage":40}]}`,
    result: { id: 0, coin: "BTC", szDecimals: 5, market: "perp" }
  },
  "info.raw": {
    call: ({ info }) => info.raw({ type: "l2Book", coin: "BTC" }),
    sent: post(`{"type":"l2Book","coin":"BTC"}`),
    path: "/info",
    keyed: true,
    answer: `{"coin":"BTC","time":9007199254740993,"levels":[[],[]]}`,
    result: { coin: "BTC", time: 9_007_199_254_740_993n, levels: [[], []] }
  },
  "info.candleSnapshot": {
    call: ({ info }) => info.candleSnapshot(coin),
    sent: post(`{"type":"candleSnapshot","req":{"coin":"BTC","interval":"1m","startTime":60000,"endTime":119999}}`),
    path: "/info",
    keyed: true,
    answer: JSON.stringify([candle]),
    result: { candles: [candle], coverage: "complete", forming: candle }
  },
  "info.candles": {
    call: ({ info }) => Stream.runCollect(info.candles({ coin: "BTC", interval: "1m", startTime: 0, endTime: 0 })),
    sent: post(`{"type":"candleSnapshot","req":{"coin":"BTC","interval":"1m","startTime":0,"endTime":0}}`),
    path: "/info",
    keyed: true,
    answer: JSON.stringify([firstCandle]),
    result: [{ startTime: 0, endTime: 0, candles: [firstCandle], coverage: "complete", forming: undefined }]
  },
  "candles.list": {
    call: ({ candles }) => candles.list(),
    sent: get,
    path: "/candles",
    keyed: false,
    answer: JSON.stringify([series]),
    result: [series]
  },
  "candles.file": {
    call: ({ candles }) =>
      Effect.map(
        Stream.runCollect(candles.file({ coin: "@107", interval: "1M", from: 5 }, "csv")),
        (parts) => parts.map((part) => new TextDecoder().decode(part)).join("")
      ),
    sent: get,
    path: "/candles/%40107/1M?from=5&format=csv",
    keyed: false,
    answer: "any\ntext",
    result: "any\ntext"
  },
  "candles.bars": {
    call: ({ candles }) =>
      Stream.runCollect(candles.bars({ coin: "PURR/USDC", interval: "1m", from: 60_000, to: 179_999 })),
    sent: get,
    path: "/candles/PURR%2FUSDC/1m?from=60000&to=179999&format=ndjson",
    keyed: false,
    answer: `${JSON.stringify(candle)}\n${JSON.stringify({ ...candle, t: 120_000, T: 179_999 })}\n`,
    result: [candle, { ...candle, t: 120_000, T: 179_999 }]
  },
  "evm.getStorageAt": {
    call: ({ evm }) => evm.getStorageAt({ address: account, slot: "0x0" }),
    sent: rpc("eth_getStorageAt", `["${account}","0x0","latest"]`),
    path: "/evm",
    keyed: true,
    answer: result(`"${word}"`),
    result: word
  },
  "evm.gasPrice": {
    call: ({ evm }) => evm.gasPrice(),
    sent: rpc("eth_gasPrice", "[]"),
    path: "/evm",
    keyed: true,
    answer: result(`"0x${"f".repeat(64)}"`),
    result: 2n ** 256n - 1n
  },
  "evm.bigBlockGasPrice": {
    call: ({ evm }) => evm.bigBlockGasPrice(),
    sent: rpc("eth_bigBlockGasPrice", "[]"),
    path: "/evm",
    keyed: true,
    answer: result(`"0x5f5e100"`),
    result: 100_000_000n
  },
  "evm.usingBigBlocks": {
    call: ({ evm }) => evm.usingBigBlocks({ address: account }),
    sent: rpc("eth_usingBigBlocks", `["${account}"]`),
    path: "/evm",
    keyed: true,
    answer: result("true"),
    result: true
  },
  ...Object.fromEntries((["evm", "layer2"] as const).map((chain): [string, Method] => [`${chain}.sendRawTransaction`, {
    call: (client) => client[chain].sendRawTransaction({ transaction: "0x02" }),
    sent: rpc("eth_sendRawTransaction", `["0x02"]`),
    path: chain === "evm" ? "/evm" : "/l2",
    keyed: true,
    answer: result(`"${hash}"`),
    result: hash
  }])),
  "tokens.getTokenData": {
    call: ({ tokens }) => tokens.getTokenData({ address: "EQDXZ2c5LnA12Eum+DlguTmfYkMOvNeFCh4rBD0tgmwjcFI+" }),
    sent: get,
    path: "/api/v2/getTokenData?address=EQDXZ2c5LnA12Eum%2BDlguTmfYkMOvNeFCh4rBD0tgmwjcFI%2B",
    keyed: true,
    answer: JSON.stringify(token),
    result: token
  },
  "tokens.getTokenContract": {
    call: ({ tokens }) => tokens.getTokenContract({ address: raw, seqno: 7 }),
    sent: rpc("getTokenData", `{"address":"${raw}","seqno":7}`),
    path: "/api/v2/jsonRPC",
    keyed: true,
    answer: ok(`{"contract_type":"jetton_wallet","balance":110294396653795195302063,"code":18446744073709551615}`),
    result: {
      contract_type: "jetton_wallet",
      balance: 110_294_396_653_795_195_302_063n,
      code: 18_446_744_073_709_551_615n
    }
  },
  "tokens.packAddress": {
    call: ({ tokens }) => tokens.packAddress({ address: raw }),
    sent: rpc("packAddress", `{"address":"${raw}"}`),
    path: "/api/v2/jsonRPC",
    keyed: true,
    answer: ok(`"${friendly}"`),
    result: friendly
  },
  "tokens.unpackAddress": {
    call: ({ tokens }) => tokens.unpackAddress({ address: friendly }),
    sent: rpc("unpackAddress", `{"address":"${friendly}"}`),
    path: "/api/v2/jsonRPC",
    keyed: true,
    answer: ok(`"${raw}"`),
    result: raw
  },
  "tokens.detectAddress": {
    call: ({ tokens }) => tokens.detectAddress({ address: friendly }),
    sent: rpc("detectAddress", `{"address":"${friendly}"}`),
    path: "/api/v2/jsonRPC",
    keyed: true,
    answer: ok(JSON.stringify(detected)),
    result: detected
  },
  "tokens.transactions": {
    call: ({ tokens }) =>
      Stream.runCollect(Stream.take(tokens.transactions({ address: friendly, after: "genesis" }), 1)),
    sent: get,
    path: `/api/v2/streams/transactions?address=${friendly}&after=genesis`,
    keyed: true,
    resumes: true,
    answer: `: comment\n\n${event("start", "{}")}${event("transaction", JSON.stringify(accountTransaction))}`,
    result: [accountTransaction]
  },
  "tokens.jettonTransfers": {
    call: ({ tokens }) =>
      Stream.runCollect(
        Stream.take(tokens.jettonTransfers({ owner: friendly, master: friendly, after: position }), 1)
      ),
    sent: get,
    path:
      `/api/v2/streams/jettonTransfers?owner=${friendly}&master=${friendly}&after=${position.lt}%3A${position.hash}`,
    keyed: true,
    resumes: true,
    answer: event("transfer", JSON.stringify(jettonTransfer)),
    result: [jettonTransfer]
  },
  "tokens.call": {
    call: ({ tokens }) =>
      tokens.call(tokenRpcOperations.getTransactions, { address: friendly, lt: 9_223_372_036_854_775_807n, limit: 1 }),
    sent: rpc("getTransactions", `{"address":"${friendly}","lt":9223372036854775807,"limit":1}`),
    path: "/api/v2/jsonRPC",
    keyed: true,
    answer: ok(`[{"fee":1,"lt":9223372036854775807}]`),
    result: [{ fee: 1, lt: 9_223_372_036_854_775_807n }]
  },
  "layer2.getTransactionReceipt": {
    call: ({ layer2 }) => layer2.getTransactionReceipt({ hash }),
    sent: rpc("eth_getTransactionReceipt", `["${hash}"]`),
    path: "/l2",
    keyed: true,
    answer: result(
      `{"transactionHash":"${hash}","transactionIndex":"0x0","blockHash":"${hash}","blockNumber":"0x10","from":"${account}",` +
        `"to":null,"cumulativeGasUsed":"0x5208","gasUsed":"0x5208","logs":[],"logsBloom":"0x00","status":"0x0",` +
        `"l1Fee":18446744073709551616}`
    ),
    result: {
      transactionHash: hash,
      transactionIndex: 0n,
      blockHash: hash,
      blockNumber: 16n,
      from: account,
      to: null,
      cumulativeGasUsed: 21_000n,
      gasUsed: 21_000n,
      logs: [],
      logsBloom: "0x00",
      status: "failure",
      l1Fee: 18_446_744_073_709_551_616n
    }
  },
  "health.ready": {
    call: ({ health }) => health.ready(),
    sent: get,
    path: "/health/ready",
    keyed: false,
    status: 503,
    answer: JSON.stringify(ready),
    result: ready
  },
  "health.metrics": {
    call: ({ health }) => health.metrics(),
    sent: get,
    path: "/metrics",
    keyed: false,
    answer: "trigate_up 1\n",
    result: "trigate_up 1\n"
  },
  "admin.actions": {
    call: ({ admin }) => admin.actions(),
    sent: get,
    path: "/admin/actions",
    keyed: false,
    answer: JSON.stringify([unanswered]),
    result: [unanswered]
  },
  "admin.forget": {
    call: ({ admin }) => admin.forget(unanswered.id),
    sent: post("{}"),
    path: `/admin/actions/${unanswered.id}/forget`,
    keyed: false,
    answer: "{\"forgotten\":true}",
    result: true
  },
  "admin.resolve": {
    call: ({ admin }) => admin.resolve(unanswered.id),
    sent: post("{}"),
    path: `/admin/actions/${unanswered.id}/resolve`,
    keyed: false,
    answer: "{\"_tag\":\"Rejected\",\"message\":\"Insufficient stake\"}",
    result: { _tag: "Rejected", message: "Insufficient stake" }
  },
  "admin.history": {
    call: ({ admin }) => admin.history(),
    sent: get,
    path: "/admin/history",
    keyed: false,
    answer: JSON.stringify([historySample]),
    result: [historySample]
  },
  "admin.minute": {
    call: ({ admin }) => admin.minute(),
    sent: get,
    path: "/admin/minute",
    keyed: false,
    answer: JSON.stringify([minuteSample]),
    result: [minuteSample]
  },
  "admin.settings": {
    call: ({ admin }) => admin.settings(),
    sent: get,
    path: "/admin/settings",
    keyed: false,
    answer: JSON.stringify([portSetting]),
    result: [portSetting]
  },
  "admin.keys": {
    call: ({ admin }) => admin.keys(),
    sent: get,
    path: "/admin/keys",
    keyed: false,
    answer: JSON.stringify({ asked: true, keys: [desk] }),
    result: { asked: true, keys: [desk] }
  },
  "admin.createKey": {
    call: ({ admin }) => admin.createKey({ name: "desk", scope: { classes: ["read"] }, lifetime: 86_400_000 }),
    sent: post(`{"name":"desk","scope":{"classes":["read"]},"lifetime":86400000}`),
    path: "/admin/keys",
    keyed: false,
    answer: JSON.stringify({ key: "tg_secret", record: desk }),
    result: { key: Redacted.make("tg_secret"), record: desk }
  },
  "admin.rotateKey": {
    call: ({ admin }) => admin.rotateKey("desk", { overlap: 0 }),
    sent: post(`{"overlap":0}`),
    path: "/admin/keys/desk/rotate",
    keyed: false,
    answer: JSON.stringify({ key: "tg_secret", record: desk }),
    result: { key: Redacted.make("tg_secret"), record: desk }
  },
  "admin.revokeKeys": {
    call: ({ admin }) => admin.revokeKeys("desk"),
    sent: post("{}"),
    path: "/admin/keys/desk/revoke",
    keyed: false,
    answer: JSON.stringify([desk]),
    result: [desk]
  },
  "admin.guard": {
    call: ({ admin }) => admin.guard(),
    sent: get,
    path: "/admin/guard",
    keyed: false,
    answer: JSON.stringify(guarded),
    result: guarded
  },
  "admin.haltGuard": {
    call: ({ admin }) => admin.haltGuard({ coin: "BTC" }),
    sent: post("{\"coin\":\"BTC\"}"),
    path: "/admin/guard/halt",
    keyed: false,
    answer: JSON.stringify(guarded),
    result: guarded
  },
  "admin.resumeGuard": {
    call: ({ admin }) => admin.resumeGuard({ all: true }),
    sent: post("{\"all\":true}"),
    path: "/admin/guard/resume",
    keyed: false,
    answer: "{\"resumed\":true}",
    result: { resumed: true }
  },
  "admin.rateLimits": {
    call: ({ admin }) => admin.rateLimits(),
    sent: get,
    path: "/admin/rate-limits",
    keyed: false,
    answer: `[{"upstream":"trading-api","all":22,"callers":[{"caller":"key:desk","units":20}]}]`,
    result: [{ upstream: "trading-api", all: 22, callers: [{ caller: "key:desk", units: 20 }] }]
  },
  "admin.requests": {
    call: ({ admin }) => admin.requests(11),
    sent: get,
    path: "/admin/requests?after=11",
    keyed: false,
    answer: JSON.stringify([noted]),
    result: [noted]
  }
}
