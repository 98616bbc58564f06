/** The commands by which a test moves the venue, and conditions that it waits for. */
import { machineTime } from "./clock.ts"
import { Connections, type Faults, type Limits, noFaults, venueLimits } from "./connections.ts"
import { defaultSwitches, type Switches, World } from "./world.ts"

/** How a query or an action over HTTP goes wrong. */
export type RestFault =
  | { readonly mode: "hang-up" }
  | { readonly mode: "silence" }
  | { readonly mode: "hold" }
  | { readonly mode: "status"; readonly status: number; readonly body?: string }

/** Something to wait for; counts are those since the venue was made anew. */
export type Condition =
  | {
    readonly until: "connections" | "opened" | "messages" | "posts" | "actions" | "pings" | "subscriptions"
    readonly count: number
  }
  /** The number of connections that are subscribed to a key. */
  | { readonly until: "subscribed"; readonly key: string; readonly count: number }
  /** The number of subscribes to a key that were read. */
  | { readonly until: "subscribes"; readonly key: string; readonly count: number }
  /** The number of queries of a type that were read. */
  | { readonly until: "queries"; readonly type: string; readonly count: number }

export type Command =
  | { readonly do: "reset"; readonly seed?: number }
  | { readonly do: "faults"; readonly set: Partial<Faults> }
  | { readonly do: "limits"; readonly set: Partial<Limits> }
  | { readonly do: "switches"; readonly set: Partial<Switches> }
  | { readonly do: "rest"; readonly set: Readonly<Record<string, RestFault>> }
  /** Answers the requests over HTTP that wait, or ends their connections. */
  | { readonly do: "release-rest" | "hang-up-rest" }
  | { readonly do: "trader"; readonly user: string }
  | { readonly do: "set-clock"; readonly millis: number }
  | { readonly do: "advance"; readonly millis: number }
  /** Follows the machine's clock until `still`, and lets something happen to each user every so many milliseconds. */
  | { readonly do: "live"; readonly users: ReadonlyArray<string>; readonly every: number }
  | { readonly do: "still" }
  | { readonly do: "times" | "weights" }
  | { readonly do: "list"; readonly coin: string }
  | { readonly do: "trade"; readonly coin: string; readonly count?: number }
  | { readonly do: "states"; readonly coin?: string; readonly user?: string; readonly type?: string }
  | {
    readonly do: "place"
    readonly user: string
    readonly coin: string
    readonly cloid?: string
    readonly status?: string
  }
  | {
    readonly do: "fill"
    readonly user: string
    readonly coin: string
    readonly cloid?: string
    readonly count?: number
  }
  /** Converts spot dust: fills of one frame, each of an order of its own, with one tid. */
  | { readonly do: "dust"; readonly user: string; readonly coins: ReadonlyArray<string> }
  | { readonly do: "cancel"; readonly user: string; readonly oid?: number }
  | { readonly do: "modify"; readonly user: string; readonly first: "open" | "cancel"; readonly oid?: number }
  | { readonly do: "funding" | "transfer" | "twap" | "notify"; readonly user: string }
  | {
    readonly do: "step"
    readonly coins: ReadonlyArray<string>
    readonly users: ReadonlyArray<string>
    readonly count: number
  }
  /** Sends any text to the connections that are subscribed to a key, or to all. */
  | { readonly do: "raw"; readonly text: string; readonly key?: string }
  /** Ends the connections that are subscribed to a key, or all; without a code there is no close frame. */
  | { readonly do: "drop"; readonly key?: string; readonly code?: number }
  | { readonly do: "release-posts"; readonly order?: "sent" | "reversed"; readonly never?: ReadonlyArray<number> }
  | { readonly do: "state" }
  | { readonly do: "ledger"; readonly from?: number }
  | { readonly do: "frames" }

/** What `state` returns. */
export interface State {
  readonly now: number
  readonly opened: number
  readonly connections: ReadonlyArray<{ readonly id: number; readonly keys: ReadonlyArray<string> }>
  readonly messages: number
  readonly pings: number
  readonly held: number
  readonly violations: ReadonlyArray<string>
  readonly actions: Connections["actions"]
  readonly queries: Connections["queries"]
  readonly ledger: number
}

const pingsOf = (connections: Connections): number =>
  connections.all.reduce((sum, { received }) => sum + received.filter((text) => text.includes(`"ping"`)).length, 0)

export class Control {
  connections: Connections
  rest: Readonly<Record<string, RestFault>> = {}
  #waiting: Array<{ readonly condition: Condition; readonly resolve: () => void }> = []
  #live: NodeJS.Timeout | undefined
  #held: Array<{ readonly answer: () => void; readonly hangUp: () => void }> = []

  constructor(seed: number) {
    this.connections = Control.#made(seed)
  }

  static #made(seed: number): Connections {
    return new Connections(seed, (number, publish) => new World(number, publish))
  }

  /** Answers a request over HTTP, or ends its connection, when it is told to. */
  hold(answer: () => void, hangUp: () => void): void {
    this.#held.push({ answer, hangUp })
  }

  #isMet(condition: Condition): boolean {
    const { connections } = this
    const read = (match: (text: string) => boolean) =>
      connections.all.reduce((sum, { received }) => sum + received.filter(match).length, 0)
    switch (condition.until) {
      case "connections":
        return connections.open.length === condition.count
      case "opened":
        return connections.all.length >= condition.count
      case "messages":
        return connections.messages.length >= condition.count
      case "posts":
        return read((text) => text.includes(`"method":"post"`)) >= condition.count
      case "actions":
        return connections.actions.length >= condition.count
      case "pings":
        return pingsOf(connections) >= condition.count
      case "subscriptions":
        return connections.open.reduce((sum, { subscriptions }) => sum + subscriptions.size, 0) === condition.count
      case "subscribed":
        return connections.open.filter(({ subscriptions }) => subscriptions.has(condition.key)).length ===
          condition.count
      case "subscribes":
        return connections.subscribes.filter((key) => key === condition.key).length >= condition.count
      case "queries":
        return connections.queries.filter(({ query }) => JSON.stringify(query).includes(`"type":"${condition.type}"`))
          .length >= condition.count
    }
  }

  wait(condition: Condition): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ condition, resolve })
      this.changed()
    })
  }

  /** Ends the waits whose conditions are met now. */
  changed(): void {
    if (this.#waiting.length === 0) return
    const met = this.#waiting.filter(({ condition }) => this.#isMet(condition))
    this.#waiting = this.#waiting.filter((waiting) => !met.includes(waiting))
    for (const { resolve } of met) resolve()
  }

  #follow(users: ReadonlyArray<string>, every: number): void {
    const { world } = this.connections
    let turn = 0
    const begin = machineTime() - world.clock.now
    this.#still()
    this.#live = setInterval(() => {
      // events move the venue's clock, too
      world.clock.advance(Math.max(0, Math.floor(machineTime() - begin) - world.clock.now))
      for (const user of users) {
        world.fill(user, "BTC")
        if (turn % 5 === 0) world.funding(user)
        if (turn % 5 === 1) world.transfer(user)
        if (turn % 5 === 2) world.twap(user)
      }
      turn++
      this.changed()
    }, every)
  }

  #still(): void {
    clearInterval(this.#live)
  }

  #reset(seed: number): void {
    this.#still()
    for (const connection of this.connections.open) this.connections.destroy(connection)
    this.connections = Control.#made(seed)
    this.rest = {}
    this.#held = []
  }

  #having(key: string | undefined) {
    return this.connections.open.filter(({ subscriptions }) => key === undefined || subscriptions.has(key))
  }

  #state(): State {
    const { connections } = this
    return {
      now: connections.world.clock.now,
      opened: connections.all.length,
      connections: connections.open.map(({ id, subscriptions }) => ({ id, keys: [...subscriptions.keys()] })),
      messages: connections.messages.length,
      pings: pingsOf(connections),
      held: connections.held,
      violations: connections.violations,
      actions: connections.actions,
      queries: connections.queries,
      ledger: connections.world.ledger.length
    }
  }

  run(command: Command): unknown {
    const { connections } = this
    const { world } = connections
    switch (command.do) {
      case "reset":
        return this.#reset(command.seed ?? 1)
      case "faults":
        connections.faults = { ...noFaults, ...command.set }
        return undefined
      case "limits":
        connections.limits = { ...venueLimits, ...command.set }
        return undefined
      case "switches":
        world.switches = { ...defaultSwitches, ...command.set }
        return undefined
      case "rest":
        this.rest = command.set
        return undefined
      case "release-rest":
      case "hang-up-rest": {
        const held = this.#held
        this.#held = []
        for (const { answer, hangUp } of held) (command.do === "release-rest" ? answer : hangUp)()
        return held.length
      }
      case "trader":
        connections.trader = command.user.toLowerCase()
        return undefined
      case "set-clock":
        return world.clock.set(command.millis)
      case "advance":
        return world.clock.advance(command.millis)
      case "live":
        return this.#follow(command.users, command.every)
      case "still":
        return this.#still()
      case "times":
        return world.times
      case "weights":
        return connections.weights
      case "list":
        return world.list(command.coin)
      case "trade":
        for (let left = command.count ?? 1; left > 0; left--) world.trade(command.coin)
        return undefined
      case "states":
        return world.states(command)
      case "place":
        return world.place(
          command.user,
          command.coin,
          command.cloid === undefined ? {} : { cloid: command.cloid },
          command.status ?? "open"
        )
      case "fill": {
        const part = command.cloid === undefined ? {} : { cloid: command.cloid }
        return Array.from({ length: command.count ?? 1 }, () => world.fill(command.user, command.coin, part)).at(-1)
      }
      case "dust":
        return world.dust(command.user, command.coins)
      case "cancel":
        return world.cancel(command.user, command.oid)
      case "modify":
        return world.modify(command.user, command.first, command.oid)
      case "funding":
        return world.funding(command.user)
      case "transfer":
        return world.transfer(command.user)
      case "twap":
        return world.twap(command.user)
      case "notify":
        return world.notify(command.user)
      case "step":
        for (let left = command.count; left > 0; left--) world.step(command.coins, command.users)
        return undefined
      case "raw":
        for (const connection of this.#having(command.key)) connections.send(connection, command.text)
        return undefined
      case "drop": {
        const dropped = this.#having(command.key)
        for (const connection of dropped) {
          if (command.code === undefined) connections.destroy(connection)
          else connection.socket.close(command.code)
        }
        return dropped.length
      }
      case "release-posts":
        return connections.release(command.order, command.never)
      case "state":
        return this.#state()
      case "ledger":
        return world.ledger.slice(command.from ?? 0)
      case "frames":
        return connections.all.map(({ id, received, sent }) => ({ id, received, sent }))
    }
  }
}
