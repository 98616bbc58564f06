/**
 * Reads a response into an operation's domain type or into a typed error.
 *
 * The embedded services and the typed client use these functions, so that a response means the same to both. A problem
 * document of a gateway upstream comes back as the error that it was.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { CommonFailure } from "../GatewayError.ts"
import { CommonFailure as CommonFailureSchema, commonFailures } from "../GatewayError.ts"
import type { Json } from "../Json.ts"
import type { AnyCodec, MethodClass, Operation } from "../Operation.ts"
import { InvalidRequest } from "../RequestError.ts"
import { UpstreamMalformed, UpstreamRateLimited, UpstreamUnavailable } from "../UpstreamError.ts"
import type { UpstreamResponse } from "../UpstreamResponse.ts"

/** The error of a response that breaks its protocol; `issue` quotes at most an excerpt. */
export const malformed = (upstream: string, issue: string): UpstreamMalformed =>
  new UpstreamMalformed({ upstream, issue, detail: `${upstream} answered what does not decode: ${issue}` })

/** The typed error that a status other than 200 stands for, with the upstream's own words. */
export const failureOfStatus = (response: UpstreamResponse): CommonFailure => {
  const { retryAfter, status, upstream } = response
  const words = response.excerpt()
  const detail = words === "" ? `${upstream} answered HTTP ${status}` : `${upstream} answered HTTP ${status}: ${words}`
  const retry = retryAfter === undefined ? {} : { retryAfter }
  if (status === 429) return new UpstreamRateLimited({ upstream, detail, ...retry })
  if (status === 400 || status === 422) {
    return new InvalidRequest({ errors: [{ path: [], message: words }], detail })
  }
  return new UpstreamUnavailable({ upstream, attempts: 1, detail, ...retry })
}

/** Reads the typed error of a problem document; none where the response is not one. */
export const problemReader = <S extends AnyCodec>(schema: S) => {
  const decode = Schema.decodeUnknownOption(schema)
  return (response: UpstreamResponse): Option.Option<S["Type"]> =>
    response.isProblem
      ? Option.flatMap(Result.getSuccess(response.json.value), (body) => decode(body))
      : Option.none()
}

const commonProblemOf = problemReader(CommonFailureSchema)

/** The typed error of a response that does not follow its protocol: its problem document, or what its status says. */
export const failureOf = (response: UpstreamResponse): CommonFailure =>
  Option.getOrElse(commonProblemOf(response), () => failureOfStatus(response))

const formatIssue = (error: Schema.SchemaError): string => error.message.split("\n").slice(0, 3).join(" ").slice(0, 240)

/** Reads JSON against a schema; fails with `UpstreamMalformed`. */
export const decodeJson = <S extends AnyCodec>(schema: S) => {
  const decode = Schema.decodeUnknownEffect(schema)
  return (upstream: string, json: Json): Effect.Effect<S["Type"], UpstreamMalformed> =>
    Result.match(json.value, {
      onFailure: (refusal) => Effect.fail(malformed(upstream, refusal.message)),
      onSuccess: (value) => Effect.mapError(decode(value), (error) => malformed(upstream, formatIssue(error)))
    })
}

/** The reader of an operation's responses over plain HTTP; build it once, since it holds compiled decoders. */
export const readerOf = <
  Request extends AnyCodec,
  Response extends AnyCodec,
  Failures extends ReadonlyArray<AnyCodec>
>(operation: Operation<string, MethodClass, Request, Response, Failures>) => {
  const problemOf = problemReader(Schema.Union([...commonFailures, ...operation.failures]))
  const decodeResponse = decodeJson(operation.response)
  return (
    request: Request["Type"],
    response: UpstreamResponse
  ): Effect.Effect<Response["Type"], Failures[number]["Type"] | CommonFailure> => {
    const problem = problemOf(response)
    if (Option.isSome(problem)) return Effect.fail(problem.value)
    if (operation.refusal?.matches(response) === true) return Effect.fail(operation.refusal.failure(request, response))
    return response.status === 200
      ? decodeResponse(response.upstream, response.json)
      : Effect.fail(failureOfStatus(response))
  }
}
