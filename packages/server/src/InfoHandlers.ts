/** `POST /info`. */
import { decodeValue, invalidRequest, parseRequest } from "@trigate/domain/Decode"
import { infoOperations } from "@trigate/domain/InfoOperations"
import type { Surface } from "@trigate/domain/Operation"
import { Info } from "@trigate/trading/Info"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Predicate from "effect/Predicate"
import * as RequestBody from "./RequestBody.ts"
import { CurrentRequestFacts, noteAge } from "./RequestFacts.ts"
import * as Responses from "./Responses.ts"

const types = Object.keys(infoOperations).join(", ")
const unknownType = () => invalidRequest([{ path: ["type"], message: `Expected one of ${types}` }])

const decodeSpotMeta = decodeValue(infoOperations.spotMeta.request)
const decodeCandleSnapshot = decodeValue(infoOperations.candleSnapshot.request)

const relayOf = (info: Info["Service"], value: unknown, body: Uint8Array, surface: Surface) => {
  const { candleSnapshot, spotMeta } = infoOperations
  const type = Predicate.hasProperty(value, "type") ? value.type : undefined
  if (type === spotMeta.name) {
    return Effect.flatMap(
      decodeSpotMeta(value),
      (request) => info.relay({ operation: spotMeta, request, body, surface })
    )
  }
  if (type === candleSnapshot.name) {
    return Effect.flatMap(
      decodeCandleSnapshot(value),
      (request) => info.relay({ operation: candleSnapshot, request, body, surface })
    )
  }
  return Effect.fail(unknownType())
}

/** The route's handler, shared with the keyed one. */
export const route = Effect.map(
  Info,
  (info) =>
    Effect.fnUntraced(function*(request: HttpServerRequest.HttpServerRequest, surface: Surface) {
      const body = yield* RequestBody.bytes(request)
      const value = yield* parseRequest(yield* RequestBody.textOf(body))
      const facts = yield* CurrentRequestFacts
      const answer = yield* relayOf(info, value, body, surface)
      const operation = Predicate.hasProperty(value, "type") && Predicate.isString(value.type)
        ? value.type
        : "unsupported"
      facts.operations.push({ operation, outcome: answer.status === 200 ? "ok" : "upstream_error" })
      noteAge(facts, answer.age)
      return Responses.relayed(answer)
    })
)
