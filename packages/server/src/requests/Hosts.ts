/**
 * Checks the `Host` of requests.
 *
 * A page can make its own name resolve to 127.0.0.1 (DNS rebinding). To the browser, a gateway at that address has the
 * page's own origin, so the page could read every response. Only the `Host` header shows that such a request is for
 * another site.
 */
import * as Context from "effect/Context"
import { HttpServer } from "effect/http/HttpServer"
import type { SocketAddress } from "effect/net/NetAddress"
import * as NetAddress from "effect/net/NetAddress"
import * as Option from "effect/Option"

/**
 * The hosts that a gateway serves in addition to loopback hosts: a list of host names, each with any port, or `*` for
 * any host.
 */
export type Hosts = ReadonlyArray<string> | "*"

// names that a browser always resolves to the machine on which it runs (RFC 6761, section 6.3)
const loopback = /^(?:(?:[a-z0-9_-]+\.)*localhost\.?|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]*)?$/iu

const isLoopback = (address: SocketAddress): boolean =>
  NetAddress.isInetAddress(address) && NetAddress.isLoopback(address.address)

/** Returns whether a configured listening address is reachable from this machine only. */
export const isOwnMachine = (host: string): boolean => loopback.test(host.includes(":") ? `[${host}]` : host)

/** Normalizes a host as browsers do: lower case, without its port. */
const hostName = (host: string): string => host.replace(/:[0-9]*$/u, "").toLowerCase()

/**
 * Makes the `Host` check (`:authority` in HTTP/2) for a gateway that listens on an address.
 *
 * Loopback hosts are always accepted. A request without the header is also accepted: it is not from a browser, because
 * browsers always send the header. If the gateway listens on a loopback address, or if a list of hosts is configured,
 * the only other accepted hosts are those of the list. Otherwise every host is accepted.
 */
export const make = (address: SocketAddress | undefined, hosts: Hosts | undefined) => {
  if (hosts === "*" || (hosts === undefined && (address === undefined || !isLoopback(address)))) return () => true
  const known = new Set(hosts?.map(hostName))
  return (host: string | undefined): boolean => host === undefined || loopback.test(host) || known.has(hostName(host))
}

/**
 * Makes the `Host` check for the server's address, which is in the context. Caches the result for the previous host,
 * because almost all requests have the same host.
 */
export const check = (hosts: Hosts | undefined) => {
  let serves: ReturnType<typeof make> | undefined
  let usual: string | undefined
  return (context: Context.Context<never>, host: string | undefined): boolean => {
    if (serves !== undefined && host === usual) return true
    serves ??= make(Option.getOrUndefined(Context.getOption(context, HttpServer))?.address, hosts)
    if (!serves(host)) return false
    usual = host
    return true
  }
}
