/** The routes that relay a body or a query and are not JSON-RPC: `POST /exchange`, `POST /info` and the token chain's REST. */
import { Address } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import type { InvalidRequest } from "@trigate/domain/errors/RequestError"
import { UnsupportedMethod } from "@trigate/domain/errors/RequestError"
import * as InfoProtocol from "@trigate/domain/info/InfoProtocol"
import { invalidRequest, needOf, notPermitted, parseRequest, permitted } from "@trigate/domain/operations/Operation"
import type { Surface } from "@trigate/domain/operations/Operation"
import { isAnswer } from "@trigate/domain/operations/Start"
import { signerHeader } from "@trigate/domain/operations/UpstreamResponse"
import type { UpstreamResponse } from "@trigate/domain/operations/UpstreamResponse"
import { tokenRestPosts, tokenRestReads } from "@trigate/domain/tokens/TokenOperations"
import type { TokenRpcOperation, TokenSendOperation } from "@trigate/domain/tokens/TokenOperations"
import { TokenChain } from "@trigate/tokens/TokenChain"
import type { RestCall } from "@trigate/tokens/TokenChain"
import { Exchange } from "@trigate/trading/Exchange"
import { Info } from "@trigate/trading/Info"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { constVoid } from "effect/Function"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Schema from "effect/Schema"
import type { PlainRoute } from "../requests/FastLane.ts"
import * as HttpBody from "../requests/HttpBody.ts"
import { isQueryName } from "../requests/RequestCaller.ts"
import { CurrentRequestFacts, refusalOf } from "../requests/RequestFacts.ts"
import type { RequestFacts } from "../requests/RequestFacts.ts"

const expectedSignerHeader = "x-trigate-expected-signer"

const decodeAddress = Schema.decodeUnknownEffect(Address)

const namedIn = ({ headers, url }: HttpServerRequest): string | undefined =>
  headers[expectedSignerHeader] ?? new URLSearchParams(/\?(.*)$/u.exec(url)?.[1]).get(expectedSignerHeader) ?? undefined

/**
 * The signer that the caller expects, from the header or query parameter `x-trigate-expected-signer`.
 *
 * A value that is no address is refused rather than ignored.
 */
export const expectedSigner = (request: HttpServerRequest): Effect.Effect<Address | undefined, InvalidRequest> => {
  const named = namedIn(request)
  return named === undefined ? Effect.undefined : Effect.mapError(
    decodeAddress(named),
    () => invalidRequest([{ path: [expectedSignerHeader], message: "Expected a 20-byte address in 0x hex" }])
  )
}

/** The handler of `/exchange`, and how an action starts whose caller names no signer; a path is that of the contract. */
export const exchange = Effect.map(Exchange, ({ relay }) => {
  const relayed = Effect.fnUntraced(
    function*(facts: RequestFacts, body: Uint8Array, surface: Surface, expected?: Address) {
      const { answer, operation, signer, warnings } = yield* relay({
        body,
        surface,
        ...(expected === undefined ? {} : { expectedSigner: expected }),
        ...(facts.id === undefined ? {} : { requestId: facts.id })
      })
      return HttpBody.relayedIn(facts, operation, answer, {
        ...(signer === undefined ? {} : { [signerHeader]: signer }),
        ...(warnings.length === 0 ? {} : { "x-trigate-warning": warnings.join("; ") })
      })
    }
  )
  const handle = Effect.fnUntraced(function*(request: HttpServerRequest, surface: Surface) {
    const facts = yield* CurrentRequestFacts
    const refusal = refusalOf(facts)
    if (refusal !== undefined) return yield* refusal
    const body = yield* HttpBody.bytes(request, HttpBody.signedLimit)
    return yield* relayed(facts, body, surface, yield* expectedSigner(request))
  })
  const startOn = (surface: Surface): PlainRoute["start"] => (body, facts, path) => (_scene, done) => {
    const answered = relayed(facts, body, surface)
    done(() => answered.pipe(Effect.catch((error) => HttpBody.answerProblem(error, path))))
    return constVoid
  }
  return { handle, startOn }
})

/** The preference (RFC 7240) of a caller who pages forward: the oldest bars of a window instead of the newest. */
const oldestBars = "candles=oldest"

const prefersOldest = ({ headers: { prefer } }: HttpServerRequest): boolean =>
  prefer?.split(",").some((preference) => preference.trim() === oldestBars) === true

/** A query that has nothing but its type. */
const bareQuery = /^\{"type":"[A-Za-z]{1,64}"\}$/u

/** There are about forty types of them. */
const MOST_BARE = 64

/**
 * The handler of `/info`, and how a query without a preference starts; a path is that of the contract.
 *
 * `relaysAnyType` says whether queries of types other than the documented ones are relayed.
 */
export const info = (relaysAnyType: boolean) =>
  Effect.map(Info, ({ relay, start }) => {
    const needed = (call: InfoProtocol.InfoCall) => needOf(call.operation, InfoProtocol.typeOf(call))
    /** The queries of a surface without parameters, by their text. */
    const bare = { gateway: new Map<string, InfoProtocol.InfoCall>(), node: new Map<string, InfoProtocol.InfoCall>() }

    /** The query in a body; one without parameters is read once for all its callers. */
    const callIn = (body: Uint8Array, facts: RequestFacts, surface: Surface) =>
      Effect.flatMapEager(HttpBody.textOf(body), (text) => {
        const known = bare[surface].get(text)
        if (known !== undefined) return Effect.succeed(known)
        const json = facts.json === undefined ? parseRequest(text, body) : Effect.succeed(facts.json)
        return Effect.flatMapEager(json, (read) => {
          facts.json = read
          return Effect.mapEager(InfoProtocol.callOf(read, surface, relaysAnyType), (call) => {
            if (bareQuery.test(text) && bare[surface].size < MOST_BARE) {
              // without the bytes: they lie in a buffer of the socket
              bare[surface].set(text, { ...call, body: Json.parsed(text, read.valueOrUndefined) })
            }
            return call
          })
        })
      })

    const handle = Effect.fnUntraced(function*(request: HttpServerRequest, surface: Surface) {
      const facts = yield* CurrentRequestFacts
      const call = yield* callIn(yield* HttpBody.bytes(request), facts, surface)
      yield* permitted(needed(call))
      const oldest = prefersOldest(request) ? InfoProtocol.forOldest(call) : undefined
      const answered = HttpBody.relayedIn(facts, call.operation.name, yield* relay(oldest ?? call))
      return oldest === undefined
        ? answered
        : HttpServerResponse.setHeaders(answered, { "preference-applied": oldestBars })
    })
    const startOn = (surface: Surface): PlainRoute["start"] => (body, facts, path) => (scene, done) => {
      const asked = callIn(body, facts, surface)
      if (!isAnswer(asked)) return undefined
      const call = asked.value
      if (notPermitted(scene.caller.scope, needed(call)) !== undefined) return undefined
      const relayed = (response: UpstreamResponse) => HttpBody.relayedIn(facts, call.operation.name, response)
      const answered = (asked: ReturnType<typeof relay>) =>
        isAnswer(asked)
          ? Exit.succeed(relayed(asked.value))
          : Effect.matchEffect(asked, {
            onFailure: (error) => HttpBody.answerProblem(error, path),
            onSuccess: (response) => Effect.succeed(relayed(response))
          })
      const stop = start?.(call)(scene, (rest) => done(() => answered(rest())))
      if (stop !== undefined) return stop
      done(() => answered(relay(call)))
      return constVoid
    }
    return { handle, startOn }
  })

const tokenReads: ReadonlyMap<string, TokenRpcOperation> = new Map(tokenRestReads.map((each) => [each.name, each]))
const tokenPosts: ReadonlyMap<string, TokenRpcOperation | TokenSendOperation> = new Map(
  tokenRestPosts.map((each) => [each.name, each])
)

// the path's last segment is the method: the routes have a path for each
const tokenCallOf = Effect.fnUntraced(function*(request: HttpServerRequest, surface: Surface) {
  const end = request.url.indexOf("?")
  const path = end < 0 ? request.url : request.url.slice(0, end)
  const name = path.slice(path.lastIndexOf("/") + 1)
  if (request.method === "POST") {
    const operation = tokenPosts.get(name)
    const asked = yield* HttpBody.json(request)
    if (operation?.class === "once") {
      const refusal = refusalOf(yield* CurrentRequestFacts)
      return refusal === undefined ? { operation, asked, surface } : yield* refusal
    }
    if (operation !== undefined) return { operation, asked, surface }
  } else {
    const operation = tokenReads.get(name)
    const asked = [...new URLSearchParams(end < 0 ? "" : request.url.slice(end))].filter(([name]) => !isQueryName(name))
    if (operation !== undefined) return { operation, asked, surface }
  }
  return yield* new UnsupportedMethod({ method: name.slice(0, 128), detail: "No such method" })
})

/** The handler of the token chain's methods over REST. */
export const tokenRest = Effect.map(
  TokenChain,
  ({ rest }) =>
    Effect.fnUntraced(function*(request: HttpServerRequest, surface: Surface) {
      const call: RestCall = yield* tokenCallOf(request, surface)
      yield* permitted(needOf(call.operation))
      return yield* HttpBody.relayed(call.operation.name, yield* rest(call))
    })
)
