/**
 * Runs Effect programs deterministically: a seed determines the order in which fibers run, every random number and all
 * simulated times.
 *
 * A simulation consists of nodes, such as replicas, stores and clients. All nodes run in this process, on one virtual
 * clock that advances to the next timer when no fiber can run. A node can be killed between any two steps of its
 * fibers: none of its finalizers runs. Nodes must share no memory, and must communicate only through {@link callback},
 * which `Network` and the simulated stores use.
 *
 * Work that escapes the scheduler, such as a promise or a native timer, is not simulated. Await it before the simulation
 * starts.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import { constVoid } from "effect/Function"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Random from "effect/Random"
import * as Scheduler from "effect/Scheduler"

/** A pseudo-random generator: returns numbers from 0 (inclusive) to 1 (exclusive). */
export type NextRandom = () => number

/** Makes a generator (mulberry32). Equal seeds generate equal numbers on every machine. */
export const makeRandom = (seed: number): NextRandom => {
  let state = seed | 0
  return () => {
    state = (state + 0x6D2B79F5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** A timer of a node, or of the simulation itself. */
interface Timer {
  readonly at: number
  readonly order: number
  readonly run: () => void
  readonly owner: Life | undefined
  isCancelled: boolean
}

/** Timers, ordered by time and then by the order in which they were set: a binary heap. */
class Timers {
  readonly #heap: Array<Timer> = []

  get size(): number {
    return this.#heap.length
  }

  peek(): Timer | undefined {
    return this.#heap[0]
  }

  push(timer: Timer): void {
    const heap = this.#heap
    let at = heap.length
    heap.push(timer)
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = heap[parent]
      if (above === undefined || isBefore(above, timer)) break
      heap[at] = above
      at = parent
    }
    heap[at] = timer
  }

  pop(): Timer | undefined {
    const heap = this.#heap
    const [first] = heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return first
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      let below = heap[child]
      const right = heap[child + 1]
      if (right !== undefined && below !== undefined && isBefore(right, below)) {
        child += 1
        below = right
      }
      if (below === undefined || isBefore(last, below)) break
      heap[at] = below
      at = child
    }
    heap[at] = last
    return first
  }
}

const isBefore = (one: Timer, other: Timer): boolean =>
  one.at < other.at || (one.at === other.at && one.order < other.order)

/** The time between a start and an end of a node. A killed life never runs again; a restart begins a new one. */
interface Life {
  isAlive: boolean
  /** The number of steps that the fibers of this life have run. */
  steps: number
  /** The step before which the life ends; `Infinity` by default. */
  lastStep: number
  /** The time at which the life continues. */
  pausedUntil: number
  /** The steps that wait for the end of a pause. */
  held: Array<() => void>
  /** Called once when the life ends. */
  readonly endings: Set<() => void>
}

const end = (life: Life): void => {
  if (!life.isAlive) return
  life.isAlive = false
  for (const ending of life.endings) ending()
  life.endings.clear()
}

/** The clock of a node, as an offset from the simulation's time. */
interface Skew {
  /** Milliseconds by which the node's wall clock is ahead. */
  wall: number
}

/** A node: a part of the system that can fail on its own. */
export interface Node {
  readonly name: string
  /** The IP address of the node, such as `10.0.0.1`. */
  readonly address: string
  /** Returns whether the node has been started and not been killed since. */
  readonly isAlive: () => boolean
  /** The number of steps that the fibers of the node have run since it was last started. */
  readonly steps: () => number
  /**
   * Starts a program in a fiber of the node. A node that was killed begins a new life, without any memory except what
   * the program itself reads from stores.
   */
  readonly start: <A, E>(program: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  /** Ends all fibers of the node between two of their steps. Runs no finalizer, like `kill -9`. */
  readonly kill: () => void
  /** Kills the node before its given step, counted from its last start. */
  readonly killAtStep: (step: number) => void
  /**
   * Runs no step of the node for a time, like `kill -STOP`: its timers and received messages wait. Its clocks continue,
   * so a lease can expire.
   */
  readonly pause: (milliseconds: number) => void
  /** Registers what happens outside of the node when it is killed. Returns a function that cancels it. */
  readonly onKilled: (ending: () => void) => () => void
  /** Moves the wall clock of the node. Its monotonic clock, and therefore its timers, are not affected. */
  readonly shiftClock: (milliseconds: number) => void
}

/** The program of a simulation did not end although nothing is left to run: it waits for something outside. */
export class Stuck extends Data.TaggedError("Stuck")<{ readonly detail: string }> {}

/** The options of a simulation. */
export interface Options {
  /** Determines the whole run. Default: 0. */
  readonly seed?: number
  /** The wall-clock time at the start, in milliseconds since 1970. Default: 2026-01-01. */
  readonly startsAt?: number
  /** The probability that a fiber yields after a step in which it could continue. Default: 0. */
  readonly yields?: number
  /** Maximum number of steps. Default: 10 million. */
  readonly maxSteps?: number
}

/** The result of a simulation. */
export interface Report<A, E> {
  readonly exit: Exit.Exit<A, E | Stuck>
  /** The timeline: the lines that were logged, with their time in milliseconds since the start and their node. */
  readonly timeline: ReadonlyArray<string>
  /** A hash of every choice of the scheduler and of the timeline. Runs with equal digests were identical. */
  readonly digest: string
  readonly steps: number
  /** Simulated milliseconds. */
  readonly elapsed: number
}

const defaultStart = 1_767_225_600_000

/**
 * The simulation that the current fiber belongs to.
 *
 * Provided by `Simulation.run`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import * as Simulation from "@trigate/simulation/Simulation"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { after, log, node } = yield* Simulation.Simulation
 *   const worker = node("worker")
 *   const work = Effect.forever(Effect.andThen(Effect.sleep("1 second"), Effect.sync(() => log("worker", "works"))))
 *   // does not run when the node is killed
 *   worker.start(Effect.ensuring(work, Effect.sync(() => log("worker", "cleans up"))))
 *   after(2500, worker.kill)
 *   yield* Effect.sleep("1 hour")
 * })
 *
 * console.log(Simulation.run(program).timeline.join("\n"))
 * ```
 * ```text
 *     1000.000 worker     works
 *     2000.000 worker     works
 * ```
 */
export class Simulation extends Context.Service<Simulation, {
  /** The next random number of the simulation; use it for faults and delays. Fibers use Effect's `Random`. */
  readonly random: NextRandom
  /** Milliseconds since the start of the simulation. */
  readonly now: () => number
  /** The wall-clock time at the start, in milliseconds since 1970. */
  readonly startsAt: number
  /** Makes a node. Its fibers can run when it is started. */
  readonly node: (name: string) => Node
  /** Runs a function after a delay in milliseconds. Returns a function that cancels it. */
  readonly after: (delay: number, run: () => void) => () => void
  /** Writes a line to the timeline. */
  readonly log: (node: string, text: string) => void
}>()("@trigate/simulation/Simulation") {}

/** Returns a pseudo-random whole number from 0 to `below - 1`. */
export const pickBelow = (random: NextRandom, below: number): number => Math.floor(random() * below)

class World {
  readonly random: NextRandom
  readonly #interleaving: NextRandom
  readonly #yields: number
  readonly #ready: Array<{ readonly task: () => void; readonly life: Life | undefined }> = []
  readonly #timers = new Timers()
  readonly startsAt: number
  readonly timeline: Array<string> = []
  #now = 0
  #order = 0
  #hash = 0x811C9DC5
  steps = 0
  /** The number of nodes. */
  nodes = 0

  constructor({ seed = 0, startsAt = defaultStart, yields = 0 }: Options) {
    const random = makeRandom(seed)
    this.#interleaving = makeRandom(Math.floor(random() * 4_294_967_296))
    this.random = random
    this.#yields = yields
    this.startsAt = startsAt
  }

  now = (): number => this.#now

  digest(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, "0")
  }

  #mix(value: number): void {
    this.#hash = Math.imul(this.#hash ^ value, 0x01000193)
  }

  log = (node: string, text: string): void => {
    const line = `${this.#now.toFixed(3).padStart(12)} ${node.padEnd(10)} ${text}`
    for (let at = 0; at < line.length; at++) this.#mix(line.charCodeAt(at))
    this.timeline.push(line)
  }

  set(delay: number, owner: Life | undefined, run: () => void): () => void {
    const timer: Timer = { at: this.#now + Math.max(0, delay), order: this.#order++, run, owner, isCancelled: false }
    this.#timers.push(timer)
    return () => {
      timer.isCancelled = true
    }
  }

  #scheduler(life: Life | undefined): Scheduler.Scheduler {
    const ready = this.#ready
    const dispatcher: Scheduler.SchedulerDispatcher = {
      scheduleTask: (task) => void ready.push({ task, life }),
      flush: constVoid
    }
    return {
      executionMode: "async",
      shouldYield: (fiber) =>
        fiber.currentOpCount >= fiber.cache.maxOpsBeforeYield ||
        (this.#yields > 0 && this.#interleaving() < this.#yields),
      makeDispatcher: () => dispatcher
    }
  }

  #clock(life: Life | undefined, skew: Skew): Clock.Clock {
    const wall = () => this.startsAt + this.#now + skew.wall
    const monotonic = () => BigInt(Math.round(this.#now * 1e6))
    return {
      currentTimeMillisUnsafe: () => Math.floor(wall()),
      currentTimeMillis: Effect.sync(() => Math.floor(wall())),
      currentTimeNanosUnsafe: () => BigInt(Math.floor(wall())) * 1_000_000n,
      currentTimeNanos: Effect.sync(() => BigInt(Math.floor(wall())) * 1_000_000n),
      monotonicTimeNanosUnsafe: monotonic,
      monotonicTimeNanos: Effect.sync(monotonic),
      sleep: (duration) =>
        Effect.callback<void>((resume) => {
          const milliseconds = Duration.toMillis(duration)
          if (milliseconds === Infinity) return
          const cancel = this.set(milliseconds, life, () => resume(Effect.void))
          return Effect.sync(cancel)
        })
    }
  }

  /** The services of the fibers of a node; `name` names it in the timeline. */
  context(name: string, life: Life | undefined, skew: Skew): Context.Context<never> {
    const random = makeRandom(Math.floor(this.random() * 4_294_967_296))
    return Context.empty().pipe(
      Context.add(Scheduler.Scheduler, this.#scheduler(life)),
      Context.add(Clock.Clock, this.#clock(life, skew)),
      Context.add(Random.Random, {
        nextDoubleUnsafe: random,
        nextIntUnsafe: () => Math.floor((random() * 2 - 1) * Number.MAX_SAFE_INTEGER)
      }),
      // a killed node leaves its metrics behind, as a killed process does not
      Context.add(Metric.MetricRegistry, new Map()),
      Context.add(
        Logger.CurrentLoggers,
        new Set([
          Logger.make(({ cause, logLevel, message }) =>
            this.log(
              name,
              `${logLevel.toUpperCase()} ${Array.isArray(message) ? message.join(" ") : String(message)}${
                cause.reasons.length === 0 ? "" : ` ${Cause.pretty(cause)}`
              }`
            )
          )
        ])
      )
    )
  }

  /** Runs one step: a ready task, or the next timer if no task is ready. Returns whether there was one. */
  step(): boolean {
    const ready = this.#ready
    while (ready.length > 0) {
      const at = ready.length === 1 ? 0 : pickBelow(this.#interleaving, ready.length)
      const picked = ready[at]
      const last = ready.pop()
      if (picked === undefined || last === undefined) return false
      if (at < ready.length) ready[at] = last
      this.#mix(at)
      if (this.#isHeld(picked.life, picked.task)) continue
      if (this.#runs(picked.life)) {
        this.steps++
        picked.task()
        return true
      }
    }
    for (;;) {
      const timer = this.#timers.pop()
      if (timer === undefined) return false
      if (timer.isCancelled) continue
      this.#now = timer.at
      this.#mix(timer.order)
      if (this.#isHeld(timer.owner, timer.run)) continue
      if (this.#runs(timer.owner)) {
        this.steps++
        timer.run()
        return true
      }
    }
  }

  /** Returns whether a step waits because its life is paused. */
  #isHeld(life: Life | undefined, step: () => void): boolean {
    if (life === undefined || !life.isAlive || life.pausedUntil <= this.#now) return false
    life.held.push(step)
    return true
  }

  /** Pauses a life. The pause ends later if the life is already paused for longer. */
  pause(life: Life, milliseconds: number): void {
    life.pausedUntil = Math.max(life.pausedUntil, this.#now + milliseconds)
    this.set(milliseconds, undefined, () => {
      if (life.pausedUntil > this.#now) return
      for (const task of life.held) this.#ready.push({ task, life })
      life.held = []
    })
  }

  /** Returns whether a life can run its next step. */
  #runs(life: Life | undefined): boolean {
    if (life === undefined) return true
    if (!life.isAlive) return false
    if (++life.steps < life.lastStep) return true
    end(life)
    return false
  }
}

const makeNode = (world: World, name: string): Node => {
  const address = `10.0.0.${++world.nodes}`
  const skew: Skew = { wall: 0 }
  let life: Life | undefined
  let context = Context.empty()
  return {
    name,
    address,
    isAlive: () => life?.isAlive === true,
    steps: () => life?.steps ?? 0,
    start: (program) => {
      if (life?.isAlive !== true) {
        life = { isAlive: true, steps: 0, lastStep: Infinity, pausedUntil: 0, held: [], endings: new Set() }
        context = world.context(name, life, skew)
      }
      const isPaused = life.pausedUntil > world.now()
      return Effect.runForkWith(context)(isPaused ? Effect.andThen(Effect.yieldNow, program) : program)
    },
    kill: () => {
      if (life !== undefined) end(life)
    },
    pause: (milliseconds) => {
      if (life?.isAlive === true) world.pause(life, milliseconds)
    },
    onKilled: (ending) => {
      const { endings = new Set<() => void>() } = life ?? {}
      endings.add(ending)
      return () => void endings.delete(ending)
    },
    killAtStep: (step) => {
      if (life !== undefined) life.lastStep = step
    },
    shiftClock: (milliseconds) => {
      skew.wall += milliseconds
    }
  }
}

/**
 * Runs a program as a simulation, to its end or until nothing is left to run. Synchronous: no real time passes.
 *
 * The program starts nodes with {@link Simulation}. It is not a node itself, so it cannot be killed.
 *
 * @since 0.1.0
 * @category running
 * @example
 * ```ts
 * import * as Simulation from "@trigate/simulation/Simulation"
 * import { Effect, Exit } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { node } = yield* Simulation.Simulation
 *   node("clock").start(Effect.forever(Effect.sleep("1 hour")))
 *   yield* Effect.sleep("1 day")
 * })
 *
 * const { elapsed, exit } = Simulation.run(program, { seed: 7 })
 * console.log(Exit.isSuccess(exit), elapsed)
 * ```
 * ```text
 * true 86400000
 * ```
 */
export const run = <A, E>(program: Effect.Effect<A, E, Simulation>, options: Options = {}): Report<A, E> => {
  const { maxSteps = 10_000_000 } = options
  const world = new World(options)
  const simulation = Simulation.of({
    random: world.random,
    now: world.now,
    startsAt: world.startsAt,
    node: (name) => makeNode(world, name),
    after: (delay, run) => world.set(delay, undefined, run),
    log: world.log
  })
  const fiber = Effect.runForkWith(
    Context.add(world.context("program", undefined, { wall: 0 }), Simulation, simulation)
  )(program)
  while (fiber.pollUnsafe() === undefined && world.steps < maxSteps && world.step());
  return {
    exit: fiber.pollUnsafe() ?? Exit.fail(
      new Stuck({
        detail: world.steps < maxSteps
          ? "Nothing is left to run, but the program waits, such as for a promise that was not awaited before"
          : `The program has not ended after ${maxSteps} steps`
      })
    ),
    timeline: world.timeline,
    digest: world.digest(),
    steps: world.steps,
    elapsed: world.now()
  }
}

/**
 * Makes an effect that waits for a function of the simulation to call back. If the node of the current fiber has been
 * killed by then, nothing happens.
 *
 * `begin` receives the function that ends the wait, and returns what an interruption runs.
 */
export const callback = <A, E>(
  begin: (resume: (exit: Exit.Exit<A, E>) => void) => (() => void) | undefined
): Effect.Effect<A, E> =>
  Effect.withFiber((fiber) =>
    Effect.callback<A, E>((resume) => {
      // a step of its own, before which the node can be killed
      const cancel = begin((exit) => fiber.currentDispatcher.scheduleTask(() => resume(exit), 0))
      return cancel === undefined ? undefined : Effect.sync(cancel)
    })
  )
