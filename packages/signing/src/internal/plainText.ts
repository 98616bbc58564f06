/** Text of others inside our sentences: what is reversed, invisible or endless must not change how they read. */

const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`

/** Printable ASCII as it is, every other UTF-16 unit escaped as in JSON. */
export const printable = (text: string): string => text.replaceAll(/[^ -~]/g, escaped)

const maxSegments = 16
const maxSegment = 64

/** A path with dots, cut where it would go on for too long. */
export const pathText = (path: ReadonlyArray<string | number>): string =>
  path.slice(0, maxSegments).map((segment) => printable(String(segment).slice(0, maxSegment))).join(".")
