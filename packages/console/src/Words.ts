/** Number formats of the page. */

/** Formats a duration: in milliseconds with at most one decimal, or from 10 seconds in whole seconds. */
export const duration = (seconds: number | undefined): string => {
  if (seconds === undefined) return "–"
  if (seconds === Infinity) return "> 10 s"
  return seconds >= 10 ? `${seconds.toFixed(0)} s` : `${Number((seconds * 1000).toFixed(1))} ms`
}

/** Formats a fraction as a percentage. */
export const percent = (share: number): string => `${Number((share * 100).toFixed(1))} %`

/** Formats a count with narrow spaces between thousands. */
export const count = (value: number): string =>
  Math.round(value).toString().replace(/\B(?=(?:\d{3})+(?!\d))/gu, "\u202f")

/** Formats the time since `millis` (milliseconds since 1970) in one unit: seconds, minutes, hours or days. */
export const age = (millis: number): string => {
  const seconds = Math.max(0, (Date.now() - millis) / 1000)
  if (seconds < 90) return `${Math.round(seconds)} s`
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`
  return seconds < 36 * 3600 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`
}

/** Formats a date and time of day in UTC. */
export const instant = (millis: number): string => new Date(millis).toISOString().slice(0, 16).replace("T", " ")

/** Formats a time of day in UTC, to the millisecond. */
export const clock = (millis: number): string => new Date(millis).toISOString().slice(11, 23)

/** Shortens a long name to its beginning and end. */
export const short = (text: string): string => text.length < 16 ? text : `${text.slice(0, 8)}…${text.slice(-4)}`
