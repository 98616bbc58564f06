/**
 * Sends one GET request to addresses that were already checked. The host name is not resolved again, and the size of
 * the response is limited.
 */
import { errorCode } from "@trigate/upstream/transport/HttpTransportUndici"
import * as Effect from "effect/Effect"
import type { LookupFunction } from "node:net"
import { Agent } from "undici"
import type { Dispatcher } from "undici"
import type { Exchange } from "./MetadataGuard.ts"
import { MetadataUnavailable } from "./MetadataUnavailable.ts"

/** Resolves every host name to the checked addresses, so that a DNS change between check and use has no effect. */
const pinned = ({ addresses: [first, ...others] }: Exchange): LookupFunction => (_hostname, options, callback) =>
  queueMicrotask(() =>
    options.all === true ? callback(null, [first, ...others]) : callback(null, first.address, first.family)
  )

const headers = { accept: "application/json", "accept-encoding": "identity", "user-agent": "trigate" }

const get = (dispatcher: Dispatcher, { maxBytes, url }: Exchange): Effect.Effect<Uint8Array, MetadataUnavailable> =>
  Effect.callback<Uint8Array, MetadataUnavailable>((resume) => {
    const chunks: Array<Uint8Array> = []
    let size = 0
    const fail = (reason: string) => resume(Effect.fail(new MetadataUnavailable({ reason })))
    const stop = (controller: Dispatcher.DispatchController, reason: string) => {
      fail(reason)
      controller.abort(new Error(reason))
    }
    dispatcher.dispatch({ origin: url.origin, path: `${url.pathname}${url.search}`, method: "GET", headers }, {
      // undici refuses a handler without `onRequestStart`
      onRequestStart() {},
      onResponseStart(controller, status, received) {
        if (status !== 200) stop(controller, `HTTP ${status}`)
        else if ((received["content-encoding"] ?? "identity") !== "identity") stop(controller, "compressed")
      },
      onResponseData(controller, chunk) {
        size += chunk.length
        if (size > maxBytes) stop(controller, `larger than ${maxBytes} bytes`)
        else chunks.push(chunk)
      },
      onResponseEnd: () => resume(Effect.succeed(Buffer.concat(chunks))),
      onResponseError: (_controller, error) => fail(errorCode(error))
    })
  })

/** Sends one request over its own connection, which is then closed. Documents are rare, and are cached for a day. */
export const exchange = (exchange: Exchange): Effect.Effect<Uint8Array, MetadataUnavailable> =>
  Effect.acquireUseRelease(
    Effect.sync(() => new Agent({ connect: { lookup: pinned(exchange) }, connections: 1 })),
    (agent) => get(agent, exchange),
    (agent) => Effect.promise(() => agent.destroy())
  )
