/** An upstream's response as received: what a relaying route passes on and what a typed method reads. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Address } from "../encoding/Hex.ts"
import { Json } from "../encoding/Json.ts"
import { oneLine } from "../encoding/TerminalEscape.ts"
import * as Utf8 from "../encoding/Utf8.ts"

/** What a response says. */
export interface Fields {
  /** Label of the upstream (`trading-api`, `layer2`, …), never its address. */
  readonly upstream: string
  readonly status: number
  readonly contentType: string
  /** The whole body, in one piece or in those in which it came. */
  readonly body: Uint8Array | ReadonlyArray<Uint8Array>
  /** The upstream's `Retry-After`, in seconds. */
  readonly retryAfter?: number | undefined
  /** Seconds since the response was read upstream; absent for one that was not cached. */
  readonly age?: number | undefined
  /** What an answer to a candle query was made of, as `CandleAnswer.printSources` writes it. */
  readonly candles?: string | undefined
  /** The signer of the action in question, as reported by a gateway upstream. */
  readonly signer?: Address | undefined
}

/** A response. Its pieces are joined, its text decoded and its JSON parsed at most once, on first use. */
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

  constructor({ age, body, candles, contentType, retryAfter, signer, status, upstream }: Fields) {
    this.upstream = upstream
    this.status = status
    this.contentType = contentType
    this.pieces = body instanceof Uint8Array ? [body] : body
    if (retryAfter !== undefined) this.retryAfter = retryAfter
    if (age !== undefined) this.age = age
    if (candles !== undefined) this.candles = candles
    if (signer !== undefined) this.signer = signer
  }

  /** The body in one piece. */
  get body(): Uint8Array {
    return this.#body ??= Utf8.joined(this.pieces)
  }

  /** The body as text, whatever its bytes are. */
  get text(): string {
    return this.#text ??= Utf8.decodeLossy(this.body)
  }

  /** The body as text; none where it is not valid UTF-8. */
  get utf8(): Option.Option<string> {
    // text that was decoded without a replacement character came from valid bytes
    if (this.#text?.includes("\ufffd") === false) return Option.some(this.#text)
    const text = Utf8.decode(this.body)
    this.#text = Option.getOrElse(text, () => this.text)
    return text
  }

  /** The body as JSON. */
  get json(): Json {
    return this.#json ??= new Json(this.text)
  }

  /** Whether the body claims to be a problem document (RFC 9457). */
  get isProblem(): boolean {
    return this.contentType.startsWith("application/problem+json")
  }

  /** The beginning of the body, for a message. */
  excerpt(length = 120): string {
    return oneLine(Utf8.decodeLossy(Utf8.opening(this.pieces, length)))
  }

  /** The same response with some other members. */
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

/** A response. */
export const make = (fields: Fields): UpstreamResponse => new UpstreamResponse(fields)

/** A JSON response made here, as a sandbox or a test does. */
export const json = (upstream: string, status: number, body: string): UpstreamResponse =>
  make({ upstream, status, contentType: "application/json", body: Utf8.encode(body) })

/** A plain-text response made here. */
export const plain = (upstream: string, status: number, body: string): UpstreamResponse =>
  make({ upstream, status, contentType: "text/plain; charset=utf-8", body: Utf8.encode(body) })

/** The header in which a gateway reports the signer of a relayed action. */
export const signerHeader = "x-trigate-signer"

const isAddress = Schema.is(Address)

/** The signer in a response's headers, as a member of {@link Fields}. */
export const signerIn = (headers: { readonly [name: string]: string | undefined }): { readonly signer?: Address } => {
  const signer = headers[signerHeader]
  return signer !== undefined && isAddress(signer) ? { signer } : {}
}
