/** The probe of an address: a cheap call that every healthy address of its upstream serves, independent of callers. */
import { Quantity } from "@trigate/domain/encoding/Hex"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as JsonRpc from "@trigate/domain/operations/JsonRpc"
import { foreign } from "@trigate/domain/operations/Protocol"
import type { UpstreamResponse } from "@trigate/domain/operations/UpstreamResponse"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { HttpTransport, TransportError } from "../transport/HttpTransport.ts"
import { receive } from "../transport/ReceivedResponse.ts"
import type { Target, UpstreamLabel } from "../Upstream.ts"
import { meters } from "./Attempt.ts"
import type { AttemptOutcome } from "./Attempt.ts"

/** The result of a probe. */
export interface Probed {
  readonly outcome: AttemptOutcome
  /**
   * Whether the address itself responded. A response with a 4xx status counts, a response with a 5xx status does not.
   */
  readonly passed: boolean
  /** The chain ID that an EVM node returned, if any. */
  readonly chainId: bigint | undefined
}

const rpc = (method: string, params: string) => Utf8.encode(JsonRpc.requestText(1, method, params))

const chainId = rpc("eth_chainId", "[]")

/**
 * The probe request of each upstream. Nodes and the official API both serve `exchangeStatus`, which costs 2 units of
 * weight.
 */
const questions: { readonly [L in UpstreamLabel]: { readonly path: string; readonly body: Uint8Array } } = {
  "trading-api": { path: "/info", body: Utf8.encode(`{"type":"exchangeStatus"}`) },
  "trading-node": { path: "/evm", body: chainId },
  "token-chain": { path: "/api/v2/jsonRPC", body: rpc("getMasterchainInfo", "{}") },
  layer2: { path: "", body: chainId }
}

const cost = { weight: 2, requestUnits: 1 }
const TIMEOUT = 5000
const MAX_ANSWER_BYTES = 64 * 1024

const decodeChainId = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ result: Quantity })))

const probeOutcome = (answer: UpstreamResponse): AttemptOutcome => {
  if (answer.status === 429) return "rate_limited"
  if (answer.status >= 500) return "server_fault"
  if (foreign(answer) !== undefined) return "malformed"
  if (answer.status !== 200) return "refused"
  return Result.isSuccess(answer.json.value) ? "ok" : "malformed"
}

const broken = ({ reason, sent }: TransportError): AttemptOutcome => {
  if (sent === "no") return "not_sent"
  if (reason === "Timeout") return "timeout"
  return reason === "Broken" ? "broken" : "malformed"
}

const soundOutcomes: ReadonlySet<AttemptOutcome> = new Set(["ok", "refused", "rate_limited"])

/**
 * Makes probes over a transport. Each probe ends within 5 seconds, is counted as operation `probe`, and does not use
 * the rate limit.
 */
export const make = (transport: HttpTransport["Service"]) => {
  const findMeter = meters()
  /**
   * Probes an address. If `onNewConnection` is set, the probe does not use pooled connections: callers' slow queries
   * may occupy all of them although the address is healthy.
   */
  return (target: Target, onNewConnection: boolean): Effect.Effect<Probed> =>
    Effect.withFiber((fiber) => {
      const { body, path } = questions[target.label]
      const clock = fiber.getRef(Clock.Clock)
      const start = clock.currentTimeMillisUnsafe()
      const count = (outcome: AttemptOutcome) => {
        const took = clock.currentTimeMillisUnsafe() - start
        findMeter(target.label, "probe").attempted(fiber.context, cost, outcome, took, 0)
      }
      const sent = transport.send({
        method: "POST",
        url: Redacted.make(`${Redacted.value(target.base)}${path}`, { label: target.label }),
        headers: { accept: "application/json", "content-type": "application/json" },
        body,
        maxAnswerBytes: MAX_ANSWER_BYTES,
        timeout: TIMEOUT,
        onNewConnection
      })
      return Effect.match(sent, {
        onFailure: (error) => {
          const outcome = broken(error)
          count(outcome)
          return { outcome, passed: false, chainId: undefined }
        },
        onSuccess: (response) => {
          const answer = receive(target, response)
          const outcome = probeOutcome(answer)
          count(outcome)
          const decoded = body === chainId ? decodeChainId(answer.text) : Option.none()
          return { outcome, passed: soundOutcomes.has(outcome), chainId: Option.getOrUndefined(decoded)?.result }
        }
      })
    })
}
