/** What the venue lists, and its answers to queries of the listing. Prices are in units of the last decimal. */

export interface Listed {
  readonly coin: string
  /** The number that an order names. */
  readonly asset: number
  readonly szDecimals: number
  readonly pxDecimals: number
  /** In units of the last decimal of a price. */
  readonly start: number
  readonly kind: "perp" | "spot" | "outcome"
  readonly delisted?: true
}

const perp = (coin: string, asset: number, szDecimals: number, pxDecimals: number, start: number): Listed => ({
  coin,
  asset,
  szDecimals,
  pxDecimals,
  start,
  kind: "perp"
})

/** Perpetuals whose only use is to be many. */
const more = Array.from({ length: 60 }, (_, index) => perp(`C${index}`, 6 + index, 2, 3, 10_000 + index))

const firstDex: ReadonlyArray<Listed> = [
  perp("BTC", 0, 5, 1, 841_430),
  perp("ETH", 1, 4, 1, 27_025),
  perp("SOL", 2, 2, 2, 11_919),
  perp("HYPE", 3, 2, 3, 34_967),
  perp("kPEPE", 4, 0, 6, 4411),
  { ...perp("MATIC", 5, 1, 4, 3800), delisted: true },
  ...more
]

const xyz: ReadonlyArray<Listed> = [
  perp("xyz:SP500", 110_000, 3, 1, 76_733),
  perp("xyz:XYZ100", 110_001, 4, 1, 311_750)
]

const spot: ReadonlyArray<Listed> = [
  { coin: "PURR/USDC", asset: 10_000, szDecimals: 0, pxDecimals: 6, start: 67_131, kind: "spot" },
  { coin: "@107", asset: 10_107, szDecimals: 2, pxDecimals: 3, start: 92_652, kind: "spot" },
  { coin: "@142", asset: 10_142, szDecimals: 5, pxDecimals: 1, start: 809_075, kind: "spot" }
]

const outcomes: ReadonlyArray<Listed> = [
  { coin: "#11210", asset: 100_011_210, szDecimals: 0, pxDecimals: 5, start: 50_000, kind: "outcome" },
  { coin: "#11211", asset: 100_011_211, szDecimals: 0, pxDecimals: 5, start: 50_000, kind: "outcome" }
]

export const dexes: ReadonlyMap<string, ReadonlyArray<Listed>> = new Map([["", firstDex], ["xyz", xyz]])

/** Everything that is listed at first. */
export const listing: ReadonlyArray<Listed> = [...firstDex, ...xyz, ...spot, ...outcomes]

export const decimal = (units: number, decimals: number): string =>
  decimals === 0 ? `${units}.0` : (units / 10 ** decimals).toFixed(decimals)

/** A coin that is listed later, by a command: a perpetual, or a side of an outcome. */
export const late = (coin: string, asset: number): Listed =>
  coin.startsWith("#")
    ? { coin, asset: 100_000_000 + Number(coin.slice(1)), szDecimals: 0, pxDecimals: 5, start: 50_000, kind: "outcome" }
    : perp(coin, asset, 2, 3, 5000)

export const meta = (coins: ReadonlyArray<Listed>) => ({
  universe: coins.map(({ coin, delisted, szDecimals }) => ({
    szDecimals,
    name: coin,
    maxLeverage: 40,
    marginTableId: 56,
    ...(delisted === true ? { isDelisted: true } : {})
  })),
  marginTables: [],
  collateralToken: 0
})

const token = (name: string, index: number, szDecimals: number, weiDecimals: number) => ({
  name,
  szDecimals,
  weiDecimals,
  index,
  tokenId: `0x${index.toString(16).padStart(32, "0")}`,
  isCanonical: true,
  evmContract: null,
  fullName: null,
  deployerTradingFeeShare: "0.0"
})

export const spotMeta = {
  universe: [
    { tokens: [1, 0], name: "PURR/USDC", index: 0, isCanonical: true },
    { tokens: [150, 0], name: "@107", index: 107, isCanonical: false },
    { tokens: [197, 0], name: "@142", index: 142, isCanonical: false }
  ],
  tokens: [token("USDC", 0, 8, 8), token("PURR", 1, 0, 5), token("HYPE", 150, 2, 8), token("UBTC", 197, 5, 10)]
}

export const perpDexs = [null, {
  name: "xyz",
  fullName: "XYZ",
  deployer: "0x88806a71d74ad0a510b350545c9ae490912f0888",
  oracleUpdater: null,
  feeRecipient: null,
  assetToStreamingOiCap: [["xyz:SP500", "100000000.0"], ["xyz:XYZ100", "100000000.0"]]
}]

export const outcomeMeta = (outcomes: ReadonlyArray<number>) => ({
  outcomes: outcomes.map((outcome) => ({
    outcome,
    name: "template:binaryPrice",
    description: "perp:HYPE|threshold:93.058",
    sideSpecs: [{ name: "template:Yes" }, { name: "template:No" }],
    quoteToken: "USDC"
  })),
  questions: []
})

export const perpContext = (px: string) => ({
  funding: "0.0000125",
  openInterest: "36585.31848",
  prevDayPx: px,
  dayNtlVlm: "4161029539.6949653625",
  premium: "-0.0006413454",
  oraclePx: px,
  markPx: px,
  midPx: px,
  impactPxs: [px, px],
  dayBaseVlm: "49116.08533"
})

export const spotContext = (coin: string, px: string) => ({
  prevDayPx: px,
  dayNtlVlm: "64552049.6973299459",
  markPx: px,
  midPx: px,
  circulatingSupply: "298462370.4079165459",
  coin,
  totalSupply: "998882916.6303099394",
  dayBaseVlm: "690824.1400000008"
})
