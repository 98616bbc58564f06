/** The venue's WebSocket: its frames, its limits, and what it does when something is wrong. */
import type { RawData, WebSocket } from "ws"
import { machineTime } from "./clock.ts"
import { actionWeight, exchange, info, queryWeight } from "./rest.ts"
import { channelOf, isObject, keyOf, type Normal, read } from "./subscriptions.ts"
import type { Entry, World } from "./world.ts"

/** The venue's limits for one address; everybody who connects here has the same one. */
export interface Limits {
  readonly connections: number
  readonly newPerMinute: number
  readonly subscriptions: number
  readonly users: number
  readonly messagesPerMinute: number
  readonly posts: number
  /** Milliseconds after which a socket is closed that was sent nothing. */
  readonly silence: number
}

export const venueLimits: Limits = {
  connections: 10,
  newPerMinute: 30,
  subscriptions: 1000,
  users: 10,
  messagesPerMinute: 2000,
  posts: 100,
  silence: 60_000
}

/** What goes wrong at the socket until it is told otherwise. */
export interface Faults {
  /** Connections are refused with this status. */
  readonly refuse: number | null
  /** A text that is sent first. */
  readonly greeting: string | null
  /** Milliseconds until an acknowledgement, or after the first frame of the data. */
  readonly ack: number | "after-data"
  /** Pings are read and not answered. */
  readonly eatPings: boolean
  /** Milliseconds between a subscription that it cannot stand and the end of the socket. */
  readonly destroyAfter: number
  /** Replies to posts wait for a command. */
  readonly holdPosts: boolean
  /** Posted actions are carried out, and their socket is destroyed in place of the reply. */
  readonly losePostedActions: boolean
  /** Keys whose frames are made and not sent; `*` is every key. */
  readonly mute: ReadonlyArray<string>
  /** The socket is destroyed after a subscribe to this key was read, in place of the acknowledgement. */
  readonly fatal: ReadonlyArray<string>
}

export const noFaults: Faults = {
  refuse: null,
  greeting: null,
  ack: 0,
  eatPings: false,
  destroyAfter: 0,
  holdPosts: false,
  losePostedActions: false,
  mute: [],
  fatal: []
}

export interface Action {
  readonly via: "http" | "post"
  /** The text that came: a body, or a whole frame. */
  readonly text: string
  readonly nonce: number
}

interface Held {
  readonly connection: Connection
  readonly id: number
  readonly text: string
}

export class Connection {
  readonly id: number
  readonly socket: WebSocket
  readonly subscriptions = new Map<string, Normal>()
  readonly sent: Array<string> = []
  readonly received: Array<string> = []
  lastSent: number
  isOpen = true

  constructor(id: number, socket: WebSocket, now: number) {
    this.id = id
    this.socket = socket
    this.lastSent = now
  }
}

const minute = 60_000

/** The text of a message of `ws`, whose buffers are not split unless it is told to. */
const textOf = (data: RawData): string => Buffer.isBuffer(data) ? data.toString("utf8") : ""

export class Connections {
  readonly world: World
  readonly all: Array<Connection> = []
  readonly opened: Array<number> = []
  readonly messages: Array<number> = []
  /** Keys of the subscribes that were read, refused ones too. */
  readonly subscribes: Array<string> = []
  readonly actions: Array<Action> = []
  /** Types of the queries that were read, in order. */
  readonly queries: Array<{ readonly via: "http" | "post"; readonly query: unknown }> = []
  readonly weights: Array<{ readonly at: number; readonly weight: number }> = []
  /** What the venue had to refuse or punish: none where somebody keeps its rules. */
  readonly violations: Array<string> = []
  limits: Limits = venueLimits
  faults: Faults = noFaults
  /** Whose the actions are. */
  trader = `0x${"a1".repeat(20)}`
  #held: Array<Held> = []

  constructor(seed: number, make: (seed: number, publish: (entry: Entry) => void) => World) {
    this.world = make(seed, (entry) => this.#publish(entry))
  }

  get open(): ReadonlyArray<Connection> {
    return this.all.filter(({ isOpen }) => isOpen)
  }

  get held(): number {
    return this.#held.length
  }

  /** Counts a request toward the limit of weight a minute, which this venue does not enforce. */
  weigh(weight: number): void {
    this.weights.push({ at: machineTime(), weight })
  }

  /** How many of these times are within the last minute. */
  #recent(times: ReadonlyArray<number>): number {
    return times.filter((time) => time > this.world.clock.now - minute).length
  }

  #violate(what: string): void {
    this.violations.push(what)
  }

  /** The status with which a new connection is refused, if it is. */
  refusal(): number | undefined {
    const { now } = this.world.clock
    if (this.faults.refuse !== null) return this.faults.refuse
    this.opened.push(now)
    if (this.open.length >= this.limits.connections) {
      this.#violate(`connection ${this.open.length + 1}`)
      return 429
    }
    if (this.#recent(this.opened) > this.limits.newPerMinute) {
      this.#violate(`new connection ${this.#recent(this.opened)} of a minute`)
      return 429
    }
    return undefined
  }

  accept(socket: WebSocket): void {
    const { clock } = this.world
    const connection = new Connection(this.all.length, socket, clock.now)
    this.all.push(connection)
    socket.on("close", () => {
      connection.isOpen = false
      this.#held = this.#held.filter((held) => held.connection !== connection)
    })
    socket.on("error", () => {})
    socket.on("message", (data) => this.receive(connection, textOf(data)))
    if (this.faults.greeting !== null) this.send(connection, this.faults.greeting)
    this.#watch(connection)
  }

  /** Ends a connection that was sent nothing for too long. */
  #watch(connection: Connection): void {
    const { clock } = this.world
    if (!connection.isOpen) return
    const left = connection.lastSent + this.limits.silence - clock.now
    if (left <= 0) return this.destroy(connection)
    clock.after(left, () => this.#watch(connection))
  }

  destroy(connection: Connection): void {
    connection.isOpen = false
    connection.socket.terminate()
  }

  send(connection: Connection, text: string): void {
    if (!connection.isOpen) return
    connection.lastSent = this.world.clock.now
    connection.sent.push(text)
    connection.socket.send(text)
  }

  #frame(connection: Connection, channel: string, data?: unknown): void {
    this.send(connection, JSON.stringify(data === undefined ? { channel } : { channel, data }))
  }

  error(connection: Connection, data: string): void {
    this.#frame(connection, "error", data)
  }

  #isMuted(key: string): boolean {
    return this.faults.mute.includes("*") || this.faults.mute.includes(key)
  }

  #publish({ channel, data, key }: Entry): void {
    if (this.#isMuted(key)) return
    let text: string | undefined
    for (const connection of this.all) {
      if (!connection.isOpen || !connection.subscriptions.has(key)) continue
      text ??= JSON.stringify({ channel, data })
      this.send(connection, text)
    }
  }

  receive(connection: Connection, text: string): void {
    connection.received.push(text)
    this.messages.push(this.world.clock.now)
    if (this.#recent(this.messages) > this.limits.messagesPerMinute) {
      this.#violate("too many messages")
      return this.error(connection, `Cannot send more than ${this.limits.messagesPerMinute} messages per minute.`)
    }
    const unparsed = () => this.error(connection, `Error parsing JSON into valid websocket request: ${text}`)
    let frame: unknown
    try {
      frame = JSON.parse(text)
    } catch {
      return unparsed()
    }
    if (!isObject(frame)) return unparsed()
    switch (frame["method"]) {
      case "ping":
        return this.faults.eatPings ? undefined : this.#frame(connection, "pong")
      case "subscribe":
      case "unsubscribe":
        return this.#change(connection, frame["method"], frame["subscription"], unparsed)
      case "post":
        return this.#post(connection, frame, text, unparsed)
      default:
        return unparsed()
    }
  }

  #change(connection: Connection, method: string, input: unknown, unparsed: () => void): void {
    const reading = read(input, this.world.listed)
    if (reading.kind === "unparsed") return unparsed()
    if (reading.kind === "invalid") return this.error(connection, `Invalid subscription ${JSON.stringify(input)}`)
    const key = reading.kind === "normal" ? keyOf(reading.subscription) : JSON.stringify(input)
    if (method === "subscribe") this.subscribes.push(key)
    if (reading.kind === "fatal" || this.faults.fatal.includes(key)) {
      this.#violate(`fatal ${key}`)
      return this.world.clock.after(this.faults.destroyAfter, () => this.destroy(connection))
    }
    return method === "subscribe"
      ? this.#subscribe(connection, key, reading.subscription)
      : this.#unsubscribe(connection, key, reading.subscription)
  }

  #acknowledge(connection: Connection, method: string, subscription: Normal): void {
    this.#frame(connection, "subscriptionResponse", { method, subscription })
  }

  #subscribe(connection: Connection, key: string, subscription: Normal): void {
    if (connection.subscriptions.has(key)) return this.error(connection, `Already subscribed: ${key}`)
    const others = this.open.flatMap(({ subscriptions }) => [...subscriptions.values()])
    if (others.length >= this.limits.subscriptions) {
      this.#violate(`subscription ${others.length + 1}`)
      return this.error(connection, `Cannot subscribe to more than ${this.limits.subscriptions} channels.`)
    }
    const users = new Set([...others, subscription].flatMap(({ user }) => user === undefined ? [] : [user]))
    if (subscription["user"] !== undefined && users.size > this.limits.users) {
      this.#violate(`user ${users.size}`)
      return this.error(connection, `Cannot track more than ${this.limits.users} total users.`)
    }
    connection.subscriptions.set(key, subscription)
    this.world.known.set(key, subscription)
    const acknowledge = () => this.#acknowledge(connection, "subscribe", subscription)
    const { ack } = this.faults
    const first = () => {
      const data = this.world.first(subscription)
      if (data !== undefined && !this.#isMuted(key)) {
        this.#frame(connection, channelOf(subscription), this.world.decorate(data))
      }
    }
    if (ack === "after-data") {
      first()
      return acknowledge()
    }
    this.world.clock.after(ack, () => {
      acknowledge()
      // what a slow acknowledgement let pass has been sent already
      first()
    })
  }

  #unsubscribe(connection: Connection, key: string, subscription: Normal): void {
    if (!connection.subscriptions.delete(key)) return this.error(connection, `Already unsubscribed: ${key}`)
    this.#acknowledge(connection, "unsubscribe", subscription)
  }

  #post(connection: Connection, frame: Readonly<Record<string, unknown>>, text: string, unparsed: () => void): void {
    const { id, request } = frame
    if (typeof id !== "number" || !isObject(request)) return unparsed()
    const { payload, type } = request
    if (this.#held.length >= this.limits.posts) {
      this.#violate("too many posts")
      return this.error(connection, `too many pending post requests id=${id}`)
    }
    const reply = (of: string, answer: unknown) => {
      const data = { id, response: { type: of, payload: answer } }
      this.#held.push({ connection, id, text: JSON.stringify({ channel: "post", data }) })
      if (!this.faults.holdPosts) this.release()
    }
    if (type === "info") {
      this.queries.push({ via: "post", query: payload })
      const answer = info(this.world, payload)
      this.weigh(queryWeight(payload, answer?.body))
      if (answer === undefined || !isObject(payload)) return unparsed()
      return reply("info", { type: payload["type"], data: answer.body })
    }
    if (type !== "action" || !isObject(payload)) return unparsed()
    this.weigh(actionWeight(payload["action"]))
    this.actions.push({ via: "post", text, nonce: Number(payload["nonce"]) })
    const answer = exchange(this.world, this.trader, payload["action"])
    return this.faults.losePostedActions ? this.destroy(connection) : reply("action", answer)
  }

  /** Sends the replies that wait; those to the given ids never come. */
  release(order: "sent" | "reversed" = "sent", never: ReadonlyArray<number> = []): void {
    const held = order === "sent" ? this.#held : this.#held.toReversed()
    this.#held = []
    for (const { connection, id, text } of held) if (!never.includes(id)) this.send(connection, text)
  }
}
