/** Texts of callers and servers, safe to print on a terminal and to write into a log. */

// they move the cursor, change colours, or reverse the direction of writing
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** Written as in JSON, so that a JSON text stays one. */
const escaped = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`
  ).join("")

/** Escapes every character that a terminal would act on instead of showing it, line breaks among them. */
export const printable = (text: string): string => text.replace(unsafe, escaped)

/** The same for a text of several lines, such as a JSON document laid out for people. */
export const printableLines = (text: string): string =>
  text.replace(unsafe, (character) => character === "\n" ? character : escaped(character))

/** The text as one printable line. */
export const oneLine = (text: string): string => printable(text.replace(/\s+/gu, " ").trim())
