/** One request of the fuzzer: made from a seed, sent as bytes, kept as JSON when it found something. */
import * as Schema from "effect/Schema"

/** How the end of a body is told. */
export const Framing = Schema.Literals(["length", "chunked", "none"])

/** A request. `raw` stands for requests that are no sound HTTP: these bytes are sent, and then the sender's end is closed. */
export const FuzzRequest = Schema.Struct({
  method: Schema.String,
  target: Schema.String,
  headers: Schema.Array(Schema.Tuple([Schema.String, Schema.String])),
  body: Schema.Uint8ArrayFromBase64,
  framing: Framing,
  raw: Schema.optionalKey(Schema.Uint8ArrayFromBase64)
})
export type FuzzRequest = typeof FuzzRequest.Type

/** The gateways that are fuzzed: over the sandbox, and over upstreams of which three misbehave. */
export const Target = Schema.Literals(["sandbox", "upstreams"])
export type Target = typeof Target.Type

/** Requests that once got a wrong answer, sent in one write, made as small as they can be. Mostly it is one. */
export const Finding = Schema.Struct({
  complaint: Schema.String,
  target: Target,
  seed: Schema.Int,
  index: Schema.Int,
  requests: Schema.NonEmptyArray(FuzzRequest)
})
export type Finding = typeof Finding.Type

const latin1 = (text: string): Uint8Array => Buffer.from(text, "latin1")

/** The chunks of a body, their sizes from 1 byte on. */
const chunked = (body: Uint8Array): Uint8Array => {
  const parts: Array<Uint8Array> = []
  let size = 1
  for (let at = 0; at < body.length; at += size, size *= 3) {
    const chunk = body.subarray(at, at + size)
    parts.push(latin1(`${chunk.length.toString(16)}\r\n`), chunk, latin1("\r\n"))
  }
  return Buffer.concat([...parts, latin1("0\r\n\r\n")])
}

/** The bytes of a request, which asks for the connection to be kept. */
export const bytesOf = ({ body, framing, headers, method, raw, target }: FuzzRequest): Uint8Array => {
  if (raw !== undefined) return raw
  const told = framing === "length"
    ? `content-length: ${body.length}\r\n`
    : framing === "chunked"
    ? "transfer-encoding: chunked\r\n"
    : ""
  const fields = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("")
  const head = latin1(`${method} ${target} HTTP/1.1\r\n${fields}${told}\r\n`)
  return Buffer.concat([head, framing === "length" ? body : framing === "chunked" ? chunked(body) : new Uint8Array(0)])
}

const without = <A>(list: ReadonlyArray<A>, at: number): ReadonlyArray<A> => list.filter((_, index) => index !== at)

/** Requests that are one step smaller. */
function* smaller(request: FuzzRequest): Generator<FuzzRequest> {
  const { body, headers, raw, target } = request
  const bytes = raw ?? body
  const cut = (left: Uint8Array): FuzzRequest =>
    raw === undefined ? { ...request, body: left } : { ...request, raw: left }
  for (let size = bytes.length >> 1; size >= 1; size >>= 1) {
    for (let at = 0; at < bytes.length && at / size < 64; at += size) {
      yield cut(Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + size)]))
    }
  }
  for (const [at, [name]] of headers.entries()) {
    if (name !== "host") yield { ...request, headers: without(headers, at) }
  }
  for (let size = target.length >> 1; size >= 1; size >>= 1) yield { ...request, target: target.slice(0, -size) }
}

/** The smallest request that is found by removing parts for which `persists` still holds; asks it at most `tries` times. */
export const minimised = async (
  request: FuzzRequest,
  persists: (request: FuzzRequest) => Promise<boolean>,
  tries = 600
): Promise<FuzzRequest> => {
  let smallest = request
  let left = tries
  for (let isSmaller = true; isSmaller && left > 0;) {
    isSmaller = false
    for (const candidate of smaller(smallest)) {
      left--
      if (left < 0) break
      if (await persists(candidate)) {
        smallest = candidate
        isSmaller = true
        break
      }
    }
  }
  return smallest
}
