/** `POST /exchange` and `POST /exchange/inspect`. */
import { invalidRequest } from "@trigate/domain/Decode"
import { Address } from "@trigate/domain/Hex"
import type { Surface } from "@trigate/domain/Operation"
import type { InvalidRequest } from "@trigate/domain/RequestError"
import { signerHeader } from "@trigate/domain/UpstreamResponse"
import { Exchange } from "@trigate/trading/Exchange"
import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Schema from "effect/Schema"
import { EncodedApi } from "./EncodedApi.ts"
import * as RequestBody from "./RequestBody.ts"
import { CurrentRequestFacts, noteRelayed } from "./RequestFacts.ts"
import * as Responses from "./Responses.ts"

const expectedSignerHeader = "x-trigate-expected-signer"

const decodeAddress = Schema.decodeUnknownEffect(Address)

const namedIn = ({ headers, url }: HttpServerRequest.HttpServerRequest): string | undefined =>
  headers[expectedSignerHeader] ?? new URLSearchParams(/\?(.*)$/u.exec(url)?.[1]).get(expectedSignerHeader) ?? undefined

/** Whom the caller names as the signer, in a header or in the query; what is no address is refused rather than ignored. */
const expectedSigner = (
  request: HttpServerRequest.HttpServerRequest
): Effect.Effect<Address | undefined, InvalidRequest> => {
  const named = namedIn(request)
  return named === undefined ? Effect.undefined : Effect.mapError(
    decodeAddress(named),
    () => invalidRequest([{ path: [expectedSignerHeader], message: "Expected a 20-byte address in 0x hex" }])
  )
}

/** The route's handler, shared with the keyed one. */
export const route = Effect.map(
  Exchange,
  (exchange) =>
    Effect.fnUntraced(function*(request: HttpServerRequest.HttpServerRequest, surface: Surface) {
      const body = yield* RequestBody.bytes(request)
      const facts = yield* CurrentRequestFacts
      const expected = yield* expectedSigner(request)
      const relayed = yield* exchange.relay({
        body,
        surface,
        ...(expected === undefined ? {} : { expectedSigner: expected })
      })
      noteRelayed(facts, relayed.operation, relayed.answer)
      return Responses.relayed(relayed.answer, {
        ...(relayed.signer === undefined ? {} : { [signerHeader]: relayed.signer }),
        ...(relayed.warnings.length === 0 ? {} : { "x-trigate-warning": relayed.warnings.join("; ") })
      })
    })
)

export const layer = HttpApiBuilder.group(
  EncodedApi,
  "exchange",
  Effect.fnUntraced(function*(handlers) {
    const exchange = yield* Exchange
    return handlers.handleRaw("inspect", ({ request }) =>
      Effect.gen(function*() {
        const body = yield* RequestBody.bytes(request)
        return yield* exchange.inspect(body, yield* expectedSigner(request))
      }))
  })
)
