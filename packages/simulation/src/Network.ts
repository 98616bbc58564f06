/**
 * A simulated network between the nodes of a simulation: HTTP requests and WebSockets with delays, lost connections and
 * silence.
 *
 * A request arrives at most once, and messages on one WebSocket arrive in order, as TCP guarantees. Everything else can
 * fail: see {@link HttpFault} and {@link Network.breakSockets}.
 */
import { type Connection, SocketLost, SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import {
  HttpTransport,
  timedOut,
  TransportError,
  type TransportRequest,
  type TransportResponse
} from "@trigate/upstream/transport/HttpTransport"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Simulation from "./Simulation.ts"

/** Serves the requests that arrive at a node. The fiber is interrupted when the client closes the connection. */
export type HttpHandler = (request: TransportRequest, from: Simulation.Node) => Effect.Effect<TransportResponse>

/** A server at an address: the node that it belongs to, and the protocols that it accepts. */
export interface Server {
  readonly node: Simulation.Node
  readonly http?: HttpHandler
  /** Accepts a WebSocket. The returned connection is the server's: the texts that it receives are sent to the client. */
  readonly accept?: (
    address: Redacted.Redacted,
    from: Simulation.Node
  ) => Effect.Effect<Connection, SocketLost, Scope.Scope>
}

/**
 * A fault of one HTTP request:
 *
 * - `refused`: no connection; no byte was sent.
 * - `lost`: the connection breaks before the request arrives, and the client notices at once.
 * - `swallowed`: the request never arrives, and the client notices nothing.
 * - `unanswered`: the request arrives, and then the connection breaks.
 * - `silent`: the request arrives, and the response never does.
 * - `cut`: the connection breaks within the response.
 * - `late`: the request arrives after a long delay.
 */
export type HttpFault = "refused" | "lost" | "swallowed" | "unanswered" | "silent" | "cut" | "late"

/** All faults of HTTP requests. */
export const httpFaults: ReadonlyArray<HttpFault> = [
  "refused",
  "lost",
  "swallowed",
  "unanswered",
  "silent",
  "cut",
  "late"
]

/** The delays and faults of a network. */
export interface Options {
  /** The shortest and the longest time that a packet takes, in milliseconds. Default: 0.2 and 5. */
  readonly latency?: readonly [shortest: number, longest: number]
  /** The delay of a `late` request, in milliseconds. Default: at most 20 seconds. */
  readonly longest?: number
  /** Chooses the fault of a request; `undefined` for none. */
  readonly fault?: (from: string, to: string, request: TransportRequest) => HttpFault | undefined
}

/** A network. */
export interface Network {
  /**
   * Serves an address, such as `http://venue`, until the node of the server is killed. A later server of the same address
   * replaces the earlier one.
   */
  readonly serve: (address: string, server: Server) => void
  /** Refuses new connections to an address. */
  readonly close: (address: string) => void
  /** The HTTP client of a node. */
  readonly http: (from: Simulation.Node) => HttpTransport["Service"]
  /** The WebSocket client of a node. */
  readonly sockets: (from: Simulation.Node) => SocketTransport["Service"]
  /** Provides both clients of a node, for layers such as `Pipeline.layer`. */
  readonly layer: (from: Simulation.Node) => Layer.Layer<HttpTransport | SocketTransport>
  /**
   * Breaks open WebSockets between a client and a server, each with the given probability. If they break silently,
   * neither end notices. Returns the number of broken WebSockets.
   */
  readonly breakSockets: (probability: number, isSilent: boolean) => number
}

const broken = new TransportError({ sent: "maybe", reason: "Broken", detail: "ECONNRESET" })
const unreachable = new TransportError({ sent: "no", reason: "Connect", detail: "ECONNREFUSED" })

/** The received and unread texts of one end of a WebSocket. */
export class Inbox {
  #texts: Array<string> = []
  #ending: SocketLost | undefined
  #wake: (() => void) | undefined

  push(texts: ReadonlyArray<string>): void {
    if (this.#ending !== undefined) return
    this.#texts.push(...texts)
    this.#wake?.()
  }

  end(ending: SocketLost): void {
    this.#ending ??= ending
    this.#wake?.()
  }

  get hasEnded(): boolean {
    return this.#ending !== undefined
  }

  readonly receive: Connection["receive"] = Simulation.callback((resume) => {
    const take = () => {
      const texts = this.#texts
      if (Arr.isArrayNonEmpty(texts)) {
        this.#texts = []
        this.#wake = undefined
        resume(Exit.succeed(texts))
      } else if (this.#ending !== undefined) {
        this.#wake = undefined
        resume(Exit.fail(this.#ending))
      } else this.#wake = take
    }
    take()
    return () => {
      this.#wake = undefined
    }
  })
}

/** The two ends of an open WebSocket. */
interface OpenSocket {
  readonly from: string
  readonly to: string
  /** Ends both ends after the time that a packet takes. */
  readonly lose: (ending: SocketLost) => void
  /** Carries no message from now on. */
  readonly silence: () => void
}

/** Interrupts a fiber in a step of its node; does nothing if the node has been killed. */
const interrupt = (fiber: Fiber.Fiber<unknown, unknown>): void =>
  fiber.currentDispatcher.scheduleTask(() => fiber.interruptUnsafe(), 0)

/**
 * Makes a network. Its delays and faults follow from the seed of the simulation.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { Caller } from "@trigate/domain"
 * import * as Network from "@trigate/simulation/Network"
 * import * as Simulation from "@trigate/simulation/Simulation"
 * import { Effect, Exit, Fiber, Redacted } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { node } = yield* Simulation.Simulation
 *   const network = yield* Network.make({ fault: () => "unanswered" })
 *   const server = node("server")
 *   server.start(Effect.never)
 *   let arrivals = 0
 *   network.serve("http://server", {
 *     node: server,
 *     http: () => Effect.sync(() => ({ status: 200, headers: {}, body: new Uint8Array(++arrivals) }))
 *   })
 *   const client = node("client")
 *   const request = { method: "GET", headers: {}, body: undefined, timeout: 5000, maxAnswerBytes: 1024 } as const
 *   const owner = Caller.background("example")
 *   const sent = network.http(client).send({ ...request, owner, url: Redacted.make("http://server/") })
 *   const { detail, sent: isSent } = yield* Effect.flip(Fiber.join(client.start(sent)))
 *   return `${detail}, sent: ${isSent}, arrivals: ${arrivals}`
 * })
 *
 * const { exit } = Simulation.run(program)
 * console.log(Exit.isSuccess(exit) ? exit.value : exit.cause)
 * ```
 * ```text
 * ECONNRESET, sent: maybe, arrivals: 1
 * ```
 */
export const make = Effect.fnUntraced(function*({ fault, latency = [0.2, 5], longest = 20_000 }: Options = {}) {
  const { after, log, random } = yield* Simulation.Simulation
  const servers = new Map<string, Server>()
  const open = new Set<OpenSocket>()
  const delay = (): number => latency[0] + random() * (latency[1] - latency[0])
  const find = (url: string): Server | undefined => servers.get(new URL(url).host)

  const http = (from: Simulation.Node): HttpTransport["Service"] => ({
    send: (request) =>
      Simulation.callback<TransportResponse, TransportError>((resume) => {
        const url = Redacted.value(request.url)
        const { host } = new URL(url)
        const chosen = fault?.(from.name, host, request)
        let isDone = false
        let isSent = false
        let serving: Fiber.Fiber<unknown> | undefined
        const cancels: Array<() => void> = []
        const close = (): void => {
          isDone = true
          for (const cancel of cancels) cancel()
        }
        const settle = (exit: Exit.Exit<TransportResponse, TransportError>): void => {
          if (isDone) return
          close()
          resume(exit)
        }
        /** The client closes the connection, and the server notices. */
        const leave = (): void => {
          close()
          if (serving !== undefined) {
            const fiber = serving
            after(delay(), () => interrupt(fiber))
          }
        }
        const later = (milliseconds: number, run: () => void): void => void cancels.push(after(milliseconds, run))
        const timeOutAfter = (milliseconds: number): void => {
          if (isDone) return
          leave()
          resume(Exit.fail(timedOut(isSent ? "maybe" : "no", milliseconds)))
        }
        later(request.timeout, () => timeOutAfter(request.timeout))
        cancels.push(from.onKilled(leave))

        const respond = (server: Server, response: TransportResponse): void => {
          if (chosen === "silent" || chosen === "unanswered") return
          later(delay(), () => settle(chosen === "cut" ? Exit.fail(broken) : Exit.succeed(response)))
          if (!server.node.isAlive()) settle(Exit.fail(broken))
        }
        const arrive = (server: Server): void => {
          const handler = server.http
          if (handler === undefined || !server.node.isAlive()) return later(delay(), () => settle(Exit.fail(broken)))
          const fiber = server.node.start(handler(request, from))
          serving = fiber
          cancels.push(server.node.onKilled(() => later(delay(), () => settle(Exit.fail(broken)))))
          fiber.addObserver((exit) => {
            serving = undefined
            if (Exit.isSuccess(exit)) respond(server, exit.value)
            else later(delay(), () => settle(Exit.fail(broken)))
          })
          if (chosen === "unanswered") later(delay(), () => settle(Exit.fail(broken)))
        }
        const send = (server: Server): void => {
          isSent = true
          if (chosen === "swallowed") return
          if (chosen === "lost") return later(delay(), () => settle(Exit.fail(broken)))
          // a request on its way arrives, also if its sender has been killed or has closed the connection
          after(chosen === "late" ? random() * longest : delay(), () => arrive(server))
        }
        later(2 * delay(), () => {
          const server = find(url)
          if (chosen === "refused" || server?.node.isAlive() !== true) return settle(Exit.fail(unreachable))
          send(server)
        })
        const { sendWithin = Infinity } = request
        if (sendWithin < Infinity) {
          later(sendWithin, () => {
            if (!isSent) timeOutAfter(sendWithin)
          })
        }
        return leave
      })
  })

  const connect = Effect.fnUntraced(function*(from: Simulation.Node, address: Redacted.Redacted) {
    const client = new Inbox()
    const server = new Inbox()
    yield* Simulation.callback<void, SocketLost>((resume) => {
      const cancel = after(2 * delay(), () => {
        const found = find(Redacted.value(address))
        const { accept, node } = found ?? {}
        if (accept === undefined || node?.isAlive() !== true) {
          return resume(Exit.fail(new SocketLost({ code: 1006, reason: "ECONNREFUSED" })))
        }
        let isSilent = false
        /** The time at which the last message arrives at the client. */
        let last = 0
        const toClient = (run: () => void): void => {
          if (isSilent) return
          const { now } = clock
          last = Math.max(last, now() + delay())
          after(last - now(), run)
        }
        const served = Effect.scoped(Effect.gen(function*() {
          const connection = yield* accept(address, from)
          return yield* Effect.raceFirst(
            Effect.forever(Effect.map(connection.receive, (texts) => toClient(() => client.push(texts)))),
            Effect.forever(
              Effect.flatMap(server.receive, (texts) => Effect.forEach(texts, connection.send, { discard: true }))
            )
          )
        }))
        const fiber = node.start(served)
        const socket: OpenSocket = {
          from: from.name,
          to: new URL(Redacted.value(address)).host,
          lose: (ending) => {
            open.delete(socket)
            after(delay(), () => client.end(ending))
            after(delay(), () => {
              server.end(ending)
              interrupt(fiber)
            })
          },
          silence: () => {
            isSilent = true
          }
        }
        open.add(socket)
        const isReset = new SocketLost({ code: 1006, reason: "" })
        node.onKilled(() => toClient(() => client.end(isReset)))
        fiber.addObserver((exit) => {
          open.delete(socket)
          const failure = Exit.isFailure(exit) ? exit.cause.reasons.find((reason) => reason._tag === "Fail") : undefined
          toClient(() => client.end(failure === undefined ? isReset : failure.error))
        })
        closers.set(client, { silenced: () => isSilent, close: () => after(delay(), () => socket.lose(isReset)) })
        resume(Exit.void)
      })
      return cancel
    })
    const closer = closers.get(client)
    const cancelKilled = from.onKilled(() => closer?.close())
    let lastSent = 0
    yield* Scope.addFinalizer(
      yield* Effect.scope,
      Effect.sync(() => {
        cancelKilled()
        closer?.close()
        closers.delete(client)
      })
    )
    return {
      receive: client.receive,
      send: (text: string) =>
        Effect.suspend(() => {
          if (client.hasEnded) return Effect.fail(new SocketLost({ code: 1006, reason: "closed" }))
          if (closer?.silenced() !== true) {
            const { now } = clock
            lastSent = Math.max(lastSent, now() + delay())
            after(lastSent - now(), () => server.push([text]))
          }
          return Effect.void
        })
    }
  })
  const closers = new Map<Inbox, { readonly silenced: () => boolean; readonly close: () => void }>()
  const clock = yield* Simulation.Simulation

  const sockets = (from: Simulation.Node): SocketTransport["Service"] => ({
    open: (address) => connect(from, address)
  })

  return {
    serve: (address: string, server: Server) => {
      const { host } = new URL(address)
      servers.set(host, server)
      // what a killed node served does not continue when the node is started again
      server.node.onKilled(() => {
        if (servers.get(host) === server) servers.delete(host)
      })
    },
    close: (address: string) => void servers.delete(new URL(address).host),
    http,
    sockets,
    layer: (from: Simulation.Node) =>
      Layer.merge(Layer.succeed(HttpTransport, http(from)), Layer.succeed(SocketTransport, sockets(from))),
    breakSockets: (probability: number, isSilent: boolean) => {
      let count = 0
      for (const socket of open) {
        if (random() >= probability) continue
        count += 1
        log(socket.from, `its WebSocket to ${socket.to} ${isSilent ? "becomes silent" : "breaks"}`)
        if (isSilent) socket.silence()
        else socket.lose(new SocketLost({ code: 1006, reason: "" }))
      }
      return count
    }
  } satisfies Network
})
