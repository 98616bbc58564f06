/** The Chrome DevTools protocol of one Node process that was started with `--inspect`. */
import * as Schema from "effect/Schema"

const Message = Schema.Struct({
  id: Schema.optionalKey(Schema.Number),
  method: Schema.optionalKey(Schema.String),
  params: Schema.optionalKey(Schema.Unknown),
  result: Schema.optionalKey(Schema.Unknown),
  error: Schema.optionalKey(Schema.Struct({ message: Schema.String }))
})

const decodeMessage = Schema.decodeUnknownSync(Schema.fromJsonString(Message))

interface Pending {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

/** One connection; commands may be sent before earlier ones are answered. */
export class Inspector {
  readonly #socket: WebSocket
  readonly #pending = new Map<number, Pending>()
  readonly #listeners = new Map<string, (params: unknown) => void>()
  #lastId = 0

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.addEventListener("message", ({ data }) => this.#receive(decodeMessage(data)))
    socket.addEventListener("close", () => {
      for (const { reject } of this.#pending.values()) reject(new Error("The traced process ended"))
    })
  }

  static connect(url: string): Promise<Inspector> {
    const socket = new WebSocket(url)
    return new Promise((resolve, reject) => {
      socket.addEventListener("open", () => resolve(new Inspector(socket)))
      socket.addEventListener("error", () => reject(new Error(`No inspector at ${url}`)))
    })
  }

  /** Sends a command and decodes its result. */
  async send<A>(result: Schema.Codec<A, unknown>, method: string, params: object = {}): Promise<A> {
    const id = ++this.#lastId
    const answer = new Promise<unknown>((resolve, reject) => this.#pending.set(id, { resolve, reject }))
    this.#socket.send(JSON.stringify({ id, method, params }))
    return Schema.decodeUnknownSync(result)(await answer)
  }

  /** Sends a command whose result does not matter. */
  async command(method: string, params: object = {}): Promise<void> {
    await this.send(Schema.Unknown, method, params)
  }

  on(method: string, listener: (params: unknown) => void): void {
    this.#listeners.set(method, listener)
  }

  close(): void {
    this.#socket.close()
  }

  #receive({ error, id, method, params, result }: typeof Message.Type): void {
    if (method !== undefined) this.#listeners.get(method)?.(params)
    if (id === undefined) return
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    if (error === undefined) pending?.resolve(result)
    else pending?.reject(new Error(error.message))
  }
}
