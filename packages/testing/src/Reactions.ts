/** Reactions of a `faultyUpstream` for all kinds of faulty responses. */
import type { Reaction, ReceivedRequest } from "./FaultyUpstream.ts"

/** A response body: constant, or made from each request. */
export type Words = string | Uint8Array | ((request: ReceivedRequest) => string | Uint8Array)

/** A response. Default: a JSON body with the right length. `headers` override the content type and the length. */
export interface Said {
  readonly status?: number
  readonly headers?: ReadonlyArray<readonly [name: string, value: string]>
  readonly body: Words
}

const toBytes = (words: Words, request: ReceivedRequest): Buffer => {
  const made = typeof words === "function" ? words(request) : words
  return typeof made === "string" ? Buffer.from(made, "utf8") : Buffer.from(made)
}

const formatHead = ({ headers = [], status = 200 }: Said, length: number): string => {
  const names = new Set(headers.map(([name]) => name.toLowerCase()))
  const given = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("")
  const type = names.has("content-type") ? "" : "content-type: application/json\r\n"
  const size = names.has("content-length") || names.has("transfer-encoding") ? "" : `content-length: ${length}\r\n`
  return `HTTP/1.1 ${status} Whatever\r\n${given}${type}${size}\r\n`
}

/** Accepts the request and never responds. */
export const silence: Reaction = () => {}

/** Closes the connection without a response. */
export const hangUp: Reaction = (socket) => void socket.end()

/** Resets the connection. */
export const reset: Reaction = (socket) => void socket.resetAndDestroy()

/** Sends a response, and keeps the connection open. */
export const say = (said: Said): Reaction => (socket, request) => {
  const body = toBytes(said.body, request)
  socket.write(Buffer.concat([Buffer.from(formatHead(said, body.length), "latin1"), body]))
}

/** Sends the head of a response without its body, then reacts with `then`. */
export const sayHead = (said: Said, then: Reaction): Reaction => (socket, request) => {
  socket.write(formatHead(said, toBytes(said.body, request).length), "latin1", () => then(socket, request))
}

/** Sends the head and half of the body, then reacts with `then`. */
export const sayHalf = (said: Said, then: Reaction): Reaction => (socket, request) => {
  const body = toBytes(said.body, request)
  const half = body.subarray(0, body.length >> 1)
  socket.write(Buffer.concat([Buffer.from(formatHead(said, body.length), "latin1"), half]), () => then(socket, request))
}

/** Sends a response byte by byte, one byte every 20 milliseconds, and never sends the last byte. */
export const drip = (said: Said): Reaction => (socket, request) => {
  const body = toBytes(said.body, request)
  const whole = Buffer.concat([Buffer.from(formatHead(said, body.length), "latin1"), body])
  let at = 0
  const timer = setInterval(() => {
    socket.write(whole.subarray(at, at + 1))
    at += 1
    if (at === whole.length - 1) clearInterval(timer)
  }, 20)
  socket.on("close", () => clearInterval(timer))
}

/** Writes exactly the given bytes, then reacts with `then`. Text is encoded as latin-1. */
export const write = (words: Words, then: Reaction = silence): Reaction => (socket, request) => {
  const made = typeof words === "function" ? words(request) : words
  socket.write(typeof made === "string" ? Buffer.from(made, "latin1") : made, () => then(socket, request))
}

/** Reacts to successive requests with successive reactions, and to all further requests with the last reaction. */
export const inTurn = (...reactions: readonly [Reaction, ...ReadonlyArray<Reaction>]): Reaction => {
  let turn = 0
  return (socket, request) => {
    const reaction = reactions[Math.min(turn, reactions.length - 1)]
    turn += 1
    reaction?.(socket, request)
  }
}

/**
 * A test case: a description, the upstream's reaction to a call that is sent at most once, and whether the call runs
 * into its deadline.
 */
export type LeftOpen = readonly [what: string, react: Reaction, takesDeadline: boolean]

const page = { headers: [["content-type", "text/html"]], body: "<html></html>" } as const

/**
 * Returns test cases, valid for any route, whose reactions leave the outcome of a call unknown. `ok` is a valid
 * response to the call.
 */
export const leftOpen = (ok: Said): ReadonlyArray<LeftOpen> => [
  ["gets no response", silence, true],
  ["gets a head and then silence", sayHead(ok, silence), true],
  ["gets half a body and then a reset", sayHalf(ok, reset), false],
  ["is reset", reset, false],
  ["is ended", hangUp, false],
  ["gets a 502 in HTML", say({ status: 502, ...page }), false],
  ["gets an empty 200", say({ body: "" }), false],
  ["gets a status that HTTP does not define", say({ ...ok, status: 999 }), false],
  ["gets a status below 100", write("HTTP/1.1 099 Whatever\r\ncontent-length: 2\r\n\r\n{}"), false]
]
