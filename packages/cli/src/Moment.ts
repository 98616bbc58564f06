/** Instants as people type them: a date, milliseconds, or how long ago. */
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"

/** An instant, fixed or relative to the time at which it is asked for. */
export type Moment =
  | { readonly kind: "at"; readonly millis: number }
  | { readonly kind: "ago"; readonly millis: number }

const units: { readonly [unit: string]: number } = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000
}

const ago = /^(?<count>[0-9]{1,6})(?<unit>[smhdw])$/u
// ten digits would be seconds, which the venue does not count in
const millis = /^[0-9]{12,14}$/u
const dateTime =
  /^(?<day>[0-9]{4}-[0-9]{2}-[0-9]{2})(?:T(?<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,3})?)?)(?<zone>Z|[+-][0-9]{2}:[0-9]{2})?)?$/u

/** What {@link parse} reads. */
export const expected =
  "a date (2026-01-31), a date and time (2026-01-31T12:00Z; UTC where no zone is given), milliseconds since 1970, or how " +
  "long ago (90s, 30m, 12h, 7d, 2w)"

const at = (iso: string): Option.Option<Moment> =>
  Option.map(DateTime.make(iso), (found) => ({ kind: "at", millis: DateTime.toEpochMillis(found) }))

/** Whether a day is in the calendar: the 30th of February would be read as the 2nd of March. */
const isDay = (day: string): boolean =>
  Option.exists(DateTime.make(`${day}T00:00Z`), (found) => DateTime.formatIsoDateUtc(found) === day)

/** Reads {@link expected}; none for anything else. */
export const parse = (text: string): Option.Option<Moment> => {
  if (text === "now") return Option.some({ kind: "ago", millis: 0 })
  const { count, unit } = ago.exec(text)?.groups ?? {}
  if (count !== undefined && unit !== undefined) {
    return Option.some({ kind: "ago", millis: Number(count) * (units[unit] ?? 0) })
  }
  if (millis.test(text)) return Option.some({ kind: "at", millis: Number(text) })
  const { day, time, zone } = dateTime.exec(text)?.groups ?? {}
  return day === undefined || !isDay(day) ? Option.none() : at(`${day}T${time ?? "00:00"}${zone ?? "Z"}`)
}

/** The instant in milliseconds, seen at `now`. */
export const resolve = (moment: Moment, now: number): number =>
  moment.kind === "at" ? moment.millis : now - moment.millis
