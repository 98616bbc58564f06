/** Wakes its parent when the next request is due: a timer of the event loop is a millisecond late, a futex is not. */
import { parentPort, workerData } from "node:worker_threads"

const cell = new Int32Array(new SharedArrayBuffer(4))
const { millis, times } = workerData as { readonly millis: number; readonly times: number }
const start = performance.now()

for (let index = 0; index < times; index++) {
  const due = start + index * millis
  const left = due - performance.now()
  if (left > 0) Atomics.wait(cell, 0, 0, left)
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port, not a window
  parentPort?.postMessage(performance.timeOrigin + due)
}
