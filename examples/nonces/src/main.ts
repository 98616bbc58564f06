/** Starts four processes that take nonces of one signer at the same time, and shows that no two are the same. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Clock, Console, Effect } from "effect"
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"

const processes = ["one", "two", "three", "four"]

const take = Effect.callback<ReadonlyArray<number>, string>((resume) => {
  const worker = fileURLToPath(new URL("worker.ts", import.meta.url))
  const child = execFile(
    process.execPath,
    [worker],
    { maxBuffer: 1024 ** 3 },
    (error, stdout, stderr) =>
      resume(error === null ? Effect.succeed(stdout.trim().split(" ").map(Number)) : Effect.fail(`${stderr}${stdout}`))
  )
  return Effect.sync(() => child.kill())
})

const isIncreasing = (nonces: ReadonlyArray<number>): boolean =>
  nonces.every((nonce, index) => index === 0 || nonce > (nonces[index - 1] ?? nonce))

const program = Effect.gen(function*() {
  const begin = yield* Clock.currentTimeMillis
  const shares = yield* Effect.forEach(processes, () => take, { concurrency: "unbounded" })
  const end = yield* Clock.currentTimeMillis
  const all = shares.flat().toSorted((a, b) => a - b)
  const different = new Set(all).size
  for (const [index, share] of shares.entries()) {
    const order = isIncreasing(share) ? "each above the one before" : "out of order"
    yield* Console.log(`process ${processes[index]}: ${share.length} nonces, ${order}`)
  }
  // a handover: two neighbours in the order of all that different processes got
  const owner = new Map(shares.flatMap((share, index) => share.map((nonce) => [nonce, index] as const)))
  const handovers = all.filter((nonce, index) => index > 0 && owner.get(nonce) !== owner.get(all[index - 1] ?? nonce))
  yield* Console.log(
    `together: ${all.length} nonces, ${different} different, ${all.length - different} given out twice`
  )
  yield* Console.log(`interleaved: ${handovers.length} times the next one went to another process`)
  yield* Console.log(
    `the last is ${Math.max(0, (all.at(-1) ?? 0) - end)} ms ahead of the clock, after ${end - begin} ms`
  )
  if (different < all.length) return yield* Effect.fail("nonces collided")
})

NodeRuntime.runMain(program)
