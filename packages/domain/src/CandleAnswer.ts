/**
 * Answers to candle queries: how many bars one holds, and whether it never changes and can be cached.
 *
 * An answer is recognised from its text alone, in the venue's spelling. A full one has 700 KB, and parsing it takes ten
 * times as long. A text that is not recognised may still be a list of bars: it has to be parsed.
 */
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { type Candle, CandleInterval, type CandleWindowRequest } from "./Candle.ts"
import { barAt, closeOf, oldestRetainedBar } from "./CandleWindow.ts"
import * as Json from "./Json.ts"
import type { CachePolicy } from "./Operation.ts"
import { Millis } from "./Time.ts"

const integer = "(?:0|[1-9][0-9]{0,14})"
const decimal = `"-?[0-9]{1,40}(?:\\.[0-9]{1,40})?"`

/** What each member of a bar looks like; every text that fits decodes, and means what it says. */
const members: { readonly [Member in keyof Candle]: string } = {
  t: integer,
  T: integer,
  s: `"[A-Za-z0-9@/:._-]{1,64}"`,
  i: `"(?:${CandleInterval.literals.join("|")})"`,
  o: decimal,
  c: decimal,
  h: decimal,
  l: decimal,
  v: decimal,
  n: integer
}

const isMember = (name: string): name is keyof Candle => Object.hasOwn(members, name)

interface Shape {
  /** So many bars that weight is billed by, each with a comma behind it. */
  readonly block: RegExp
  /** One bar, with what follows it. */
  readonly bar: RegExp
}

const BLOCK = 60

const shapeOf = (order: ReadonlyArray<keyof Candle>): Shape => {
  const bar = `\\{${order.map((name) => `"${name}":${members[name]}`).join(",")}\\}`
  return { block: new RegExp(`(?:${bar},){${BLOCK}}`, "y"), bar: new RegExp(`${bar}[,\\]]`, "y") }
}

// members may stand in any order; a venue has one
const MOST_SHAPES = 8
const shapes = new Map<string, Shape>()

const shapeIn = (text: string): Shape | undefined => {
  const order = [...Json.members(text, 1).keys()]
  const key = order.join()
  const known = shapes.get(key)
  if (known !== undefined) return known
  const names = order.filter(isMember)
  if (names.length !== order.length || names.length !== Object.keys(members).length) return undefined
  if (shapes.size === MOST_SHAPES) return undefined
  const shape = shapeOf(names)
  shapes.set(key, shape)
  return shape
}

/** Moves a sticky expression on by one match; where it ends, or nothing. */
const after = (expression: RegExp, text: string, from: number): number | undefined => {
  expression.lastIndex = from
  return expression.test(text) ? expression.lastIndex : undefined
}

/** How many bars a text lists; nothing of one that is not recognised. */
export const barsIn = (text: string): number | undefined => {
  if (text === "[]") return 0
  const shape = text.startsWith("[{") && text.endsWith("}]") ? shapeIn(text) : undefined
  if (shape === undefined) return undefined
  let bars = 0
  let at = 1
  for (let next = after(shape.block, text, at); next !== undefined; next = after(shape.block, text, at)) {
    bars += BLOCK
    at = next
  }
  while (at < text.length) {
    const next = after(shape.bar, text, at)
    if (next === undefined) return undefined
    bars += 1
    at = next
    if (text[at - 1] === "]") break
  }
  return at === text.length ? bars : undefined
}

const occurrencesOf = (part: string, text: string): number => {
  let count = 0
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) count += 1
  return count
}

/** Open times of the bars that a text lists; undefined unless it is recognised and all are of the coin and the interval. */
export const openTimesIn = (
  text: string,
  coin: string,
  interval: CandleInterval
): ReadonlyArray<number> | undefined => {
  const bars = barsIn(text)
  // in a recognised text a name with its colon is nothing but a member
  return bars !== undefined && occurrencesOf(`"s":${JSON.stringify(coin)}`, text) === bars &&
      occurrencesOf(`"i":"${interval}"`, text) === bars
    ? Array.from(text.matchAll(/"t":(?<time>[0-9]+)/gu), ({ groups }) => Number(groups?.["time"]))
    : undefined
}

/** Room for a venue whose clock is behind ours, or that writes a bar late. */
const graceMillis = 5000

/** How long the venue must keep the whole window: longer than any deadline, and than clocks differ. */
const marginMillis = 60_000

const day = 24 * 60 * 60_000

/** No calendar has a later instant. */
const lastInstant = 8_640_000_000_000_000

/** A day for a window whose last bar is closed and whose first bar the venue will keep for a while; else not cached. */
export const cachePolicy = (
  { endTime, interval, startTime }: CandleWindowRequest,
  now: number
): CachePolicy | undefined => {
  if (!Predicate.isNotNullish(endTime) || endTime < startTime || endTime > now) return undefined
  const isClosed = closeOf(interval, barAt(interval, endTime)) + graceMillis < now
  const isRetained = barAt(interval, startTime) >= oldestRetainedBar(interval, now + marginMillis)
  return isClosed && isRetained ? { fresh: day, staleIfError: day } : undefined
}

const isMillis = Schema.is(Millis)

/** Open times of parsed bars; undefined unless all are bars of the coin and the interval. */
const timesIn = (rows: unknown, { coin, interval }: CandleWindowRequest): ReadonlyArray<number> | undefined => {
  if (!Array.isArray(rows)) return undefined
  const times = rows.map((row: unknown): unknown =>
    Predicate.isObject(row) && "t" in row && "s" in row && "i" in row && row.s === coin && row.i === interval
      ? row.t
      : undefined
  )
  return times.every(Predicate.isNumber) ? times : undefined
}

/** Whether an answer holds bars of the coin and interval that were asked for, in order and inside of the window. */
export const isCacheable = (request: CandleWindowRequest, answer: Json.Json): boolean => {
  const { coin, endTime, interval, startTime } = request
  if (!Predicate.isNotNullish(endTime) || endTime < startTime || endTime > lastInstant) return false
  const times = openTimesIn(answer.text, coin, interval) ?? timesIn(answer.valueOrUndefined, request)
  let before = barAt(interval, startTime) - 1
  return times?.every((time) => {
    if (!isMillis(time) || time > endTime) return false
    const bar = barAt(interval, time)
    const follows = bar > before
    before = bar
    return follows
  }) ?? false
}
