/**
 * Connection limits of a server: the number of connections in total and from one address, and the time without
 * progress.
 *
 * All connections from a proxy have the proxy's address, so the per-address limit does not apply to trusted proxies.
 */
import * as Duration from "effect/Duration"
import * as IpNetwork from "effect/net/IpNetwork"
import { parseAddress, subscriberNetwork } from "../requests/RequestCaller.ts"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- the server for the platform layer
import type { Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** The connection limits; each has a default. */
export interface Bounds {
  /**
   * Maximum number of open connections. Default: 4096. One client address (IPv6: one /64 network) can have at most a
   * quarter of them.
   */
  readonly maxConnections?: number
  /** Maximum time without progress while the server reads a request or writes a response. Default: 15 seconds. */
  readonly stallTimeout?: Duration.Duration
  /** Networks of proxies, whose connections belong to many callers and are not counted by address. */
  readonly trustedProxies?: ReadonlyArray<IpNetwork.IpNetwork>
}

/** Counts the connections of each address, and closes those beyond the limit. */
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

/** Closes a stalled connection if the client has not sent its whole request, or does not read the response. */
export function closeStalled(this: ServerResponse, socket: Socket): void {
  // a client that waits for its response is not stalled, however long the operation takes
  if (!this.req.complete || socket.writableLength > 0) socket.destroy()
}

/** Applies the connection limits to a server. */
export const bound = (
  server: Server,
  { maxConnections = 4096, stallTimeout = Duration.seconds(15), trustedProxies = [] }: Bounds
): void => {
  server.maxConnections = maxConnections
  countByAddress(server, Math.max(1, Math.floor(maxConnections / 4)), trustedProxies)
  server.timeout = Duration.toMillis(stallTimeout)
}
