/**
 * Requests that a client sends before it has the responses to earlier ones on the same connection (RFC 9112, section 9.3.2).
 *
 * Node hands each of them on as soon as it is parsed, thousands from one packet, and keeps their responses until the earlier ones
 * are written.
 */
// @effect-diagnostics-next-line nodeBuiltinImport:off -- only Node's own responses know whether they wait
import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** The most requests of a connection that may wait behind another's answer. */
export const maxWaiting = 64

const ignore = (): void => {}

const waiting = new WeakMap<Socket, number>()

/** Connections that end with an answer which is still to come. */
const ending = new WeakSet<Socket>()

/**
 * Returns whether a request may be handled whose response waits behind another.
 *
 * One too many closes the connection, which cancels its requests. A client that sends that many reads no responses.
 */
export const admits = (response: ServerResponse): boolean => {
  const { headers, socket } = response.req
  // its response would never be read, so it must not be executed (RFC 9112, section 9.6)
  if (ending.has(socket)) return false
  const count = waiting.get(socket) ?? 0
  if (socket.destroyed || count >= maxWaiting) {
    socket.destroy()
    return false
  }
  // Node sends the head of such a response before a `100 Continue` that waits with it, and its client miscounts the responses
  response.writeContinue = ignore
  // without it Node closes the connection after the answer
  if (headers.expect !== undefined) ending.add(socket)
  waiting.set(socket, count + 1)
  response.once("finish", () => waiting.set(socket, (waiting.get(socket) ?? 0) - 1))
  return true
}
