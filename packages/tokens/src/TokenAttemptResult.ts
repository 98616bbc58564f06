/** Reads exchanges with the token chain's servers, which have an envelope of their own for what they answer. */
import * as JsonText from "@trigate/domain/JsonText"
import type { ReadFailure } from "@trigate/domain/TransportFailure"
import type * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as AttemptResult from "@trigate/upstream/AttemptResult"
import type { Target } from "@trigate/upstream/Upstream"

const around: ReadonlySet<string> = new Set(["ok", "id", "jsonrpc", "@extra"])

/** Whether a text is an object that says more than that it is one. */
const saysSomething = (members: ReadonlyMap<string, unknown>): boolean =>
  [...members.keys()].some((name) => !around.has(name))

/** A failure in the servers' own words: they answer what a caller asked wrongly with 500 and 503 as well. */
const isFailure = (text: string, members: ReadonlyMap<string, JsonText.Span>): boolean => {
  const ok = members.get("ok")
  return ok !== undefined && text.slice(ok.start, ok.end) === "false"
}

/** The verdict on an answer of `getTokenData` or of the JSON-RPC route. */
export const of = (
  answer: UpstreamResponse.UpstreamResponse,
  target: Target
): AttemptResult.AttemptResult<UpstreamResponse.UpstreamResponse, ReadFailure> => {
  const verdict = AttemptResult.ofPlain({})(answer, target)
  if (verdict._tag === "Answered" && answer.status === 200) {
    const text = answer.text
    const members = JsonText.members(text)
    if (members.size === 0) return AttemptResult.mismatched(answer.upstream, "Expected an object")
    return saysSomething(members) || isFailure(text, members)
      ? verdict
      : AttemptResult.mismatched(answer.upstream, "Expected ok with a result, or an error")
  }
  if (verdict._tag !== "Retryable" || verdict.fault !== "server_fault" || verdict.answer === undefined) return verdict
  const text = answer.text
  return isFailure(text, JsonText.members(text)) ? { ...verdict, fault: "declined", retryAfter: undefined } : verdict
}
