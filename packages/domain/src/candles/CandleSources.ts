/** The sources of the bars in a gateway's response to a candle query, and the header that reports them. */

/** A period of time, from its first to its last millisecond. */
export interface Stretch {
  readonly from: number
  readonly to: number
}

/** The sources of the bars in a gateway's response. A response contains at most the newest 5000 bars of the window. */
export interface Sources {
  /** The number of bars that were in the gateway's store. */
  readonly stored: number
  /** The number of bars that the gateway requested from the venue. */
  readonly asked: number
  /** The periods, oldest first, whose bars the gateway neither stores nor can request from the venue. */
  readonly gaps: ReadonlyArray<Stretch>
  /** Whether the response omits the window's oldest bars, although the gateway stores them. */
  readonly isCut: boolean
  /** Open times, oldest first, of closed bars that the venue changed later. An archive also keeps the earlier values. */
  readonly corrected: ReadonlyArray<number>
}

/** The header in which a gateway reports the sources of the bars; a structured field (RFC 9651). */
export const sourcesHeader = "x-trigate-candles"

/**
 * Maximum number of gaps in the header, and also the maximum number of corrections. This limits the size of the header.
 */
const MAX_REPORTED = 16

const headerMember = (name: string, texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  texts.length === 0 ? [] : [`${name}="${texts.slice(0, MAX_REPORTED).join(" ")}"`]

/** Formats the sources of a response's bars as the value of {@link sourcesHeader}. */
export const printSources = ({ asked, corrected, gaps, isCut, stored }: Sources): string =>
  [
    `held=${stored}`,
    `asked=${asked}`,
    ...(isCut ? ["cut"] : gaps.length === 0 ? ["complete"] : []),
    ...headerMember("gaps", gaps.map(({ from, to }) => `${from}-${to}`)),
    ...headerMember("corrected", corrected.map(String))
  ].join(", ")

const printed =
  /^held=(?<held>[0-9]{1,9}), asked=(?<asked>[0-9]{1,9})(?<cut>, cut)?(?:, complete)?(?:, gaps="(?<gaps>[0-9 -]*)")?(?:, corrected="(?<corrected>[0-9 ]*)")?$/u

/** Returns the sources that a header reports; `undefined` if the header is absent or invalid. */
export const readSources = (header: string | undefined): Sources | undefined => {
  const match = header === undefined ? undefined : printed.exec(header)?.groups
  return match === undefined ? undefined : {
    stored: Number(match["held"]),
    asked: Number(match["asked"]),
    isCut: match["cut"] !== undefined,
    gaps: Array.from((match["gaps"] ?? "").matchAll(/(?<from>[0-9]+)-(?<to>[0-9]+)/gu), ({ groups }) => ({
      from: Number(groups?.["from"]),
      to: Number(groups?.["to"])
    })),
    corrected: Array.from((match["corrected"] ?? "").matchAll(/[0-9]+/gu), ([time]) => Number(time))
  }
}
