/**
 * A venue of two perpetuals and one spot pair, and of one builder's perpetual.
 *
 * Its answers are written by hand after the venue's documentation and the types of its clients; none was recorded.
 */
import type { Reply, Seen } from "@trigate/testing/RecordingUpstream"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"

const tokens = `[{"name":"USDC","szDecimals":8,"weiDecimals":8,"index":0,"tokenId":` +
  `"0x6d1e7cde53ba9467b783cb7c530ce054","isCanonical":true,"evmContract":null,"fullName":null},` +
  `{"name":"PURR","szDecimals":0,"weiDecimals":5,"index":1,"tokenId":"0xc1fb593aeffbeb02f85e0308e9956a90",` +
  `"isCanonical":true,"evmContract":null,"fullName":null}]`

const spotMeta = `{"universe":[{"tokens":[1,0],"name":"PURR/USDC","index":0,"isCanonical":true}],"tokens":${tokens}}`

const meta = `{"universe":[{"szDecimals":5,"name":"BTC","maxLeverage":40,"marginTableId":56},` +
  `{"szDecimals":4,"name":"ETH","maxLeverage":25,"marginTableId":55}],"marginTables":[],"collateralToken":0}`

const builderMeta = `{"universe":[{"szDecimals":4,"name":"xyz:XYZ100","maxLeverage":20,"marginTableId":20}],` +
  `"marginTables":[],"collateralToken":0}`

const context = (price: string, bid: string, ask: string) =>
  `{"funding":"0.0000125","openInterest":"688.11","prevDayPx":"${price}","dayNtlVlm":"1169046.29406",` +
  `"premium":"0.00031774","oraclePx":"${price}","markPx":"${price}","midPx":"${price}",` +
  `"impactPxs":["${bid}","${ask}"],"dayBaseVlm":"80.5"}`

const spotContext = `{"prevDayPx":"0.20432","dayNtlVlm":"8906.0","markPx":"0.14","midPx":"0.209265",` +
  `"circulatingSupply":"596645570.5","coin":"PURR/USDC","totalSupply":"596645570.5","dayBaseVlm":"42510.0"}`

const clearinghouse = `{"marginSummary":{"accountValue":"100.0","totalNtlPos":"0.0","totalRawUsd":"100.0",` +
  `"totalMarginUsed":"0.0"},"crossMarginSummary":{"accountValue":"100.0","totalNtlPos":"0.0","totalRawUsd":"100.0",` +
  `"totalMarginUsed":"0.0"},"crossMaintenanceMarginUsed":"0.0","withdrawable":"100.0","assetPositions":[],` +
  `"time":1792000000000}`

const fill = `{"closedPnl":"0.0","coin":"ETH","crossed":true,"dir":"Open Long","fee":"0.050062","feeToken":"USDC",` +
  `"hash":"0x09d77c96791e98b5775a04092584ab010d009445119c71e4005c0d634ea322bc","oid":3929354691,"px":"2381.1",` +
  `"side":"B","startPosition":"0.0","sz":"0.0841","tid":128423918764978,"time":1792000000000}`

/** A row of `candleSnapshot`. */
const candle = (coin: string, t: number, close: string) =>
  `{"t":${t},"T":${t + 3_599_999},"s":"${coin}","i":"1h","o":"67001.0","c":"${close}","h":"67100.0","l":"66900.0",` +
  `"v":"12.50","n":7}`

/** What the venue answers to a query, by its text without the braces; the odd spacing has to come through. */
const answers: ReadonlyMap<string, string> = new Map([
  [`"type":"spotMeta"`, spotMeta],
  [`"type":"spotMetaAndAssetCtxs"`, `[${spotMeta},[${spotContext}]]`],
  [`"type":"meta"`, meta],
  [
    `"type":"metaAndAssetCtxs"`,
    `[${meta}, [${context("67010.5", "67010.0", "67011.0")},\n${context("2381.10", "2381.0", "2381.2")}]]`
  ],
  [`"type":"metaAndAssetCtxs","dex":"xyz"`, `[${builderMeta},[${context("24900.0", "24899.0", "24901.0")}]]`],
  [
    `"type":"perpDexs"`,
    `[null,{"name":"xyz","fullName":"XYZ","deployer":"0x88806a71d74ad0a510b350545c9ae490912f0888",` +
    `"oracleUpdater":null,"feeRecipient":null,"assetToStreamingOiCap":[["xyz:XYZ100","100000000.0"]]}]`
  ],
  [`"type":"allMids"`, `{ "BTC":"67010.50","ETH":"2381.10","@1":"0.209265" }`],
  [`"type":"exchangeStatus"`, `{"time":1792000000000,"specialStatuses":null}`],
  [
    `"type":"l2Book","coin":"ETH"`,
    `{"coin":"ETH","time":1792000000000,"levels":[[{"px":"2381.0","sz":"74.0637","n":2}],` +
    `[{"px":"2381.2","sz":"70.5893","n":2}]]}`
  ]
])

const byUser: ReadonlyMap<string, string> = new Map([
  ["clearinghouseState", clearinghouse],
  ["userFills", `[${fill}]`],
  ["userAbstraction", `"disabled"`],
  ["openOrders", "[]"]
])

const candles = (asked: string): Reply => {
  const { coin, startTime } = /"coin":"(?<coin>[^"]+)".*"startTime":(?<startTime>\d+)/u.exec(asked)?.groups ?? {}
  const first = Math.floor(Number(startTime) / 3_600_000) * 3_600_000
  return coin === "BTC"
    ? { body: `[${candle("BTC", first, "67010.5")},${candle("BTC", first + 3_600_000, "67020.0")}]` }
    : { status: 500, body: "null" }
}

/** Answers a query as the venue does; one that it does not know is HTTP 422. */
export const info = (request: Seen): Reply => {
  const asked = JSON.stringify(JSON.parse(request.body))
  const type = /"type":"(?<type>\w+)"/u.exec(asked)?.groups?.["type"] ?? ""
  if (type === "candleSnapshot") return candles(asked)
  const body = answers.get(asked.slice(1, -1)) ?? byUser.get(type)
  return body === undefined
    ? { status: 422, type: "text/plain", body: "Failed to deserialize the JSON body into the target type" }
    : { body }
}

/** What the venue answers to an action that it took. */
export const taken = (response = `{"type":"default"}`): Reply => ({ body: `{"status":"ok","response":${response}}` })

/** A venue that takes every action, or answers them as told. */
export const venue = (exchange: (request: Seen) => Reply = () => taken()) =>
  recordingUpstream((request) => request.path === "/info" ? info(request) : exchange(request))
