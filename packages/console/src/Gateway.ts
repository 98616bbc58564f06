/** The gateway that served this page: every call of the console goes through here, and to no other origin. */
import * as Connection from "@trigate/client/Connection"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"

const here = new URL(".", document.baseURI).href

const runtime = ManagedRuntime.make(
  Layer.provide(Connection.layer({ baseUrl: here }), FetchHttpClient.layer)
)

/** What a call ended in: its value, or the sentence of its failure. */
export type Outcome<A> = { readonly value: A } | { readonly failure: string }

const sentence = (error: unknown): string =>
  error instanceof Error && error.message !== "" ? error.message : "The gateway does not answer"

/** Runs a call; a failure is a sentence for the reader. */
export const run = async <A, E>(call: Effect.Effect<A, E, Connection.Connection>): Promise<Outcome<A>> => {
  const exit = await runtime.runPromiseExit(Effect.mapError(call, sentence))
  return Exit.match(exit, {
    onSuccess: (value): Outcome<A> => ({ value }),
    onFailure: (cause): Outcome<A> => {
      const [reason] = cause.reasons
      return { failure: reason?._tag === "Fail" ? reason.error : "The console failed; the browser's log says why" }
    }
  })
}

/** Status and text of one of the gateway's own routes. */
export const text = (path: string) =>
  Effect.flatMap(Connection.Connection, ({ own }) => own.get(path)).pipe(
    Effect.map(({ status, text }) => ({ status, text }))
  )

/** Status and text of what one of the gateway's own routes answers to a JSON text. */
export const post = (path: string, body: string) =>
  Effect.flatMap(Connection.Connection, ({ own }) => own.post(path, body)).pipe(
    Effect.map(({ status, text }) => ({ status, text }))
  )
