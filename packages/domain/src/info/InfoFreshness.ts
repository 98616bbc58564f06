/** Which types of queries there are, what each is about, and which ages of answers the setting allows. */
import * as Duration from "effect/Duration"
import * as Struct from "effect/Struct"
import { infoOperations } from "./InfoOperations.ts"
import type { About, Freshness, InfoQuery } from "./InfoQueryTable.ts"
import { oldest, passthroughQueries } from "./InfoQueryTable.ts"

type Row = Pick<InfoQuery, "about" | "fresh">

/** The queries whose answers are relayed as they come, by type: what each is about, and how long it is fresh. */
export const relayedQueries: ReadonlyMap<string, Row> = new Map(
  Object.entries<Row>({ ...passthroughQueries, ...Struct.omit(infoOperations, ["spotMeta", "candleSnapshot"]) })
)

/** The types that are fresh by default for a time in milliseconds. */
export const freshByDefault = (time: number): ReadonlyArray<string> =>
  [...relayedQueries].flatMap(([type, { fresh }]) => fresh === time ? [type] : [])

const abouts: ReadonlyMap<string, About> = new Map(
  Object.entries<Row>({ ...passthroughQueries, ...infoOperations }).map(([type, { about }]) => [type, about])
)

/** What a type is about; undefined for one that is not known. */
export const aboutOf = (type: string): About | undefined => abouts.get(type)

const whys: { readonly [Kind in About]: string } = {
  market: "nothing is fresh for longer",
  user: "it is about one user",
  action: "it tells what became of an action"
}

/** What is wrong with how old answers shall be, in words; undefined if nothing is. */
export const mistakeIn = (list: ReadonlyArray<Freshness>): string | undefined => {
  const seen = new Set<string>()
  for (const { fresh, type } of list) {
    const about = aboutOf(type)
    if (about === undefined) return `${type} is no type of query that is known`
    if (seen.has(type)) return `${type} is given twice`
    seen.add(type)
    if (Duration.isGreaterThan(fresh, oldest[about])) {
      return about === "action"
        ? `The age of ${type} cannot be set, because ${whys[about]}: only final states are cached`
        : `${type} may be ${Duration.format(oldest[about])} old at most, because ${whys[about]}`
    }
  }
  return undefined
}
