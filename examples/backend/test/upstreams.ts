/** The live services of the chains over a transport that answers as a test says: injected failures, and counted requests. */
import type { Layer2 } from "@trigate/evm/Layer2"
import * as Layer2Upstream from "@trigate/evm/Layer2Upstream"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as NonceSource from "@trigate/signing/NonceSource"
import type { Venue } from "@trigate/signing/VenueProfile"
import type { TokenChain } from "@trigate/tokens/TokenChain"
import * as TokenChainMemory from "@trigate/tokens/TokenChainMemory"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import type { Exchange } from "@trigate/trading/Exchange"
import type { Info } from "@trigate/trading/Info"
import type { Inspector } from "@trigate/trading/Inspector"
import * as Trading from "@trigate/trading/Trading"
import type { TradingEvm } from "@trigate/trading/TradingEvm"
import * as Pipeline from "@trigate/upstream/Pipeline"
import { HttpTransport, TransportError } from "@trigate/upstream/transport/HttpTransport"
import type { TransportResponse } from "@trigate/upstream/transport/HttpTransport"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

/** What a transport makes of a request: its path without the endpoint key, and its body. */
export type Reaction = (path: string, body: string) => Effect.Effect<TransportResponse, TransportError>

export const answered = (body: string, status = 200, headers: { readonly [name: string]: string } = {}) =>
  Effect.succeed<TransportResponse>({
    status,
    headers: { "content-type": "application/json", ...headers },
    body: new TextEncoder().encode(body)
  })

export const rateLimited = answered("slow down", 429, { "retry-after": "60" })

/** Nothing listens there. */
export const down = Effect.fail(new TransportError({ sent: "no", reason: "Connect", detail: "refused" }))

/** The connection broke after the request may have arrived. */
export const broken = Effect.fail(new TransportError({ sent: "maybe", reason: "Broken", detail: "reset" }))

/** The chains, and the requests that left. */
export const over = (react: Reaction) => {
  const sent: Array<{ readonly path: string; readonly body: string }> = []
  const transport = Layer.succeed(
    HttpTransport,
    HttpTransport.of({
      send: ({ body, url }) =>
        Effect.suspend(() => {
          const path = new URL(Redacted.value(url)).pathname.replace("/KEY", "")
          const text = new TextDecoder().decode(body)
          sent.push({ path, body: text })
          return react(path, text)
        })
    })
  )
  const node = ["https://node.example/KEY"]
  const layer = Layer.merge(
    Trading.layerNoDeps({ network: "mainnet", addresses: { api: ["https://venue.example"], node } }),
    Layer2Upstream.layerNoDeps({ addresses: node })
  ).pipe(
    Layer.provide([ActionLogMemory.layer(), Pipeline.layer()]),
    Layer.provide(transport),
    Layer.merge(Layer.merge(NonceSource.layerMemory(), TokenChainMemory.layer()))
  )
  return { layer, sent }
}

/** What the backend takes of its chains. */
export type Chains = Layer.Layer<
  Exchange | Info | Inspector | Layer2 | NonceSource.NonceSource | TokenChain | TradingEvm | Venue
>

/** The chains in memory, which check signatures, nonces and balances. */
export const sandbox = () => Layer.merge(Sandbox.layer(), NonceSource.layerMemory())
