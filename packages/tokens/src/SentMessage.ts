/** What the token chain's answer says about a message that was sent. */
import type { OnceOperation } from "@trigate/domain/Operation"
import * as TokenRpc from "@trigate/domain/TokenRpc"
import { OutcomeUnknown } from "@trigate/domain/UpstreamError"
import type * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Effect from "effect/Effect"

const unknown = ({ advice }: Pick<OnceOperation, "advice">, answer: UpstreamResponse.UpstreamResponse) =>
  new OutcomeUnknown({
    upstream: answer.upstream,
    advice,
    detail:
      `${answer.upstream} answered HTTP ${answer.status}, which does not say what became of the message: ${answer.excerpt()}`
  })

/** A contract or a validator refused the message: servers tell it with 500, as they tell faults of their own. */
const isRefusal = (message: string): boolean => /external message/iu.test(message)

/**
 * Reads the answer; only a refusal that is one for certain is no unknown outcome.
 *
 * A server's time-out comes after it has passed the message on, and its other faults do not say.
 */
export const read = (
  operation: Pick<OnceOperation, "advice">,
  answer: UpstreamResponse.UpstreamResponse
): Effect.Effect<TokenRpc.TokenRpcAnswer, OutcomeUnknown> =>
  Effect.matchEffect(
    TokenRpc.readAnswer(answer.upstream, answer.status, answer.text, answer.retryAfter),
    {
      onFailure: () => Effect.fail(unknown(operation, answer)),
      onSuccess: (said) =>
        said._tag === "Error" && said.data === undefined && (said.code >= 500 || answer.status >= 500) &&
          !isRefusal(said.message)
          ? Effect.fail(unknown(operation, answer))
          : Effect.succeed(said)
    }
  )
