/**
 * WebSockets to upstreams over the package `ws`. The package stops reading from a connection while its messages are not
 * consumed.
 */
import * as NodeWS from "@effect/platform-node/NodeWS"
import * as SocketTransport from "@trigate/upstream/streams/SocketTransport"
import * as Layer from "effect/Layer"
import * as Socket from "effect/socket/Socket"

/** Maximum number of bytes of a WebSocket frame from the venue; the longest known frame has 116 KB. */
const maxPayload = 16 * 1024 * 1024

const construct = Layer.succeed(
  Socket.WebSocketConstructor,
  (url) => new NodeWS.WebSocket(url, { maxPayload, perMessageDeflate: false, handshakeTimeout: 10_000 })
)

/**
 * WebSockets without compression, which the venue does not support either.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<SocketTransport.SocketTransport> = Layer.provide(SocketTransport.layer, construct)
