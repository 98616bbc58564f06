/** An upstream's answer as it came: what a relaying route sends on and what a typed method reads. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Address } from "./Hex.ts"

/** Who answered, and the status, content type and bytes of the answer; `retryAfter` is the upstream's own, in seconds. */
export interface UpstreamResponse {
  /** Label of the upstream (`trading-api`, `layer2`, …), never its address. */
  readonly upstream: string
  readonly status: number
  readonly contentType: string
  readonly body: Uint8Array
  readonly retryAfter?: number
  /** Seconds since this was read upstream, where it was not just now. */
  readonly age?: number
  /** Who signed the action that this answers, where a gateway that stands upstream has told it. */
  readonly signer?: Address
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true })
const encoder = new TextEncoder()

/** The body as text. */
export const text = (relayed: UpstreamResponse): string => decoder.decode(relayed.body)

/** The body as text, cut for a message. */
export const excerpt = (relayed: UpstreamResponse, length = 120): string =>
  decoder.decode(relayed.body.subarray(0, length)).replace(/\s+/gu, " ").trim()

/** A JSON answer made here, as a sandbox or a test does. */
export const json = (upstream: string, status: number, body: string): UpstreamResponse => ({
  upstream,
  status,
  contentType: "application/json",
  body: encoder.encode(body)
})

/** A plain-text answer made here. */
export const plain = (upstream: string, status: number, body: string): UpstreamResponse => ({
  upstream,
  status,
  contentType: "text/plain; charset=utf-8",
  body: encoder.encode(body)
})

const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Bytes as text where they are valid UTF-8. */
export const utf8 = (bytes: Uint8Array): Option.Option<string> =>
  Option.liftThrowable((input: Uint8Array) => strictDecoder.decode(input))(bytes)

/** Text as bytes. */
export const bytes = (body: string): Uint8Array<ArrayBuffer> => encoder.encode(body)

/** Whether the body claims to be a problem document. */
export const isProblem = (relayed: UpstreamResponse): boolean =>
  relayed.contentType.startsWith("application/problem+json")

/** The header in which a gateway tells who signed the action that it relayed. */
export const signerHeader = "x-trigate-signer"

const isAddress = Schema.is(Address)

/** The signer in an answer's headers, as a member of {@link UpstreamResponse}. */
export const signerIn = (headers: { readonly [name: string]: string | undefined }): { readonly signer?: Address } => {
  const signer = headers[signerHeader]
  return signer !== undefined && isAddress(signer) ? { signer } : {}
}
