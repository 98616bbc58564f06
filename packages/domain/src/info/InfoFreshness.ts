/**
 * Returns the topic of each query type (market data, a user's state, or an action's outcome) and the default maximum
 * age of its cached responses. Also validates the setting for maximum ages.
 */
import * as Duration from "effect/Duration"
import * as Struct from "effect/Struct"
import { infoOperations } from "./InfoOperations.ts"
import type { About, Freshness, InfoQuery } from "./InfoQueryTable.ts"
import { oldest, passthroughQueries } from "./InfoQueryTable.ts"

type Row = Pick<InfoQuery, "about" | "fresh">

/** The relayed queries by type: the topic of each query, and the default maximum age of its cached responses. */
export const relayedQueries: ReadonlyMap<string, Row> = new Map(
  Object.entries<Row>({ ...passthroughQueries, ...Struct.omit(infoOperations, ["spotMeta", "candleSnapshot"]) })
)

/** Returns the query types whose default maximum age is `time` milliseconds. */
export const freshByDefault = (time: number): ReadonlyArray<string> =>
  [...relayedQueries].flatMap(([type, { fresh }]) => fresh === time ? [type] : [])

const abouts: ReadonlyMap<string, About> = new Map(
  Object.entries<Row>({ ...passthroughQueries, ...infoOperations }).map(([type, { about }]) => [type, about])
)

/** Returns the topic of a query type; `undefined` for an unknown type. */
export const queryTopic = (type: string): About | undefined => abouts.get(type)

const whys: { readonly [Kind in About]: string } = {
  market: "market data is never cached for longer",
  user: "this query returns the state of one user",
  action: "this query reports the outcome of an action"
}

/** Checks a list of maximum ages. Returns the mistake as a message; `undefined` if the list is valid. */
export const mistakeIn = (list: ReadonlyArray<Freshness>): string | undefined => {
  const seen = new Set<string>()
  for (const { fresh, type } of list) {
    const about = queryTopic(type)
    if (about === undefined) return `${type} is not a known query type`
    if (seen.has(type)) return `${type} is listed twice`
    seen.add(type)
    if (Duration.isGreaterThan(fresh, oldest[about])) {
      return about === "action"
        ? `The maximum age of ${type} cannot be set, because ${whys[about]}: only final states are cached`
        : `The maximum age of ${type} is at most ${Duration.format(oldest[about])}, because ${whys[about]}`
    }
  }
  return undefined
}
