/**
 * The hosts that a gateway serves.
 *
 * A page can make its own name resolve to 127.0.0.1 (DNS rebinding). For the browser, the gateway there is then of the page's own
 * origin, and the page reads every answer. Only the `Host` of such a request shows that it was meant for another site.
 */
import * as Context from "effect/Context"
import { HttpServer } from "effect/http/HttpServer"
import type { SocketAddress } from "effect/net/NetAddress"
import * as NetAddress from "effect/net/NetAddress"
import * as Option from "effect/Option"

/** The hosts that a gateway serves besides loopback hosts: some, by name and whatever the port, or any. */
export type Hosts = ReadonlyArray<string> | "*"

// what a browser takes to its own machine, whatever a name server says (RFC 6761, section 6.3)
const loopback = /^(?:(?:[a-z0-9_-]+\.)*localhost\.?|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]*)?$/iu

const isLoopback = (address: SocketAddress): boolean =>
  NetAddress.isInetAddress(address) && NetAddress.isLoopback(address.address)

/** Whether a listening address, as a setting names it, is reached from this machine alone. */
export const isOwnMachine = (host: string): boolean => loopback.test(host.includes(":") ? `[${host}]` : host)

/** A host as browsers compare it: without its port, in lower case. */
const hostName = (host: string): string => host.replace(/:[0-9]*$/u, "").toLowerCase()

/**
 * Whether a gateway that listens on an address serves a request with some `Host` (`:authority` in HTTP/2).
 *
 * On a loopback address, and wherever hosts are given, others than those and loopback hosts are refused. No browser leaves the
 * host out.
 */
export const make = (address: SocketAddress | undefined, hosts: Hosts | undefined) => {
  if (hosts === "*" || (hosts === undefined && (address === undefined || !isLoopback(address)))) return () => true
  const known = new Set(hosts?.map(hostName))
  return (host: string | undefined): boolean => host === undefined || loopback.test(host) || known.has(hostName(host))
}

/** Returns the check of a gateway whose address is in the context. Almost all requests have the host of the one before. */
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
