/** How numbers are written on the page. */

/** Seconds as milliseconds with at most one decimal, or as seconds from ten on. */
export const duration = (seconds: number | undefined): string => {
  if (seconds === undefined) return "–"
  if (seconds === Infinity) return "> 10 s"
  return seconds >= 10 ? `${seconds.toFixed(0)} s` : `${Number((seconds * 1000).toFixed(1))} ms`
}

/** A share as a percentage. */
export const percent = (share: number): string => `${Number((share * 100).toFixed(1))} %`

/** A count with narrow spaces between thousands. */
export const count = (value: number): string =>
  Math.round(value).toString().replace(/\B(?=(?:\d{3})+(?!\d))/gu, "\u202f")
