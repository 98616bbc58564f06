/** A transport that plays a script: each request takes its reaction and its time from a function of the request. */
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import { HttpTransport, timedOut, TransportError } from "@trigate/upstream/transport/HttpTransport"
import type { TransportResponse } from "@trigate/upstream/transport/HttpTransport"
import * as Upstream from "@trigate/upstream/unstable/Upstream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

/** One request as the upstream saw it: its host, its body, when it began, and whether it was given up. */
export interface Seen {
  readonly host: string
  readonly body: string
  readonly at: number
  readonly timeout: number
  readonly isOnNewConnection: boolean
  isAborted: boolean
}

/** What happens, after so many milliseconds; `silence` lasts for ever. */
export type Reaction = { readonly after?: number; readonly result: TransportResponse | TransportError | "silence" }

export const answer = (status: number, body: string, headers: { readonly [name: string]: string } = {}): Reaction => ({
  result: { status, headers: { "content-type": "application/json", ...headers }, body: Utf8.encode(body) }
})
export const html: Reaction = answer(200, "<html></html>", { "content-type": "text/html" })
export const refused: Reaction = {
  result: new TransportError({ sent: "no", reason: "Connect", detail: "ECONNREFUSED" })
}
export const reset: Reaction = { result: new TransportError({ sent: "maybe", reason: "Broken", detail: "ECONNRESET" }) }
export const silence: Reaction = { result: "silence" }
export const late = (after: number, reaction: Reaction): Reaction => ({ ...reaction, after })

/** The transport, and what it saw. */
export const make = (
  react: (request: { readonly host: string; readonly body: string; readonly nth: number }) => Reaction
) => {
  const seen: Array<Seen> = []
  const layer = Layer.succeed(
    HttpTransport,
    HttpTransport.of({
      send: ({ body, onNewConnection = false, timeout, url }) =>
        Effect.gen(function*() {
          const { host } = new URL(Redacted.value(url))
          const text = new TextDecoder().decode(body)
          const at = yield* Clock.currentTimeMillis
          const nth = seen.filter((each) => each.host === host).length
          const request: Seen = { host, body: text, at, timeout, isOnNewConnection: onNewConnection, isAborted: false }
          seen.push(request)
          const { after = 0, result } = react({ host, body: text, nth })
          const isLate = result === "silence" || after > timeout
          yield* Effect.onInterrupt(Effect.sleep(isLate ? timeout : after), () =>
            Effect.sync(() => {
              request.isAborted = true
            }))
          if (result === "silence" || isLate) return yield* timedOut("maybe", timeout)
          return "sent" in result ? yield* result : result
        })
    })
  )
  return { seen, layer, hosts: () => seen.map(({ host }) => host) }
}

/** Targets at hosts, in order of preference. */
export const targets = (first: string, ...others: ReadonlyArray<string>) => {
  const at = (hosts: ReadonlyArray<string>) =>
    Upstream.targets(Upstream.make("layer2", hosts.map((host) => `http://${host}/KEY-OF-${host}`)), "")
  const [head, ...rest] = at([first, ...others])
  if (head === undefined) throw new Error("no target")
  return [head, ...rest] as const
}
