/**
 * What the connections of a server may take: how many there are, how many one address has, and how long one stands still.
 *
 * A connection behind a proxy is the proxy's, so the count of an address says nothing of a caller there.
 */
import * as Duration from "effect/Duration"
import * as IpNetwork from "effect/net/IpNetwork"
import { parseAddress, subscriberNetwork } from "../requests/RequestCaller.ts"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- the server for the platform layer
import type { Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** Bounds of connections; each has a default. */
export interface Bounds {
  /** The most open connections, 4096 by default. Those of one address may have a quarter of them. */
  readonly maxConnections?: number
  /** How long nothing may move while the server reads a request or writes an answer; 15 seconds by default. */
  readonly stallTimeout?: Duration.Duration
  /** Networks of proxies, whose connections are those of many callers and are not counted by address. */
  readonly trustedProxies?: ReadonlyArray<IpNetwork.IpNetwork>
}

/** Counts the connections of each address, and closes one too many. */
const countByAddress = (server: Server, most: number, trusted: ReadonlyArray<IpNetwork.IpNetwork>): void => {
  const open = new Map<string, number>()
  server.on("connection", (socket: Socket) => {
    const address = parseAddress(socket.remoteAddress ?? "")
    if (address === undefined || trusted.some((network) => IpNetwork.contains(network, address))) return
    const subscriber = subscriberNetwork(address)
    const count = open.get(subscriber) ?? 0
    if (count >= most) {
      socket.destroy()
      return
    }
    open.set(subscriber, count + 1)
    socket.once("close", () => {
      const left = (open.get(subscriber) ?? 0) - 1
      if (left > 0) open.set(subscriber, left)
      else open.delete(subscriber)
    })
  })
}

/** Closes a connection on which nothing moves although its caller would have to send or to read. */
function closeStalled(this: ServerResponse, socket: Socket): void {
  // a caller who waits for an answer may wait for as long as the call takes
  if (!this.req.complete || socket.writableLength > 0) socket.destroy()
}

/** Bounds the connections of a server. */
export const bound = (
  server: Server,
  { maxConnections = 4096, stallTimeout = Duration.seconds(15), trustedProxies = [] }: Bounds
): void => {
  server.maxConnections = maxConnections
  countByAddress(server, Math.max(1, Math.floor(maxConnections / 4)), trustedProxies)
  server.timeout = Duration.toMillis(stallTimeout)
  server.on("request", (_request, response) => {
    response.on("timeout", closeStalled)
  })
}
