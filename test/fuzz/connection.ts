/** A connection to a gateway, as bytes: requests go out as they are, and answers are read by their own framing. */
import * as Net from "node:net"
import type { FuzzRequest } from "./request.ts"
import { bytesOf } from "./request.ts"

export interface FuzzAnswer {
  /** The status line and the headers as they came. */
  readonly head: string
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
}

/** What came instead of a whole answer. */
export type Missing = "closed" | "silent" | "misframed"

const headOf = (head: string): Omit<FuzzAnswer, "body"> => {
  const [first = "", ...lines] = head.split("\r\n")
  const headers = new Map<string, string>()
  for (const line of lines) {
    const at = line.indexOf(":")
    headers.set(line.slice(0, at).toLowerCase(), line.slice(at + 1).trim())
  }
  return { head, status: Number(/^HTTP\/1\.1 (\d{3})(?: |$)/u.exec(first)?.[1] ?? 0), headers }
}

/** The body at the beginning of some bytes and how many bytes it takes; nothing while it is not whole. */
const bodyAt = (
  bytes: Buffer,
  { headers, status }: Pick<FuzzAnswer, "headers" | "status">,
  isHead: boolean
): { readonly body: Buffer; readonly size: number } | "misframed" | undefined => {
  if (isHead || status === 204 || status === 304) return { body: bytes.subarray(0, 0), size: 0 }
  if (headers.get("transfer-encoding") === "chunked") {
    const parts: Array<Buffer> = []
    for (let at = 0;;) {
      const line = bytes.indexOf("\r\n", at)
      if (line < 0) return undefined
      const text = bytes.subarray(at, line).toString("latin1")
      if (!/^[0-9a-f]+$/iu.test(text)) return "misframed"
      const size = Number.parseInt(text, 16)
      if (bytes.length < line + 2 + size + 2) return undefined
      if (size === 0) return { body: Buffer.concat(parts), size: line + 4 }
      parts.push(bytes.subarray(line + 2, line + 2 + size))
      at = line + 2 + size + 2
    }
  }
  const size = Number(headers.get("content-length") ?? Number.NaN)
  if (!Number.isSafeInteger(size)) return "misframed"
  return bytes.length < size ? undefined : { body: bytes.subarray(0, size), size }
}

/** So long nothing may come: longer than any deadline of the gateways, so that only what hangs gets there. */
const maxWait = 120_000

/** A connection. Requests on it wait for each other. */
export class Connection {
  readonly #url: URL
  #socket: Net.Socket | undefined
  #rest: Buffer = Buffer.alloc(0)
  #isOver = false
  /** How the gateway last closed a socket: the error, the socket's age, and the bytes in both directions. */
  ending = ""
  #changed: () => void = () => {}

  /** How many bytes have come, over all sockets. */
  received = 0

  constructor(url: string) {
    this.#url = new URL(url)
  }

  #open(): Net.Socket {
    if (this.#socket !== undefined && !this.#isOver) return this.#socket
    const { hostname, port } = this.#url
    const socket = Net.connect({ host: hostname, port: Number(port), noDelay: true })
    this.#socket = socket
    this.#rest = Buffer.alloc(0)
    this.#isOver = false
    socket.on("data", (chunk: Buffer) => {
      this.received += chunk.length
      if (this.#socket !== socket) return
      this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
      this.#changed()
    })
    const opened = performance.now()
    let fault = "no error"
    // a server that refuses a body before its end may reset the connection under what is still being written
    socket.on("error", ({ message }) => {
      fault = message
    })
    socket.on("close", () => {
      if (this.#socket !== socket) return
      const age = Math.round(performance.now() - opened)
      this.ending = `${fault} after ${age} ms, ${socket.bytesWritten} bytes sent, ${socket.bytesRead} received`
      this.#isOver = true
      this.#changed()
    })
    return socket
  }

  close() {
    this.#socket?.destroy()
    this.#socket = undefined
  }

  #change(): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), maxWait)
      this.#changed = () => {
        clearTimeout(timer)
        this.#changed = () => {}
        resolve(true)
      }
    })
  }

  async #answer(isHead: boolean): Promise<FuzzAnswer | Missing> {
    for (;;) {
      const end = this.#rest.indexOf("\r\n\r\n")
      if (end >= 0) {
        const head = headOf(this.#rest.subarray(0, end).toString("latin1"))
        if (head.status === 0) return "misframed"
        if (head.status < 200) {
          this.#rest = this.#rest.subarray(end + 4)
          continue
        }
        const found = bodyAt(this.#rest.subarray(end + 4), head, isHead)
        if (found === "misframed") return found
        if (found !== undefined) {
          this.#rest = this.#rest.subarray(end + 4 + found.size)
          return { ...head, body: found.body }
        }
      }
      if (this.#isOver) return this.#rest.length === 0 ? "closed" : "misframed"
      if (!await this.#change()) return "silent"
    }
  }

  /**
   * Sends requests in one write, and reads the answer to each.
   *
   * A server may close a connection after any answer. What it has not answered by then is sent again, or not at all if it came
   * behind another request.
   */
  async ask(bytes: Uint8Array, heads: ReadonlyArray<boolean>): Promise<ReadonlyArray<FuzzAnswer | Missing>> {
    const isReused = this.#socket !== undefined
    const socket = this.#open()
    if (this.#rest.length > 0) {
      this.close()
      return ["misframed"]
    }
    socket.write(bytes)
    const answers: Array<FuzzAnswer | Missing> = []
    for (const isHead of heads) {
      const answer = await this.#answer(isHead)
      if (answer === "closed" && (isReused || answers.length > 0)) {
        this.close()
        return answers.length > 0 ? answers : this.ask(bytes, heads)
      }
      answers.push(answer)
      if (typeof answer === "string" || answer.headers.get("connection") === "close") {
        this.close()
        break
      }
    }
    return answers
  }

  /**
   * Sends bytes that may be no HTTP on a connection of their own, ends it, and reads whatever answers come. With `beforeEnd`, the server
   * gets time to read the bytes first.
   */
  async throwAway(bytes: Uint8Array, beforeEnd?: () => Promise<void>): Promise<ReadonlyArray<FuzzAnswer | Missing>> {
    this.close()
    const socket = this.#open()
    if (beforeEnd === undefined) {
      socket.end(bytes)
    } else {
      await new Promise((resolve) => void socket.write(bytes, resolve))
      await beforeEnd()
      socket.end()
    }
    const answers: Array<FuzzAnswer | Missing> = []
    for (;;) {
      const answer = await this.#answer(false)
      if (answer === "closed") break
      answers.push(answer)
      if (typeof answer === "string") break
    }
    this.close()
    return answers
  }
}

export type Answered = readonly [request: FuzzRequest, answer: FuzzAnswer | Missing]

/** Sends requests in one write, each with its answer. One that is no sound HTTP is alone. */
export const send = async (
  connection: Connection,
  ...requests: ReadonlyArray<FuzzRequest>
): Promise<ReadonlyArray<Answered>> => {
  const [first] = requests
  if (first === undefined) return []
  if (first.raw !== undefined) return (await connection.throwAway(first.raw)).map((answer) => [first, answer])
  const bytes = Buffer.concat(requests.map(bytesOf))
  const answers = await connection.ask(bytes, requests.map(({ method }) => method === "HEAD"))
  return answers.map((answer, at) => [requests[at] ?? first, answer])
}
