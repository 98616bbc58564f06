/** An upstream's response as received. Routes relay the response; typed methods decode it. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Address } from "../encoding/Hex.ts"
import { Json, parsed } from "../encoding/Json.ts"
import { oneLine } from "../encoding/TerminalEscape.ts"
import * as Utf8 from "../encoding/Utf8.ts"

/** The status, the body and the metadata of a response. */
export interface Fields {
  /** Label of the upstream (`trading-api`, `layer2`, …), never its URL. */
  readonly upstream: string
  readonly status: number
  readonly contentType: string
  /** The whole body, in one chunk or in the chunks received. */
  readonly body: Uint8Array | ReadonlyArray<Uint8Array>
  /** The upstream's `Retry-After`, in seconds. */
  readonly retryAfter?: number | undefined
  /** Seconds since the upstream sent the response; absent if the response is not from a cache. */
  readonly age?: number | undefined
  /** The sources of the bars in a candle response, as formatted by `Candle.printSources`. */
  readonly candles?: string | undefined
  /** The signer of the relayed action, as reported by an upstream gateway. */
  readonly signer?: Address | undefined
}

/** A response. Its chunks are joined, its text decoded and its JSON parsed at most once, on first use. */
export class UpstreamResponse implements Fields {
  readonly upstream: string
  readonly status: number
  readonly contentType: string
  /** The body as received. */
  readonly pieces: ReadonlyArray<Uint8Array>
  declare readonly retryAfter?: number
  declare readonly age?: number
  declare readonly candles?: string
  declare readonly signer?: Address
  #body: Uint8Array | undefined
  #text: string | undefined
  #json: Json | undefined

  /** Makes a response. `json` is the body as JSON, if the caller has already parsed it. */
  constructor({ age, body, candles, contentType, retryAfter, signer, status, upstream }: Fields, json?: Json) {
    this.upstream = upstream
    this.status = status
    this.contentType = contentType
    this.pieces = body instanceof Uint8Array ? [body] : body
    if (retryAfter !== undefined) this.retryAfter = retryAfter
    if (age !== undefined) this.age = age
    if (candles !== undefined) this.candles = candles
    if (signer !== undefined) this.signer = signer
    this.#json = json
    this.#text = json?.text
  }

  /** The body in one chunk. */
  get body(): Uint8Array {
    return this.#body ??= Utf8.joined(this.pieces)
  }

  /** The body as text; invalid UTF-8 becomes replacement characters. */
  get text(): string {
    return this.#text ??= Utf8.decodeLossy(this.body)
  }

  /** The body as text; `None` if it is not valid UTF-8. */
  get utf8(): Option.Option<string> {
    // text that contains no replacement character was decoded from valid UTF-8
    if (this.#text?.includes("\ufffd") === false) return Option.some(this.#text)
    const text = Utf8.decode(this.body)
    this.#text = Option.getOrElse(text, () => this.text)
    return text
  }

  /** The body as JSON. */
  get json(): Json {
    return this.#json ??= new Json(this.text)
  }

  /** Whether the content type identifies a problem document (RFC 9457). */
  get isProblem(): boolean {
    return this.contentType.startsWith("application/problem+json")
  }

  /** The beginning of the body, for a message. */
  excerpt(length = 200): string {
    return oneLine(Utf8.decodeLossy(Utf8.opening(this.pieces, length)))
  }

  /** Returns a copy with some members replaced. */
  with(fields: Partial<Fields>): UpstreamResponse {
    const { age, candles, contentType, pieces, retryAfter, signer, status, upstream } = this
    return new UpstreamResponse({
      upstream,
      status,
      contentType,
      body: pieces,
      retryAfter,
      age,
      candles,
      signer,
      ...fields
    })
  }
}

/** Makes a response. */
export const make = (fields: Fields): UpstreamResponse => new UpstreamResponse(fields)

const ofJson = (upstream: string, status: number, json: Json): UpstreamResponse =>
  new UpstreamResponse({ upstream, status, contentType: "application/json", body: json.bytes }, json)

/** Makes a JSON response from JSON text. */
export const json = (upstream: string, status: number, body: string): UpstreamResponse =>
  ofJson(upstream, status, new Json(body))

/**
 * Makes a JSON response from a value without `bigint`. The response stores the value, so its text is not parsed again.
 */
export const jsonValue = (upstream: string, status: number, value: object): UpstreamResponse =>
  ofJson(upstream, status, parsed(JSON.stringify(value), value))

/** Makes a plain-text response. */
export const plain = (upstream: string, status: number, body: string): UpstreamResponse =>
  make({ upstream, status, contentType: "text/plain; charset=utf-8", body: Utf8.encode(body) })

/** The header in which a gateway reports the signer of a relayed action. */
export const signerHeader = "x-trigate-signer"

/** The header in which a gateway reports the label of the upstream whose response it relays. */
export const upstreamHeader = "x-trigate-upstream"

const isAddress = Schema.is(Address)

/** Reads the signer from a response's headers. Returns an object with the signer as its member, or an empty object. */
export const signerIn = (headers: { readonly [name: string]: string | undefined }): { readonly signer?: Address } => {
  const signer = headers[signerHeader]
  return signer !== undefined && isAddress(signer) ? { signer } : {}
}
