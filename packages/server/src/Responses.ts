/** Answers that HttpApiBuilder does not encode: relayed upstream responses, JSON texts and problem documents. */
import type { GatewayError as GatewayErrorType } from "@trigate/domain/GatewayError"
import { GatewayError } from "@trigate/domain/GatewayError"
import * as Json from "@trigate/domain/Json"
import type { UpstreamResponse } from "@trigate/domain/UpstreamResponse"
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as ProblemDetails from "effect/http/ProblemDetails"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { CurrentRequestFacts, noteAge } from "./RequestFacts.ts"

/** An operation's upstream response as it came: status, content type, bytes. Notes the operation for log and metrics. */
export const relayed = (
  operation: string,
  { age, body, contentType, retryAfter, status }: UpstreamResponse,
  headers: { readonly [name: string]: string } = {}
): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Effect.map(CurrentRequestFacts, (facts) => {
    facts.operations.push({ operation, outcome: status === 200 ? "ok" : "upstream_error" })
    noteAge(facts, age)
    return HttpServerResponse.uint8Array(body, {
      status,
      contentType,
      headers: retryAfter === undefined ? headers : { ...headers, "retry-after": String(retryAfter) }
    })
  })

/** A JSON text that the gateway wrote. */
export const json = (body: string, status = 200): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(body, { status, contentType: "application/json" })

const encode = Schema.encodeResult(GatewayError)

const retryAfterOf = (error: GatewayErrorType): { readonly [name: string]: string } =>
  "retryAfter" in error && error.retryAfter !== undefined ? { "retry-after": String(error.retryAfter) } : {}

/** The problem document of a typed error, with `Retry-After` where the error knows it. */
export const problem = (error: GatewayErrorType): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(Json.stringify(Result.getOrUndefined(encode(error))), {
    status: error.status,
    contentType: ProblemDetails.contentType,
    headers: retryAfterOf(error)
  })

/** Answers the request with a typed error, and notes the error for the log and the metrics. */
export const answerProblem = (error: GatewayErrorType): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Effect.map(CurrentRequestFacts, (facts) => {
    facts.error = error._tag
    return problem(error)
  })

/** A problem document without a type of its own: no such route, a wrong method, a fault of the gateway. */
export const plainProblem = (
  status: number,
  title: string,
  detail: string,
  headers: { readonly [name: string]: string } = {}
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(JSON.stringify({ type: ProblemDetails.blankType, title, status, detail }), {
    status,
    contentType: ProblemDetails.contentType,
    headers
  })
