/**
 * Removes the endpoint key (the secret in the path of an address) from the responses of the server at that address,
 * also if the key is escaped.
 *
 * A server can quote an unknown path in responses with any status, and in any JSON field. Every response passes this
 * module before it is parsed, relayed, cached or quoted, so no later step has to handle keys.
 */
import * as Json from "@trigate/domain/encoding/Json"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as Base64 from "effect/encoding/Base64"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

/** Removes an address's endpoint key from the text of a response with the given status. */
export type Conceal = (status: number, text: string) => string

type Step = (text: string) => string

/** Minimum length of an endpoint key that does not occur by chance inside a longer word. */
const LONG_KEY = 8

/** Length below which an endpoint key may be a common word, and is removed only from quoted paths. */
const SHORT_KEY = 4

/** Path segments that name routes, networks and versions. These segments stay readable in error messages. */
const routeName = /^(?:api|bsc|eth|evm|exchange|info|jsonrpc|l2|mainnet|polygon|rpc|sepolia|testnet|ton|v[0-9]+)$/iu

/** A path segment that may be an English word, the name of a network, or a number. */
const likeWord = /^(?:[a-z_-]{1,24}|[0-9]{1,24})$/u

const decodedPart = Schema.decodeOption(Schema.StringFromUriComponent)

const literal = (text: string): string => text.replace(/[/.*+?^$(){}|[\]\\]/gu, "\\$&")

const hex = (code: number, digits: number): string =>
  code.toString(16).padStart(digits, "0").replace(/[a-f]/gu, (digit) => `[${digit}${digit.toUpperCase()}]`)

// each level of quoting escapes these characters once more
const backslash = String.raw`(?:\\|%(?:25)*5[cC])+`
const percent = String.raw`(?:%|\\+u0025)(?:25)*`

const percentBytes = (letter: string): string =>
  Array.from(Utf8.encode(letter), (byte) => `${percent}${hex(byte, 2)}`).join("")

const codeUnits = (letter: string): string =>
  Array.from({ length: letter.length }, (_, at) => `${backslash}u${hex(letter.charCodeAt(at), 4)}`).join("")

/** Returns a pattern that matches a letter, either plain or escaped for JSON or a URL. */
const letterPattern = (letter: string): string => {
  const itself = /["/\\]/u.test(letter) ? `(?:${backslash})?${literal(letter)}` : literal(letter)
  return `(?:${itself}|${codeUnits(letter)}|${percentBytes(letter)}${letter === " " ? String.raw`|\+` : ""})`
}

/** Returns the pattern of a text in which any letter may be escaped. */
const textPattern = (text: string): string => Array.from(text, letterPattern).join("")

/** Number of bytes in a base64 group, which encodes them as four characters. */
const GROUP = 3

/**
 * Returns the base64 groups inside the endpoint key, for each of the three possible alignments. Any base64 text that
 * contains the key contains one of these texts.
 */
const base64Cores = (key: Uint8Array): ReadonlyArray<string> =>
  [0, 1, 2].flatMap((skipped) => {
    const length = Math.floor((key.length - skipped) / GROUP) * GROUP
    const core = Base64.encode(key.subarray(skipped, skipped + length))
    return [core, core.replaceAll("+", "-").replaceAll("/", "_")]
  })

const around = "[A-Za-z0-9+/_-]{0,4}"

const isEscaped = (text: string, at: number): boolean => {
  let start = at
  while (text[start - 1] === "\\") start--
  return (at - start) % 2 === 1
}

/**
 * Makes the function that removes one endpoint key from a text. A cheap scan excludes most texts; the remaining texts
 * are matched against a pattern that is made on first use.
 */
const step = (makePattern: () => RegExp, candidates: ReadonlyArray<string>): Step => {
  let pattern: RegExp | undefined
  return (text) => {
    if (!candidates.some((candidate) => text.includes(candidate))) return text
    pattern ??= makePattern()
    // a backslash before the match must not escape the replacement
    return text.replace(pattern, (_, at: number) => isEscaped(text, at) ? "\\…" : "…")
  }
}

/**
 * Returns prefixes of escape sequences. Any text in which a letter of the path segment is escaped contains one of these
 * prefixes.
 */
const escapePrefixes = (part: string): ReadonlyArray<string> => ["%", /["/\\]/u.test(part) ? "\\" : "\\u"]

/** Returns the longest run of base64 text without `+` and `/`, which servers may escape. */
const plainest = (core: string): string =>
  core.split(/[+/]/u).reduce((longest, piece) => piece.length > longest.length ? piece : longest)

const matchSteps = (part: string): ReadonlyArray<Step> => {
  const escapes = escapePrefixes(part)
  if (part.length < LONG_KEY) {
    const before = part.length < SHORT_KEY ? "(?<=/|%2[fF])" : "(?<![\\p{L}\\p{N}_])"
    const word = () => new RegExp(`${before}${textPattern(part)}(?![\\p{L}\\p{N}_])`, "gu")
    return [step(word, [part, ...escapes])]
  }
  const cores = [...new Set(base64Cores(Utf8.encode(part)))]
  return [
    step(() => new RegExp(textPattern(part), "gu"), [part, ...escapes]),
    // servers escape neither letters nor digits of base64
    step(() => new RegExp(`${around}(?:${cores.map(textPattern).join("|")})${around}=*`, "gu"), cores.map(plainest))
  ]
}

const inTurn = (parts: ReadonlyArray<string>): Step => {
  const steps = parts.flatMap(matchSteps)
  return (text) => steps.reduce((left, step) => step(left), text)
}

const refusing: ReadonlyArray<string> = ["error", "errors", "message", "detail"]

/** Returns whether a JSON object is an error despite its successful status. */
const refuses = (text: string): boolean => {
  const members = Json.members(text)
  const says = (name: string, value: string) => {
    const span = members.get(name)
    return span !== undefined && text.slice(span.start, span.end) === value
  }
  return refusing.some((name) => members.has(name)) || says("status", `"err"`) || says("ok", "false")
}

/**
 * Makes the function that removes the endpoint key of a base URL from responses; `undefined` if the URL's path contains
 * no possible key.
 *
 * From an error message, every segment of the path that does not name a route is removed. Other responses may contain a
 * path segment by chance, so only segments that cannot be words are removed from them.
 */
export const make = (address: string): Conceal | undefined => {
  const path = URL.canParse(address) ? new URL(address).pathname : ""
  const parts = path.split("/")
    .map((part) => Option.getOrElse(decodedPart(part), () => part))
    .filter((part) => part !== "" && !routeName.test(part))
    // longer segments are removed first, because they may contain shorter ones
    .toSorted((one, other) => other.length - one.length)
  if (parts.length === 0) return undefined
  const refusal = inTurn(parts)
  const data = inTurn(parts.filter((part) => part.length >= LONG_KEY && !likeWord.test(part)))
  const withinData = (text: string): string => refuses(text) ? refusal(text) : data(text)
  return (status, text) => {
    const concealed = refusal(text)
    if (status >= 300 || concealed === text) return concealed
    const elements = Json.elements(text)
    return elements === undefined ? withinData(text) : `[${elements.map(withinData).join(",")}]`
  }
}
