/** Determines, from the text of a metadata URI, whether the gateway is allowed to fetch it, and from which URL. */
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { MetadataUnavailable } from "./MetadataUnavailable.ts"

const MAX_URI_LENGTH = 2048
const ipfs = /^ipfs:\/\/(?:ipfs\/)?(?<path>(?<cid>[A-Za-z0-9]{46,128})(?:\/[^?#]*)?)$/u

const refused = (reason: string): Result.Result<never, MetadataUnavailable> =>
  Result.fail(new MetadataUnavailable({ reason }))

const parseUrl = Option.liftThrowable((text: string) => new URL(text))

const throughGateway = (
  cid: string,
  path: string,
  gateway: string | undefined
): Result.Result<string, MetadataUnavailable> => {
  if (gateway === undefined) return refused("no IPFS gateway is configured")
  const base = gateway.endsWith("/") ? gateway : `${gateway}/`
  // with dot segments, the path could leave the document's directory on the gateway
  return Option.exists(parseUrl(`${base}${path}`), (url) => url.href.startsWith(`${base}${cid}`))
    ? Result.succeed(`${base}${path}`)
    : refused("the path leaves the IPFS document")
}

/**
 * Returns whether the host of a parsed URL is an IP address. A parsed URL contains IPv4 addresses as dotted decimals,
 * and IPv6 addresses in brackets.
 */
const isNumeric = (host: string): boolean => host.startsWith("[") || /^[0-9.]+$/u.test(host)

/**
 * Returns the URL to fetch for a metadata URI.
 *
 * Accepts only https on port 443, with a host name (never an address) and without user info. For `ipfs://`, appends the
 * content ID to `ipfsGateway` (`https://gateway.example/ipfs/`).
 */
export const metadataUrl = (uri: string, ipfsGateway: string | undefined): Result.Result<URL, MetadataUnavailable> => {
  if (uri.length > MAX_URI_LENGTH) return refused("the URI is too long")
  const groups = ipfs.exec(uri)?.groups
  const https = groups?.["cid"] !== undefined && groups["path"] !== undefined
    ? throughGateway(groups["cid"], groups["path"], ipfsGateway)
    : Result.succeed(uri)
  return Result.flatMap(https, (text) => {
    const parsed = parseUrl(text)
    if (Option.isNone(parsed)) return refused("not a URL")
    const url = parsed.value
    if (url.protocol !== "https:") return refused("not https")
    if (url.username !== "" || url.password !== "") return refused("user info in the URL")
    if (url.port !== "") return refused("a port other than 443")
    if (isNumeric(url.hostname)) return refused("the host is an address, not a name")
    if (!url.hostname.includes(".")) return refused("the host is a local name")
    return Result.succeed(url)
  })
}
