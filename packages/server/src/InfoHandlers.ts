/** `POST /info`. */
import { decodeValue, invalidRequest, parseRequest } from "@trigate/domain/Decode"
import { infoOperations, passthroughQuery, passthroughQueryOf } from "@trigate/domain/InfoOperations"
import type { Surface } from "@trigate/domain/Operation"
import type { InvalidRequest } from "@trigate/domain/RequestError"
import { Info } from "@trigate/trading/Info"
import type { InfoCall } from "@trigate/trading/Info"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Predicate from "effect/Predicate"
import { RelayInfo } from "./RelayInfo.ts"
import * as RequestBody from "./RequestBody.ts"
import { CurrentRequestFacts, noteRelayed } from "./RequestFacts.ts"
import * as Responses from "./Responses.ts"

const { candleSnapshot, spotMeta } = infoOperations
const types = [spotMeta.name, candleSnapshot.name].join(", ")
const unknownType = () => invalidRequest([{ path: ["type"], message: `Expected one of ${types}` }])

const decodeSpotMeta = decodeValue(spotMeta.request)
const decodeCandleSnapshot = decodeValue(candleSnapshot.request)
const decodeFurther = decodeValue(passthroughQuery.request)

/** The call that a body asks for. */
const callOf = (
  value: unknown,
  body: Uint8Array,
  surface: Surface,
  relaysFurther: boolean
): Effect.Effect<InfoCall, InvalidRequest> => {
  const type = Predicate.hasProperty(value, "type") ? value.type : undefined
  if (type === spotMeta.name) {
    return Effect.map(decodeSpotMeta(value), (request) => ({ operation: spotMeta, request, body, surface }))
  }
  if (type === candleSnapshot.name) {
    return Effect.map(decodeCandleSnapshot(value), (request) => ({ operation: candleSnapshot, request, body, surface }))
  }
  return relaysFurther
    ? Effect.map(decodeFurther(value), (request) => ({
      operation: passthroughQueryOf(request.type, surface),
      request,
      body,
      surface
    }))
    : Effect.fail(unknownType())
}

/** The route's handler, shared with the keyed one. */
export const route = Effect.gen(function*() {
  const info = yield* Info
  const relaysFurther = yield* RelayInfo
  return Effect.fnUntraced(function*(request: HttpServerRequest.HttpServerRequest, surface: Surface) {
    const body = yield* RequestBody.bytes(request)
    const value = yield* parseRequest(yield* RequestBody.textOf(body))
    const facts = yield* CurrentRequestFacts
    const call = yield* callOf(value, body, surface, relaysFurther)
    const answer = yield* info.relay(call)
    noteRelayed(facts, call.operation.name, answer)
    return Responses.relayed(answer)
  })
})
