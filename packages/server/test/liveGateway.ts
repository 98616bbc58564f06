/** A live gateway in front of four local upstreams that answer as told and keep what they saw. */
import type * as GatewayServer from "@trigate/server/GatewayServer"
import type { Environment, Gateway } from "@trigate/testing/Gateway"
import { gateway } from "@trigate/testing/Gateway"
import type { RecordingUpstream, Reply, Seen } from "@trigate/testing/RecordingUpstream"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"

/** The endpoint keys of the configured upstreams: secrets that no caller may see. */
export const upstreamKeys = {
  node: "node-secret-5d0c1f",
  tokens: "tokens-secret-77ab2e",
  layer2: "layer2-secret-90fe43"
} as const

export interface LiveGateway extends Gateway {
  readonly api: RecordingUpstream
  readonly node: RecordingUpstream
  readonly tokens: RecordingUpstream
  readonly layer2: RecordingUpstream
  /** Everything that any of them saw, as `label METHOD path`. */
  readonly seen: () => ReadonlyArray<string>
}

type Respond = (request: Seen) => Reply

/** Responds with 500 to a request that no case expects. */
export const unexpected: Respond = () => ({ status: 500, body: `{"unexpected":true}` })

/** What each upstream answers with; one that is not named answers 500. */
export interface Responses {
  readonly api?: Respond
  readonly node?: Respond
  readonly tokens?: Respond
  readonly layer2?: Respond
}

/** Starts the gateway over all four upstreams; `environment` adds settings or replaces addresses. See `gateway` for `lateness`. */
export const liveGateway = Effect.fnUntraced(function*(
  responses: Responses = {},
  environment: Environment = {},
  lateness?: Effect.Effect<number>,
  options?: GatewayServer.Options
) {
  const api = yield* recordingUpstream(responses.api ?? unexpected)
  const node = yield* recordingUpstream(responses.node ?? unexpected)
  const tokens = yield* recordingUpstream(responses.tokens ?? unexpected)
  const layer2 = yield* recordingUpstream(responses.layer2 ?? unexpected)
  const started = yield* gateway(
    {
      TRIGATE_TRADING_API_URL: api.url,
      TRIGATE_TRADING_NODE_URL: `${node.url}/${upstreamKeys.node}`,
      TRIGATE_TOKEN_CHAIN_URL: `${tokens.url}/${upstreamKeys.tokens}`,
      TRIGATE_LAYER2_URL: `${layer2.url}/${upstreamKeys.layer2}`,
      ...environment
    },
    lateness,
    options
  )
  const all = { api, node, tokens, layer2 }
  const live: LiveGateway = {
    ...started,
    ...all,
    seen: () =>
      Object.entries(all).flatMap(([label, upstream]) =>
        upstream.seen.map(({ method, path }) => `${label} ${method} ${path}`)
      )
  }
  return live
})
