/** JSON-RPC calls that are sent at most once: each by itself, whatever batch its caller sent it in. */
import { failureOf } from "@trigate/domain/Answer"
import type { CommonFailure } from "@trigate/domain/GatewayError"
import * as JsonRpc from "@trigate/domain/JsonRpc"
import type { RpcAnswer } from "@trigate/domain/JsonRpc"
import { OutcomeUnknown } from "@trigate/domain/UpstreamError"
import type * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Utf8 from "@trigate/domain/Utf8"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { OnceCall } from "./AtMostOnce.ts"
import type { Calls } from "./Calls.ts"
import * as RpcAttemptResult from "./RpcAttemptResult.ts"
import * as RpcIds from "./RpcIds.ts"

/** A call without its bytes. */
export type RpcOnceCall = Pick<OnceCall, "operation" | "targets">

/** Sends one call; `params` is raw JSON text. */
export type Send = (call: RpcOnceCall, params: string) => Effect.Effect<RpcAnswer, CommonFailure | OutcomeUnknown>

const unknown = ({ operation }: RpcOnceCall, answer: UpstreamResponse.UpstreamResponse): OutcomeUnknown =>
  new OutcomeUnknown({
    upstream: answer.upstream,
    advice: operation.advice,
    detail:
      `${answer.upstream} answered HTTP ${answer.status}, which does not say what became of the call: ${answer.excerpt()}`
  })

/** The node's word on the call that was sent with `id`; only a refusal that is one for certain is no unknown outcome. */
const read = (
  call: RpcOnceCall,
  answer: UpstreamResponse.UpstreamResponse,
  id: number
): Effect.Effect<RpcAnswer, CommonFailure | OutcomeUnknown> => {
  if (answer.status >= 500) return Effect.fail(unknown(call, answer))
  if (answer.status === 429) return Effect.fail(failureOf(answer))
  return Result.match(JsonRpc.readAnswer(answer.upstream, answer.text, id), {
    onSuccess: (said) =>
      // which of them answered is not told
      Effect.succeed(call.targets.reduce((left, target) => RpcAttemptResult.concealed(target, left), said)),
    onFailure: () => Effect.fail(answer.status >= 400 ? failureOf(answer) : unknown(call, answer))
  })
}

/** The once calls of JSON-RPC over some calls. */
export const make = (calls: Calls["Service"]): Send => {
  const nextId = RpcIds.make()
  return (call, params) =>
    Effect.suspend(() => {
      const id = nextId()
      const body = Utf8.encode(JsonRpc.requestText(id, call.operation.name, params))
      return Effect.flatMap(calls.once({ ...call, body }, {}), (answer) => read(call, answer, id))
    })
}
