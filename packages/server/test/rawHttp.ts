/** HTTP/1.1 as bytes on a socket: for requests that no client library would send. */
import * as Effect from "effect/Effect"
import * as Net from "node:net"

export interface RawAnswer {
  readonly status: number
  readonly type: string
  readonly head: string
  readonly body: string
}

const latin1 = (text: string): Uint8Array => Buffer.from(text, "latin1")

/** The body of an answer, its chunks joined. */
const bodyOf = (head: string, rest: Buffer): string => {
  if (!/^transfer-encoding: chunked/imu.test(head)) return rest.toString("utf8")
  const parts: Array<Buffer> = []
  for (let at = 0; at < rest.length;) {
    const line = rest.indexOf("\r\n", at)
    const size = Number.parseInt(rest.subarray(at, line).toString("latin1"), 16)
    if (line < 0 || !(size > 0)) break
    parts.push(rest.subarray(line + 2, line + 2 + size))
    at = line + 2 + size + 2
  }
  return Buffer.concat(parts).toString("utf8")
}

const answerOf = (bytes: Buffer): RawAnswer => {
  const end = bytes.indexOf("\r\n\r\n")
  const head = bytes.subarray(0, Math.max(0, end)).toString("latin1")
  return {
    status: Number(/^HTTP\/1\.1 (\d{3})/u.exec(head)?.[1] ?? 0),
    type: /^content-type: (.*)$/imu.exec(head)?.[1]?.trim() ?? "",
    head,
    body: end < 0 ? "" : bodyOf(head, bytes.subarray(end + 4))
  }
}

/**
 * Sends the parts of a request and reads until the server closes: the request must say `connection: close` or be one
 * that the server closes after. Status 0 stands for a connection that was closed without an answer.
 */
export const exchange = (url: string, parts: ReadonlyArray<string | Uint8Array>, end = false, from?: string) =>
  Effect.callback<RawAnswer>((resume) => {
    const { hostname, port } = new URL(url)
    const chunks: Array<Buffer> = []
    const socket = Net.connect({ host: hostname, port: Number(port), noDelay: true, localAddress: from }, () => {
      for (const part of parts) socket.write(typeof part === "string" ? latin1(part) : part)
      if (end) socket.end()
    })
    socket.on("data", (chunk: Buffer) => chunks.push(chunk))
    // a server that refuses a body before its end may reset the connection under what is still being written
    socket.on("error", () => {})
    socket.on("close", () => {
      resume(Effect.succeed(answerOf(Buffer.concat(chunks))))
    })
    return Effect.sync(() => socket.destroy())
  })

/** The head of a request; header values are latin-1 text. */
export const headOf = (
  method: string,
  target: string,
  headers: ReadonlyArray<readonly [name: string, value: string]>
): string =>
  `${method} ${target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n` +
  headers.map(([name, value]) => `${name}: ${value}\r\n`).join("") + "\r\n"
