/** A wire that records what would leave and answers as told; URLs are shown, they hold no real key. */
import * as Relayed from "@trigate/domain/Relayed"
import * as AddressHealth from "@trigate/upstream/AddressHealth"
import * as Budgets from "@trigate/upstream/Budgets"
import * as Calls from "@trigate/upstream/Calls"
import * as SharedReads from "@trigate/upstream/SharedReads"
import { Wire, WireError } from "@trigate/upstream/Wire"
import type { WireAnswer } from "@trigate/upstream/Wire"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

export interface Sent {
  readonly method: string
  readonly url: string
  readonly body: string
}

export const answer = (status: number, body: string, contentType = "application/json"): WireAnswer => ({
  status,
  headers: { "content-type": contentType },
  body: Relayed.bytes(body)
})

export const unreachable = new WireError({ sent: "no", reason: "Connect", detail: "ECONNREFUSED" })
export const broken = new WireError({ sent: "maybe", reason: "Broken", detail: "ECONNRESET" })

// no circuit and no budget: a test that is about those makes its own
const calls = Layer.merge(
  Calls.layerNoDeps({ exchanges: 1 }).pipe(
    Layer.provide([Budgets.layerUnlimited, AddressHealth.layerAlways])
  ),
  SharedReads.layer()
)

export const make = (react: (sent: Sent) => WireAnswer | WireError) => {
  const sent: Array<Sent> = []
  const wire = Layer.succeed(
    Wire,
    Wire.of({
      send: ({ body, method, url }) =>
        Effect.suspend(() => {
          const request = { method, url: Redacted.value(url), body: new TextDecoder().decode(body) }
          sent.push(request)
          const reaction = react(request)
          return "sent" in reaction ? Effect.fail(reaction) : Effect.succeed(reaction)
        })
    })
  )
  return { sent, layer: calls.pipe(Layer.provide(wire)) }
}
