/** Subscriptions as the venue reads them: its form with defaults filled in, or what it does instead. */

type Scalar = string | number | boolean | null

/** The form with defaults filled in, which an acknowledgement echoes. */
export interface Normal {
  readonly type: string
  readonly [field: string]: Scalar
}

export type Reading =
  | { readonly kind: "normal"; readonly subscription: Normal }
  /** The error frame `Invalid subscription …`. */
  | { readonly kind: "invalid" }
  /** The error frame `Error parsing JSON into valid websocket request: …`. */
  | { readonly kind: "unparsed" }
  /** The venue destroys the socket without a word. */
  | { readonly kind: "fatal" }

export const intervals: ReadonlyMap<string, number> = new Map([
  ["1m", 60_000],
  ["3m", 180_000],
  ["5m", 300_000],
  ["15m", 900_000],
  ["30m", 1_800_000],
  ["1h", 3_600_000],
  ["2h", 7_200_000],
  ["4h", 14_400_000],
  ["8h", 28_800_000],
  ["12h", 43_200_000],
  ["1d", 86_400_000],
  ["3d", 259_200_000],
  ["1w", 604_800_000],
  ["1M", 2_592_000_000]
])

type Read = (input: Readonly<Record<string, unknown>>, listed: ReadonlySet<string>) => Reading

type Refusal = Exclude<Reading, { readonly kind: "normal" }>

const unparsed: Refusal = { kind: "unparsed" }
const invalid: Refusal = { kind: "invalid" }
const fatal: Refusal = { kind: "fatal" }

/** Reads one member of a subscription, or says what the venue makes of it. */
type Member = (value: unknown, listed: ReadonlySet<string>) => Scalar | Refusal

const coin: Member = (value, listed) => {
  if (typeof value !== "string") return unparsed
  if (!listed.has(value)) return fatal
  return value
}

const user: Member = (value) => {
  if (typeof value !== "string") return unparsed
  if (!/^0x[\da-f]{40}$/iu.test(value)) return invalid
  return value.toLowerCase()
}

const dex: Member = (value) => {
  if (value === undefined || value === null) return ""
  if (typeof value !== "string") return unparsed
  return value
}

const flag: Member = (value) => {
  if (value === undefined || value === null) return false
  if (typeof value !== "boolean") return unparsed
  return value
}

const interval: Member = (value) => {
  if (typeof value !== "string") return unparsed
  if (!intervals.has(value)) return invalid
  return value
}

const integer: Member = (value) => {
  if (value === undefined || value === null) return null
  return typeof value === "number" && Number.isInteger(value) ? value : unparsed
}

const members = (fields: Readonly<Record<string, Member>>): Read => (input, listed) => {
  const subscription: Record<string, Scalar> & { type: string } = { type: String(input["type"]) }
  for (const [name, read] of Object.entries(fields)) {
    const value = read(input[name], listed)
    if (typeof value === "object" && value !== null) return value
    subscription[name] = value
  }
  return { kind: "normal", subscription }
}

const book = members({ coin, nSigFigs: integer, mantissa: integer, fast: flag })

const l2Book: Read = (input, listed) => {
  const reading = book(input, listed)
  if (reading.kind !== "normal") return reading
  const { mantissa, nSigFigs } = reading.subscription
  const isAggregated = nSigFigs === null || [2, 3, 4, 5].includes(Number(nSigFigs))
  const isStepped = mantissa === null || (nSigFigs === 5 && [1, 2, 5].includes(Number(mantissa)))
  return isAggregated && isStepped ? reading : { kind: "fatal" }
}

const ofUser = members({ user })
const ofUserAndDex = members({ user, dex })

const types: ReadonlyMap<string, Read> = new Map([
  ["allMids", members({ dex: dex })],
  ["l2Book", l2Book],
  ["bbo", members({ coin })],
  ["trades", members({ coin })],
  ["candle", members({ coin, interval })],
  ["activeAssetCtx", members({ coin })],
  ["assetCtxs", members({ dex })],
  ["spotAssetCtxs", members({})],
  ["allDexsAssetCtxs", members({})],
  ["fastAssetCtxs", members({})],
  ["outcomeMetaUpdates", members({})],
  ["notification", ofUser],
  ["webData3", ofUser],
  ["clearinghouseState", ofUserAndDex],
  ["allDexsClearinghouseState", ofUser],
  ["openOrders", ofUserAndDex],
  ["spotState", members({ user, ignorePortfolioMargin: flag })],
  ["twapStates", ofUserAndDex],
  ["orderUpdates", ofUser],
  ["userEvents", ofUser],
  ["userFills", members({ user, aggregateByTime: flag })],
  ["userFundings", ofUser],
  ["userNonFundingLedgerUpdates", ofUser],
  ["userHistoricalOrders", ofUser],
  ["userTwapHistory", ofUser],
  ["userTwapSliceFills", ofUser],
  ["activeAssetData", members({ user, coin })]
])

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const read = (input: unknown, listed: ReadonlySet<string>): Reading => {
  if (!isObject(input)) return { kind: "unparsed" }
  const reader = types.get(String(input["type"]))
  if (reader === undefined || typeof input["type"] !== "string") return { kind: "unparsed" }
  return reader(input, listed)
}

/** The text that an error frame quotes, and the key of a subscription. */
export const keyOf = (subscription: Normal): string => JSON.stringify(subscription)

/** The name of the channel that carries a subscription. */
export const channelOf = ({ coin, type }: Normal): string =>
  type === "userEvents"
    ? "user"
    : type === "activeAssetCtx" && typeof coin === "string" && (coin.startsWith("@") || coin.includes("/"))
    ? "activeSpotAssetCtx"
    : type
