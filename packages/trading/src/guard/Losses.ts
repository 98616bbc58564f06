/**
 * The loss of an account since a time of day: its equity then, plus deposits and transfers since, minus its equity now.
 * It includes realised and unrealised losses, fees and funding.
 *
 * The equity is the value of the perpetual accounts, and of the spot balances at mid prices. The first state that is read
 * after the time of day is the baseline. Replicas share it, and it outlives a process, if there is a store.
 */
import type * as Policy from "@trigate/domain/actions/Policy"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as GuardStore from "./GuardStore.ts"

/** The time of day from which losses count. */
export type Since = Pick<Policy.Loss, "since" | "zone">

/** The key of a time of day, under which the baseline of an account is stored. */
export const sinceKey = ({ since, zone }: Since): string => `${since} ${zone}`

const partsFormat = new Map<string, Intl.DateTimeFormat>()

/** Returns the number of the day, in a time zone, at whose time of day the current period began. */
export const periodAt = ({ since, zone }: Since, at: number): number => {
  const format = partsFormat.get(zone) ?? new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23"
  })
  partsFormat.set(zone, format)
  const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, value]))
  const day = Date.UTC(Number(parts.get("year")), Number(parts.get("month")) - 1, Number(parts.get("day"))) / 86_400_000
  return `${parts.get("hour")}:${parts.get("minute")}` < since ? day - 1 : day
}

/** The equity of an account at the beginning of a period, and the venue's time of that state. */
const Baseline = Schema.Struct({ period: Schema.Int, equity: Schema.Finite, at: Schema.Finite })
export type Baseline = typeof Baseline.Type

const decodeBaselines = Schema.decodeOption(Schema.fromJsonString(Schema.Record(Schema.String, Baseline)))

/**
 * Returns the baseline of each time of day. A period that has no baseline yet begins with the given state. Fails if the
 * store cannot be read or written.
 */
export const baselines = Effect.fnUntraced(function*(
  store: GuardStore.GuardStore["Service"],
  account: string,
  times: ReadonlyArray<Since>,
  state: { readonly equity: number; readonly at: number },
  now: number
) {
  const key = `loss ${account}`
  for (;;) {
    const found = yield* store.get(key)
    const known = found === undefined ? Option.some({}) : decodeBaselines(found.text)
    // a document that cannot be read hides a loss
    if (Option.isNone(known)) return undefined
    const next = new Map<string, Baseline>(Object.entries(known.value))
    let isChanged = false
    for (const since of times) {
      const period = periodAt(since, now)
      if ((next.get(sinceKey(since))?.period ?? Number.NEGATIVE_INFINITY) >= period) continue
      next.set(sinceKey(since), { period, ...state })
      isChanged = true
    }
    if (!isChanged || (yield* store.put(key, found?.version ?? 0, Encoding.stringify(Object.fromEntries(next))))) {
      // the baseline of a policy that was removed must not make the ledger longer and longer
      const current = new Set(times.map(sinceKey))
      return new Map([...next].filter(([since]) => current.has(since)))
    }
  }
})

const Row = Schema.Struct({
  time: Schema.Finite,
  delta: Schema.StructWithRest(
    Schema.Struct({
      type: Schema.String,
      user: Schema.optionalKey(Schema.Unknown),
      destination: Schema.optionalKey(Schema.Unknown)
    }),
    [Schema.Record(Schema.String, Schema.Unknown)]
  )
})
export type Row = typeof Row.Type

/** Decodes the rows of the venue's ledger. */
export const decodeRows = Schema.decodeUnknownOption(Schema.Array(Row))

const lower = (value: unknown): string => String(value).toLowerCase()

/** Types of rows that change no equity from outside: transfers within the account, and the venue's own events. */
const internal: ReadonlySet<string> = new Set([
  "accountClassTransfer",
  "activateDexAbstraction",
  "deployGasAuction",
  "liquidation"
])

/**
 * Returns the value that a row of the ledger brought into an account, negative if it left; `undefined` for a row of an
 * unknown type.
 */
export const inflow = ({ delta }: Row, account: string, priceOf: (token: string) => number): number | undefined => {
  const number = (member: string): number => Number(delta[member] ?? 0)
  const isIn = lower(delta.destination) === account
  const isOut = lower(delta.user) === account
  const value = delta["usdcValue"] === undefined
    ? number("amount") * priceOf(String(delta["token"]))
    : number("usdcValue")
  const moved = (amount: number): number => (isIn ? amount : 0) - (isOut ? amount : 0)
  switch (delta.type) {
    case "deposit":
      return number("usdc")
    case "withdraw":
      return -number("usdc")
    case "internalTransfer":
    case "subAccountTransfer":
      return moved(number("usdc"))
    case "send":
    case "spotTransfer":
      return moved(value)
    case "vaultCreate":
    case "vaultDeposit":
      return -number("usdc")
    case "vaultDistribution":
    case "vaultLeaderCommission":
      return number("usdc")
    case "vaultWithdraw":
      return number("netWithdrawnUsd")
    case "rewardsClaim":
      return delta["token"] === undefined ? number("amount") : value
    case "spotGenesis":
      return value
    case "cStakingTransfer":
      return delta["isDeposit"] === true ? -value : value
    case "borrowLend":
      return delta["operation"] === "withdraw" || delta["operation"] === "borrow" ? value : -value
    default:
      return internal.has(delta.type) ? 0 : undefined
  }
}

/** An account's losses by time of day; `undefined` if one cannot be known. */
export type Losses = ReadonlyMap<string, number>

/** Returns the losses since the baselines, with the ledger's rows since the oldest of them. */
export const measure = (
  equity: number,
  found: ReadonlyMap<string, Baseline>,
  rows: ReadonlyArray<Row>,
  account: string,
  priceOf: (token: string) => number
): Losses | undefined => {
  const flows = rows.map((row) => ({ time: row.time, value: inflow(row, account, priceOf) }))
  if (flows.some(({ value }) => value === undefined)) return undefined
  return new Map([...found].map(([key, baseline]) => {
    const inflows = flows.reduce((sum, { time, value = 0 }) => time > baseline.at ? sum + value : sum, 0)
    return [key, baseline.equity + inflows - equity]
  }))
}
