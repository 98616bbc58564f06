/**
 * Outcome markets (HIP-4): the outcomes that exist at a time, their names, prices, books and bars.
 *
 * The recurring outcomes follow from the clock and the price path alone, so that their numbers, thresholds and results do
 * not need to be stored. Only outcomes that an account has deployed are state.
 */
import type { Candle, CandleWindowRequest } from "@trigate/domain/candles/Candle"
import { barAt, closeTime, openTime, retainedBars } from "@trigate/domain/candles/Candle"
import type { Address } from "@trigate/domain/encoding/Encoding"
import type { OutcomeMeta, OutcomeSpec, QuestionSpec, SpotToken } from "@trigate/domain/info/Market"
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Random from "../Seed.ts"
import * as Assets from "./Assets.ts"
import { lotsIn, minute, priceWalk, tradesBy } from "./CandleBars.ts"
import type { Quote, TradingState } from "./TradingState.ts"
import type { PricePath, Venue } from "./Venue.ts"
import type { InfoState } from "./VenueState.ts"

/** Decimals of the price of a side, and of an amount of its token. */
const decimals = 8

/** The price that both sides of an outcome have in total, in ticks; also the number of wei in a token. */
export const one = 10n ** BigInt(decimals)

const quarter = 15 * minute
const day = 96 * quarter

/** The start of the first rotation: 2026-05-02, when the venue listed its first outcome. Before it there are none. */
const launch = 1_777_680_000_000

/** The time of day at which the daily outcomes end and begin, in milliseconds. */
const dailyAt = 6 * 60 * minute

/** The first number of a recurring outcome. Smaller numbers are those of deployed outcomes. */
const firstRecurring = 1_000

/** The first number of a recurring question. Smaller numbers are those of deployed questions. */
const firstQuestion = 100

/** The first number of deployed outcomes and questions once the small ones are used; recurring ones stay below it. */
const farNumber = 50_000_000

const nextNumber = (known: ReadonlyMap<number, unknown>, firstOfRecurring: number): number =>
  known.size + 1 < firstOfRecurring ? known.size + 1 : farNumber + known.size

const perQuarter = 8

/** The first asset ID of outcomes. The index of a side's token equals its asset ID. */
export const firstSide = 100_000_000

/** The values of a template's keywords. */
export type Keywords = ReadonlyArray<readonly [keyword: string, value: string]>

/** An outcome that an account has deployed from a template, or the fallback of a question that it has deployed. */
export interface DeployedOutcome {
  readonly outcome: number
  /** The ID of the template; absent for a fallback. */
  readonly template?: string
  readonly keywords: Keywords
  /** The number of its question; absent for a standalone outcome. */
  readonly question?: number
  readonly venue: string
  readonly deployer: Address
  /** The multiple of the base fee that the deployer earns, as decimal text. */
  readonly feeScale: string
  readonly createdAt: number
  /** The part of one quote token that side 0 was paid; absent until the outcome is settled. */
  settleFraction?: string
}

/** A question that an account has deployed from a template. The lists of its specification grow in place. */
export interface DeployedQuestion {
  readonly spec: typeof QuestionSpec.Encoded & {
    readonly namedOutcomes: Array<number>
    readonly settledNamedOutcomes: Array<number>
  }
  readonly template: string
  readonly keywords: Keywords
  readonly venue: string
  readonly feeScale: string
  isSettled: boolean
}

/** Returns the number of the next outcome that an account deploys. */
export const nextOutcome = ({ deployedOutcomes }: TradingState): number => nextNumber(deployedOutcomes, firstRecurring)

/** Returns the number of the next question that an account deploys. */
export const nextQuestion = ({ deployedQuestions }: TradingState): number =>
  nextNumber(deployedQuestions, firstQuestion)

/** An outcome, with its sides as spot pairs of their tokens. */
export interface ListedOutcome {
  readonly spec: typeof OutcomeSpec.Encoded
  readonly createdAt: number
  /** The time of the automatic settlement; infinity for an outcome that its deployer settles. */
  readonly expiresAt: number
  readonly question?: typeof QuestionSpec.Encoded
  readonly deployed?: DeployedOutcome
  readonly sides: readonly [Assets.SpotPair, Assets.SpotPair]
}

/** The listed outcomes, and from what the list was made. */
export interface ListedOutcomes {
  readonly key: string
  readonly state: TradingState | undefined
  readonly listing: Assets.Listing | undefined
  /** The maps of `listing`. */
  readonly assets: {
    readonly byId: Map<number, Assets.Asset>
    readonly byCoin: Map<string, Assets.Asset>
    readonly tokens: Map<number, SpotToken>
  }
  readonly active: ReadonlyMap<number, ListedOutcome>
}

/** A list without outcomes. */
export const unlisted: ListedOutcomes = {
  key: "",
  state: undefined,
  listing: undefined,
  assets: { byId: new Map(), byCoin: new Map(), tokens: new Map() },
  active: new Map()
}

/** The template of an outcome or of a question. The first side of an outcome is paid if the statement is true. */
export interface OutcomeTemplate {
  readonly id: string
  readonly role:
    | "question"
    | { readonly questionOutcome: { readonly parent: string } }
    | { readonly standaloneOutcome: { readonly sideNames: readonly [string, string] } }
  readonly name: string
  readonly description: string
  readonly keywords: ReadonlyArray<readonly [keyword: string, hint: string]>
}

const priceKeywords = [
  ["perp", "hlPerp"],
  ["priceDescription", "string"],
  ["seconds", "uInt"],
  ["threshold", "uDecimal"],
  ["time", "dateTime"]
] as const

/** The response to the query `outcomeTemplates`. */
export const templates: ReadonlyArray<OutcomeTemplate> = [
  {
    id: "binaryPrice",
    role: { standaloneOutcome: { sideNames: ["Yes", "No"] } },
    name: "{perp} above {threshold} at {time}?",
    description: "Resolves to Yes if the {priceDescription} over {seconds} seconds is above {threshold} at {time}.",
    keywords: priceKeywords
  },
  {
    id: "priceBelow",
    role: { standaloneOutcome: { sideNames: ["Under", "Over"] } },
    name: "{perp} under {threshold} at {time}?",
    description: "Resolves to Under if the {priceDescription} over {seconds} seconds is below {threshold} at {time}.",
    keywords: priceKeywords
  },
  {
    id: "priceRange",
    role: "question",
    name: "{perp} at {time}?",
    description: "Resolves by the {priceDescription} over {seconds} seconds at {time}.",
    keywords: priceKeywords.filter(([keyword]) => keyword !== "threshold")
  },
  {
    id: "priceRange-between",
    role: { questionOutcome: { parent: "priceRange" } },
    name: "From {from} to {to}",
    description: "Resolves to Yes if the price is at least {from} and below {to}.",
    keywords: [["from", "uDecimal"], ["to", "uDecimal"]]
  },
  {
    id: "priceRange-above",
    role: { questionOutcome: { parent: "priceRange" } },
    name: "{from} or above",
    description: "Resolves to Yes if the price is at least {from}.",
    keywords: [["from", "uDecimal"]]
  }
]

/** Returns a template; `undefined` for an unknown ID. */
export const findTemplate = (id: string): OutcomeTemplate | undefined => templates.find((each) => each.id === id)

/** Formats a time as descriptions do, such as `20261006-1015`. */
const printStamp = (time: number): string => {
  const [date = "", clock = ""] = DateTime.formatIso(DateTime.makeUnsafe(time)).split("T")
  return `${date.replaceAll("-", "")}-${clock.slice(0, 5).replace(":", "")}`
}

/** Formats the keywords of an instance of a template as the description of its outcome. */
export const describe = (keywords: Keywords): string =>
  keywords.toSorted(([a], [b]) => a < b ? -1 : 1).map(([keyword, value]) => `${keyword}:${value}`).join("|")

/** Returns the token of a side. */
const sideToken = (index: number): SpotToken => ({
  name: `+${index - firstSide}`,
  szDecimals: 0,
  weiDecimals: decimals,
  index,
  tokenId: `0x${index.toString(16).padStart(32, "0")}`,
  isCanonical: false,
  evmContract: null,
  fullName: null
})

const tradeRate = 5
const tradeLots = 120

interface Terms extends Pick<ListedOutcome, "createdAt" | "expiresAt" | "question" | "deployed"> {
  readonly spec: ListedOutcome["spec"]
  readonly underlying: Assets.CandleMarket
  readonly range: Assets.OutcomePrice["range"]
  readonly findOthers?: Assets.OutcomePrice["findOthers"]
  /** The time at which the price is determined. */
  readonly endsAt: number
}

const makeOutcome = (quote: SpotToken, { endsAt, findOthers, range, underlying, ...terms }: Terms): ListedOutcome => {
  const id = firstSide + 10 * terms.spec.outcome
  const coins = [`#${id - firstSide}`, `#${id - firstSide + 1}`] as const
  const makeSide = (side: 0 | 1): Assets.SpotPair => ({
    kind: "spot",
    id: id + side,
    coin: coins[side],
    market: {
      coin: coins[side],
      asset: coins[side],
      price: 0.5,
      volatility: 0,
      tradeRate,
      tradeLots,
      sizeDecimals: 0,
      priceDecimals: decimals,
      listedAt: terms.createdAt,
      outcome: { coins, side, underlying, range, endsAt, ...(findOthers === undefined ? {} : { findOthers }) }
    },
    szDecimals: 0,
    pxDecimals: decimals,
    base: sideToken(id + side),
    quote,
    weiPerLot: one,
    side: { outcome, side }
  })
  const outcome: ListedOutcome = {
    ...terms,
    get sides() {
      return sides
    }
  }
  const sides = [makeSide(0), makeSide(1)] as const
  return outcome
}

const yesNo = [{ name: "Yes" }, { name: "No" }]

/** Returns the names of the sides of an outcome made from a template. */
const templateSides = (template: OutcomeTemplate | undefined): ListedOutcome["spec"]["sideSpecs"] =>
  Predicate.hasProperty(template?.role, "standaloneOutcome")
    ? template.role.standaloneOutcome.sideNames.map((name) => ({ name: `template:${name}` }))
    : yesNo

const withoutZero = (text: string): string => text.replace(/\.0$/u, "")

/** Returns the perpetual with a coin name; `undefined` if it is not listed. */
const findPerpetual = ({ markets }: InfoState, coin: string): Assets.CandleMarket | undefined =>
  Assets.coinDex(coin) === undefined ? undefined : Assets.findMarket(markets, coin)

/** Returns the prices for which side 0 of an outcome made from a template is paid; an empty range for a fallback. */
const rangeIn = (template: string | undefined, values: ReadonlyMap<string, string>): Assets.OutcomePrice["range"] => {
  const [from, threshold, to] = ["from", "threshold", "to"].map((keyword) => Number(values.get(keyword)))
  switch (template) {
    case "binaryPrice":
      return [threshold ?? 0, Number.POSITIVE_INFINITY]
    case "priceBelow":
      return [0, threshold ?? 0]
    case "priceRange-between":
      return [from ?? 0, to ?? 0]
    case "priceRange-above":
      return [from ?? 0, Number.POSITIVE_INFINITY]
    default:
      return [0, 0]
  }
}

/** The venue of the recurring outcomes that are made from templates. */
export const recurringVenue = "out"

/** Returns the number of quarters of an hour from the launch to a time. */
const quarterAt = (time: number): number => Math.floor((time - launch) / quarter)

type Context = Pick<Venue, "info" | "path" | "state">

/** Makes a recurring outcome from its number; `undefined` for a number that no outcome has yet. */
const makeRecurring = ({ info, path, state }: Context, outcome: number): ListedOutcome | undefined => {
  const start = Math.floor((outcome - firstRecurring) / perQuarter)
  const place = (outcome - firstRecurring) % perQuarter
  const createdAt = launch + start * quarter
  const isDaily = place >= 6
  const coin = place === 1 ? "HYPE" : place === 7 ? "ETH" : "BTC"
  const underlying = findPerpetual(info, coin)
  const quote = info.spotMeta.tokens.find(({ index }) => index === Assets.usdc)
  const isMissing = underlying === undefined || quote === undefined || createdAt <= underlying.listedAt
  const isUnborn = outcome < firstRecurring || createdAt > state.now || isDaily && createdAt % day !== dailyAt
  if (isMissing || isUnborn) return undefined
  const expiresAt = createdAt + (isDaily ? day : quarter)
  const price = path.priceAt(underlying, createdAt)
  const print = (factor: number) => withoutZero(Assets.printPrice(underlying, price * factor))
  const common = { createdAt, expiresAt, endsAt: expiresAt, underlying }
  const spec = { outcome, sideSpecs: yesNo, quoteToken: quote.name }
  const period = `period:${isDaily ? "1d" : "15m"}`
  const recurring = `underlying:${coin}|expiry:${printStamp(expiresAt)}`
  if (place === 0 || place === 6) {
    const threshold = print(1)
    return makeOutcome(quote, {
      ...common,
      spec: {
        ...spec,
        name: "Recurring",
        description: `class:priceBinary|${recurring}|targetPrice:${threshold}|${period}`
      },
      range: rangeIn("binaryPrice", new Map([["threshold", threshold]]))
    })
  }
  if (place === 1 || place === 7) {
    const id = place === 1 ? "binaryPrice" : "priceBelow"
    const keywords: Keywords = [
      ["perp", coin],
      ["priceDescription", `${coin}-USDC perp mark`],
      ["seconds", "60"],
      ["threshold", print(1)],
      ["time", printStamp(expiresAt)]
    ]
    return makeOutcome(quote, {
      ...common,
      spec: {
        ...spec,
        name: `template:${id}`,
        description: describe(keywords),
        sideSpecs: templateSides(findTemplate(id)),
        venue: recurringVenue,
        deployerFeeScale: "1.0"
      },
      range: rangeIn(id, new Map(keywords))
    })
  }
  // the price is in each of the three ranges with about the same probability
  const part = 0.43 * underlying.volatility * Math.sqrt(quarter / day)
  const [low, high] = [print(1 - part), print(1 + part)]
  const bounds = [0, Number(low), Number(high), Number.POSITIVE_INFINITY]
  const fallbackOutcome = outcome - place + 2
  const index = place - 3
  return makeOutcome(quote, {
    ...common,
    question: {
      question: firstQuestion + start,
      name: "Recurring",
      description: `class:priceBucket|${recurring}|priceThresholds:${low},${high}|${period}`,
      fallbackOutcome,
      namedOutcomes: [fallbackOutcome + 1, fallbackOutcome + 2, fallbackOutcome + 3],
      settledNamedOutcomes: []
    },
    spec: index < 0
      ? { ...spec, name: "Recurring Fallback", description: "other" }
      : { ...spec, name: "Recurring Named Outcome", description: `index:${index}` },
    range: index < 0 ? [0, 0] : [bounds[index] ?? 0, bounds[index + 1] ?? 0]
  })
}

/** Parses a time as descriptions have it; `NaN` for other text. */
export const parseStamp = (text: string): number => {
  const iso = text.replace(/^(\d{4})(\d{2})(\d{2})-(\d{2})(\d{2})$/u, "$1-$2-$3T$4:$5:00Z")
  return Option.match(DateTime.make(iso), { onNone: () => Number.NaN, onSome: DateTime.toEpochMillis })
}

const makeDeployed = ({ info, state }: Context, deployed: DeployedOutcome): ListedOutcome | undefined => {
  const question = state.deployedQuestions.get(deployed.question ?? 0)
  // the price that decides about the outcomes of a question is a matter of the question
  const values = new Map([...question?.keywords ?? [], ...deployed.keywords])
  const underlying = findPerpetual(info, values.get("perp") ?? "")
  const quote = info.spotMeta.tokens.find(({ index }) => index === Assets.usdc)
  if (underlying === undefined || quote === undefined) return undefined
  const findOthers = () => {
    const { namedOutcomes = [], settledNamedOutcomes = [] } = question?.spec ?? {}
    const active = namedOutcomes.filter((outcome) => !settledNamedOutcomes.includes(outcome))
    return active.flatMap((outcome) => state.deployedOutcomes.get(outcome) ?? [])
      .map(({ keywords, template }) => rangeIn(template, new Map(keywords)))
  }
  return makeOutcome(quote, {
    deployed,
    ...(question === undefined ? {} : { question: question.spec }),
    ...(deployed.template === undefined ? { findOthers } : {}),
    createdAt: deployed.createdAt,
    expiresAt: Number.POSITIVE_INFINITY,
    endsAt: parseStamp(values.get("time") ?? ""),
    underlying,
    range: rangeIn(deployed.template, values),
    spec: {
      outcome: deployed.outcome,
      name: deployed.template === undefined ? "template fallback" : `template:${deployed.template}`,
      description: deployed.template === undefined ? "other" : describe(deployed.keywords),
      sideSpecs: templateSides(findTemplate(deployed.template ?? "")),
      quoteToken: quote.name,
      venue: deployed.venue,
      deployerFeeScale: deployed.feeScale
    }
  })
}

/** Returns the numbers of the recurring outcomes at a time. */
const numbersAt = (time: number): ReadonlyArray<number> => {
  const now = quarterAt(time)
  if (now < 0) return []
  const base = firstRecurring + now * perQuarter
  const daily = quarterAt(Math.floor((time - dailyAt) / day) * day + dailyAt)
  const ofDay = daily < 0 ? [] : [6, 7].map((place) => firstRecurring + daily * perQuarter + place)
  return [...[0, 1, 2, 3, 4, 5].map((place) => base + place), ...ofDay]
}

/** Makes a copy of a list of assets, to which outcomes can be added and from which they can be removed. */
const copyAssets = ({ byCoin, byId, tokens }: Assets.Listing) => ({
  byId: new Map(byId),
  byCoin: new Map(byCoin),
  tokens: new Map(tokens)
})

/** Publishes the active outcomes. Changes the published list in place, because it changes every quarter of an hour. */
const publish = (venue: Venue, key: string, active: ReadonlyMap<number, ListedOutcome>): void => {
  const known = venue.outcomes
  const isKnown = known.listing === venue.listing
  const assets = isKnown ? known.assets : copyAssets(venue.listing)
  for (const [number, { sides }] of isKnown ? known.active : []) {
    if (active.get(number)?.sides === sides) continue
    for (const { base, coin, id } of sides) {
      assets.byId.delete(id)
      assets.byCoin.delete(coin)
      assets.tokens.delete(base.index)
    }
  }
  for (const asset of [...active.values()].flatMap(({ sides }) => sides)) {
    assets.byId.set(asset.id, asset)
    assets.byCoin.set(asset.coin, asset)
    assets.tokens.set(asset.base.index, asset.base)
  }
  if (!isKnown) venue.listing = { ...venue.listing, ...assets }
  venue.outcomes = { key, state: venue.state, listing: venue.listing, assets, active }
}

/** Lists the outcomes of the venue's time. An outcome stays listed until it is settled. */
export const list = (venue: Venue): void => {
  const { outcomes: known, state } = venue
  const key = `${quarterAt(state.now)} ${state.deployedOutcomes.size}`
  if (known.key === key && known.state === state && known.listing === venue.listing) return
  const active = new Map<number, ListedOutcome>()
  for (const [outcome, each] of known.active) {
    if (each.deployed === undefined && each.createdAt <= state.now) active.set(outcome, each)
  }
  for (const outcome of venue.hasRecurringOutcomes ? numbersAt(state.now) : []) {
    const made = active.has(outcome) ? undefined : makeRecurring(venue, outcome)
    if (made !== undefined) active.set(outcome, made)
  }
  for (const deployed of state.deployedOutcomes.values()) {
    const same = known.active.get(deployed.outcome)
    const made = same?.deployed === deployed ? same : makeDeployed(venue, deployed)
    if (made !== undefined && deployed.settleFraction === undefined) active.set(deployed.outcome, made)
  }
  publish(venue, key, active)
}

/** Lists the outcomes again if the state or the list of other assets was replaced. */
export const relist = (venue: Venue): void => {
  const { listing, state } = venue.outcomes
  if (state !== venue.state || listing !== venue.listing) list(venue)
}

/** Removes settled outcomes from the list. */
export const unlist = (venue: Venue, outcomes: ReadonlyArray<ListedOutcome>): void => {
  if (outcomes.length === 0) return
  const active = new Map(venue.outcomes.active)
  for (const { spec } of outcomes) active.delete(spec.outcome)
  publish(venue, venue.outcomes.key, active)
}

/** Returns the time of the next automatic settlement. */
export const nextExpiry = ({ outcomes: { active } }: Venue): number => {
  let next = Number.POSITIVE_INFINITY
  for (const { expiresAt } of active.values()) next = Math.min(next, expiresAt)
  return next
}

/** Returns an outcome, also one that is settled; `undefined` for a number that no outcome has or had. */
export const findOutcome = (venue: Venue, outcome: number): ListedOutcome | undefined => {
  const { active } = venue.outcomes
  const deployed = venue.state.deployedOutcomes.get(outcome)
  const found = active.get(outcome) ??
    (deployed === undefined ? makeRecurring(venue, outcome) : makeDeployed(venue, deployed))
  return found === undefined || found.createdAt > venue.state.now ? undefined : found
}

/** Returns the market of the side with a coin name, also of a settled outcome. */
export const findMarket = (venue: Venue, coin: string): Assets.CandleMarket | undefined => {
  if (!/^#\d{1,9}$/u.test(coin)) return undefined
  const number = Number(coin.slice(1))
  return findOutcome(venue, Math.floor(number / 10))?.sides[number % 10]?.market
}

/** Returns the part of one quote token that side 0 of an outcome is paid, in units of 10^-8, and the deciding price. */
export const findResult = ({ path, state }: Pick<Venue, "path" | "state">, outcome: ListedOutcome) => {
  if (outcome.deployed !== undefined) {
    const { settleFraction } = outcome.deployed
    return settleFraction === undefined
      ? undefined
      : { fraction: Assets.parseDecimal(settleFraction, decimals) ?? 0n, details: "" }
  }
  const terms = outcome.sides[0].market.outcome
  if (terms === undefined || outcome.expiresAt > state.now) return undefined
  const price = Assets.printPrice(terms.underlying, path.priceAt(terms.underlying, outcome.expiresAt))
  const [from, below] = terms.range
  return {
    fraction: Number(price) >= from && Number(price) < below ? one : 0n,
    details: `price:${withoutZero(price)}`
  }
}

/** Returns the response to the query `outcomeMeta`. */
export const meta = (
  { house, outcomes: { active }, state: { now, outcomeDeployers } }: Venue
): typeof OutcomeMeta.Encoded => {
  const listed = [...active.values()].filter(({ createdAt }) => createdAt <= now)
    .toSorted((a, b) => a.spec.outcome - b.spec.outcome)
  const deployers = [...outcomeDeployers].flatMap(([venue, { isActive, subDeployers, user }]) =>
    isActive ? [{ deployer: user, venue, subDeployers: [...subDeployers].filter(([, users]) => users.length > 0) }] : []
  )
  return {
    outcomes: listed.map(({ spec }) => spec),
    // the lists of a deployed question grow in place
    questions: [
      ...new Map(
        listed.flatMap(({ question }) => question === undefined ? [] : [[question.question, structuredClone(question)]])
      ).values()
    ],
    deployers: [{ deployer: house, venue: recurringVenue, subDeployers: [] }, ...deployers]
  }
}

/** Returns the response to the query `settledOutcome`; `null` for an outcome that is not settled. */
export const settledOutcome = (venue: Venue, number: number) => {
  const outcome = findOutcome(venue, number)
  const result = outcome === undefined ? undefined : findResult(venue, outcome)
  if (outcome === undefined || result === undefined) return null
  const { question, spec } = outcome
  const isNamed = question?.namedOutcomes.includes(number) === true
  const isActive = venue.state.deployedQuestions.get(question?.question ?? 0)?.isSettled === false
  return {
    spec,
    settleFraction: Assets.printDecimal(result.fraction, decimals),
    details: result.details,
    ...(question === undefined || !isNamed ? {} : {
      question: {
        question: { [isActive ? "active" : "settled"]: question.question },
        name: question.name,
        description: question.description
      }
    })
  }
}

/** Returns the listed outcomes of a question; `undefined` for a question without listed outcomes. */
export const findQuestion = (
  { outcomes: { active } }: Venue,
  number: number
): ReadonlyArray<ListedOutcome> | undefined => {
  const found = [...active.values()].filter(({ question }) => question?.question === number)
  return found.length === 0 ? undefined : found
}

/** Returns the other side of an outcome; `undefined` for any other asset. */
export const dualSide = (asset: Assets.Asset): Assets.SpotPair | undefined =>
  asset.kind === "perpetual" || asset.side === undefined ? undefined : asset.side.outcome.sides[1 - asset.side.side]

/** Returns the multiple of the base fee that traders of an outcome pay, in units of 10^-8, and the deployer's part. */
export const feeScale = ({ spec }: ListedOutcome): { readonly total: bigint; readonly deployer: bigint } => {
  const deployer = Assets.parseDecimal(spec.deployerFeeScale ?? "0", decimals) ?? 0n
  return { total: deployer + Assets.max(deployer, one), deployer }
}

/** Returns the probability that a standard normal variable is below `x`, with an error below 10^-7. */
const normal = (x: number): number => {
  const t = 1 / (1 + 0.2316419 * Math.abs(x))
  const tail = Math.exp(-x * x / 2) / Math.sqrt(2 * Math.PI) * t *
    (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
  return x > 0 ? 1 - tail : tail
}

/** The lowest price. The highest one is as far from 1. */
const lowest = 0.002
const priceDigits = 4

const within = (price: number): number => Number(Math.min(1 - lowest, Math.max(lowest, price)).toFixed(priceDigits))

/** Returns the probability of an outcome, if the logarithm of the price moves like a random walk. */
const fairPrice = (
  { endsAt, findOthers, range, underlying }: Assets.OutcomePrice,
  path: PricePath,
  now: number
): number => {
  const price = path.priceAt(underlying, Math.min(now, endsAt))
  const deviation = underlying.volatility * Math.sqrt(Math.max(0, endsAt - now) / day) + 1e-7
  const below = (bound: number) => bound === 0 ? 0 : normal(Math.log(bound / price) / deviation)
  const inRange = ([from, to]: typeof range) => below(to) - below(from)
  return findOthers === undefined ? inRange(range) : findOthers().reduce((rest, other) => rest - inRange(other), 1)
}

/** Extends a path by the prices of outcomes. `played` has the coins whose prices are replayed. */
export const withOutcomes = (path: PricePath, played: ReadonlyMap<string, unknown> = new Map()): PricePath => ({
  priceAt: (market, now) => {
    const { outcome } = market
    if (outcome === undefined) return path.priceAt(market, now)
    const given = outcome.coins.findIndex((coin) => played.has(coin))
    const coin = outcome.coins[given]
    const price = coin === undefined ? fairPrice(outcome, path, now) : path.priceAt({ ...market, coin }, now)
    const yes = within(given === 1 ? 1 - price : price)
    return outcome.side === 0 ? yes : Number((1 - yes).toFixed(priceDigits))
  },
  // the price also depends on the remaining time
  isMonotone: (market, from, to) => market.outcome === undefined && path.isMonotone(market, from, to),
  playedSince: path.playedSince
})

/** The distance between two prices of the generated orders, in ticks. */
export const step = one / 1_000n

/** Number of generated price levels on each side. */
const depth = 20

/** Exchanges the sides of a book for the other side of the outcome: a bid for one is an ask for the other. */
export const mirror = (
  { asks, bids }: { readonly bids: ReadonlyArray<Quote>; readonly asks: ReadonlyArray<Quote> }
) => {
  const flip = (quotes: ReadonlyArray<Quote>) => quotes.map(({ n, px, sz }) => ({ px: one - px, sz, n }))
  return { bids: flip(asks), asks: flip(bids) }
}

/** Makes the generated orders for side 0 of an outcome. The farther from the price, the wider the levels are apart. */
export const makeQuotes = (seed: Random.Seed, { coin }: Assets.CandleMarket, now: number, price: number) => {
  const mark = BigInt(Math.round(price * 10 ** priceDigits)) * 10n ** BigInt(decimals - priceDigits)
  const family = Random.series(seed, `book/${coin}/${Math.floor(now / minute)}`)
  const side = (direction: 1 | -1): Array<Quote> =>
    Array.from({ length: depth }, (_, index): Quote => {
      const first = direction === 1 ? mark / step + 1n : (mark - 1n) / step
      const away = BigInt(index * (index + 1) / 2)
      return {
        px: (first + (direction === 1 ? away : -away)) * step,
        sz: BigInt(50 + Random.below(family, direction * index + 2 * depth, 400 + 100 * index)),
        n: 1 + Random.below(family, direction * index + 5 * depth, 6)
      }
    }).filter(({ px }) => px > 0n && px < one)
  return { bids: side(-1), asks: side(1) }
}

/** The time between two samples of the price, in milliseconds: more for outcomes that exist for more than two days. */
const sampleEvery = (createdAt: number, endsAt: number): number => endsAt - createdAt > 2 * day ? quarter : 15_000

/** Returns the bars of a side in a window, oldest first, like `CandleBars.bars`. */
export const bars = (
  { path, seed }: Venue,
  market: Assets.CandleMarket,
  { endTime, interval, startTime }: CandleWindowRequest,
  now: number
): ReadonlyArray<Candle> => {
  const endsAt = Math.min(market.outcome?.endsAt ?? now, now)
  if (endsAt <= market.listedAt) return []
  const newest = barAt(interval, endsAt - 1)
  const first = Math.max(newest - retainedBars + 1, barAt(interval, market.listedAt), barAt(interval, startTime))
  const last = Math.min(newest, barAt(interval, endTime ?? now))
  const walk = priceWalk(seed, market)
  const every = sampleEvery(market.listedAt, endsAt)
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, offset): Candle => {
    const [t, T] = [openTime(interval, first + offset), closeTime(interval, first + offset)]
    const from = Math.max(t, market.listedAt)
    const to = Math.min(T + 1, endsAt)
    const open = path.priceAt(market, from)
    const close = path.priceAt(market, to)
    let [high, low] = [Math.max(open, close), Math.min(open, close)]
    for (let time = (Math.floor(from / every) + 1) * every; time < to; time += every) {
      const price = path.priceAt(market, time)
      high = Math.max(high, price)
      low = Math.min(low, price)
    }
    const [before, after] = [from, to].map((time) => tradesBy(walk, market.tradeRate, time / minute))
    const traded = lotsIn(walk, market.tradeLots, after ?? 0) - lotsIn(walk, market.tradeLots, before ?? 0)
    const print = (price: number) => Assets.printPrice(market, price)
    return {
      t,
      T,
      s: market.coin,
      i: interval,
      o: print(open),
      c: print(close),
      h: print(high),
      l: print(low),
      v: Assets.printSize(market, traded),
      n: (after ?? 0) - (before ?? 0)
    }
  })
}

/** Returns statistics of a side for the last 24 hours, or since its creation, like `CandleBars.dayStatistics`. */
export const statistics = ({ path, seed }: Venue, market: Assets.CandleMarket, now: number) => {
  const from = Math.max(market.listedAt, now - day)
  const walk = priceWalk(seed, market)
  const lotsBy = (time: number) => lotsIn(walk, market.tradeLots, tradesBy(walk, market.tradeRate, time / minute))
  return { price: path.priceAt(market, now), before: path.priceAt(market, from), lots: lotsBy(now) - lotsBy(from) }
}
