/** What a wire protocol tells the pipeline of its reads, and where the checked calls of a chain go. */
import type * as Effect from "effect/Effect"
import type { CommonFailure } from "../GatewayError.ts"
import type { CachePolicy, Operation } from "../Operation.ts"
import type { OutcomeUnknown } from "../UpstreamError.ts"
import type { UpstreamResponse } from "../UpstreamResponse.ts"
import type { AttemptResult, Conceal } from "./AttemptResult.ts"

/**
 * Where the checked calls of a chain go: live upstreams, a state in memory, a sandbox.
 *
 * It is the one thing in which the layers of a service differ.
 */
export interface Backend<Read, Once, Answer> {
  readonly read: (call: Read) => Effect.Effect<Answer, CommonFailure>
  /** Sends a call at most once. */
  readonly once: (call: Once) => Effect.Effect<Answer, CommonFailure | OutcomeUnknown>
}

/** The declaration of a read. */
export type ReadOperation = Operation<string, "read">

/** What is stored of an answer: its body as bytes or as text, whichever it carries, and what else it says. */
export interface CachedContent {
  readonly head: string
  readonly body: string | Uint8Array
}

/** How answers of one kind are cached, in the form in which they go out again. */
export interface CacheCodec<A> {
  /** What to store of an answer; undefined for one that is no success. */
  readonly store: (answer: A) => CachedContent | undefined
  /** The answer that a content was stored of, `age` seconds ago. */
  readonly restore: (content: CachedContent, age: number) => A
  /** Whether an answer only says that the upstream failed, so that a stale one is better. */
  readonly isFault: (answer: A) => boolean
}

/** One request as it goes out, and how its response is judged. A body means POST, none means GET. */
export interface Question<A, E> {
  readonly body: Uint8Array | undefined
  readonly judge: (response: UpstreamResponse, conceal: Conceal) => AttemptResult<A, E>
}

/** The answer to a batch: one for each of its calls, or none from a node that takes no batches. */
export type BatchAnswer<Each> =
  | { readonly _tag: "Each"; readonly answers: ReadonlyArray<Each> }
  | { readonly _tag: "NoBatches" }

/** The reads of a protocol. */
export interface ReadProtocol<Call extends { readonly operation: ReadOperation }, A, E> {
  /** What is equal here has the same answer: calls of one operation and one key are coalesced and cached together. */
  readonly key: (call: Call) => string
  /** How long the answer may be cached; `onRequest` for a caller who asked for an answer at most one block old. */
  readonly cachePolicy: (call: Call, now: number, onRequest: boolean) => CachePolicy | undefined
  /** Whether an answer may be cached at all: no error, no answer to another request. */
  readonly isCacheable: (call: Call, answer: A) => boolean
  readonly codec: CacheCodec<A>
  /** Writes a call; `id` tells its response from those of other calls, where the protocol has ids. */
  readonly write: (call: Call, id: number) => Question<A, E>
}
