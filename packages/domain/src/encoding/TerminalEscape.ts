/** Escapes text from callers and servers for terminals and logs. */

// control and format characters: they move the cursor, change colours, or reverse the writing direction
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** Escapes a character as JSON does, so that JSON text stays valid. */
const escaped = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`
  ).join("")

/** Escapes every character that a terminal would execute instead of showing, including line breaks. */
export const printable = (text: string): string => text.replace(unsafe, escaped)

/** Escapes the same characters as {@link printable}, except line breaks. */
export const printableLines = (text: string): string =>
  text.replace(unsafe, (character) => character === "\n" ? character : escaped(character))

/** Converts text to one printable line. */
export const oneLine = (text: string): string => printable(text.replace(/\s+/gu, " ").trim())
