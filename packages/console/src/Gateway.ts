/** The gateway that served this page: every call of the console goes through here, and to no other origin. */
import { computed, signal } from "@preact/signals"
import * as Connection from "@trigate/client/Connection"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Redacted from "effect/Redacted"

const here = new URL(".", document.baseURI).href

/** The address of this gateway for its callers, without a slash at the end. */
export const address = here.replace(/\/$/u, "")

const runtime = ManagedRuntime.make(FetchHttpClient.layer)
const http = runtime.runSync(HttpClient.HttpClient)

/** The key that calls carry. It is in this variable alone, and gone when the page is. */
const key = signal<Redacted.Redacted | undefined>(undefined)

/** Whether calls carry a key. */
export const hasKey = computed(() => key.value !== undefined)

/** Whether the gateway has refused a call for its key, or for having none. */
export const isRefused = signal(false)

/** Has all calls from now on carry a key, or none. */
export const useKey = (text: string | undefined): void => {
  isRefused.value = false
  key.value = text === undefined ? undefined : Redacted.make(text)
}

const noting = ({ get, open, post }: Connection.Routes, carried: Redacted.Redacted | undefined): Connection.Routes => {
  const note = ({ status }: { readonly status: number }) =>
    Effect.sync(() => {
      // an answer to a call from before says nothing of the key that calls carry now
      if (status === 401 && carried === key.value) isRefused.value = true
    })
  return {
    get: (path) => Effect.tap(get(path), note),
    post: (path, body) => Effect.tap(post(path, body), note),
    open: (path) => Effect.tap(open(path), ({ refusal }) => refusal === undefined ? Effect.void : note(refusal))
  }
}

const connection = computed(() => {
  const carried = key.value
  const { chains, nextId, own } = Connection.make(http, {
    baseUrl: here,
    ...(carried === undefined ? {} : { key: carried })
  })
  return { nextId, chains: noting(chains, carried), own: noting(own, carried) }
})

/** What a call ended in: its value, or the sentence of its failure. */
export type CallResult<A> = { readonly value: A } | { readonly failure: string }

const sentence = (error: unknown): string =>
  error instanceof Error && error.message !== "" ? error.message : "The gateway does not answer"

/** Runs a call; a failure is a sentence for the reader. An effect of signals that runs one is run again for another key. */
export const run = async <A, E>(call: Effect.Effect<A, E, Connection.Connection>): Promise<CallResult<A>> => {
  const exit = await runtime.runPromiseExit(
    Effect.provideService(Effect.mapError(call, sentence), Connection.Connection, connection.value)
  )
  return Exit.match(exit, {
    onSuccess: (value): CallResult<A> => ({ value }),
    onFailure: (cause): CallResult<A> => {
      const [reason] = cause.reasons
      return { failure: reason?._tag === "Fail" ? reason.error : "The console failed; the browser's log says why" }
    }
  })
}

/** Posts a JSON text to one of the gateway's own routes. Returns the status and text of the response. */
export const post = (path: string, body: string) =>
  Effect.flatMap(Connection.Connection, ({ own }) => own.post(path, body)).pipe(
    Effect.map(({ status, text }) => ({ status, text }))
  )
