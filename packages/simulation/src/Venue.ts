/**
 * A simulated venue: the sandbox's venue as a node of a network, with a record of every action that arrives.
 *
 * The venue is the truth of a simulation: it is never killed. Compare its {@link Venue.arrivals} and {@link Venue.fills}
 * with the results that gateways and bots report.
 */
import * as Encoding from "@trigate/domain/encoding/Encoding"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import { serveVenue } from "@trigate/sandbox/Sandbox"
import * as SandboxState from "@trigate/sandbox/SandboxState"
import * as VenueStreams from "@trigate/sandbox/unstable/streams/VenueStreams"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import type { TransportRequest, TransportResponse } from "@trigate/upstream/transport/HttpTransport"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import type { Network, Server } from "./Network.ts"
import * as Simulation from "./Simulation.ts"

/** A request that arrived at the venue. */
export interface Arrival {
  /** Milliseconds since the start of the simulation. */
  readonly at: number
  readonly path: "/exchange" | "/info"
  readonly body: string
  /** The HTTP status of the venue's response, and its text. */
  readonly status: number
  readonly response: string
}

/** How the venue refuses a request, or serves it late. */
export interface VenueFault {
  /** The status of the refusal, such as 429 or 502; absent if the venue serves the request. */
  readonly status?: number
  /** Milliseconds before the venue handles the request. */
  readonly delay?: number
}

/** The options of a venue. */
export interface Options extends Pick<SandboxState.Options, "seed" | "limits"> {
  /** The addresses. Default: `http://venue`. */
  readonly addresses?: ReadonlyArray<string>
  readonly network: Network
  /** Chooses the fault of a request that has arrived. */
  readonly fault?: (path: Arrival["path"]) => VenueFault | undefined
}

const Fill = Schema.Struct({ oid: Schema.Finite, tid: Schema.Finite, sz: Schema.String, time: Schema.Finite })

/** The members of a fill that identify it. */
export type Fill = typeof Fill.Type

const decodeFills = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Array(Fill)))

/** A venue. */
export interface Venue {
  readonly node: Simulation.Node
  readonly state: SandboxState.SandboxState["Service"]
  /** Every request that arrived, in order. */
  readonly arrivals: ReadonlyArray<Arrival>
  /** The fills of an account according to the venue, oldest first. */
  readonly fills: (address: string) => Effect.Effect<ReadonlyArray<Fill>>
  /** Runs a step of the venue itself, such as a deposit or a query of its state. */
  readonly run: <A, E>(
    step: (state: SandboxState.SandboxState["Service"]) => Effect.Effect<A, E>
  ) => Effect.Effect<A, E>
}

const toTransport = (response: UpstreamResponse.UpstreamResponse): TransportResponse => ({
  status: response.status,
  headers: { "content-type": response.contentType },
  body: response.body
})

/** Returns the type and the nonce of an action, for the timeline. */
const describeAction = (body: string): string => {
  const { nonce = "", type = "action" } = /"type":"(?<type>\w+)".*"nonce":(?<nonce>\d+)/u.exec(body)?.groups ?? {}
  return `${type} ${nonce}`
}

/**
 * Loads the signing libraries. Await it before `Simulation.run`: a simulation cannot wait for a module to load.
 *
 * @since 0.1.0
 * @category services
 */
export const load: Effect.Effect<void> = Effect.scoped(Effect.asVoid(Layer.build(Secp256k1.layer)))

/**
 * Starts a venue in a network, at `http://venue` by default. {@link load} must have run.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import * as Network from "@trigate/simulation/Network"
 * import * as Simulation from "@trigate/simulation/Simulation"
 * import * as Venue from "@trigate/simulation/Venue"
 * import { ActionLogMemory, Info, Trading } from "@trigate/trading"
 * import { Pipeline } from "@trigate/upstream"
 * import { Effect, Exit, Fiber, Layer } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { node } = yield* Simulation.Simulation
 *   const network = yield* Network.make()
 *   const venue = yield* Venue.make({ network, fault: (path) => path === "/info" ? { status: 502 } : undefined })
 *   const bot = node("bot")
 *   const services = Trading.layerNoDeps({ network: "mainnet", addresses: { api: ["http://venue"] } }).pipe(
 *     Layer.provide([ActionLogMemory.layer(), Pipeline.layer()]),
 *     Layer.provide(network.layer(bot))
 *   )
 *   const mids = Info.Info.use(({ allMids }) => Effect.flip(allMids()))
 *   const { _tag } = yield* Fiber.join(bot.start(Effect.provide(mids, services)))
 *   return `${_tag} after ${venue.arrivals.length} requests`
 * })
 *
 * await Effect.runPromise(Venue.load)
 * const { exit } = Simulation.run(program)
 * console.log(Exit.isSuccess(exit) ? exit.value : exit.cause)
 * ```
 * ```text
 * UpstreamError after 3 requests
 * ```
 */
export const make = Effect.fnUntraced(function*(
  { addresses = ["http://venue"], fault, network, ...initial }: Options
) {
  const { log, node: makeNode, now } = yield* Simulation.Simulation
  const node = makeNode("venue")
  const scope = yield* Scope.make()
  const services = yield* Fiber.join(node.start(
    Layer.build(Layer.mergeAll(SandboxState.layer(initial), VenueProfile.layer("mainnet"), Secp256k1.layer)).pipe(
      Scope.provide(scope)
    )
  ))
  const state = Context.get(services, SandboxState.SandboxState)
  const arrivals: Array<Arrival> = []

  const served = (path: Arrival["path"], body: Uint8Array): Effect.Effect<UpstreamResponse.UpstreamResponse> => {
    const chosen = fault?.(path)
    const response = Effect.suspend(() =>
      chosen?.status === undefined
        ? Effect.provideContext(serveVenue(path, body), services)
        : Exit.succeed(UpstreamResponse.json("venue", chosen.status, chosen.status === 429 ? "null" : "{}"))
    )
    return chosen?.delay === undefined ? response : Effect.delay(response, chosen.delay)
  }

  const server: Server = {
    node,
    http: ({ body = new Uint8Array(), url }: TransportRequest) => {
      const path = new URL(Redacted.value(url)).pathname === "/exchange" ? "/exchange" : "/info"
      // a client that disconnects does not stop the venue
      return Effect.uninterruptible(Effect.map(served(path, body), (response) => {
        const text = Encoding.decodeLossy(body)
        arrivals.push({
          at: now(),
          path,
          body: text,
          status: response.status,
          response: path === "/exchange" ? response.text : ""
        })
        if (path === "/exchange") {
          log(node.name, `${response.status} ${describeAction(text)}: ${response.text.slice(0, 120)}`)
        }
        return toTransport(response)
      }))
    },
    accept: VenueStreams.make(state).open
  }
  for (const address of addresses) network.serve(address, server)
  return {
    node,
    state,
    arrivals,
    fills: (address: string) =>
      Fiber.join(node.start(
        Effect.provideContext(
          serveVenue("/info", Encoding.encode(Encoding.stringify({ type: "userFills", user: address }))),
          services
        ).pipe(
          Effect.flatMap(({ text }) => Effect.orDie(decodeFills(text))),
          Effect.map((fills) => fills.toReversed())
        )
      )),
    run: <A, E>(step: (found: typeof state) => Effect.Effect<A, E>) => Fiber.join(node.start(step(state)))
  } satisfies Venue
})
