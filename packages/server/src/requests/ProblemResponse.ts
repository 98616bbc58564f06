/**
 * Encodes problem documents (RFC 9457), with the JSON fields in which clients of the venue and of the token chain
 * expect an error.
 */
import * as Json from "@trigate/domain/encoding/Json"
import type { GatewayError as GatewayErrorType } from "@trigate/domain/errors/GatewayError"
import { GatewayError } from "@trigate/domain/errors/GatewayError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as ProblemDetails from "effect/http/ProblemDetails"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { CurrentRequestRecord } from "./RequestRecord.ts"

const encode = Schema.encodeResult(GatewayError)

const encodeProblem = (error: GatewayErrorType): object => Result.getOrElse(encode(error), () => ({}))

/**
 * Marks a request as not executed, so that a load balancer can send it to another replica even if it is not idempotent.
 */
const tryAnother = { "x-trigate-try-another": "true" }

/**
 * Returns the response headers for an error: when to retry (`Retry-After`), whether another replica can be tried, and
 * how to authenticate (RFC 9110, section 11.6.1).
 */
export const problemHeaders = (error: GatewayErrorType): { readonly [name: string]: string } => {
  if (error._tag === "Unauthorized") return { "www-authenticate": "Bearer" }
  return {
    ...("retryAfter" in error && error.retryAfter !== undefined ? { "retry-after": String(error.retryAfter) } : {}),
    ...(error._tag === "Overloaded" || error._tag === "UpstreamUnavailable" ? tryAnother : {})
  }
}

/**
 * Returns the JSON fields in which clients of the venue and of the token chain expect an error.
 *
 * Without `code`, the venue's Python SDK raises a `KeyError`, and its Go SDK prints only "API error 0". If the body has
 * no string field `error`, ccxt retries after most statuses and treats some statuses as success. A refusal for which a
 * retry is useless therefore has the field `error`.
 */
const nativeMembers = (path: string, status: number, message: string, isFinal: boolean): object => {
  if (path.includes("/api/v2/")) return { ok: false, error: message, code: status }
  if (!/\/(?:exchange|info)$/u.test(path)) return {}
  return { code: status, msg: message, ...(isFinal ? { error: message } : {}) }
}

// excludes 401, because clients recognize it by the status alone
const isFinalStatus = (status: number): boolean => status >= 400 && status < 500 && ![401, 408, 429].includes(status)

const isFinalError = ({ group, status }: GatewayErrorType): boolean =>
  (group === "fix-request" || group === "fix-setup") && status !== 401

/** Returns the problem document of a typed error on a path, with its headers. */
export const problem = (error: GatewayErrorType, path: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(
    Json.stringify({
      ...encodeProblem(error),
      ...nativeMembers(path, error.status, error.message, isFinalError(error))
    }),
    {
      status: error.status,
      contentType: ProblemDetails.contentType,
      headers: problemHeaders(error)
    }
  )

/** Responds to a request with a typed error, and records the error for the log and the metrics. */
export const answerProblem = (
  error: GatewayErrorType,
  path: string
): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Effect.contextWith((context) => {
    Context.get(context, CurrentRequestRecord).error = error._tag
    return Exit.succeed(problem(error, path))
  })

/**
 * Makes a problem document of the type `about:blank`: for an unknown route, a wrong method, or a defect of the gateway.
 */
export const plainProblem = (
  status: number,
  title: string,
  detail: string,
  { headers = {}, path = "" }: { readonly headers?: { readonly [name: string]: string }; readonly path?: string } = {}
): HttpServerResponse.HttpServerResponse => {
  const native = nativeMembers(path, status, detail, isFinalStatus(status))
  const members = { type: ProblemDetails.blankType, title, status, detail, ...native }
  return HttpServerResponse.text(JSON.stringify(members), { status, contentType: ProblemDetails.contentType, headers })
}
