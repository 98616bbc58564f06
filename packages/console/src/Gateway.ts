/**
 * The gateway that served this page, its streams, and the place in the page: every call of the console is sent to it,
 * and to no other origin.
 */
import { computed, effect, signal } from "@preact/signals"
import * as Connection from "@trigate/client/Connection"
import * as Info from "@trigate/client/Info"
import { type MonotonicTime, monotonicTime } from "@trigate/domain/encoding/Encoding"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Sse from "effect/encoding/Sse"
import * as Exit from "effect/Exit"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"

const here = new URL(".", document.baseURI).href

/** The gateway's URL for callers, without a trailing slash. */
export const address = here.replace(/\/$/u, "")

const runtime = ManagedRuntime.make(FetchHttpClient.layer)
const http = runtime.runSync(HttpClient.HttpClient)
const clock = runtime.runSync(Clock.clockWith(Effect.succeed))

/** Returns the current time in milliseconds. */
export const now = (): number => clock.currentTimeMillisUnsafe()

/** Returns the current time of the monotonic clock, for durations. */
export const elapsed = (): MonotonicTime => monotonicTime(clock)

/** The key for calls. It is stored in this variable only, and lost with the page. */
const key = signal<Redacted.Redacted | undefined>(undefined)

/** Whether calls are sent with a key. */
export const hasKey = computed(() => key.value !== undefined)

/** Whether the gateway has refused a call because its key was invalid or missing. */
export const isRefused = signal(false)

/** Sets or removes the key for all further calls. */
export const useKey = (text: string | undefined): void => {
  isRefused.value = false
  key.value = text === undefined ? undefined : Redacted.make(text)
}

const noting = ({ get, open, post }: Connection.Routes, carried: Redacted.Redacted | undefined): Connection.Routes => {
  const note = ({ status }: { readonly status: number }) =>
    Effect.sync(() => {
      // the response to an earlier call does not concern the current key
      if (status === 401 && carried === key.value) isRefused.value = true
    })
  return {
    get: (path) => Effect.tap(get(path), note),
    post: (path, body) => Effect.tap(post(path, body), note),
    open: (path) => Effect.tap(open(path), ({ refusal }) => refusal === undefined ? Effect.void : note(refusal))
  }
}

const connect = (sandboxOnly: boolean) =>
  computed(() => {
    const carried = key.value
    const { chains, nextId, own } = Connection.make(http, {
      baseUrl: here,
      sandboxOnly,
      ...(carried === undefined ? {} : { key: carried })
    })
    return { nextId, chains: noting(chains, carried), own: noting(own, carried) }
  })

const connection = connect(false)
const paper = connect(true)

/** The result of a call: its value, or its error message. */
export type CallResult<A> = { readonly value: A } | { readonly failure: string }

/** Returns the message of an error, without the backticks that mark code in it. */
const sentence = (error: unknown): string =>
  error instanceof Error && error.message !== "" ? error.message.replaceAll("`", "") : "The gateway does not respond"

const runOver = (over: ReturnType<typeof connect>) =>
async <A, E>(
  call: Effect.Effect<A, E, Connection.Connection>
): Promise<CallResult<A>> => {
  const exit = await runtime.runPromiseExit(
    Effect.provideService(Effect.mapError(call, sentence), Connection.Connection, over.value)
  )
  return Exit.match(exit, {
    onSuccess: (value): CallResult<A> => ({ value }),
    onFailure: (cause): CallResult<A> => {
      const [reason] = cause.reasons
      return { failure: reason?._tag === "Fail" ? reason.error : "The console failed; see the browser's console" }
    }
  })
}

/** Runs a call; a failure becomes a message. A signal effect that runs a call is run again when the key changes. */
export const run = runOver(connection)

/** Runs a call that only a sandbox serves: a gateway with upstreams refuses its requests, and sends nothing. */
export const runOnPaper = runOver(paper)

/**
 * Reads Server-Sent Events from a path until `stop` is called. Requests the path again three seconds after the stream
 * ends, and immediately after the key has changed. Does not use an `EventSource`, which cannot send a key in a header.
 * `isOpen` returns whether the gateway has accepted the request, and has not ended the stream.
 */
export const listen = (path: string, onMessage: (data: string) => void) => {
  let isOpen = false
  const read = Effect.fnUntraced(function*({ chains }: Connection.Connection["Service"]) {
    const { stream } = yield* chains.open(path)
    if (stream === undefined) return
    isOpen = true
    // not `Sse.decode`, which fails after a `retry` directive, with which the gateway begins each stream
    const parser = Sse.makeParser((event) => {
      if (event._tag === "Event" && event.event === "message") onMessage(event.data)
    })
    yield* stream.pipe(
      Stream.decodeText(),
      Stream.runForEach((text) => {
        const error = parser.feed(text)
        return error === undefined ? Effect.void : Effect.fail(error)
      })
    )
  })
  const stop: () => void = effect(() => {
    const reading = Effect.ensuring(
      Effect.ignore(read(connection.value)),
      Effect.sync(() => {
        isOpen = false
      })
    )
    const fiber = runtime.runFork(Effect.repeat(reading, Schedule.spaced("3 seconds")))
    return () => fiber.interruptUnsafe()
  })
  return { stop, isOpen: () => isOpen }
}

/** Posts a JSON text to one of the gateway's own routes. Returns the status and text of the response. */
export const post = (path: string, body: string) =>
  Effect.flatMap(Connection.Connection, ({ own }) => own.post(path, body)).pipe(
    Effect.map(({ status, text }) => ({ status, text }))
  )

/** Subscriptions of a stream, in the venue's form. */
export type Subscriptions = ReadonlyArray<{ readonly type: string; readonly [member: string]: string | boolean }>

/** Reads the frames of subscriptions until `stop` of the result is called. */
export const follow = (subscriptions: Subscriptions, onFrame: (text: string) => void) => {
  const query = new URLSearchParams(subscriptions.map((each) => ["subscribe", JSON.stringify(each)]))
  return listen(`/streams?${query.toString()}`, onFrame)
}

/** The names of the coins; empty until they are loaded. */
export const coins = signal<ReadonlyArray<string>>([])

/** Loads the coins that have a price, except spot pairs whose only name is an index. */
export const loadCoins = async (): Promise<void> => {
  const outcome = await run(Info.allMids({}))
  if ("value" in outcome) coins.value = Object.keys(outcome.value).filter((coin) => !coin.startsWith("@"))
}

/** A panel and its parameters. */
export interface PanelLocation {
  readonly panel: string
  readonly params: { readonly [name: string]: string }
}

const read = (): PanelLocation => {
  const [panel = "", query = ""] = location.hash.slice(1).split("?")
  return { panel: panel === "" ? "overview" : panel, params: Object.fromEntries(new URLSearchParams(query)) }
}

/** The current panel and its parameters. */
export const place = signal<PanelLocation>(read())

addEventListener("hashchange", () => {
  place.value = read()
})

/** Returns the link to a panel. */
export const linkTo = (panel: string, params: PanelLocation["params"] = {}): string => {
  const query = new URLSearchParams(params).toString()
  return `#${panel}${query === "" ? "" : `?${query}`}`
}

/** Navigates to a panel, like a click on its link. */
export const go = (panel: string, params: PanelLocation["params"] = {}): void => {
  location.hash = linkTo(panel, params)
}
