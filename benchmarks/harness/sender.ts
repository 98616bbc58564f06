/**
 * Load generator over undici, a process of its own: a fixed rate of arrivals, a fixed number of requests, or, where wrk is
 * not installed, as many as are answered. Every answer is checked.
 */
import * as fs from "node:fs"
import { Worker } from "node:worker_threads"
import { Pool } from "undici"
import type { Arrival, Outcome, Workload } from "./load.ts"
import { percentile } from "./statistics.ts"

const { arrival, url, workload } = JSON.parse(process.argv[2] ?? "") as {
  readonly url: string
  readonly workload: Workload
  readonly arrival: Arrival
}
const { answer, bodies, connections, first } = workload

const lines = "file" in bodies ? fs.readFileSync(bodies.file, "utf8").trimEnd().split("\n") : []

const bodyOf = (number: number): string => {
  if (!("file" in bodies)) {
    return bodies.template.replaceAll(
      /%(?:0[0-9]{2}x|d)/gu,
      (place) => place === "%d" ? String(number) : number.toString(16).padStart(Number(place.slice(2, 4)), "0")
    )
  }
  const line = lines[number]
  if (line === undefined) throw new Error(`There are ${lines.length} bodies only`)
  return line
}

const pool = new Pool(url, { connections, pipelining: 1, headersTimeout: 20_000, bodyTimeout: 20_000 })
const latencies: Array<number> = []
/** What the first request on each connection took, at a fixed rate: this process and its connections only begin then. */
const opening: Array<number> = []
let sent = 0
let wrong = 0
let broken = 0
let last = 0

const isRight = (number: number, status: number, body: Buffer): boolean =>
  status === 200 && body.includes(answer.contains) && body.length === (answer.length ?? body.length) &&
  (answer.echoesId !== true || body.includes(`"id":${number},`))

/** Sends one request; its latency counts from when it was due, so that a late answer delays nobody unseen. */
const send = (due: number, whenDone: () => void): void => {
  const number = first + sent
  sent++
  let status = 0
  const chunks: Array<Buffer> = []
  pool.dispatch({
    path: workload.path,
    method: "POST",
    headers: { "content-type": "application/json" },
    body: bodyOf(number)
  }, {
    onRequestStart() {},
    onResponseStart(_controller, statusCode) {
      status = statusCode
    },
    onResponseData(_controller, chunk) {
      chunks.push(chunk)
    },
    onResponseEnd() {
      last = performance.now()
      const times = "perSecond" in arrival && number - first < connections ? opening : latencies
      times.push(last - due)
      const body = Buffer.concat(chunks)
      if (!isRight(number, status, body)) {
        wrong++
        if (wrong === 1) console.log(`wrong answer: ${status} ${body.toString("utf8", 0, 500)}`)
      }
      whenDone()
    },
    onResponseError(_controller, error) {
      broken++
      if (broken === 1) console.log(`broken: ${error.message}`)
      whenDone()
    }
  })
}

/** On every connection the next request as soon as the last is answered. */
const closedLoop = (goesOn: () => boolean): Promise<void> =>
  new Promise((resolve) => {
    let open = connections
    const next = () => {
      if (goesOn()) {
        send(performance.now(), next)
      } else {
        open--
        if (open === 0) resolve()
      }
    }
    for (let connection = 0; connection < connections; connection++) next()
  })

/** Requests at a fixed rate, whether or not those before have been answered. */
const openLoop = (perSecond: number, seconds: number): Promise<void> =>
  new Promise((resolve) => {
    const times = Math.ceil(perSecond * seconds)
    let done = 0
    const whenDone = () => {
      done++
      if (done === times) resolve()
    }
    const workerData = { millis: 1000 / perSecond, times }
    new Worker(new URL("ticker.ts", import.meta.url), { workerData }).on("message", (due: number) => {
      send(due - performance.timeOrigin, whenDone)
    })
  })

const began = performance.now()
await ("requests" in arrival
  ? closedLoop(() => sent < arrival.requests)
  : "perSecond" in arrival
  ? openLoop(arrival.perSecond, arrival.seconds)
  : closedLoop(() => performance.now() - began < arrival.seconds * 1000))

const sorted = Float64Array.from(latencies.length > 0 ? latencies : opening).toSorted()
const outcome: Outcome = {
  sent,
  requests: latencies.length + opening.length,
  seconds: (last - began) / 1000,
  p50Millis: percentile(sorted, 0.5),
  p99Millis: percentile(sorted, 0.99),
  wrong,
  broken
}
console.log(JSON.stringify(outcome))
await pool.close()
process.exit()
