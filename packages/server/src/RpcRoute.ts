/**
 * A JSON-RPC route: envelopes in, declared methods checked and relayed, envelopes out.
 *
 * Derived from a table of operations. Ids go back as they came, results are the upstream's own text, a batch keeps its
 * order and the failure of one call is that call's only. Notifications are relayed to nobody and answered by nobody.
 */
import type { Unauthorized } from "@trigate/domain/CallerError"
import { invalidRequest } from "@trigate/domain/Decode"
import type { GatewayError } from "@trigate/domain/GatewayError"
import { rpcCodes } from "@trigate/domain/GatewayError"
import * as JsonRpc from "@trigate/domain/JsonRpc"
import type { RpcCall } from "@trigate/domain/JsonRpc"
import * as JsonText from "@trigate/domain/JsonText"
import type { Operation, Surface } from "@trigate/domain/Operation"
import { UnsupportedMethod } from "@trigate/domain/RequestError"
import type { InvalidRequest, PayloadTooLarge } from "@trigate/domain/RequestError"
import * as RpcCalls from "@trigate/upstream/RpcCalls"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as RequestBody from "./RequestBody.ts"
import { CurrentRequestFacts, noteAge } from "./RequestFacts.ts"
import type { RequestFacts } from "./RequestFacts.ts"
import * as Responses from "./Responses.ts"

/** How a chain's envelopes are read and written; `id` is raw text. */
export interface Envelope<Answer> {
  readonly read: (text: string, value: unknown) => Result.Result<RpcCall, InvalidRequest>
  /** Whether a call wants no answer. */
  readonly isNotification: (call: RpcCall) => boolean
  readonly answer: (id: string | undefined, answer: Answer) => string
  readonly error: (id: string | undefined, error: GatewayError, code: number) => string
  /** Whether the upstream answered with a failure. */
  readonly isError: (answer: Answer) => boolean
}

/** What a route is made of. */
export interface Definition<O extends Operation, Answer extends { readonly age?: number }> {
  readonly operations: ReadonlyArray<O>
  readonly envelope: Envelope<Answer>
  /** Calls of one batch at most. */
  readonly longest: number
  /** Calls of one batch that are relayed at the same time; those of a chain that takes batches go out as one. */
  readonly concurrency: number
  /** Checks the params and relays the call; `params` is their raw text. */
  readonly relay: (operation: O, params: string, surface: Surface) => Effect.Effect<Answer, GatewayError>
}

/** The request that a call came in. */
interface Asked {
  readonly facts: RequestFacts
  readonly surface: Surface
}

/** Room for a batch of the longest, whose calls have up to a dozen values each, and some more in a filter. */
const limits = { ...JsonText.defaultLimits, maxValues: 20_000 }

const parseError = -32700
const invalidEnvelope = -32600

/** The envelope of JSON-RPC 2.0: a call without an id is a notification, an id that cannot be told is `null`. */
export const jsonRpcEnvelope: Envelope<JsonRpc.RpcAnswer> = {
  read: JsonRpc.readCall,
  isNotification: (call) => call.id === undefined,
  answer: (id = "null", answer) =>
    answer._tag === "Result" ? JsonRpc.resultText(id, answer.result) : JsonRpc.errorText(id, answer.error),
  error: (id = "null", error, code) => JsonRpc.errorText(id, JsonRpc.errorObject(error, code)),
  isError: (answer) => answer._tag === "Error"
}

// clients tell by a node's usual words that they have to do without a method: ethers then polls instead of using filters
const unsupported = (method: string) =>
  new UnsupportedMethod({
    method: method.slice(0, 128),
    detail: `the method ${method.slice(0, 128)} does not exist on this route`
  })

/** Builds the handler of a route; the handler's `admission` has to succeed before it reads the body. */
export const make = <O extends Operation, Answer extends { readonly age?: number }>(
  definition: Definition<O, Answer>
) => {
  const { envelope, relay } = definition
  const table = new Map(definition.operations.map((operation) => [operation.name, operation]))

  const perform = (call: RpcCall, surface: Surface): Effect.Effect<Answer, GatewayError> => {
    const operation = table.get(call.method)
    return operation === undefined ? Effect.fail(unsupported(call.method)) : relay(operation, call.params, surface)
  }

  // a read without an answer is nothing to do, and a call whose outcome nobody would hear of is not sent
  const answerCall = (call: RpcCall, { facts, surface }: Asked): Effect.Effect<string | undefined> => {
    if (envelope.isNotification(call)) return Effect.undefined
    const { id } = call
    const operation = table.has(call.method) ? call.method : "unsupported"
    return Effect.match(perform(call, surface), {
      onFailure: (error) => {
        facts.operations.push({ operation, outcome: error._tag })
        return envelope.error(id, error, rpcCodes[error._tag])
      },
      onSuccess: (answer) => {
        facts.operations.push({ operation, outcome: envelope.isError(answer) ? "upstream_error" : "ok" })
        noteAge(facts, answer.age)
        return envelope.answer(id, answer)
      }
    })
  }

  const rawId = (text: string, value: unknown): string | undefined => {
    const id = Predicate.hasProperty(value, "id") ? value.id : undefined
    const span = Predicate.isString(id) || Predicate.isNumber(id) || Predicate.isBigInt(id)
      ? JsonText.members(text).get("id")
      : undefined
    return span === undefined ? undefined : text.slice(span.start, span.end)
  }

  const refuse = (id: string | undefined, error: InvalidRequest, code: number, { facts }: Asked) => {
    facts.operations.push({ operation: "unsupported", outcome: error._tag })
    return Effect.succeed(envelope.error(id, error, code))
  }

  const answerOne = (text: string, value: unknown, asked: Asked): Effect.Effect<string | undefined> =>
    Result.match(envelope.read(text, value), {
      onFailure: (error) => refuse(rawId(text, value), error, invalidEnvelope, asked),
      onSuccess: (call) => answerCall(call, asked)
    })

  const answerBatch = (
    texts: ReadonlyArray<string>,
    values: ReadonlyArray<unknown>,
    asked: Asked
  ): Effect.Effect<string | undefined> => {
    if (texts.length === 0 || texts.length > definition.longest) {
      const message = texts.length === 0
        ? "A batch has at least one call"
        : `A batch has at most ${definition.longest} call${definition.longest === 1 ? "" : "s"}`
      return refuse(undefined, invalidRequest([{ path: [], message }]), invalidEnvelope, asked)
    }
    const answers = RpcCalls.batched(
      Effect.forEach(texts, (text, index) => answerOne(text, values[index], asked), {
        concurrency: definition.concurrency
      })
    )
    return Effect.map(answers, (all) => {
      const given = all.filter(Predicate.isNotUndefined)
      return given.length === 0 ? undefined : `[${given.join(",")}]`
    })
  }

  const answerText = (text: string, asked: Asked): Effect.Effect<string | undefined> =>
    Result.match(JsonText.parseStrict(text, limits), {
      onFailure: (refusal) =>
        refuse(undefined, invalidRequest([refusal]), refusal.path.length === 0 ? parseError : invalidEnvelope, asked),
      onSuccess: (value) =>
        Array.isArray(value)
          ? answerBatch(JsonText.elements(text) ?? [], value, asked)
          : answerOne(text, value, asked)
    })

  const refuseWhole = (error: InvalidRequest | PayloadTooLarge | Unauthorized, { facts }: Asked) => {
    facts.error = error._tag
    const code = error._tag === "InvalidRequest" ? invalidEnvelope : rpcCodes[error._tag]
    return Effect.succeed(Responses.json(envelope.error(undefined, error, code), error.status))
  }

  const responseOf = (body: string | undefined) =>
    body === undefined ? HttpServerResponse.empty({ status: 204 }) : Responses.json(body)

  return (
    request: HttpServerRequest.HttpServerRequest,
    surface: Surface,
    admission?: Effect.Effect<void, Unauthorized>
  ): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
    Effect.withFiber((fiber) => {
      const asked = { facts: fiber.getRef(CurrentRequestFacts), surface }
      const body = RequestBody.text(request)
      return Effect.matchEffect(admission === undefined ? body : Effect.andThen(admission, body), {
        // a fault of the HTTP layer keeps its HTTP status, and is a JSON-RPC error for those who read the body
        onFailure: (error) => refuseWhole(error, asked),
        onSuccess: (text) => Effect.map(answerText(text, asked), responseOf)
      })
    })
}
