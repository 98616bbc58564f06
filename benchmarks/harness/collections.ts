/**
 * Preloaded into a server that is measured: counts its garbage collections, and writes what it has counted since the last time
 * into the file `COLLECTIONS` when it gets the signal SIGUSR2.
 */
import * as fs from "node:fs"
import { PerformanceObserver } from "node:perf_hooks"

let found = { count: 0, millis: 0, longest: 0 }

const observer = new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) {
    found = {
      count: found.count + 1,
      millis: found.millis + duration,
      longest: Math.max(found.longest, duration)
    }
  }
})
observer.observe({ entryTypes: ["gc"] })

const file = process.env["COLLECTIONS"] ?? ""

process.on("SIGUSR2", () => {
  // a reader finds either nothing or all of it
  fs.writeFileSync(`${file}.new`, JSON.stringify(found))
  fs.renameSync(`${file}.new`, file)
  found = { count: 0, millis: 0, longest: 0 }
})
