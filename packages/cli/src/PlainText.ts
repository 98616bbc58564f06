/** Text from elsewhere, made safe for a terminal. */

const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** The text without anything that moves a cursor, changes a colour or turns the direction of writing. */
export const printable = (text: string): string =>
  text.replace(unsafe, (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ""}}`)

/** The text in one printable line. */
export const oneLine = (text: string): string => printable(text.replace(/\s+/gu, " ").trim())

/** 32 bytes in hex where none belong: a private key that went into the wrong place. */
const keyLike = /(?:0x)?[0-9a-fA-F]{64,}/gu

/** The text without what may be a private key. */
export const withoutKeys = (text: string): string => text.replace(keyLike, "<64 hex digits>")
