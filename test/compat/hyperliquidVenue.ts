/** `@nktkas/hyperliquid` over its own HTTP transport, through a gateway process that has a venue behind it. */
import { assert } from "@effect/vitest"
import { ExchangeClient, HttpRequestError, HttpTransport, InfoClient } from "@nktkas/hyperliquid"
import { keys } from "@trigate/sandbox/SandboxExamples"
import type { Reply, Seen } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import { privateKeyToAccount } from "viem/accounts"
import { rejection } from "./rejection.ts"
import { session } from "./session.ts"
import { taken, venue } from "./venue.ts"

const client = "@nktkas/hyperliquid 0.33.3"

/** The transport of the library, which remembers the bodies that it sent. */
class RememberingTransport extends HttpTransport {
  readonly bodies: Array<string> = []
  override request<T>(endpoint: "info" | "exchange" | "explorer", payload: unknown, signal?: AbortSignal): Promise<T> {
    this.bodies.push(JSON.stringify(payload))
    return super.request<T>(endpoint, payload, signal)
  }
}

/** A venue, and the library's clients at a gateway in front of it, which act with the trader's key. */
export const connected = Effect.fnUntraced(function*(
  name: string,
  environment: { readonly [name: string]: string } = {},
  respond: (request: Seen) => Reply = () => taken()
) {
  const upstream = yield* venue(respond)
  const url = yield* session({ name: `hyperliquid/${name}`, client, upstreams: { api: upstream.url }, environment })
  const transport = new RememberingTransport({ apiUrl: url })
  return {
    upstream,
    transport,
    info: new InfoClient({ transport }),
    straight: new InfoClient({ transport: new HttpTransport({ apiUrl: upstream.url }) }),
    exchange: new ExchangeClient({ transport, wallet: privateKeyToAccount(keys.trader.privateKey) })
  }
})

/** The actions that an upstream was sent. */
export const sent = ({ seen }: { readonly seen: ReadonlyArray<Seen> }) =>
  seen.filter(({ path }) => path === "/exchange").map(({ body }) => body)

/** Status and words of an answer that the library does not take for one of the venue's. */
export const statusOf = Effect.fnUntraced(function*(call: () => Promise<unknown>) {
  const error = yield* rejection(call)
  assert.instanceOf(error, HttpRequestError)
  return { status: error.response?.status, message: error.message }
})
