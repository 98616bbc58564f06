/** The wire over undici's dispatcher: keep-alive pools per origin, the fastest way out of Node. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Agent } from "undici"
import type { Dispatcher } from "undici"
import { decompress } from "./internal/UndiciDecompress.ts"
import { Wire, WireError } from "./Wire.ts"
import type { WireAnswer, WireRequest } from "./Wire.ts"

/** Options of the pools; a deadline of the whole call is the caller's business. */
export interface Options {
  /** Sockets per origin; undici's default is unbounded. */
  readonly connections?: number
}

const flatten = (headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }) => {
  const flat: { [name: string]: string } = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name.toLowerCase()] = typeof value === "string" ? value : value.join(", ")
  }
  return flat
}

/** An error code is safe to show; a message may quote the address. */
const codeOf = (error: Error): string => "code" in error && typeof error.code === "string" ? error.code : error.name

const send = (dispatcher: Dispatcher, request: WireRequest): Effect.Effect<WireAnswer, WireError> =>
  Effect.callback<WireAnswer, WireError>((resume) => {
    const url = new URL(Redacted.value(request.url))
    const chunks: Array<Uint8Array> = []
    let started = false
    let size = 0
    let status = 0
    let headers: { [name: string]: string } = {}
    let controller: Dispatcher.DispatchController | undefined
    let interrupted = false
    const fail = (reason: WireError["reason"], detail: string) =>
      resume(Effect.fail(new WireError({ sent: started ? "maybe" : "no", reason, detail })))
    dispatcher.dispatch({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: request.method,
      headers: { ...request.headers },
      body: request.body ?? null,
      // undici may put an idempotent request on a second socket by itself: sending again is not the wire's to decide
      idempotent: false,
      headersTimeout: 0,
      bodyTimeout: 0
    }, {
      // called when a connected socket takes the request: before it, no byte can have left
      onRequestStart(started_) {
        controller = started_
        if (interrupted) started_.abort(new Error("interrupted"))
        else started = true
      },
      onResponseStart(_controller, statusCode, responseHeaders) {
        status = statusCode
        headers = flatten(responseHeaders)
      },
      onResponseData(current, chunk) {
        size += chunk.length
        if (size > request.maxAnswerBytes) {
          fail("TooLarge", `The answer is larger than ${request.maxAnswerBytes} bytes`)
          current.abort(new Error("answer too large"))
        } else {
          chunks.push(chunk)
        }
      },
      onResponseEnd() {
        const body = chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)
        resume(decompress({ status, headers, body }, request.maxAnswerBytes))
      },
      onResponseError(_controller, error) {
        fail(started ? "Broken" : "Connect", codeOf(error))
      }
    })
    return Effect.sync(() => {
      interrupted = true
      controller?.abort(new Error("interrupted"))
    })
  })

/** The wire with its own pools, closed with the layer's scope. */
export const layer = (options: Options = {}): Layer.Layer<Wire> =>
  Layer.effect(
    Wire,
    Effect.map(
      Effect.acquireRelease(
        Effect.sync(() =>
          new Agent({
            ...(options.connections === undefined ? {} : { connections: options.connections }),
            connect: { timeout: 5_000 },
            keepAliveTimeout: 10_000
          })
        ),
        (agent) => Effect.promise(() => agent.destroy())
      ),
      (agent) => Wire.of({ send: (request) => send(agent, request) })
    )
  )
