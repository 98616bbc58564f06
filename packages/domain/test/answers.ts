/**
 * For each typed operation: answers as the upstream writes them, in small, and where their shape comes from.
 *
 * Values are made up. `SDK` is a recording of hyperliquid-python-sdk 7ee976d, `Go` one of sonirico/go-hyperliquid 5dbb746,
 * `schema` the declared response of nktkas/hyperliquid db80d59, `specs` the tests of ethereum/execution-apis 033ca6e.
 */
import type { GatewayError } from "@trigate/domain/errors/GatewayError"
import type { evmOperations } from "@trigate/domain/evm/EvmProtocol"
import type { layer2Operations } from "@trigate/domain/evm/Layer2Operations"
import type { infoOperations } from "@trigate/domain/info/InfoOperations"
import type * as Effect from "effect/Effect"

/** The typed method of an operation, of a service or of the client, called by its name. */
export const methodIn = (group: object, name: string): (request: unknown) => Effect.Effect<unknown, GatewayError> => {
  const method: unknown = Reflect.get(group, name)
  if (!isMethod(method)) throw new Error(`There is no method ${name}`)
  return method
}

const isMethod = (method: unknown): method is (request: unknown) => Effect.Effect<unknown, GatewayError> =>
  typeof method === "function"

/** Answers of one operation. */
export interface Answers {
  readonly source: string
  readonly texts: readonly [string, ...ReadonlyArray<string>]
}

type AnswersOf<Operations> = { readonly [Name in keyof Operations]: Answers }

const address = `0x${"ab".repeat(20)}`
const hash = `0x${"12".repeat(32)}`

const margin =
  `{"accountValue":"1182.312496","totalNtlPos":"3434.815334","totalRawUsd":"86.549602","totalMarginUsed":"171.740766"}`
const position =
  `{"coin":"ETH","szi":"0.1334","leverage":{"type":"isolated","value":20,"rawUsd":"-12.5"},"entryPx":"1705.82","positionValue":"227.675114",` +
  `"unrealizedPnl":"0.118726","returnOnEquity":"0.01042942","liquidationPx":null,"marginUsed":"11.383755","maxTradeSzs":["11.8423","12.1091"]}`
const order =
  `{"coin":"INJ","side":"A","limitPx":"9.2037","sz":"12.5","oid":3184595907,"timestamp":1700126022555,"triggerCondition":"Price above 10.004",` +
  `"isTrigger":true,"triggerPx":"10.004","children":[],"isPositionTpsl":false,"reduceOnly":true,"orderType":"Take Profit Market","origSz":"12.5",` +
  `"tif":null,"cloid":null}`
const record = `{"order":${order},"status":"iocCancelRejected","statusTimestamp":1755863118217}`
const oldFill =
  `{"closedPnl":"-0.25686","coin":"SUI","crossed":true,"dir":"Close Long","fee":"0.0","hash":"${hash}","oid":189324432,"px":"1.3189","side":"A",` +
  `"startPosition":"4623.5","sz":"142.7","time":1683245884863}`
const fill =
  `{"coin":"ETH","px":"4307.4","sz":"0.0025","side":"B","time":1755857898644,"startPosition":"0.0","dir":"Open Long","closedPnl":"0.0",` +
  `"hash":"${hash}","oid":37907159219,"crossed":true,"fee":"0.004845","tid":1070455675927460,"feeToken":"USDC","twapId":null}`
const perpetuals =
  `{"universe":[{"szDecimals":5,"name":"BTC","maxLeverage":40,"marginTableId":56},{"szDecimals":4,"name":"OLD","maxLeverage":25,"isDelisted":true,` +
  `"marginMode":"noCross"}],"marginTables":[[50,{"description":"","marginTiers":[{"lowerBound":"0.0","maxLeverage":50}]}]],"collateralToken":0}`
const context =
  `{"funding":"-0.000003688","openInterest":"22727.78266","prevDayPx":"69557.0","dayNtlVlm":"12377419030.3486595154","premium":null,` +
  `"oraclePx":"66383.0","markPx":"66344.0","midPx":null,"impactPxs":["66371.0","66372.0"],"dayBaseVlm":"189106.61428"}`

export const infoAnswers: AnswersOf<typeof infoOperations> = {
  spotMeta: {
    source: "SDK",
    texts: [`{"universe":[{"name":"PURR/USDC","tokens":[1,0],"index":0,"isCanonical":true}],"tokens":[]}`]
  },
  candleSnapshot: {
    source: "SDK",
    texts: [`[{"t":60000,"T":119999,"s":"BTC","i":"1m","o":"1","c":"2","h":"3","l":"0.5","v":"7.25","n":4}]`]
  },
  meta: { source: "SDK, Go", texts: [perpetuals, `{"universe":[{"maxLeverage":50,"name":"BTC","szDecimals":5}]}`] },
  allPerpMetas: { source: "schema", texts: [`[${perpetuals},${perpetuals}]`] },
  outcomeMeta: {
    source: "the venue's documents; sides from a template: schema; deployers: recorded on 2026-09-19",
    texts: [
      `{"outcomes":[{"outcome":123,"name":"Recurring","description":"class:priceBinary|underlying:HYPE","sideSpecs":[{"name":"Yes"},{"name":"No"}]}]}`,
      `{"outcomes":[{"outcome":5,"name":"template:aaa","description":"target:100","sideSpecs":[{"name":"template:Over","token":7},` +
      `{"name":"template:Under"}],"quoteToken":"USDC","deployer":"${address}"}],"questions":[{"question":1,"name":"Next","description":"",` +
      `"fallbackOutcome":4,"namedOutcomes":[5,6],"settledNamedOutcomes":[6]}],"deployers":[{"deployer":"${address}","venue":"abc",` +
      `"subDeployers":[["settleOutcome",["${address}"]]]}]}`
    ]
  },
  metaAndAssetCtxs: { source: "Go", texts: [`[${perpetuals},[${context},${context}]]`] },
  perpDexs: {
    source: "Go",
    texts: [
      `[null,{"name":"xyz","fullName":"XYZ","deployer":"${address}","oracleUpdater":null,"feeRecipient":"${address}",` +
      `"assetToStreamingOiCap":[["xyz:AAPL","25000000.0"]],"deployerFeeScale":"1.0"}]`
    ]
  },
  allMids: { source: "SDK, Go", texts: [`{"BTC":"30135.0","@1":"21.522","kPEPE":"0.001565"}`] },
  l2Book: {
    source: "SDK; null: schema",
    texts: [
      `{"coin":"DYDX","time":1689630203930,"levels":[[{"px":"2.111","sz":"134.4","n":1}],[{"px":"2.1124","sz":"352.3","n":2}]]}`,
      "null"
    ]
  },
  recentTrades: {
    source: "schema",
    texts: [
      `[{"coin":"BTC","side":"A","px":"66344.0","sz":"0.01","time":1755857898644,"hash":"${hash}","tid":1070455675927460,` +
      `"users":["${address}","${address}"]}]`
    ]
  },
  fundingHistory: {
    source: "SDK",
    texts: [`[{"coin":"BTC","fundingRate":"-0.00061334","premium":"-0.00091334","time":1683849600048}]`]
  },
  clearinghouseState: {
    source: "SDK, Go",
    texts: [
      `{"assetPositions":[{"position":${position},"type":"oneWay"}],"crossMarginSummary":${margin},"marginSummary":${margin},"withdrawable":"1010.57173"}`,
      `{"marginSummary":${margin},"crossMarginSummary":${margin},"crossMaintenanceMarginUsed":"0.0","withdrawable":"0.0","assetPositions":[],` +
      `"time":1765661071083}`
    ]
  },
  spotClearinghouseState: {
    source: "Go; the side of an outcome: nautechsystems/nautilus_trader issue 4031",
    texts: [
      `{"balances":[{"coin":"HYPE","token":1105,"total":"0.24965","hold":"0.2","entryNtl":"24.982487"}]}`,
      `{"balances":[{"coin":"USDC","token":0,"total":"10.0","hold":"0.0","entryNtl":"0.0"},` +
      `{"coin":"+50","total":"20.0","hold":"0.0","entryNtl":"12.4"}]}`
    ]
  },
  openOrders: {
    source: "SDK",
    texts: [`[{"coin":"MATIC","limitPx":"1.0357","oid":62269971,"side":"B","sz":"208.7","timestamp":1679940217356}]`]
  },
  frontendOpenOrders: { source: "SDK", texts: [`[${order}]`] },
  orderStatus: {
    source: "Go",
    texts: [`{"status":"order","order":${record}}`, `{"status":"unknownOid"}`]
  },
  historicalOrders: { source: "SDK", texts: [`[${record}]`] },
  userFills: { source: "SDK", texts: [`[${oldFill}]`] },
  userFillsByTime: { source: "SDK, Go", texts: [`[${fill},${oldFill}]`, "[]"] },
  userRole: {
    source: "SDK; the others: schema",
    texts: [
      `{"role":"vault"}`,
      `{"role":"agent","data":{"user":"${address}"}}`,
      `{"role":"subAccount","data":{"master":"${address}"}}`
    ]
  },
  userRateLimit: {
    source: "SDK",
    texts: [`{"cumVlm":"170043721737.450012207","nRequestsUsed":36589831368,"nRequestsCap":170043731737}`]
  },
  userFees: {
    source: "schema",
    texts: [
      `{"dailyUserVlm":[{"date":"2025-05-23","userCross":"0.0","userAdd":"0.0","exchange":"2852367.0"}],"feeSchedule":{"cross":"0.00045","add":"0.00015",` +
      `"spotCross":"0.0007","spotAdd":"0.0004","tiers":{"vip":[{"ntlCutoff":"5000000.0","cross":"0.0004","add":"0.00012","spotCross":"0.0006",` +
      `"spotAdd":"0.0003"}],"mm":[{"makerFractionCutoff":"0.005","add":"-0.00001"}]},"referralDiscount":"0.04",` +
      `"stakingDiscountTiers":[{"bpsOfMaxSupply":"0.0","discount":"0.0"}]},"userCrossRate":"0.00045","userAddRate":"0.00015",` +
      `"userSpotCrossRate":"0.0007","userSpotAddRate":"0.0004","activeReferralDiscount":"0.0","trial":null,"feeTrialReward":"0.0",` +
      `"nextTrialAvailableTimestamp":null,"stakingLink":null,"activeStakingDiscount":{"bpsOfMaxSupply":"0.0","discount":"0.0"}}`
    ]
  },
  userAbstraction: { source: "schema", texts: [`"unifiedAccount"`] },
  extraAgents: { source: "SDK", texts: [`[{"name":"ok","address":"${address}","validUntil":1767776120478}]`] }
}

const block = (transactions: string) =>
  `{"number":"0x2d","hash":"${hash}","parentHash":"${hash}","timestamp":"0x1c2","gasLimit":"0x4c4b400","gasUsed":"0x1ec30","baseFeePerGas":"0x7",` +
  `"miner":"${address}","transactions":[${transactions}],"withdrawals":[]}`
const transaction =
  `{"hash":"${hash}","from":"${address}","to":null,"value":"0x0","nonce":"0x8","gas":"0x1ec30","gasPrice":"0x8","input":"0x6000","type":"0x2"}`
const log =
  `{"address":"${address}","topics":["${hash}"],"data":"0x01","blockNumber":"0x2","transactionHash":"${hash}","transactionIndex":"0x0",` +
  `"blockHash":"${hash}","blockTimestamp":"0x14","logIndex":"0x0","removed":false}`

const evmReads = {
  blockNumber: { source: "specs", texts: [`"0x2d"`] },
  chainId: { source: "specs", texts: [`"0xc72dd9d5e883e"`] },
  getBlockByNumber: {
    source: "specs",
    texts: [
      block(`"${hash}"`),
      block(transaction),
      `{"number":null,"hash":null,"parentHash":"${hash}","timestamp":"0x1c2","gasLimit":"0x1","gasUsed":"0x0","transactions":[]}`,
      "null"
    ]
  },
  getBlockByHash: { source: "specs", texts: [block(""), "null"] },
  getLogs: { source: "specs", texts: [`[${log}]`, "[]"] },
  call: { source: "specs", texts: [`"0x"`, `"0x00ff"`] },
  getBalance: { source: "specs", texts: [`"0x7a69"`] },
  getTransactionCount: { source: "specs", texts: [`"0x0"`] }
} as const

export const evmAnswers: AnswersOf<typeof evmOperations> = {
  ...evmReads,
  getTransactionReceipt: {
    source: "specs",
    texts: [
      `{"transactionHash":"${hash}","transactionIndex":"0x0","blockHash":"${hash}","blockNumber":"0x10","from":"${address}","to":null,` +
      `"cumulativeGasUsed":"0x5208","gasUsed":"0x5208","effectiveGasPrice":"0x7","type":"0x2","logs":[${log}],"logsBloom":"0x00","status":"0x1"}`,
      "null"
    ]
  },
  getStorageAt: { source: "specs", texts: [`"${hash}"`] },
  gasPrice: { source: "specs", texts: [`"0x${"f".repeat(64)}"`] },
  bigBlockGasPrice: { source: "the node provider's OpenAPI", texts: [`"0x5f5e100"`] },
  usingBigBlocks: { source: "the node provider's OpenAPI", texts: ["true"] }
}

export const layer2Answers: AnswersOf<typeof layer2Operations> = {
  ...evmReads,
  getTransactionReceipt: {
    source: "OP stack",
    texts: [
      `{"transactionHash":"${hash}","transactionIndex":"0x0","blockHash":"${hash}","blockNumber":"0x10","from":"${address}","to":null,` +
      `"cumulativeGasUsed":"0x5208","gasUsed":"0x5208","logs":[],"logsBloom":"0x00","status":"0x0","l1Fee":18446744073709551616}`,
      "null"
    ]
  }
}
