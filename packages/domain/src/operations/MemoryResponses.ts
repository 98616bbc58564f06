/** The responses of an in-memory service. A test sets them for each operation. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Json from "../encoding/Encoding.ts"
import * as EvmReads from "../evm/EvmMethods.ts"
import * as JsonRpc from "../evm/EvmProtocol.ts"
import * as EvmResources from "../evm/EvmResources.ts"
import type { EvmSink, EvmSubscription, Interest, Subscribe } from "../evm/EvmStreams.ts"
import { type AnyCodec, decodeValue, type Operation, type ReadOperation } from "./Operation.ts"

/** Sets the response to an operation: `respond(blockNumber, () => Effect.succeed(1n))`. */
export type SetResponse = <
  Request extends AnyCodec,
  Response extends AnyCodec,
  Failures extends ReadonlyArray<AnyCodec>
>(
  operation: Operation<string, "read", Request, Response, Failures>,
  respond: (request: Request["Type"]) => Effect.Effect<Response["Type"], Failures[number]["Type"]>
) => Effect.Effect<void>

/** The responses of an in-memory service, by operation. */
export interface MemoryResponses {
  readonly respond: SetResponse
  /**
   * Returns the encoded response to an encoded request. Fails with `unset` if no response was set, and with `failed` if
   * the test set a failure.
   */
  readonly send: (operation: ReadOperation, request: unknown) => Effect.Effect<Json.Json, "unset" | "failed">
}

/** Makes a `MemoryResponses` without responses. */
export const make: Effect.Effect<MemoryResponses> = Effect.gen(function*() {
  const known = yield* Ref.make<ReadonlyMap<string, (request: unknown) => Effect.Effect<Json.Json, "failed">>>(
    new Map()
  )
  return {
    respond: (operation, respond) => {
      const decode = decodeValue(operation.request)
      const encode = Schema.encodeEffect<AnyCodec>(operation.response)
      const send = (request: unknown) =>
        Effect.flatMap(decode(request), respond).pipe(
          Effect.mapError(() => "failed" as const),
          // a response that does not encode is a mistake in the test
          Effect.flatMap((response) => Effect.orDie(encode(response))),
          Effect.map(Json.write)
        )
      return Ref.update(known, (responses) => new Map(responses).set(operation.name, send))
    },
    send: ({ name }, request) =>
      Effect.flatMap(Ref.get(known), (responses) => responses.get(name)?.(request) ?? Effect.fail("unset" as const))
  }
})

/** The methods with which a test sends items to subscribers. */
export interface SentItems {
  /** Waits until a subscription has its first subscriber. */
  readonly subscribed: (subscription: EvmSubscription) => Effect.Effect<void>
  /** Sends items to the subscribers: blocks to all subscribers, a log to the subscribers whose filter matches. */
  readonly send: <S extends EvmSubscription>(
    subscription: S,
    items: ReadonlyArray<S["item"]["Type"]>
  ) => Effect.Effect<void>
}

interface Subscriber {
  readonly kind: Interest["kind"]
  readonly selection: EvmResources.LogSelection
  readonly sink: EvmSink
}

const decodeSubject = Schema.decodeUnknownSync(
  Schema.Struct({ address: Schema.String, topics: Schema.Array(Schema.String) })
)

const makeFeed = () => {
  const subscribers = new Set<Subscriber>()
  const waiting = new Map<string, Deferred.Deferred<void>>()
  const waitFor = (kind: string) => {
    const known = waiting.get(kind) ?? Deferred.makeUnsafe<void>()
    waiting.set(kind, known)
    return known
  }
  const subscribe: Subscribe = (interest, sink) => {
    const selection = EvmResources.selectionIn(interest.kind === "logs" ? interest.filter : {})
    const subscriber = { kind: interest.kind, selection, sink }
    subscribers.add(subscriber)
    Deferred.doneUnsafe(waitFor(interest.kind), Effect.void)
    return { id: "0x1", end: () => void subscribers.delete(subscriber) }
  }
  const sent: SentItems = {
    subscribed: ({ name }) => Deferred.await(waitFor(name)),
    send: Effect.fnUntraced(function*({ item, name }, items) {
      const encode = Schema.encodeUnknownEffect<EvmSubscription["item"]>(item)
      for (const each of items) {
        const value = yield* Effect.orDie(encode(each))
        const text = Json.stringify({
          jsonrpc: "2.0",
          method: "eth_subscription",
          params: { subscription: "0x1", result: value }
        })
        for (const { kind, selection, sink } of subscribers) {
          if (kind !== name || (kind === "logs" && !EvmResources.selects(selection, decodeSubject(value)))) continue
          sink.deliver({ text, wire: undefined })
          sink.flush()
        }
      }
    })
  }
  return { subscribe, sent }
}

/** Makes a node for which no responses are set, except that its newest block has the number 0. */
export const makeEvm = Effect.fnUntraced(function*(serving: EvmReads.Serving) {
  const { respond, send } = yield* make
  const { sent, subscribe } = makeFeed()
  yield* respond(EvmReads.blockNumber(serving), () => Effect.succeed(0n))
  const backend: JsonRpc.StreamingBackend = {
    read: ({ operation, params }) =>
      Effect.match(send(operation, params.valueOrUndefined), {
        onFailure: (why) =>
          why === "unset" ? JsonRpc.methodNotFound(operation.name) : JsonRpc.error(-32000, "execution failed"),
        onSuccess: (value) => JsonRpc.result(value)
      }),
    once: ({ operation }) => Effect.succeed(JsonRpc.methodNotFound(operation.name)),
    subscribe
  }
  return { respond, backend, sent }
})
