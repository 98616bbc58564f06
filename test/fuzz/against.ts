/**
 * Sends the same requests to the gateway of this checkout and to that of another one, and compares everything that comes of it: the
 * bytes of each answer, and what each upstream received.
 *
 * Each gateway is a process of its own, with upstreams of its own that follow one script. Time passes in both only when this process
 * says so (`lockstep.ts`), so nothing depends on the speed of the machine: ages, retries and deadlines have to be equal too.
 */
import * as Effect from "effect/Effect"
import type { ChildProcess } from "node:child_process"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import type { Dice } from "../../packages/server/test/malformedBodies.ts"
import { dice } from "../../packages/server/test/malformedBodies.ts"
import type { Observed } from "./compare.ts"
import { differences } from "./compare.ts"
import { Connection, send } from "./connection.ts"
import { generator } from "./generate.ts"
import type { Tick } from "./lockstep.ts"
import type { FuzzRequest, Target } from "./request.ts"
import { bytesOf } from "./request.ts"
import type { Script } from "./script.ts"
import { script } from "./script.ts"
import * as Sound from "./sound.ts"

const root = path.resolve(import.meta.dirname, "../..")

/** The time at which every run begins. */
const began = Sound.began

const listening = /listens on http:\/\/\S+?:(?<port>\d+)/u

interface Gateway {
  readonly child: ChildProcess
  readonly port: number
  /** Lets time pass, after all that is under way has ended. */
  readonly pass: (until: number) => Promise<void>
  /** Says how many requests its upstreams never answer. */
  readonly unanswered: (count: number) => void
}

const gateway = (folder: string, environment: { readonly [name: string]: string }) =>
  Effect.acquireRelease(
    Effect.promise(() =>
      new Promise<Gateway>((resolve, reject) => {
        const child = spawn(
          process.execPath,
          [
            "--import",
            path.join(import.meta.dirname, "lockstep.ts"),
            path.join(folder, "packages/trigate/src/trigate.ts"),
            "serve"
          ],
          {
            cwd: folder,
            env: {
              PATH: process.env["PATH"],
              // leaves nothing in the other checkout
              NODE_COMPILE_CACHE: path.join(os.tmpdir(), "trigate-fuzz"),
              LOCKSTEP_TIME: String(began),
              TRIGATE_PORT: "0",
              TRIGATE_ACCESS_LOG: "off",
              TRIGATE_MAX_LAG: "1 hour",
              ...environment
            },
            stdio: ["ignore", "pipe", "pipe", "ipc"]
          }
        )
        let printed = ""
        let passed = () => {}
        let count = 0
        const tell = (until?: number) => {
          const tick: Tick = { unanswered: count, ...(until === undefined ? {} : { until }) }
          // a gateway that has ended says so by itself
          child.send(tick, () => {})
        }
        const unanswered = (now: number) => {
          count = now
          tell()
        }
        const ended = Promise.withResolvers<never>()
        ended.promise.catch(reject)
        const pass = (until: number) => {
          const done = new Promise<void>((resolve) => {
            passed = resolve
          })
          tell(until)
          return Promise.race([done, ended.promise])
        }
        child.on("message", () => passed())
        const read = (chunk: Buffer) => {
          printed = (printed + chunk.toString("utf8")).slice(-100_000)
          const port = listening.exec(printed)?.groups?.["port"]
          if (port !== undefined) resolve({ child, port: Number(port), pass, unanswered })
        }
        child.stdout?.on("data", read)
        child.stderr?.on("data", read)
        child.on("close", (code) => {
          ended.reject(new Error(`The gateway of ${folder} ended (${code}):\n${printed}`))
        })
      })
    ),
    ({ child }) =>
      Effect.sync(() => {
        child.removeAllListeners("close")
        child.disconnect()
      })
  )

interface Side {
  readonly gateway: Gateway
  readonly script: Script | undefined
  readonly connection: Connection
}

const settings: { readonly [T in Target]: { readonly [name: string]: string } } = {
  sandbox: {},
  upstreams: {
    TRIGATE_TRADING_API_WEIGHT: "1000000000",
    TRIGATE_RELAY_ACTIONS: "*"
  }
}

const observe = ({ gateway, script }: Side, answers: Observed["answers"]): Observed => ({
  answers,
  received: { ...script?.take() },
  ports: [gateway.port, ...script?.ports ?? []]
})

/** Whether a promise ends within so many milliseconds. */
const endsWithin = async (promise: Promise<unknown>, millis: number): Promise<boolean> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), millis)
  })
  const ends = await Promise.race([promise.then(() => true), late])
  clearTimeout(timer)
  return ends
}

/** Whether every thread of a process waits for something, as Linux says; where it does not say so, yes. */
const isAsleep = ({ child: { pid } }: Gateway): boolean => {
  const folder = `/proc/${pid}/task`
  if (!fs.existsSync(folder)) return true
  return fs.readdirSync(folder).every((thread) => {
    // the name in brackets may have any characters
    const text = fs.readFileSync(path.join(folder, thread, "stat"), "utf8")
    return text.slice(text.lastIndexOf(")") + 2).startsWith("S")
  })
}

/** How much time passes after a request: mostly a moment, at times so much that answers become old. */
const step = (some: Dice): number => {
  const kind = some.roll(1000)
  if (kind === 0) return some.roll(5) === 0 ? 400_000 : 10_000
  if (kind < 25) return 1 + some.roll(3000)
  return 1 + some.roll(kind < 200 ? 300 : 5)
}

/** Two gateways of one kind that get the same requests, one after the other. */
class Pair {
  readonly target: Target
  readonly #sides: readonly [Side, Side]
  readonly #clock: { now: number }
  /** How many answers had each status. */
  readonly statuses = new Map<number, number>()

  constructor(target: Target, clock: { now: number }, sides: readonly [Side, Side]) {
    this.target = target
    this.#clock = clock
    this.#sides = sides
  }

  get now() {
    return this.#clock.now
  }

  /** Lets what is under way end, and then lets time pass, in both. */
  async pass(millis: number) {
    const until = this.#clock.now + millis
    await Promise.all(this.#sides.map(({ gateway }) => gateway.pass(until)))
    this.#clock.now = until
    // what they have sent is here by the next turn
    await new Promise<void>((resolve) => void setImmediate(resolve))
  }

  /** Sends a request to both, lets time pass, and describes how what came of it differs. */
  async ask(request: FuzzRequest, millis: number): Promise<ReadonlyArray<string>> {
    const { raw } = request
    let written = 0
    const bothRead = Promise.withResolvers<void>()
    // where a connection ends before its request is read, the order of the two is left to chance
    const beforeEnd = async () => {
      if (++written === 2) await this.pass(0).then(bothRead.resolve)
      await bothRead.promise
    }
    const answers = Promise.all(
      this.#sides.map(async ({ connection }) =>
        raw === undefined
          ? (await send(connection, request)).map(([, answer]) => answer)
          : connection.throwAway(raw, beforeEnd)
      )
    )
    if (raw !== undefined) await bothRead.promise
    let received = 0
    for (let wait = 50; !await endsWithin(answers, 5);) {
      await this.pass(0)
      const before = received
      received = this.#sides.reduce((sum, { connection }) => sum + connection.received, 0)
      if (received !== before || !this.#sides.every(({ gateway }) => isAsleep(gateway))) continue
      // what is silent now waits for time to pass
      await this.pass(wait)
      wait *= 2
    }
    await this.pass(millis)
    const [our, their] = this.#sides
    for (let tries = 0; tries < 100 && our.script?.count() !== their.script?.count(); tries++) await this.pass(0)
    const [ours = [], theirs = []] = await answers
    const found = differences(request, observe(our, ours), observe(their, theirs))
    for (const answer of ours) {
      const status = typeof answer === "string" ? 0 : answer.status
      this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
    }
    return found
  }
}

const pair = Effect.fnUntraced(function*(target: Target, folder: string, seed: number) {
  const clock = { now: began }
  const side = Effect.fnUntraced(function*(folder: string) {
    const plan = target === "sandbox" ? undefined : yield* script(seed, () => clock.now)
    const started = yield* gateway(folder, { ...settings[target], ...plan?.environment })
    plan?.watch(started.unanswered)
    const made: Side = {
      gateway: started,
      script: plan,
      connection: new Connection(`http://127.0.0.1:${started.port}`)
    }
    return made
  })
  const [ours, theirs] = yield* Effect.all([side(root), side(folder)], { concurrency: 2 })
  return new Pair(target, clock, [ours, theirs])
})

export interface Options {
  /** The other checkout. */
  readonly folder: string
  readonly seeds: ReadonlyArray<number>
  /** How many requests of each seed. */
  readonly requests: number
}

/** How many differences of each method and path are printed. */
const shown = 2

/** The method and the path of a request. */
const methodAndPath = (bytes: Uint8Array): string =>
  Buffer.from(bytes).toString("latin1").split(/[ ?\r\n]/u, 2).join(" ").slice(0, 80)

/** The pairs that work beside each other, each on its share of the requests. */
const targets: ReadonlyArray<Target> = ["upstreams", "upstreams", "upstreams", "sandbox"]

/** Compares one seed after the other; whether all is alike. */
export const compare = Effect.fnUntraced(function*({ folder, requests, seeds }: Options) {
  const makeSound = yield* Sound.make
  const statuses = new Map<number, number>()
  const kinds = new Map<string, number>()
  let [sent, seconds, different] = [0, 0, 0]
  const progress = (started: number) => {
    const perSecond = Math.round(sent / (seconds + (performance.now() - started) / 1000))
    console.log(`fuzz: ${sent} requests, ${perSecond} a second, ${different} different`)
  }
  const work = async (seed: number, pair: Pair, first: number, stride: number) => {
    const make = generator(seed, began, bytesOf)
    const sound = makeSound()
    const started = performance.now()
    for (let index = first; index < requests; index += stride) {
      const some = dice(Math.imul(seed, 0x2545f491) ^ index)
      const malformed = make(index)
      const request = some.roll(5) < 3 || Sound.repeats(malformed) ? sound(some, pair.now) : malformed
      const found = await pair.ask(request, step(some))
      sent++
      if (sent % 5000 === 0) progress(started)
      if (found.length === 0) continue
      different++
      const kind = methodAndPath(bytesOf(request))
      const ofKind = (kinds.get(kind) ?? 0) + 1
      kinds.set(kind, ofKind)
      if (ofKind <= shown) {
        console.log([`fuzz: seed ${seed}, request ${index}, ${pair.target}:`, ...found].join("\n"))
      }
    }
    for (const [status, count] of pair.statuses) statuses.set(status, (statuses.get(status) ?? 0) + count)
  }
  for (const seed of seeds) {
    console.log(`fuzz: seed ${seed}, ${requests} requests, against ${folder}`)
    yield* Effect.scoped(Effect.gen(function*() {
      const pairs = yield* Effect.forEach(targets, (target) => pair(target, folder, seed), { concurrency: "unbounded" })
      const started = performance.now()
      yield* Effect.promise(() => Promise.all(pairs.map((each, first) => work(seed, each, first, pairs.length))))
      progress(started)
      seconds += (performance.now() - started) / 1000
    }))
  }
  const counts = [...statuses].toSorted(([one], [other]) => one - other)
  const answers = counts.reduce((sum, [, count]) => sum + count, 0)
  console.log(`fuzz: ${counts.map(([status, count]) => `${status} x${count}`).join(", ")}`)
  for (const [kind, count] of kinds) console.log(`fuzz: ${kind} differs ${count} times`)
  console.log(`fuzz: ${answers} answers compared, ${different} requests differ`)
  return different === 0
})
