/**
 * A venue, a token chain and a layer 2 in memory, which provide the same services as the live chains.
 *
 * The services use the implementations of the chain packages. Only the transports differ: they respond in the format of
 * the real upstreams. Typed methods and relayed requests therefore run the same code as with live chains.
 */
import { OutcomeUnknown } from "@trigate/domain/errors/GatewayError"
import { type EvmBackend, serving as evmServing } from "@trigate/domain/evm/EvmProtocol"
import { serving as layer2Serving } from "@trigate/domain/evm/Layer2Operations"
import { sourcesOn, unavailableOnNode } from "@trigate/domain/operations/Operation"
import type { TokenOnce, TokenRead } from "@trigate/domain/unstable/tokens/TokenProtocol"
import * as Layer2 from "@trigate/evm/Layer2"
import * as GatewayReads from "@trigate/evm/unstable/EvmFeed"
import * as NonceSource from "@trigate/signing/NonceSource"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as TokenChain from "@trigate/tokens/TokenChain"
import * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import * as ActionSettlement from "@trigate/trading/actionLog/ActionSettlement"
import * as Admission from "@trigate/trading/admission/Admission"
import * as Exchange from "@trigate/trading/Exchange"
import * as Guard from "@trigate/trading/guard/Guard"
import * as Info from "@trigate/trading/Info"
import * as Inspector from "@trigate/trading/Inspector"
import type * as Trading from "@trigate/trading/Trading"
import * as TradingEvm from "@trigate/trading/TradingEvm"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as EvmNode from "./evm/EvmNode.ts"
import * as Layer2Chain from "./evm/Layer2Chain.ts"
import * as ReadPrecompiles from "./evm/ReadPrecompiles.ts"
import * as VenueEvm from "./evm/VenueEvm.ts"
import { chainIds } from "./SandboxExamples.ts"
import * as SandboxState from "./SandboxState.ts"
import * as TokenServer from "./tokens/TokenServer.ts"
import * as VenueExchange from "./venue/VenueExchange.ts"
import * as VenueInfo from "./venue/VenueInfo.ts"

/** Options of the sandbox's chains. */
export interface Options extends SandboxState.Options, Guard.GuardOptions {
  /** The network of the venue. Default: mainnet. */
  readonly network?: VenueProfile.Network | undefined
}

/**
 * The services `Exchange`, `Info`, `TradingEvm`, `TokenChain` and `Layer2`, and the `SandboxState` from which they are
 * served.
 */
export type Services =
  | Exchange.Exchange
  | Guard.Guard
  | Info.Info
  | TradingEvm.TradingEvm
  | TokenChain.TokenChain
  | Layer2.Layer2
  | SandboxState.SandboxState

type State = SandboxState.SandboxState["Service"]

const upstream = "trading-api"

/** Executes a signed action. With a feed, waits for the books of the coins that the action names. */
const submit = (
  profile: VenueProfile.VenueProfile,
  state: State,
  body: Uint8Array,
  recovered?: VenueExchange.Recovered
) => {
  const submitted = VenueExchange.submit(profile, state, body, recovered)
  return state.feed === undefined ? submitted : Effect.andThen(state.feed.lookAtAssets(body), submitted)
}

const exchange = Effect.gen(function*() {
  const state = yield* SandboxState.SandboxState
  const profile = yield* VenueProfile.Venue
  // recovers the co-signers' addresses; in pure JavaScript, each recovery takes about a millisecond
  const engine = yield* Secp256k1.Secp256k1
  return Exchange.make({
    admission: yield* Admission.Admission,
    log: yield* ActionLog.ActionLog,
    guard: yield* Guard.current,
    send: ({ body, nonce, operation, signed, signer }) => {
      const lost = (what: string) =>
        Exit.fail(
          new OutcomeUnknown({
            upstream,
            nonce,
            ...(signer === undefined ? {} : { signer }),
            advice: operation.advice,
            detail: `${upstream}: as an injected fault, the sandbox ${what}`
          })
        )
      if (state.faults.happens("lostRequests")) return lost("lost the action before its venue received it")
      return Effect.flatMap(
        state.faults.ask(
          Effect.provideService(
            submit(profile, state, body, { signed, signer }),
            Secp256k1.Secp256k1,
            engine
          )
        ),
        (answer) =>
          answer.status === 200 && state.faults.happens("lostReplies")
            ? lost("executed the action and sent no reply")
            : Exit.succeed(answer)
      )
    }
  })
})

const asked = Effect.fnUntraced(function*(state: State, query: Uint8Array) {
  const relayed = state.feed === undefined ? undefined : yield* state.feed.ask(query)
  if (relayed !== undefined) return relayed
  const now = yield* state.trading.now
  const venue = yield* Ref.get(state.venue.state)
  const listed = yield* Ref.get(state.info.state)
  const trading = state.trading.at(listed, now)
  const answer = VenueInfo.answer({ seed: state.seed, ...listed, venue, trading, now }, query)
  yield* state.trading.flush
  return answer
})

/**
 * Serves the venue's `POST /info` and `POST /exchange`: returns the response to a body that was sent to a path. Recovers
 * the signers by itself, and does not check whether an action was sent before; the venue refuses a used nonce.
 */
export const serveVenue = Effect.fnUntraced(function*(path: "/exchange" | "/info", body: Uint8Array) {
  const state = yield* SandboxState.SandboxState
  return yield* state.faults.ask(
    path === "/info" ? asked(state, body) : submit(yield* VenueProfile.Venue, state, body)
  )
})

const info = (state: State) =>
  Info.make({
    read: Effect.fnUntraced(function*({ body, operation, surface }) {
      if (sourcesOn(operation, surface).length === 0) return yield* unavailableOnNode(operation)
      return yield* state.faults.ask(asked(state, body.bytes))
    })
  })

const evm = Effect.gen(function*() {
  const { evm, info, seed, trading, venue } = yield* SandboxState.SandboxState
  const profile = yield* VenueProfile.Venue
  const withMachine = yield* EvmNode.makeMachine(chainIds[profile.name], ReadPrecompiles.addresses)
  const clock = yield* Clock.Clock
  const advance = () => {
    const at = trading.at(Ref.getUnsafe(info.state), trading.nowAt(clock.currentTimeMillisUnsafe()))
    trading.deliver()
    return at
  }
  const chainAt = (known: VenueEvm.EvmState, now: number) =>
    VenueEvm.at({ seed, profile, evm: known, venue: Ref.getUnsafe(venue.state), now, trading: advance })
  const runSystemCalls = EvmNode.runSystemCalls(withMachine, evm.state, chainAt)
  /** Credits HYPE and tokens that accounts sent to the EVM. */
  const creditBridged = Effect.suspend(() => {
    const venue = advance()
    const { bridged } = venue.state
    if (bridged.length === 0) return Effect.void
    venue.state.bridged = []
    return Ref.update(evm.state, (known) => VenueEvm.credit(venue, known, bridged)).pipe(
      Effect.andThen(runSystemCalls(VenueEvm.creditCalls(venue, bridged))),
      // an interrupted caller must not lose the tokens of others
      Effect.uninterruptible
    )
  })
  const submit = EvmNode.submit(withMachine, evm.state, chainAt)
  const node: EvmBackend = {
    read: Effect.fnUntraced(function*({ operation, params }) {
      yield* creditBridged
      const view = {
        seed,
        profile,
        evm: yield* Ref.get(evm.state),
        venue: yield* Ref.get(venue.state),
        now: yield* Clock.currentTimeMillis,
        trading: advance
      }
      return yield* VenueEvm.answer(view, withMachine, operation.name, params.text)
    }),
    once: Effect.fnUntraced(function*(call) {
      yield* creditBridged
      const before = yield* Ref.get(evm.state)
      const answer = yield* submit(call)
      const after = yield* Ref.get(evm.state)
      const now = clock.currentTimeMillisUnsafe()
      trading.schedule(
        VenueEvm.newEffects(advance(), before, after, trading.nowAt(now) - now),
        after.transactions
      )
      return answer
    })
  }
  const reads = yield* GatewayReads.makeGatewayReads(node, { serving: evmServing, label: "trading-node" })
  return TradingEvm.make(reads, evmServing, yield* Guard.current)
})

/** Serves token metadata documents from the sandbox's state, without HTTP requests. */
const metadata = ({ tokens }: State): TokenChain.MetadataFetch["Service"] => ({
  fetch: (uri) =>
    Effect.map(
      Ref.get(tokens.state),
      ({ documents }) => documents.has(uri) ? Option.some(documents.get(uri)) : Option.none()
    )
})

/**
 * Settings for the token chain's streams in a sandbox. The sandbox has no request limit, and makes a block for each
 * message, so the streams poll the sandbox at short intervals.
 */
const tokenStreams = { requestsPerSecond: 1_000, pollInterval: "250 millis" } as const

const tokens = Effect.fnUntraced(function*(state: State) {
  const ask = Effect.fnUntraced(function*({ form, operation, params }: TokenRead | TokenOnce) {
    const now = yield* Clock.currentTimeMillis
    const answer = yield* state.tokens.answer(operation.name, params.valueOrUndefined)
    return form === "rpc" ? TokenServer.rpc(answer, now, "1") : TokenServer.rest(answer, now)
  })
  return yield* TokenChain.make({ read: ask, once: ask }, metadata(state), tokenStreams)
})

const layer2 = Effect.fnUntraced(function*(state: State) {
  const withMachine = yield* EvmNode.makeMachine(chainIds.layer2)
  const node: EvmBackend = {
    read: Effect.fnUntraced(function*({ operation, params }) {
      const now = yield* Clock.currentTimeMillis
      const chain = Layer2Chain.at(state.seed, yield* Ref.get(state.layer2.state), now)
      return yield* EvmNode.answer({ chain, withMachine }, operation.name, params.text)
    }),
    once: EvmNode.submit(withMachine, state.layer2.state, (known, now) => Layer2Chain.at(state.seed, known, now))
  }
  return Layer2.make(yield* GatewayReads.makeGatewayReads(node, { serving: layer2Serving, label: "layer2" }))
})

/**
 * Provides the services `Exchange`, `Info`, `TradingEvm`, `TokenChain` and `Layer2` over the `SandboxState` of the
 * context.
 *
 * Each call returns a new layer with separate services.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerServices = (guard: Guard.GuardOptions = {}): Layer.Layer<
  Exclude<Services, SandboxState.SandboxState>,
  never,
  SandboxState.SandboxState | ActionLog.ActionLog | Admission.Admission | VenueProfile.Venue
> =>
  Layer.mergeAll(
    Layer.merge(Layer.effect(Exchange.Exchange, exchange), Layer.effect(TradingEvm.TradingEvm, evm)).pipe(
      Layer.provide(Secp256k1.layer),
      Layer.provideMerge(Guard.layer(guard)),
      Layer.provideMerge(ActionSettlement.layer()),
      Layer.provideMerge(Layer.effect(Info.Info, Effect.map(SandboxState.SandboxState, info)))
    ),
    Layer.effect(TokenChain.TokenChain, Effect.flatMap(SandboxState.SandboxState, tokens)),
    Layer.effect(Layer2.Layer2, Effect.flatMap(SandboxState.SandboxState, layer2))
  )

/**
 * Provides the sandbox's services and their state. Uses the `Venue`, the `Admission` and the `ActionLog` of the
 * context.
 *
 * Each call returns a new layer with separate state.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNoDeps = (options: SandboxState.Options & Guard.GuardOptions = {}): Layer.Layer<
  Services,
  never,
  ActionLog.ActionLog | Admission.Admission | VenueProfile.Venue
> => Layer.provideMerge(layerServices(options), SandboxState.layer(options))

/**
 * Provides the sandbox's services, to replace the live layers in tests.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { Sandbox, SandboxState } from "@trigate/sandbox"
 * import { Info } from "@trigate/trading"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { trading } = yield* SandboxState.SandboxState
 *   yield* trading.playPrices("BTC", [{ time: 0, price: 60_000 }])
 *   const { allMids } = yield* Info.Info
 *   const { BTC } = yield* allMids()
 *   yield* Console.log(BTC)
 * })
 *
 * await Effect.runPromise(Effect.provide(program, Sandbox.layer({ seed: "my-test" })))
 * ```
 */
export const layer = (
  { network = "mainnet", ...options }: Options = {}
): Layer.Layer<Services | Trading.Services | Trading.Signing> =>
  layerNoDeps({ ...options, network }).pipe(
    Layer.provide(Admission.layer()),
    Layer.merge(Inspector.layer()),
    Layer.provideMerge(Layer.mergeAll(VenueProfile.layer(network), ActionLogMemory.layer(), NonceSource.layerMemory()))
  )
