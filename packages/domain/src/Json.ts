/** A JSON value that travels with its text: the text goes out as it came, the value is read, and neither is made twice. */
import * as Result from "effect/Result"
import * as JsonText from "./JsonText.ts"
import * as Utf8 from "./Utf8.ts"

/** What is already known of a document. */
interface Known {
  readonly value?: Result.Result<unknown, JsonText.Refusal>
  readonly bytes?: Uint8Array
}

/** A JSON document. It is parsed when its value is first asked for, and encoded when its bytes are. */
export class Json {
  readonly text: string
  #value: Result.Result<unknown, JsonText.Refusal> | undefined
  #bytes: Uint8Array | undefined

  constructor(text: string, { bytes, value }: Known = {}) {
    this.text = text
    this.#value = value
    this.#bytes = bytes
  }

  /** The value, or why the text is not JSON; integers outside the safe range are `bigint`. */
  get value(): Result.Result<unknown, JsonText.Refusal> {
    return this.#value ??= JsonText.parse(this.text)
  }

  /** The value; undefined where the text is not JSON. */
  get valueOrUndefined(): unknown {
    return Result.getOrElse(this.value, () => undefined)
  }

  /** The text in UTF-8. */
  get bytes(): Uint8Array {
    return this.#bytes ??= Utf8.encode(this.text)
  }
}

/** A text that nobody has parsed yet. */
export const of = (text: string): Json => new Json(text)

/** A text of a caller, parsed strictly: no duplicate keys, bounded nesting and number of values. */
export const strict = (text: string, limits?: JsonText.Limits): Json =>
  new Json(text, { value: JsonText.parseStrict(text, limits) })

/** A text with the value that was read from it. */
export const parsed = (text: string, value: unknown, bytes?: Uint8Array): Json =>
  new Json(text, { value: Result.succeed(value), ...(bytes === undefined ? {} : { bytes }) })

/** A value and the text that is written for it. */
export const write = (value: unknown): Json => parsed(JsonText.stringify(value), value)
