/** The clients of the simulated gateways: bots that trade, readers, and subscribers that resume. */
import { local } from "@trigate/domain/Caller"
import { lowerCase } from "@trigate/domain/encoding/Encoding"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Signer from "@trigate/signing/Signer"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as HttpServing from "@trigate/simulation/HttpServing"
import type { Network } from "@trigate/simulation/Network"
import * as Simulation from "@trigate/simulation/Simulation"
import { SocketLost } from "@trigate/upstream/streams/SocketTransport"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { createHash } from "node:crypto"

/** The simulated time at the start. */
export const startsAt = 1_767_225_600_000

/** Milliseconds after which a client gives up a request. */
const patience = 30_000

/** What a client knows about an attempt to send an action. */
export type Known =
  /** The venue's response was received. */
  | "answered"
  /** A typed error other than `OutcomeUnknown`: the attempt was not accepted. */
  | "refused"
  /** `OutcomeUnknown`, or no response. */
  | "unknown"

/** An attempt to send an action. */
export interface Attempt {
  readonly signer: string
  readonly nonce: number
  readonly body: string
  readonly replica: string
  readonly from: number
  until: number | undefined
  known: Known | undefined
  /** Whether the client left before the response. */
  hasLeft: boolean
  text: string
}

/** A signed order. */
export interface Signed {
  readonly signer: string
  readonly nonce: number
  readonly body: string
}

const privateKey = (name: string) => {
  const key: `0x${string}` = `0x${createHash("sha256").update(`trigate simulation ${name}`).digest("hex")}`
  return Redacted.make(key)
}

const bodies = new Map<string, Signed>()

/** An account that trades. */
export interface Account {
  readonly address: `0x${string}`
  /** Signs the order with a number; `variant` selects one of several contents with the same nonce. */
  readonly sign: (number: number, variant?: number) => Signed
  /** Signs the cancel with a number, of an order that does not exist. */
  readonly signCancel: (number: number) => Signed
}

/** Loads the signing libraries, and makes accounts. Each order is signed once in a process. */
export const makeAccounts = Effect.fnUntraced(function*(names: ReadonlyArray<string>) {
  return yield* Effect.forEach(names, (name) =>
    Effect.gen(function*() {
      const run = Effect.runSyncWith(yield* Effect.context())
      const signer = yield* Signer.makePrivateKey(privateKey(name))
      const address = lowerCase(signer.address)
      const services = Layer.merge(Layer.succeed(Signer.Signer, signer), VenueProfile.layer("mainnet"))
      const account: Account = {
        address,
        signCancel: (number) => {
          const key = `${name}/cancel/${number}`
          const known = bodies.get(key)
          if (known !== undefined) return known
          const nonce = startsAt + 500_000 + number
          const body = run(Effect.provide(
            ActionBuilder.cancelOrders([{ asset: 1, orderId: 1_000_000 + number }], { nonce }),
            services
          ))
          const signed = { signer: address, nonce, body: JSON.stringify(body) }
          bodies.set(key, signed)
          return signed
        },
        sign: (number, variant = 0) => {
          const key = `${name}/${number}/${variant}`
          const known = bodies.get(key)
          if (known !== undefined) return known
          const nonce = startsAt + 1000 + number
          const isBuy = (number + variant) % 2 === 0
          // every third order rests, the others are filled at once
          const rests = number % 3 === 2
          const body = run(Effect.provide(
            ActionBuilder.placeOrders({
              orders: [{
                asset: 1,
                side: isBuy ? "buy" : "sell",
                priceInQuote: rests === isBuy ? "1500" : "4500",
                sizeInBase: `0.${1 + variant}`,
                cloid: `0x${createHash("md5").update(key).digest("hex")}`
              }]
            }, { nonce, expiresAfter: startsAt + 60_000 + number }),
            services
          ))
          const signed = { signer: address, nonce, body: JSON.stringify(body) }
          bodies.set(key, signed)
          return signed
        }
      }
      return account
    }))
}, Effect.provide(Secp256k1.layer))

/** Finds the replicas that a client can call. */
export type Replicas = () => ReadonlyArray<string>

/** Makes the client of a node. */
export const makeClient = (network: Network, node: Simulation.Node) => {
  const http = network.http(node)
  const send = (url: string, method: "GET" | "POST", body: string | undefined, timeout = patience) =>
    Effect.result(http.send({
      owner: local,
      method,
      url: Redacted.make(url),
      headers: body === undefined ? {} : { "content-type": "application/json" },
      body: body === undefined ? undefined : new TextEncoder().encode(body),
      maxAnswerBytes: 1024 * 1024,
      timeout
    }))
  return {
    send,
    /** Sends a signed action, and records what the client then knows. */
    attempt: Effect.fnUntraced(function*(
      replica: string,
      { body, nonce, signer }: Signed,
      attempts: Array<Attempt>,
      now: () => number,
      timeout: number = patience
    ) {
      const attempt: Attempt = {
        signer,
        nonce,
        body,
        replica,
        from: now(),
        until: undefined,
        known: undefined,
        hasLeft: timeout < patience,
        text: ""
      }
      attempts.push(attempt)
      const sent = yield* send(`${replica}/exchange`, "POST", body, timeout)
      attempt.until = now()
      if (Result.isFailure(sent)) {
        attempt.known = sent.failure.sent === "no" ? "refused" : "unknown"
        attempt.text = `${sent.failure.reason} ${sent.failure.detail}`
      } else {
        attempt.text = HttpServing.bodyText(sent.success)
        attempt.known = sent.success.status === 200
          ? "answered"
          : /"_tag":"(?:OutcomeUnknown|StillUnknown)"/u.test(attempt.text)
          ? "unknown"
          : "refused"
      }
      return attempt
    })
  }
}

/** The rows of account events that a subscriber has received. */
export interface Subscriber {
  readonly name: string
  readonly address: string
  /** How often each row arrived outside of snapshots, since the last report of a gap. */
  readonly rows: Map<string, number>
  /** Every row that arrived at all. */
  readonly seen: Set<string>
  readonly faults: Array<string>
  /** The times of the reported gaps. */
  readonly gaps: Array<number>
  /** The time of the last row or snapshot. */
  heardAt: number
}

const parse = (text: string): unknown => {
  const parsed: unknown = JSON.parse(text)
  return parsed
}

const isObject = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null

const member = (value: unknown, name: string): unknown => isObject(value) ? value[name] : undefined

/**
 * Makes the receiver of the frames of an account's subscriber, on any connection. It checks the order of the events, and
 * remembers the position from which to resume. With several subscriptions (`isShared`), the position remains the earlier
 * one until the `pong` that follows the subscriptions, and rows can repeat.
 */
export const makeReceiver = (
  { log, now }: Simulation.Simulation["Service"],
  name: string,
  address: string,
  isShared = false
) => {
  const subscriber: Subscriber = {
    name,
    address,
    rows: new Map(),
    seen: new Set(),
    faults: [],
    gaps: [],
    heardAt: 0
  }
  let cursor = ""
  let resumeFrom = ""
  let isReplayed = !isShared
  let isRecovered = false
  let last: { readonly epoch: string; readonly seq: number } | undefined

  const receive = (text: string): void => {
    const frame = parse(text)
    const channel = member(frame, "channel")
    const data = member(frame, "data")
    if (channel === "resume") {
      const [epoch, seq] = [String(member(data, "epoch")), Number(member(data, "seq"))]
      isRecovered = member(data, "recovered") === true
      if (!isRecovered) {
        subscriber.gaps.push(now())
        subscriber.rows.clear()
        last = { epoch, seq }
        cursor = `${epoch}:${seq}`
        resumeFrom = cursor
        log(name, `is told of a gap, at ${cursor}`)
      }
      return
    }
    // without a resumption, a subscription without snapshots begins with its acknowledgement
    if (channel === "subscriptionResponse" && !isRecovered) subscriber.gaps.push(now())
    if (channel === "pong") isReplayed = true
    if (isReplayed) resumeFrom = cursor
    if (channel !== "userFills" && channel !== "orderUpdates") return
    subscriber.heardAt = now()
    const rows = channel === "userFills" ? member(data, "fills") : data
    const isSnapshot = member(data, "isSnapshot") === true
    const seq = Number(member(frame, "seq"))
    const epoch = member(frame, "epoch")
    if (typeof epoch === "string" && !Number.isNaN(seq)) {
      if (!isSnapshot && !isShared && last !== undefined && epoch === last.epoch && seq <= last.seq) {
        subscriber.faults.push(`${name} received event ${seq} after ${last.seq}`)
      }
      last = { epoch, seq }
      cursor = `${epoch}:${seq}`
      if (isReplayed) resumeFrom = cursor
    }
    for (const row of Array.isArray(rows) ? rows : []) {
      const id = channel === "userFills"
        ? `${String(member(row, "oid"))}/${String(member(row, "tid"))}/${String(member(row, "sz"))}`
        : `${String(member(member(row, "order"), "oid"))} ${String(member(row, "status"))}`
      subscriber.seen.add(id)
      if (!isSnapshot && !isShared) subscriber.rows.set(id, (subscriber.rows.get(id) ?? 0) + 1)
    }
  }
  return {
    subscriber,
    receive,
    /** Begins a connection. Returns the position from which it resumes. */
    connect: (): string => {
      isReplayed = !isShared
      cursor = resumeFrom
      return resumeFrom
    }
  }
}

/**
 * Subscribes to events of an account at any replica, by default its fills, and resumes at another one after each loss. Checks the order of
 * the events.
 */
export const makeSubscriber = (
  simulation: Simulation.Simulation["Service"],
  network: Network,
  node: Simulation.Node,
  address: string,
  replicas: ReadonlyArray<string>,
  type: "orderUpdates" | "userFills" = "userFills",
  observe: (text: string, replica: string) => void = () => {}
) => {
  const { log, now, random } = simulation
  const sockets = network.sockets(node)
  const { connect, receive, subscriber } = makeReceiver(simulation, node.name, address)

  const session = Effect.gen(function*() {
    const replica = replicas[Simulation.pickBelow(random, replicas.length)] ?? ""
    const connection = yield* sockets.open(Redacted.make(`${replica.replace("http", "ws")}/ws?resume=${connect()}`))
    yield* connection.send(
      JSON.stringify({ method: "subscribe", subscription: { type, user: address } })
    )
    let answeredAt = now()
    const reading = Effect.forever(Effect.flatMap(connection.receive, (texts) => {
      answeredAt = now()
      for (const text of texts) {
        receive(text)
        observe(text, replica)
      }
      // the subscription was refused or has ended: a client subscribes again
      const refusal = texts.find((text) => text.startsWith(`{"channel":"error"`))
      return refusal === undefined ? Effect.void : Effect.fail(new SocketLost({ code: 1000, reason: refusal }))
    }))
    // a client pings, and notices a silent connection
    const pinging = Effect.forever(Effect.andThen(
      Effect.sleep("10 seconds"),
      Effect.suspend(() =>
        now() - answeredAt > 15_000
          ? Effect.fail(new SocketLost({ code: 1006, reason: "silent" }))
          : connection.send(`{"method":"ping"}`)
      )
    ))
    return yield* Effect.raceFirst(reading, pinging)
  }).pipe(Effect.scoped)

  return {
    subscriber,
    run: Effect.forever(Effect.andThen(
      Effect.catchTag(
        session,
        "SocketLost",
        ({ code, reason }) => Effect.sync(() => log(node.name, `lost its socket: ${code} ${reason}`))
      ),
      Effect.suspend(() => Effect.sleep(200 + random() * 1000))
    ))
  }
}
