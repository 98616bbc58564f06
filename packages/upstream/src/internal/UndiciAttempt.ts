/** One request over undici's dispatcher, up to its first result. */
import * as Effect from "effect/Effect"
import type { Dispatcher } from "undici"
import type { TransportRequest, TransportResponse } from "../HttpTransport.ts"
import { timedOut, TransportError } from "../HttpTransport.ts"
import { decompress } from "./UndiciDecompress.ts"

interface Headers {
  readonly [name: string]: string | ReadonlyArray<string> | undefined
}

const flatten = (headers: Headers) => {
  const flat: { [name: string]: string } = {}
  for (const name in headers) {
    const value = headers[name]
    if (value !== undefined) flat[name] = typeof value === "string" ? value : value.join(", ")
  }
  return flat
}

/** An error code is safe to show; a message may quote the address. */
const codeOf = (error: Error): string => "code" in error && typeof error.code === "string" ? error.code : error.name

/** The handler of one dispatched request; resumes once. */
export class UndiciAttempt implements Dispatcher.DispatchHandler {
  readonly #request: TransportRequest
  readonly #resume: (result: Effect.Effect<TransportResponse, TransportError>) => void
  #timer: ReturnType<typeof setTimeout>
  readonly #chunks: Array<Uint8Array> = []
  #controller: Dispatcher.DispatchController | undefined
  #isOver = false
  #size = 0
  #status = 0
  #headers: { [name: string]: string } = {}

  constructor(request: TransportRequest, resume: (result: Effect.Effect<TransportResponse, TransportError>) => void) {
    this.#request = request
    this.#resume = resume
    // a sleeping fiber costs ten times as much, and no test clock moves a socket
    // @effect-diagnostics-next-line globalTimers:off -- see above
    this.#timer = setTimeout(
      () => this.#expire(request.sendWithin ?? request.timeout),
      request.sendWithin ?? request.timeout
    )
  }

  #expire(elapsed: number) {
    const left = this.#request.timeout - elapsed
    if (this.#sent === "no" || left <= 0) this.#abort(timedOut(this.#sent, elapsed))
    // @effect-diagnostics-next-line globalTimers:off -- see above
    else this.#timer = setTimeout(() => this.#expire(this.#request.timeout), left)
  }

  // before a connected socket has taken the request no byte of it can have left
  get #sent(): TransportError["sent"] {
    return this.#controller === undefined ? "no" : "maybe"
  }

  #end(result: Effect.Effect<TransportResponse, TransportError>) {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#resume(result)
  }

  #abort(error: TransportError) {
    this.#end(Effect.fail(error))
    this.#controller?.abort(error)
  }

  /** Aborts the request without a result. */
  interrupt() {
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#controller?.abort(new Error("interrupted"))
  }

  onRequestStart(controller: Dispatcher.DispatchController) {
    if (this.#isOver) controller.abort(new Error("over before it began"))
    else this.#controller = controller
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: Headers) {
    this.#status = status
    this.#headers = flatten(headers)
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Uint8Array) {
    const limit = this.#request.maxAnswerBytes
    this.#size += chunk.length
    if (this.#size <= limit) this.#chunks.push(chunk)
    else {
      const detail = `The answer is larger than ${limit} bytes`
      this.#abort(new TransportError({ sent: "maybe", reason: "TooLarge", detail }))
    }
  }

  onResponseEnd() {
    const [first] = this.#chunks
    const body = first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks)
    this.#end(decompress({ status: this.#status, headers: this.#headers, body }, this.#request.maxAnswerBytes))
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error) {
    const sent = this.#sent
    this.#end(
      Effect.fail(new TransportError({ sent, reason: sent === "no" ? "Connect" : "Broken", detail: codeOf(error) }))
    )
  }
}
