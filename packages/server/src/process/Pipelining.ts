/**
 * Limits HTTP pipelining: requests that a client sends before it received the responses to earlier ones on the same connection
 * (RFC 9112, section 9.3.2).
 *
 * Node emits each request as soon as it is parsed; one packet can contain thousands of requests. Node buffers a
 * response until the responses to all earlier requests are written.
 */
// @effect-diagnostics-next-line nodeBuiltinImport:off -- only Node's own responses know whether they wait
import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** Maximum number of responses that can wait on one connection for the response to an earlier request. */
export const maxWaiting = 64

const ignore = (): void => {}

const waiting = new WeakMap<Socket, number>()

/** Connections that Node will close after a pending response has been sent. */
const ending = new WeakSet<Socket>()

/**
 * Returns whether to handle a request whose response has to wait for the response to an earlier request.
 *
 * If more than {@link maxWaiting} requests wait, the connection is closed, which cancels its requests.
 */
export const admits = (response: ServerResponse): boolean => {
  const { headers, socket } = response.req
  // the connection closes before this response is sent, so the request must not be executed (RFC 9112, section 9.6)
  if (ending.has(socket)) return false
  const count = waiting.get(socket) ?? 0
  if (socket.destroyed || count >= maxWaiting) {
    socket.destroy()
    return false
  }
  // Node would write the head of a waiting response before its buffered `100 Continue`, and the client would misread
  // the responses
  response.writeContinue = ignore
  // if the `100 Continue` of a request with `Expect` was not sent, Node closes the connection after the response
  if (headers.expect !== undefined) ending.add(socket)
  waiting.set(socket, count + 1)
  response.once("finish", () => waiting.set(socket, (waiting.get(socket) ?? 0) - 1))
  return true
}
