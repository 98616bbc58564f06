/**
 * Reads an upstream's answer to a plain call (`/info`, REST) into the operation's response or into a typed error.
 *
 * The embedded services and the typed client use this same function, so that an answer means the same in both; a problem
 * document of a gateway that stands upstream of this one comes back as the error it was.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { CommonFailure } from "./GatewayError.ts"
import { CommonFailure as CommonFailureSchema, commonFailures } from "./GatewayError.ts"
import * as JsonText from "./JsonText.ts"
import type { AnyCodec, MethodClass, Operation } from "./Operation.ts"
import { InvalidRequest } from "./RequestError.ts"
import { UpstreamMalformed, UpstreamRateLimited, UpstreamUnavailable } from "./UpstreamError.ts"
import type { UpstreamResponse } from "./UpstreamResponse.ts"

/** The error of an answer that is not what the protocol promises; `issue` never holds more than an excerpt of it. */
export const malformed = (upstream: string, issue: string): UpstreamMalformed =>
  new UpstreamMalformed({ upstream, issue, detail: `${upstream} answered what does not decode: ${issue}` })

/** The typed error that a status other than 200 stands for, from the upstream's own words. */
export const failureOfStatus = (answer: UpstreamResponse): CommonFailure => {
  const upstream = answer.upstream
  const words = answer.excerpt()
  const detail = words === ""
    ? `${upstream} answered HTTP ${answer.status}`
    : `${upstream} answered HTTP ${answer.status}: ${words}`
  const retry = answer.retryAfter === undefined ? {} : { retryAfter: answer.retryAfter }
  if (answer.status === 429) return new UpstreamRateLimited({ upstream, detail, ...retry })
  if (answer.status === 400 || answer.status === 422) {
    return new InvalidRequest({ errors: [{ path: [], message: words }], detail })
  }
  return new UpstreamUnavailable({ upstream, attempts: 1, detail, ...retry })
}

/** The error that an answer carries as a problem document, where it carries one. */
const problemReader = <S extends AnyCodec>(schema: S) => {
  const decode = Schema.decodeUnknownOption(schema)
  return (answer: UpstreamResponse): Option.Option<S["Type"]> =>
    answer.isProblem
      ? Option.flatMap(Result.getSuccess(answer.json), (body) => decode(body))
      : Option.none()
}

const commonProblemOf = problemReader(CommonFailureSchema)

/** The typed error of an answer that is no answer of its protocol: the problem that it carries, or what its status says. */
export const failureOf = (answer: UpstreamResponse): CommonFailure =>
  Option.getOrElse(commonProblemOf(answer), () => failureOfStatus(answer))

const formatIssue = (error: Schema.SchemaError): string => error.message.split("\n").slice(0, 3).join(" ").slice(0, 240)

/** Reads a JSON text against a schema; what does not decode is the upstream's fault. */
export const decodeText = <S extends AnyCodec>(schema: S) => {
  const decode = Schema.decodeUnknownEffect(schema)
  return (upstream: string, text: string): Effect.Effect<S["Type"], UpstreamMalformed> =>
    Result.match(JsonText.parse(text), {
      onFailure: (refusal) => Effect.fail(malformed(upstream, refusal.message)),
      onSuccess: (value) => Effect.mapError(decode(value), (error) => malformed(upstream, formatIssue(error)))
    })
}

/** The reader of an operation's answers; build it once, it holds the compiled decoders. */
export const readerOf = <
  Request extends AnyCodec,
  Response extends AnyCodec,
  Failures extends ReadonlyArray<AnyCodec>
>(operation: Operation<string, MethodClass, Request, Response, Failures>) => {
  const problemOf = problemReader(Schema.Union([...commonFailures, ...operation.failures]))
  const decodeResponse = decodeText(operation.response)
  return (
    request: Request["Type"],
    answer: UpstreamResponse
  ): Effect.Effect<Response["Type"], Failures[number]["Type"] | CommonFailure> => {
    const problem = problemOf(answer)
    if (Option.isSome(problem)) return Effect.fail(problem.value)
    if (operation.refusal?.matches(answer) === true) return Effect.fail(operation.refusal.failure(request, answer))
    return answer.status === 200
      ? decodeResponse(answer.upstream, answer.text)
      : Effect.fail(failureOfStatus(answer))
  }
}
