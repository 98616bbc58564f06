/** What the contract's shared middleware does: names the route, and turns every typed error into its problem document. */
import { Problems } from "@trigate/api/Problems"
import { faultsOf, invalidRequest } from "@trigate/domain/Decode"
import type { GatewayError as GatewayErrorType } from "@trigate/domain/GatewayError"
import { GatewayError } from "@trigate/domain/GatewayError"
import * as Effect from "effect/Effect"
import { HttpApiSchemaError } from "effect/http-api/HttpApiError"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as RequestFacts from "./RequestFacts.ts"
import * as Responses from "./Responses.ts"

const isGatewayError = Schema.is(GatewayError)

const slots: { readonly [Kind in HttpApiSchemaError["kind"]]: string } = {
  Params: "path",
  Headers: "headers",
  Query: "query",
  Body: "body",
  Payload: "payload",
  ResponseHeaders: "headers"
}

const typed = (error: unknown): GatewayErrorType | undefined =>
  HttpApiSchemaError.is(error)
    ? invalidRequest(faultsOf(error.cause, [slots[error.kind]]))
    : isGatewayError(error)
    ? error
    : undefined

/** A typed error as the answer of the request, for whoever observes it too. */
export const answer = (error: GatewayErrorType): Effect.Effect<HttpServerResponse> =>
  Effect.map(RequestFacts.CurrentRequestFacts, (facts) => {
    facts.error = error._tag
    return Responses.problem(error)
  })

/** The middleware of every group of the contract. */
export const layer: Layer.Layer<Problems> = Layer.succeed(
  Problems,
  (httpEffect, { endpoint, group }) =>
    RequestFacts.named(
      `${group.identifier}.${endpoint.identifier}`,
      httpEffect.pipe(Effect.catch((error) => {
        const problem = typed(error)
        return problem === undefined ? Effect.fail(error) : answer(problem)
      }))
    )
)
