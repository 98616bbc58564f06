/** Opens the feed of a sandbox: the transports to the venue that it follows. Loaded only if a sandbox follows a venue. */
import * as MarketFeed from "@trigate/sandbox/unstable/venue/MarketFeed"
import * as SocketTransport from "@trigate/upstream/streams/SocketTransport"
import * as HttpTransportUndici from "@trigate/upstream/transport/HttpTransportUndici"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"

/** Opens the feed from the venue at a base URL. */
export const open = (url: Redacted.Redacted) =>
  Effect.gen(function*() {
    const transports = yield* Layer.build(
      Layer.merge(HttpTransportUndici.layer({ connections: 4 }), SocketTransport.layerWebSocket)
    )
    return MarketFeed.make(yield* Effect.provideContext(MarketFeed.makeSource(url), transports))
  })
