/** What the peers by hand have in common. */
import type { OutgoingHttpHeaders, Server } from "node:http"

/** As the gateway's: Node's default of 511 would refuse callers who all reconnect at once. The system may have a lower limit. */
const backlog = 65_535

/** Says where a peer listens, in the words of the gateway. */
export const listen = (server: Server): void => {
  server.keepAliveTimeout = 75_000
  server.listen({ port: 0, host: "127.0.0.1", backlog }, () => {
    const address = server.address()
    if (typeof address === "object" && address !== null) console.log(`listens on http://127.0.0.1:${address.port}`)
  })
}

/** Headers that belong to the answer; those of the connection stay on theirs. */
export const relayed = (headers: OutgoingHttpHeaders): OutgoingHttpHeaders => {
  const length = headers["content-length"]
  const type = headers["content-type"] ?? "application/octet-stream"
  return length === undefined ? { "content-type": type } : { "content-type": type, "content-length": length }
}
