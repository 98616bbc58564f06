/**
 * Preloaded into a gateway that is compared with another one: its time passes only when the fuzzer says so, its random numbers are a
 * series, and it says when nothing in it is under way. Two gateways with the same code then do the same, on a machine of any speed.
 */
import { channel } from "node:diagnostics_channel"
import { syncBuiltinESMExports } from "node:module"
import timers from "node:timers"

/** What the fuzzer sends: how many upstream requests are never answered, and until when time may pass. */
export interface Tick {
  readonly unanswered: number
  readonly until?: number
}

let now = Number(process.env["LOCKSTEP_TIME"])
const began = now

Object.defineProperty(Date, "now", { value: () => now })
Object.defineProperty(performance, "now", { value: () => now - began })
Object.defineProperty(process.hrtime, "bigint", { value: () => BigInt(now - began) * 1_000_000n })

// the shortest pause before a retry is none at all
Object.defineProperty(Math, "random", { value: () => 0 })
let drawn = 0
Object.defineProperty(crypto, "getRandomValues", {
  value: <A extends NodeJS.TypedArray>(array: A): A => {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
    for (let at = 0; at < bytes.length; at++) bytes[at] = Math.imul(++drawn, 0x9e3779b1) >>> 24
    return array
  }
})

type Run = (...args: ReadonlyArray<unknown>) => void

const pending = new Set<Timer>()
const byId = new Map<number, Timer>()
let ids = 0

/** A timer with the methods of Node's own. */
class Timer {
  readonly id = ++ids
  readonly #delay: number
  readonly #repeats: boolean
  readonly #run: () => void
  due = 0

  constructor(run: Run, delay: unknown, repeats: boolean, args: ReadonlyArray<unknown>) {
    this.#delay = Math.max(1, Math.trunc(Number(delay ?? 1)) || 1)
    this.#repeats = repeats
    this.#run = () => run(...args)
    byId.set(this.id, this)
    this.refresh()
  }
  refresh() {
    this.due = now + this.#delay
    // a timer that is set again comes behind the others of its time
    pending.delete(this)
    pending.add(this)
    return this
  }
  close() {
    pending.delete(this)
    byId.delete(this.id)
    return this
  }
  fire() {
    if (this.#repeats) this.refresh()
    else this.close()
    this.#run()
  }
  ref() {
    return this
  }
  unref() {
    return this
  }
  hasRef() {
    return false
  }
  [Symbol.toPrimitive]() {
    return this.id
  }
  [Symbol.dispose]() {
    this.close()
  }
}

const [immediate, realTimeout, realClear] = [setImmediate, setTimeout, clearTimeout]

const clear = (timer: unknown) => {
  if (timer instanceof Timer) timer.close()
  else if (typeof timer === "number" || typeof timer === "string") byId.get(Number(timer))?.close()
}
const replaced = {
  setTimeout: (run: Run, delay?: unknown, ...args: ReadonlyArray<unknown>) => new Timer(run, delay, false, args),
  setInterval: (run: Run, delay?: unknown, ...args: ReadonlyArray<unknown>) => new Timer(run, delay, true, args),
  clearTimeout: clear,
  clearInterval: clear
}
Object.assign(globalThis, replaced)
Object.assign(timers, replaced)
syncBuiltinESMExports()

/** Upstream requests that undici has made and that have not ended. */
const open = new Set<unknown>()
let unanswered = 0
let changed = () => {}
const requestOf = (message: unknown): unknown =>
  typeof message === "object" && message !== null && "request" in message ? message.request : undefined
channel("undici:request:create").subscribe((message) => void open.add(requestOf(message)))
for (const name of ["undici:request:trailers", "undici:request:error"]) {
  channel(name).subscribe((message) => {
    open.delete(requestOf(message))
    changed()
  })
}

/** Whether there is work that goes on by itself, such as what a fiber has put off to the next turn of the event loop. */
const isBusy = (): boolean =>
  process.getActiveResourcesInfo().some((name) => /Immediate|zlib|FSReq|GetAddrInfo|ConnectWrap|Job/iu.test(name))

const turn = () => new Promise<void>((resolve) => void immediate(resolve))

/** Waits until upstream requests have changed, a while at most. */
const change = () =>
  new Promise<void>((resolve) => {
    const timer = realTimeout(resolve, 1)
    changed = () => {
      realClear(timer)
      changed = () => {}
      resolve()
    }
  })

/** Waits until nothing is under way, for a few turns of the event loop in a row. */
const settle = async () => {
  for (let quiet = 0; quiet < 3;) {
    await turn()
    if (open.size > unanswered || isBusy()) {
      quiet = 0
      await change()
    } else {
      quiet++
    }
  }
}

const next = (until: number): Timer | undefined => {
  let first: Timer | undefined
  for (const timer of pending) {
    if (timer.due <= until && (first === undefined || timer.due < first.due)) first = timer
  }
  return first
}

const pass = async (until: number) => {
  await settle()
  for (let timer = next(until); timer !== undefined; timer = next(until)) {
    now = Math.max(now, timer.due)
    timer.fire()
    await settle()
  }
  now = Math.max(now, until)
  process.send?.("passed")
}

process.on("message", (tick: Tick) => {
  unanswered = tick.unanswered
  changed()
  if (tick.until !== undefined) void pass(tick.until)
})
// it ends with the fuzzer
process.once("disconnect", () => process.exit())
