/** Reads exchanges of JSON-RPC calls: single ones, and batches whose answers are matched by id. */
import { failureOf } from "@trigate/domain/Answer"
import type { CommonFailure } from "@trigate/domain/GatewayError"
import * as JsonRpc from "@trigate/domain/JsonRpc"
import type { RpcAnswer } from "@trigate/domain/JsonRpc"
import * as JsonText from "@trigate/domain/JsonText"
import { UpstreamUnavailable } from "@trigate/domain/UpstreamError"
import type { UpstreamMalformed } from "@trigate/domain/UpstreamError"
import type * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Answers from "./Answers.ts"
import type { AttemptResult } from "./AttemptResult.ts"
import { answered, foreignVerdict, mismatched, refused, retryable, unreadable } from "./AttemptResult.ts"
import type { Target } from "./Upstream.ts"

/** What a batch came to: a reading for each of its calls, or one object from a node that takes no batches. */
export type BatchAnswer =
  | { readonly _tag: "Each"; readonly answers: ReadonlyArray<Result.Result<RpcAnswer, UpstreamMalformed>> }
  | { readonly _tag: "NoBatches" }

/** An answer without the endpoint key that its error may quote. */
export const concealed = (target: Target, answer: RpcAnswer): RpcAnswer =>
  answer._tag === "Result" ? answer : {
    ...answer,
    message: Answers.concealed(target, answer.message),
    error: Answers.concealed(target, answer.error)
  }

/** A failure that says how often it was tried for. */
const after = (failure: CommonFailure) => (attempts: number): CommonFailure => {
  if (failure._tag !== "UpstreamUnavailable") return failure
  const { detail, retryAfter, upstream } = failure
  return new UpstreamUnavailable({
    upstream,
    attempts,
    ...(detail === undefined ? {} : { detail }),
    ...(retryAfter === undefined ? {} : { retryAfter })
  })
}

/** An answer without a JSON-RPC body to it: what its status says. */
const ofStatus = (answer: UpstreamResponse.UpstreamResponse): AttemptResult<never, CommonFailure> => {
  const failure = failureOf(answer)
  const { retryAfter, status } = answer
  if (status === 429) return retryable("rate_limited", () => failure, { retryAfter })
  return status >= 500 ? retryable("server_fault", after(failure), { retryAfter }) : refused(failure)
}

const unread = (upstream: string, text: string, { issue }: UpstreamMalformed) =>
  JsonText.isJson(text) ? mismatched(upstream, issue) : unreadable(upstream, issue)

/** Reads the answer to the call that was sent with `id`; nodes send JSON-RPC errors with any status. */
export const ofCall =
  (id: number) =>
  (answer: UpstreamResponse.UpstreamResponse, target: Target): AttemptResult<RpcAnswer, CommonFailure> => {
    const verdict = foreignVerdict(answer)
    if (verdict !== undefined) return verdict
    if (answer.status === 429) return ofStatus(answer)
    const text = answer.text
    const read = JsonRpc.readAnswer(answer.upstream, text, id)
    if (Result.isFailure(read)) {
      return answer.status === 200 ? unread(answer.upstream, text, read.failure) : ofStatus(answer)
    }
    const rpcAnswer = concealed(target, read.success)
    if (rpcAnswer._tag === "Error" && JsonRpc.isRateLimit(rpcAnswer.code)) {
      return retryable("rate_limited", () => failureOf(answer), { answer: rpcAnswer, retryAfter: answer.retryAfter })
    }
    return answer.status >= 500
      ? retryable("declined", after(failureOf(answer)), { answer: rpcAnswer })
      : answered(rpcAnswer)
  }

/** An id that no request has. */
const nobodys = 0

/** Reads the answer to a batch that was sent with `ids`. */
export const ofBatch =
  (ids: ReadonlyArray<number>) =>
  (answer: UpstreamResponse.UpstreamResponse, target: Target): AttemptResult<BatchAnswer, CommonFailure> => {
    const verdict = foreignVerdict(answer)
    if (verdict !== undefined) return verdict
    if (answer.status === 429 || answer.status >= 500) return ofStatus(answer)
    const text = answer.text
    const read = JsonRpc.readBatch(answer.upstream, text, ids)
    if (Result.isSuccess(read)) {
      const answers = read.success.map((each) => Result.map(each, (one) => concealed(target, one)))
      const batch: BatchAnswer = { _tag: "Each", answers }
      const broken = answers.find(Result.isFailure)
      return broken === undefined ? answered(batch) : retryable("mismatched", () => broken.failure, { answer: batch })
    }
    const refusal = Option.getOrUndefined(Result.getSuccess(JsonRpc.readAnswer(answer.upstream, text, nobodys)))
    if (refusal?._tag === "Error" && JsonRpc.isRateLimit(refusal.code)) {
      const each = Result.succeed(concealed(target, refusal))
      return retryable("rate_limited", () => failureOf(answer), {
        answer: { _tag: "Each", answers: ids.map(() => each) },
        retryAfter: answer.retryAfter
      })
    }
    // one object for all of them, or a refusal of the request as such: the node is well, and takes no batches
    if (text.trimStart().startsWith("{") || answer.status >= 400) {
      return retryable("declined", () => read.failure, { answer: { _tag: "NoBatches" } })
    }
    return unread(answer.upstream, text, read.failure)
  }
