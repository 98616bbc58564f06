/**
 * Dead man's switches: sends the signed actions that a program has left when the program's heartbeats stop.
 *
 * A switch is a document in the store that replicas share. Each replica measures, by its own clock that only moves
 * forward, how long the document has had no new heartbeat. The replica that first replaces the document with the state
 * `firing` sends the actions, in order. If that replica dies, another one continues a minute later. An action whose nonce
 * is in the action log was sent, and is not sent again.
 *
 * Without a shared store, the switches are in the memory of the process, and end with it.
 */
import { innerAction } from "@trigate/domain/actions/Action"
import { isOpen, legRejection } from "@trigate/domain/actions/ActionOutcome"
import * as Policy from "@trigate/domain/actions/Policy"
import { SwitchAction, SwitchName, type SwitchRequest, type SwitchState } from "@trigate/domain/actions/Policy"
import { background, CurrentCaller } from "@trigate/domain/Caller"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { type InvalidRequest, NotPermitted, QuotaExceeded, unwrapReason } from "@trigate/domain/errors/GatewayError"
import { invalidRequest } from "@trigate/domain/operations/Operation"
import { SharedStoreUnreachable } from "@trigate/upstream/unstable/SharedState"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { ActionLog, type AuditLog, UsedNonces } from "../actionLog/ActionLog.ts"
import * as LoggedAction from "../actionLog/LoggedAction.ts"
import * as ActionDecoder from "../admission/ActionDecoder.ts"
import { Exchange } from "../Exchange.ts"
import { Inspector } from "../Inspector.ts"
import * as GuardStore from "./GuardStore.ts"
import * as Rules from "./Rules.ts"

/** A signed action of a switch. `expiresAfter` is in milliseconds since 1970; absent if the action does not expire. */
export interface ArmedAction {
  readonly text: string
  readonly signer: Encoding.Address
  readonly nonce: number
  readonly actionType: string
  readonly expiresAfter?: number
}

/** A request that arms a switch, with its actions as {@link readActions} returns them. */
export interface Arming extends Omit<SwitchRequest, "actions"> {
  readonly actions: ReadonlyArray<ArmedAction>
}

/**
 * Sends signed actions when a program's heartbeats stop. A switch belongs to the caller that armed it.
 *
 * Provided by `DeadMansSwitch.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { ActionBuilder, Signer } from "@trigate/signing"
 * import { Encoding } from "@trigate/domain"
 * import { Sandbox } from "@trigate/sandbox"
 * import { DeadMansSwitch, Inspector } from "@trigate/trading"
 * import { Clock, Console, Effect, Layer, Redacted } from "effect"
 *
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = Effect.gen(function*() {
 *   const nonce = yield* Clock.currentTimeMillis
 *   const cancel = yield* ActionBuilder.cancelOrders([{ asset: 0, orderId: 1 }], { nonce })
 *   const { arm, beat } = yield* DeadMansSwitch.DeadMansSwitch
 *   const actions = yield* DeadMansSwitch.readActions([Encoding.stringify(cancel)])
 *   yield* arm("bot", { after: 10, actions })
 *   yield* Console.log((yield* beat("bot")).state)
 * })
 *
 * const sandbox = Layer.provideMerge(Layer.merge(DeadMansSwitch.layer(), Inspector.layer()), Sandbox.layer())
 *
 * await Effect.runPromise(Effect.provide(program, Layer.merge(sandbox, Signer.layerPrivateKey(key))))
 * ```
 * ```text
 * armed
 * ```
 */
export class DeadMansSwitch extends Context.Service<DeadMansSwitch, {
  /**
   * Arms a switch, or replaces an armed one. A switch that is firing is not replaced. Fails with `QuotaExceeded` if the
   * caller has {@link mostOfCaller} switches.
   */
  readonly arm: (
    name: string,
    arming: Arming
  ) => Effect.Effect<SwitchState, InvalidRequest | NotPermitted | QuotaExceeded | SharedStoreUnreachable>
  /** Notes a heartbeat. Returns `armed`, or why the switch is not. */
  readonly beat: (name: string) => Effect.Effect<SwitchState, SharedStoreUnreachable>
  /** Returns a switch without noting a heartbeat. */
  readonly find: (name: string) => Effect.Effect<SwitchState, SharedStoreUnreachable>
  /** Removes a switch that is not firing. Returns its last state. */
  readonly disarm: (name: string) => Effect.Effect<SwitchState, SharedStoreUnreachable>
}>()("@trigate/trading/guard/DeadMansSwitch") {}

const allowed = "only cancels, scheduleCancel, twapCancel, noop and reduce-only orders can be left to the gateway"

/**
 * Reads the signed bodies of a switch: each can only remove orders or reduce positions, and all have one signer. Fails
 * with the position of the first body that is refused.
 *
 * @since 0.1.0
 * @category constructors
 */
export const readActions = Effect.fnUntraced(function*(texts: ReadonlyArray<string>) {
  const { inspect } = yield* Inspector
  const actions: Array<ArmedAction> = []
  for (const [index, text] of texts.entries()) {
    const fail = (message: string) => invalidRequest([{ path: ["actions", index], message }])
    const body = Encoding.encode(text)
    const { action, signed } = yield* Effect.fromResult(ActionDecoder.readText(text)).pipe(
      Effect.mapError(({ detail }) => fail(detail ?? "Not a signed body"))
    )
    const { outer, unsigned } = yield* Effect.mapError(
      inspect(body),
      ({ detail }) => fail(detail ?? "Not a signed body")
    )
    if (outer === undefined) return yield* fail(`No signer can be recovered: ${unsigned ?? "the signature is invalid"}`)
    const { type: actionType } = innerAction(signed.action) ?? signed.action
    const guarded = Rules.read({ action, signed, trace: LoggedAction.makeTrace(signed) })
    const isReducing = guarded !== undefined && Rules.isReducing(guarded)
    if (!Policy.harmlessActions.has(actionType) && !isReducing) {
      return yield* fail(`${Encoding.printable(actionType)}: ${allowed}`)
    }
    const { expiresAfter } = signed
    const { signer } = outer
    if (actions.some((other) => other.signer !== signer)) return yield* fail("The actions have different signers")
    if (actions.some(({ nonce }) => nonce === signed.nonce)) return yield* fail("Two actions have the same nonce")
    actions.push({
      text,
      signer,
      nonce: signed.nonce,
      actionType,
      ...(Predicate.isNumber(expiresAfter) ? { expiresAfter } : {})
    })
  }
  return actions
})

const Document = Schema.Struct({
  caller: Schema.String,
  name: SwitchName,
  after: Schema.Int,
  presence: Schema.Boolean,
  signer: Encoding.Address,
  heartbeats: Schema.Natural,
  /** The number of actions of the signer since the switch was armed, as far as replicas have reported them. */
  used: Schema.Natural,
  state: Schema.Literals(["armed", "firing", "fired", "absent"]),
  /** The replica that sends the actions. */
  sender: Schema.String,
  actions: Schema.Array(Schema.Struct({
    ...SwitchAction.fields,
    text: Schema.String,
    expiresAfter: Schema.optionalKey(Schema.Finite)
  }))
})
type Document = typeof Document.Type

const decodeDocument = Schema.decodeEffect(Schema.fromJsonString(Document))
const decodeIndex = Schema.decodeEffect(Schema.fromJsonString(Schema.Array(Schema.String)))

/** Maximum number of switches of one caller, and of all callers. */
export const mostOfCaller = 20
const mostOfAll = 1000

/** Maximum number of characters of a switch's actions. */
const mostText = 65_536

/** The time between two looks at the switches. */
const checkEvery = "1 second"

/** Milliseconds after which another replica continues to send, if the sender has made no progress. */
const abandonedAfter = 60_000

/** The number of attempts, one per second, to send an action that was certainly not sent. */
const mostAttempts = 600

/** The number of higher nonces after which the venue no longer accepts a nonce. */
const mostHigher = 100

/** The venue's longest time from an action's nonce to the action, in milliseconds. */
const nonceLife = 2 * 86_400_000

/** Milliseconds after which the heartbeat of an open WebSocket is due, as a fraction of `after`. */
const presenceShare = 1000 / 3

const keyFor = (caller: string, name: string): string => `switch ${caller} ${name}`

const unreadable = new SharedStoreUnreachable({ detail: "A stored switch cannot be read" })

/** Returns why the venue would refuse the actions of a switch; `undefined` if nothing is known against them. */
export const findFlaw = (
  { actions, after, used }: Pick<Document, "actions" | "after" | "used">,
  now: number
): string | undefined => {
  if (used >= mostHigher) {
    return `The signer has sent ${used} further actions, so the venue no longer accepts the nonces: sign the actions again, with an API wallet that signs nothing else`
  }
  for (const [index, { expiresAfter, nonce }] of actions.entries()) {
    if (nonce + nonceLife < now + after * 1000) return `The nonce of action ${index} is too old: sign it again`
    if (expiresAfter !== undefined && expiresAfter < now + after * 1000) {
      return `Action ${index} expires before the switch can fire: sign it again with a later expiresAfter`
    }
  }
  return undefined
}

const withoutText = (
  { expiresAfter: _expiresAfter, text: _text, ...action }: Document["actions"][number]
): SwitchAction => action

/** The progress of a switch as a replica sees it, and the time of its last change, in milliseconds of a clock that only moves forward. */
interface Followed {
  progress: string
  since: number
  /** The actions of the signer in this process that the document includes. */
  counted: number
}

/** The services that a switch uses, and the state of callers. */
export interface Options {
  /** Sends a body, as `Exchange.relay` does. */
  readonly relay: Exchange["Service"]["relay"]
  readonly log: Pick<ActionLog["Service"], "find">
  /** The store that replicas share. Default: the memory of this process. */
  readonly store?: GuardStore.GuardStore["Service"] | undefined
  /** Returns whether a caller has an open WebSocket. Default: no caller has. */
  readonly isPresent?: (caller: string) => boolean
  readonly used?: UsedNonces
  readonly audit?: AuditLog["Service"] | undefined
}

/** Makes the switches, which are checked until the scope closes. */
export const make = Effect.fnUntraced(function*(options: Options) {
  const { audit, isPresent = () => false, log, relay, store = GuardStore.makeMemory(), used = new UsedNonces() } =
    options
  const clock = yield* Clock.Clock
  const scope = yield* Effect.scope
  const sender = (yield* Random.nextInt).toString(36)
  const followed = new Map<string, Followed>()
  const sending = new Set<string>()
  const now = () => Encoding.monotonicMillis(Encoding.monotonicTime(clock))

  const read = Effect.fnUntraced(function*(key: string) {
    const found = yield* store.get(key)
    if (found === undefined) return undefined
    return { version: found.version, document: yield* Effect.mapError(decodeDocument(found.text), () => unreadable) }
  })

  /** Notes and returns the progress of a switch. */
  const follow = (key: string, document: Document): Followed => {
    const { actions, heartbeats, sender, signer, state } = document
    const progress = [state, sender, heartbeats, actions.filter(({ outcome }) => outcome !== undefined).length].join(
      " "
    )
    const known = followed.get(key)
    if (known?.progress === progress) return known
    const next = { progress, since: now(), counted: known?.counted ?? used.count(signer) }
    followed.set(key, next)
    return next
  }

  /** Replaces a document by what `change` returns, unless that is `undefined`. Returns the document in force. */
  const update = Effect.fnUntraced(
    function*(key: string, change: (found: Document | undefined) => Document | undefined) {
      for (;;) {
        const found = yield* read(key)
        const next = change(found?.document)
        if (next === undefined) return found?.document
        if (yield* store.put(key, found?.version ?? 0, Encoding.stringify(next))) {
          follow(key, next)
          return next
        }
      }
    }
  )

  const readIndex = Effect.flatMap(
    store.get(GuardStore.switchesKey),
    (found) =>
      Effect.map(
        found === undefined ? Effect.succeed([]) : Effect.mapError(decodeIndex(found.text), () => unreadable),
        (keys) => ({ version: found?.version ?? 0, keys })
      )
  )

  /** Replaces the list of the switches that are not finished. Returns `undefined`, and changes nothing, if `change` does. */
  const updateIndex = Effect.fnUntraced(function*(
    change: (keys: ReadonlyArray<string>) => ReadonlyArray<string> | undefined
  ) {
    for (;;) {
      const { keys, version } = yield* readIndex
      const next = change(keys)
      if (next === undefined || next === keys) return next
      if (yield* store.put(GuardStore.switchesKey, version, Encoding.stringify(next))) return next
    }
  })

  const drop = (key: string) => updateIndex((keys) => keys.includes(key) ? keys.filter((each) => each !== key) : keys)

  /** Adds the actions of the signer in this process that the document does not include. */
  const countUsed = (key: string, document: Document): Document => {
    const own = used.count(document.signer)
    const known = follow(key, document)
    const more = own - known.counted
    known.counted = own
    return { ...document, used: document.used + more }
  }

  const describe = (name: string, found: Document | undefined): SwitchState => {
    if (found === undefined || found.state === "absent") {
      const reason = "There is no switch with this name: it was not armed, was disarmed, or was lost with the process"
      return { name, state: "absent", reason, actions: [] }
    }
    const { actions, after, heartbeats, presence, signer, state } = found
    const flaw = state === "armed" ? findFlaw(found, clock.currentTimeMillisUnsafe()) : undefined
    return {
      name,
      state: flaw === undefined ? state : "useless",
      ...(flaw === undefined ? {} : { reason: flaw }),
      ...(state === "armed"
        ? {}
        : { reason: "The heartbeats stopped, and the actions are sent: arm the switch again" }),
      after,
      presence,
      heartbeats,
      signer,
      actions: actions.map(withoutText)
    }
  }

  const arm: DeadMansSwitch["Service"]["arm"] = Effect.fnUntraced(
    function*(name, { actions, after, presence = false }) {
      const { id: caller, scope: { signers } } = yield* CurrentCaller
      const [first] = actions
      if (first === undefined) return yield* invalidRequest([{ path: ["actions"], message: "Expected an action" }])
      const { signer } = first
      if (signers?.every((each) => each.toLowerCase() !== signer) === true) {
        return yield* new NotPermitted({
          missing: "signers",
          needed: signer,
          detail: "The scope of this caller does not include the signer"
        })
      }
      if (actions.reduce((sum, { text }) => sum + text.length, 0) > mostText) {
        return yield* invalidRequest([{ path: ["actions"], message: `Expected at most ${mostText} characters in all` }])
      }
      const key = keyFor(caller, name)
      const document: Document = {
        caller,
        name,
        after,
        presence,
        signer,
        heartbeats: 0,
        used: 0,
        state: "armed",
        sender: "",
        actions: actions.map(({ signer: _signer, ...action }) => action)
      }
      const flaw = findFlaw(document, clock.currentTimeMillisUnsafe())
      if (flaw !== undefined) return yield* invalidRequest([{ path: ["actions"], message: flaw }])
      const added = yield* updateIndex((keys) => {
        if (keys.includes(key)) return keys
        const own = keys.filter((each) => each.startsWith(keyFor(caller, "")))
        return own.length >= mostOfCaller || keys.length >= mostOfAll ? undefined : [...keys, key]
      })
      if (added === undefined) {
        return yield* new QuotaExceeded({
          retryAfter: 60,
          detail: `This caller has ${mostOfCaller} switches, or all callers have ${mostOfAll}`
        })
      }
      followed.delete(key)
      // another replica must not take the document for the one that it has followed since its last heartbeat
      const armed = yield* update(
        key,
        (found) => found?.state === "firing" ? undefined : { ...document, heartbeats: (found?.heartbeats ?? -1) + 1 }
      )
      return describe(name, armed)
    }
  )

  const beatKey = (key: string) =>
    update(
      key,
      (found) => found?.state === "armed" ? { ...countUsed(key, found), heartbeats: found.heartbeats + 1 } : undefined
    )

  const ofCaller = <A>(name: string, use: (key: string) => Effect.Effect<A, SharedStoreUnreachable>) =>
    Effect.flatMap(CurrentCaller, ({ id }) => use(keyFor(id, name)))

  /** The outcome of an action that the action log has; `undefined` if it was never sent. */
  const findOutcome = Effect.fnUntraced(function*(signer: Encoding.Address, nonce: number) {
    const [found] = yield* log.find({ signer, nonce })
    if (found === undefined) return undefined
    return {
      outcome: isOpen(found)
        ? "unknown" as const
        : found.state === "accepted"
        ? "accepted" as const
        : "rejected" as const
    }
  })

  /** Sends an action until it may have arrived. An action that certainly did not is sent again for ten minutes. */
  const send = Effect.fnUntraced(function*({ nonce, text }: Document["actions"][number], signer: Encoding.Address) {
    let detail = ""
    for (let attempt = 0; attempt < mostAttempts; attempt++) {
      if (attempt > 0) yield* Effect.sleep("1 second")
      const known = yield* Effect.result(findOutcome(signer, nonce))
      // while the log cannot be read, the action may have been sent
      if (Result.isFailure(known)) {
        detail = known.failure.message
        continue
      }
      const earlier = known.success
      if (earlier !== undefined) return earlier
      const sent = yield* relay({ body: Encoding.encode(text), surface: "gateway" }).pipe(
        Effect.mapError(unwrapReason),
        Effect.flatMap(({ outcome }) => Effect.fromResult(outcome)),
        Effect.result
      )
      if (Result.isSuccess(sent)) {
        const refused = Option.getOrUndefined(legRejection(sent.success))
        return { outcome: "accepted" as const, ...(refused === undefined ? {} : { detail: refused.message }) }
      }
      const error = sent.failure
      detail = error.message
      if (error._tag === "OutcomeUnknown") return { outcome: "unknown" as const, detail }
      if (error._tag === "ActionRejected" || error.group !== "retry-later") {
        return { outcome: "rejected" as const, detail }
      }
    }
    return { outcome: "notSent" as const, detail }
  })

  /** Sends the actions of a switch that have no outcome, in order, while this replica is their sender. */
  const fire = Effect.fnUntraced(function*(key: string) {
    let found = (yield* read(key))?.document
    while (found?.state === "firing" && found.sender === sender) {
      const { actions, caller, name, signer } = found
      const index = actions.findIndex(({ outcome }) => outcome === undefined)
      const action = actions[index]
      if (action === undefined) {
        yield* update(key, (last) => last?.sender === sender ? { ...last, state: "fired" } : undefined)
        yield* drop(key)
        return yield* Effect.logWarning(
          `The switch ${name} of ${caller} has fired: ${
            actions.map(({ actionType, outcome }) => `${actionType} ${outcome}`).join(", ")
          }`
        )
      }
      const ended = yield* Effect.provideService(send(action, signer), CurrentCaller, background(caller))
      found = yield* update(key, (last) =>
        last?.state === "firing" && last.sender === sender
          ? { ...last, actions: last.actions.map((each, at) => at === index ? { ...each, ...ended } : each) }
          : undefined)
    }
  })

  /** Sends in the background. If the store fails, the next check continues. */
  const fireSoon = (key: string) =>
    Effect.suspend(() => {
      if (sending.has(key)) return Effect.void
      sending.add(key)
      const fired = Effect.ensuring(fire(key), Effect.sync(() => void sending.delete(key)))
      return Effect.asVoid(Effect.forkIn(Effect.ignore(fired), scope))
    })

  const check = Effect.fnUntraced(function*(key: string) {
    const found = yield* read(key)
    const document = found?.document
    if (document === undefined || document.state === "fired" || document.state === "absent") {
      // a switch is listed before its document is stored
      const known = followed.get(key)
      if (document === undefined && known === undefined) followed.set(key, { progress: "", since: now(), counted: 0 })
      else if (document !== undefined || now() - (known?.since ?? 0) > abandonedAfter) yield* drop(key)
      return undefined
    }
    const { after, caller, presence, state } = document
    const known = follow(key, document)
    const quiet = now() - known.since
    const claim = Effect.fnUntraced(function*() {
      const isOwn = yield* store.put(
        key,
        found?.version ?? 0,
        Encoding.stringify({ ...document, state: "firing", sender })
      )
      if (!isOwn) return
      const { name, signer } = document
      audit?.write({ time: clock.currentTimeMillisUnsafe(), caller, message: "switch", name, signer })
      yield* Effect.logWarning(`The heartbeats of ${caller} stopped: its switch ${name} fires`)
      yield* fireSoon(key)
    })
    if (state === "firing") {
      if (document.sender === sender) yield* fireSoon(key)
      else if (quiet > abandonedAfter) yield* claim()
    } else if (presence && isPresent(caller)) {
      if (quiet >= after * presenceShare) yield* beatKey(key)
    } else if (quiet > after * 1000) yield* claim()
    return document.signer
  })

  const isUnreadable = (error: SharedStoreUnreachable): boolean => error === unreadable
  let isAway = false
  const checkAll = Effect.gen(function*() {
    const { keys } = yield* readIndex
    if (isAway) {
      // no heartbeat could be stored while the store was unreachable
      isAway = false
      followed.clear()
      yield* Effect.logInfo("The dead man's switches can be read again")
    }
    const listed = new Set(keys)
    for (const key of followed.keys()) if (!listed.has(key)) followed.delete(key)
    // a switch that cannot be read does not keep the others from firing
    const signers = yield* Effect.forEach(
      keys,
      (key) => Effect.catchIf(check(key), isUnreadable, () => Effect.undefined)
    )
    used.retain(new Set(signers.filter(Predicate.isNotUndefined)))
  }).pipe(
    Effect.catch(({ detail }) => {
      if (isAway) return Effect.void
      isAway = true
      return Effect.logError(`The dead man's switches cannot be read, and do not fire: ${detail}`)
    })
  )
  let isChecking = false
  const startChecks = Effect.suspend(() => {
    if (isChecking) return Effect.void
    isChecking = true
    return Effect.forkIn(Effect.repeat(checkAll, Schedule.spaced(checkEvery)), scope)
  })
  // the switches of other replicas are checked from the start
  if (options.store !== undefined) yield* startChecks

  return DeadMansSwitch.of({
    arm: (name, arming) => Effect.tap(arm(name, arming), startChecks),
    beat: (name) => ofCaller(name, (key) => Effect.map(beatKey(key), (found) => describe(name, found))),
    find: (name) => ofCaller(name, (key) => Effect.map(read(key), (found) => describe(name, found?.document))),
    disarm: (name) =>
      ofCaller(name, (key) =>
        Effect.gen(function*() {
          const found = yield* update(key, (last) => last?.state === "armed" ? { ...last, state: "absent" } : undefined)
          if (found?.state !== "firing") yield* drop(key)
          return describe(name, found)
        }))
  })
})

/** Returns the switches of the context, or makes some that end with the scope. */
export const current = Effect.gen(function*() {
  const found = yield* Effect.serviceOption(DeadMansSwitch)
  if (Option.isSome(found)) return found.value
  const { relay } = yield* Exchange
  return yield* make({ relay, log: { find: () => Effect.succeed([]) } })
})

/**
 * Provides the switches over the exchange and the action log of the context, and over its {@link GuardStore.GuardStore} if
 * it has one. Default: no caller has an open WebSocket.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Pick<Options, "isPresent"> = {}
): Layer.Layer<DeadMansSwitch, never, ActionLog | Exchange> =>
  Layer.effect(
    DeadMansSwitch,
    Effect.gen(function*() {
      const store = Option.getOrUndefined(yield* Effect.serviceOption(GuardStore.GuardStore))
      const { relay } = yield* Exchange
      return yield* make({ ...options, relay, log: yield* ActionLog, store })
    })
  )
