/** Fetches the JSON document to which a token's contract refers. The chain's servers never fetch it. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"

/**
 * Fetches metadata documents.
 *
 * The URI is from a contract that anyone can deploy, so a layer that sends requests must treat it as hostile. If a
 * document cannot be fetched, the result is `None`, and the call that needs it does not fail.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { MetadataFetch } from "@trigate/tokens"
 * import { Console, Effect } from "effect"
 *
 * const documents = new Map([["https://example.com/token.json", { symbol: "TEST" }]])
 *
 * const program = MetadataFetch.MetadataFetch.use(({ fetch }) => fetch("https://example.com/token.json")).pipe(
 *   Effect.flatMap(Console.log)
 * )
 *
 * await Effect.runPromise(Effect.provide(program, MetadataFetch.layerMemory(documents)))
 * ```
 */
export class MetadataFetch extends Context.Service<MetadataFetch, {
  /** Returns the parsed JSON document at `uri`. */
  readonly fetch: (uri: string) => Effect.Effect<Option.Option<unknown>>
}>()("@trigate/tokens/metadata/MetadataFetch") {}

/**
 * Provides a `MetadataFetch` that fetches nothing: for programs that must not send external requests, and for tests.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNone: Layer.Layer<MetadataFetch> = Layer.succeed(
  MetadataFetch,
  MetadataFetch.of({ fetch: () => Effect.succeedNone })
)

/**
 * Provides a `MetadataFetch` that returns the given documents by their URI.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (documents: ReadonlyMap<string, unknown>): Layer.Layer<MetadataFetch> =>
  Layer.succeed(
    MetadataFetch,
    MetadataFetch.of({
      fetch: (uri) => Effect.sync(() => documents.has(uri) ? Option.some(documents.get(uri)) : Option.none())
    })
  )
