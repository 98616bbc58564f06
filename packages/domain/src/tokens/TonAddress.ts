/**
 * Token-chain addresses: parses, validates and formats the friendly and the raw form.
 *
 * The friendly form is 36 bytes as 48 characters of base64 or base64url: tag, workchain, 32-byte hash, and the CRC16
 * XMODEM (big-endian) of these 34 bytes. The raw form is `<workchain>:<64 hex digits>`, without a checksum. The parser
 * is deliberately stricter than most: no mixed alphabets, no bare hex, and no workchain besides 0 and -1.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { InvalidAddress } from "../errors/RequestError.ts"

/** The account of an address, independent of its form; `hash` is 64 lower-case hex digits. */
export interface Account {
  readonly workchain: 0 | -1
  readonly hash: string
}

/** A parsed address: its account, and the flags of the friendly form. */
export interface Parsed extends Account {
  readonly form: "raw" | "bounceable" | "non-bounceable"
  readonly testOnly: boolean
}

/** The options of the friendly form. Default: bounceable, base64url, not test-only. */
export interface FriendlyForm {
  readonly bounceable?: boolean
  readonly urlSafe?: boolean
  readonly testOnly?: boolean
}

const BOUNCEABLE = 0x11
const NON_BOUNCEABLE = 0x51
const TEST_ONLY = 0x80
const FRIENDLY_LENGTH = 48
const CHECKED_BYTES = 34
// longer than every valid address, and short enough for an error message
const MAX_QUOTED = 128

const crc16 = (bytes: Uint8Array): number => {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021
    crc &= 0xffff
  }
  return crc
}

const toHex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")

const readRaw = (text: string): Result.Result<Parsed, string> => {
  const [workchain, hash, ...rest] = text.split(":")
  if (hash === undefined || rest.length > 0 || !/^[0-9a-fA-F]{64}$/u.test(hash)) {
    return Result.fail("a raw address is <workchain>:<64 hex digits>")
  }
  if (workchain !== "0" && workchain !== "-1") return Result.fail("workchain is neither 0 nor -1")
  return Result.succeed({
    workchain: workchain === "0" ? 0 : -1,
    hash: hash.toLowerCase(),
    form: "raw",
    testOnly: false
  })
}

const readFriendly = (text: string): Result.Result<Parsed, string> => {
  if (text.includes(" ")) return Result.fail("contains a space; in a query, + must be sent as %2B")
  if (text.length !== FRIENDLY_LENGTH) {
    return Result.fail(
      `a friendly address has ${FRIENDLY_LENGTH} characters, not ${text.length}; a raw address is <workchain>:<64 hex digits>`
    )
  }
  if (!/^[A-Za-z0-9+/_-]*$/u.test(text)) return Result.fail("contains a character outside base64 and base64url")
  if (/[+/]/u.test(text) && /[_-]/u.test(text)) {
    return Result.fail("mixed alphabets: base64 and base64url in one address")
  }
  const bytes = Uint8Array.from(
    atob(text.replaceAll("-", "+").replaceAll("_", "/")),
    (character) => character.charCodeAt(0)
  )
  const view = new DataView(bytes.buffer)
  if (view.getUint16(CHECKED_BYTES) !== crc16(bytes.subarray(0, CHECKED_BYTES))) return Result.fail("checksum differs")
  const tag = view.getUint8(0) & ~TEST_ONLY
  if (tag !== BOUNCEABLE && tag !== NON_BOUNCEABLE) return Result.fail("unknown tag in the first byte")
  const workchain = view.getInt8(1)
  if (workchain !== 0 && workchain !== -1) return Result.fail("workchain is neither 0 nor -1")
  return Result.succeed({
    workchain,
    hash: toHex(bytes.subarray(2, CHECKED_BYTES)),
    form: tag === BOUNCEABLE ? "bounceable" : "non-bounceable",
    testOnly: (view.getUint8(0) & TEST_ONLY) !== 0
  })
}

const read = (text: string): Result.Result<Parsed, string> => text.includes(":") ? readRaw(text) : readFriendly(text)

/** Parses an address in either form. Fails with `InvalidAddress`, which describes the mistake. */
export const parse = (text: string): Result.Result<Parsed, InvalidAddress> =>
  Result.mapError(read(text), (reason) =>
    new InvalidAddress({
      address: text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text,
      reason,
      detail: `Not a token-chain address: ${reason}`
    }))

/** Formats an account in the raw form, with hex digits in lower case. */
export const formatRaw = (account: Account): string => `${account.workchain}:${account.hash}`

/** Formats an account in the friendly form, which has 48 characters. */
export const format = (account: Account, form: FriendlyForm = {}): string => {
  const { bounceable = true, testOnly = false, urlSafe = true } = form
  const bytes = new Uint8Array(CHECKED_BYTES + 2)
  const view = new DataView(bytes.buffer)
  view.setUint8(0, (bounceable ? BOUNCEABLE : NON_BOUNCEABLE) | (testOnly ? TEST_ONLY : 0))
  view.setInt8(1, account.workchain)
  for (let i = 0; i < 32; i++) view.setUint8(2 + i, Number.parseInt(account.hash.slice(2 * i, 2 * i + 2), 16))
  view.setUint16(CHECKED_BYTES, crc16(bytes.subarray(0, CHECKED_BYTES)))
  const text = btoa(String.fromCharCode(...bytes))
  return urlSafe ? text.replaceAll("+", "-").replaceAll("/", "_") : text
}

const givenTypes = {
  raw: "raw_form",
  bounceable: "friendly_bounceable",
  "non-bounceable": "friendly_non_bounceable"
} as const

/** Returns every form of an address, as servers return them for `detectAddress`. */
export const detect = (address: Parsed) => {
  const { form, testOnly } = address
  const friendly = (bounceable: boolean) => ({
    b64: format(address, { bounceable, testOnly, urlSafe: false }),
    b64url: format(address, { bounceable, testOnly })
  })
  return {
    raw_form: formatRaw(address),
    bounceable: friendly(true),
    non_bounceable: friendly(false),
    given_type: givenTypes[form],
    test_only: testOnly
  }
}

const isAccepted = Schema.makeFilter<string>(
  (text) => Result.match(read(text), { onFailure: (reason) => reason, onSuccess: () => undefined }),
  {
    toJsonSchema: () => ({ pattern: "^(?:(?:0|-1):[0-9a-fA-F]{64}|[A-Za-z0-9+/_-]{48})$" }),
    // a generator cannot make friendly addresses from a pattern, because their checksums would be wrong
    arbitraryConstraint: { patterns: [{ source: "^(?:0|-1):[0-9a-f]{64}$", flags: "" }] }
  }
)

/** An address in any form that `parse` accepts, as the caller wrote it. */
export const TonAddress = Schema.String.check(isAccepted).pipe(Schema.brand("TonAddress")).annotate({
  identifier: "TonAddress",
  description: "Token-chain address: friendly (48 characters of base64 or base64url) or raw (<workchain>:<64 hex>)"
})
export type TonAddress = typeof TonAddress.Type

/** Validates a text as a `TonAddress` without changing it. */
export const check = (text: string): Result.Result<TonAddress, InvalidAddress> =>
  Result.map(parse(text), () => TonAddress.make(text))

/** Formats an account in the gateway's canonical form: friendly, bounceable, base64url, not test-only. */
export const canonical = (account: Account): TonAddress => TonAddress.make(format(account))
