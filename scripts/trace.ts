/**
 * Follows one warm call of each kind through a running gateway, and one through the typed client.
 *
 * `npm run trace` prints the files of `packages/*\/src` that the call enters, in the order in which it first enters them,
 * with the functions that ran and how often, and the calls of functions in each library: a cost that no busy machine
 * changes. `--check` fails where a call enters more files than its limit;
 * `--markdown` prints the sequences for docs/architecture.md.
 *
 * V8's precise coverage says which functions ran. What did not run in every one of three recorded calls is background
 * work and is left out. Coverage has no order: a further call runs with a breakpoint at the start of each function, whose
 * condition notes the function and lets it go on.
 */
import * as Json from "@trigate/domain/encoding/Encoding"
import { formingFresh } from "@trigate/domain/unstable/info/InfoQueries"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Signer from "@trigate/signing/Signer"
import { mainnet, Venue } from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type { ChildProcess } from "node:child_process"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { Inspector } from "./trace/inspector.ts"
import * as Upstream from "./trace/upstream.ts"
import { everTraded } from "./trace/upstream.ts"

const root = path.resolve(import.meta.dirname, "..")

const { values: options } = parseArgs({
  options: { check: { type: "boolean", default: false }, markdown: { type: "boolean", default: false } }
})

/** Sends one call and waits for its answer; no two calls are answered from the same cached response. */
type Send = () => Promise<void>

interface Kind {
  readonly name: string
  /** The most files that the call may enter. */
  readonly limit?: number
  readonly process: Traced
  /** Waits until the next call takes the path that is traced. What runs in the background meanwhile is not recorded. */
  readonly prepare?: () => Promise<void>
  readonly send: Send
}

interface Traced {
  readonly child: ChildProcess
  readonly inspector: Inspector
  /** What the process printed when it was ready. */
  readonly ready: string
}

const warmUps = 5
const recordedCalls = 3

/** Runs a program under the inspector and waits until it prints `ready`. */
const start = (file: string, args: ReadonlyArray<string>, env: NodeJS.ProcessEnv, ready: RegExp): Promise<Traced> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["--inspect=127.0.0.1:0", path.join(root, file), ...args], {
      env: { PATH: process.env["PATH"], ...env },
      stdio: "pipe"
    })
    let printed = ""
    let found = false
    const read = (chunk: Buffer) => {
      if (found) return
      printed += chunk.toString("utf8")
      const line = ready.exec(printed)?.[0]
      const url = /ws:\/\/\S+/u.exec(printed)?.[0]
      if (line === undefined || url === undefined) return
      found = true
      Inspector.connect(url).then((inspector) => resolve({ child, inspector, ready: line }), reject)
    }
    child.stdout.on("data", read)
    child.stderr.on("data", read)
    child.on("close", (code) => reject(new Error(`${file} ended (${code}):\n${printed}`)))
  })

const Coverage = Schema.Struct({
  result: Schema.Array(Schema.Struct({
    scriptId: Schema.String,
    url: Schema.String,
    functions: Schema.Array(Schema.Struct({
      functionName: Schema.String,
      ranges: Schema.NonEmptyArray(
        Schema.Struct({ startOffset: Schema.Number, endOffset: Schema.Number, count: Schema.Number })
      )
    }))
  }))
})

const Locations = Schema.Struct({
  locations: Schema.Array(Schema.Struct({
    scriptId: Schema.String,
    lineNumber: Schema.Number,
    columnNumber: Schema.optionalKey(Schema.Number)
  }))
})

const Evaluated = Schema.Struct({
  result: Schema.Struct({ value: Schema.optionalKey(Schema.Unknown) }),
  exceptionDetails: Schema.optionalKey(Schema.Unknown)
})

/** A function that ran. */
interface Entered {
  /** Unique in its process. */
  readonly key: string
  readonly scriptId: string
  /** From the root of the repository. */
  readonly file: string
  readonly name: string
  readonly start: number
  readonly end: number
  readonly count: number
}

const sources = new Map<string, string>()

const sourceOf = (file: string): string => {
  const source = sources.get(file) ?? fs.readFileSync(path.join(root, file), "utf8")
  sources.set(file, source)
  return source
}

/** Line and column of an offset, both from zero. Node strips types in place, so the offsets are those of the source. */
const positionOf = (file: string, offset: number) => {
  const before = sourceOf(file).slice(0, offset).split("\n")
  return { lineNumber: before.length - 1, columnNumber: before.at(-1)?.length ?? 0 }
}

const fileOf = (url: string): string | undefined => {
  if (!url.startsWith("file://")) return undefined
  const file = path.relative(root, new URL(url).pathname)
  return /^packages\/[^/]+\/src\//u.test(file) ? file : undefined
}

/** How often functions of a library, of Node or of this repository were called. */
type Calls = ReadonlyMap<string, number>

const libraryOf = (url: string): string | undefined =>
  /node_modules\/((?:@[^/]+\/)?[^/]+)/u.exec(url)?.[1] ??
    (url.startsWith("node:") ? "node" : fileOf(url) === undefined ? undefined : "trigate")

/** What ran since the last time this was asked. */
interface Taken {
  readonly entered: ReadonlyArray<Entered>
  readonly calls: Calls
}

const take = async (inspector: Inspector): Promise<Taken> => {
  const { result } = await inspector.send(Coverage, "Profiler.takePreciseCoverage")
  const calls = new Map<string, number>()
  for (const { functions, url } of result) {
    const library = libraryOf(url)
    if (library === undefined) continue
    const count = functions.reduce((sum, { ranges: [{ count }] }) => sum + count, 0)
    calls.set(library, (calls.get(library) ?? 0) + count)
  }
  const entered = result.flatMap(({ functions, scriptId, url }) => {
    const file = fileOf(url)
    if (file === undefined) return []
    return functions.flatMap(({ functionName, ranges: [{ count, endOffset, startOffset }] }) => {
      if (count === 0) return []
      const line = positionOf(file, startOffset).lineNumber + 1
      const name = `${functionName === "" ? "anonymous" : functionName}:${line}`
      return [{ key: `${scriptId}:${startOffset}`, scriptId, file, name, start: startOffset, end: endOffset, count }]
    })
  })
  return { entered, calls }
}

/** Sends a call, then waits until what it leaves behind, such as a line of the access log, is done. */
const settled = async (send: Send): Promise<void> => {
  await send()
  await new Promise((resolve) => setTimeout(resolve, 100))
}

/** The functions that run in each of the recorded calls, with the counts of the last one. */
const record = async ({ prepare, process: { inspector }, send }: Kind): Promise<Taken> => {
  await inspector.command("Profiler.enable")
  await inspector.command("Profiler.startPreciseCoverage", { callCount: true, detailed: false })
  let common: ReadonlyArray<Entered> | undefined
  let calls: Calls = new Map()
  for (let call = 0; call < recordedCalls; call++) {
    await prepare?.()
    await take(inspector)
    await settled(send)
    const earlier = common === undefined ? undefined : new Set(common.map(({ key }) => key))
    const taken = await take(inspector)
    calls = taken.calls
    common = earlier === undefined ? taken.entered : taken.entered.filter(({ key }) => earlier.has(key))
  }
  await inspector.command("Profiler.stopPreciseCoverage")
  return { entered: common ?? [], calls }
}

const evaluate = async (inspector: Inspector, expression: string): Promise<unknown> => {
  const { exceptionDetails, result } = await inspector.send(Evaluated, "Runtime.evaluate", {
    expression,
    awaitPromise: true,
    returnByValue: true
  })
  if (exceptionDetails !== undefined) throw new Error(`${expression} failed: ${JSON.stringify(exceptionDetails)}`)
  return result.value
}

/** The functions in the order in which one further call enters them. */
const inOrder = async (
  { prepare, process: { inspector }, send }: Kind,
  entered: ReadonlyArray<Entered>
): Promise<ReadonlyArray<Entered>> => {
  await evaluate(inspector, "globalThis.enteredFunctions = new Set(), true")
  await inspector.command("Debugger.enable")
  await Promise.all(entered.map(async ({ end, file, scriptId, start }, index) => {
    const { locations: [first] } = await inspector.send(Locations, "Debugger.getPossibleBreakpoints", {
      start: { scriptId, ...positionOf(file, start) },
      end: { scriptId, ...positionOf(file, end) },
      restrictToFunction: true
    })
    if (first === undefined) return
    await inspector.command("Debugger.setBreakpoint", {
      location: first,
      condition: `globalThis.enteredFunctions.add(${index}), false`
    })
  }))
  await prepare?.()
  await evaluate(inspector, "globalThis.enteredFunctions.clear(), true")
  await settled(send)
  const order = Schema.decodeUnknownSync(Schema.Array(Schema.Number))(
    await evaluate(inspector, "[...globalThis.enteredFunctions]")
  )
  await inspector.command("Debugger.disable")
  const seen = new Set(order)
  const missed = entered.keys().filter((index) => !seen.has(index))
  return [...order, ...missed].flatMap((index) => entered[index] ?? [])
}

const trace = async (kind: Kind) => {
  for (let call = 0; call < warmUps; call++) await kind.send()
  const { calls, entered } = await record(kind)
  return { calls, files: Map.groupBy(await inOrder(kind, entered), ({ file }) => file) }
}

const post = (url: string, body: () => string | Promise<string>): Send => async () => {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: await body()
  })
  const answer = await response.text()
  if (response.status !== 200 || answer.includes("\"error\"")) {
    throw new Error(`${url} answered ${response.status}: ${answer}`)
  }
}

let calls = 0

/** A number that no call had before. */
const fresh = (): number => ++calls

const hour = 3_600_000
const began = Date.now()

const signed = <A, E>(action: Effect.Effect<A, E, Signer.Signer | Venue>): Promise<string> =>
  Effect.gen(function*() {
    const signer = yield* Signer.makePrivateKey(Redacted.make(`0x${"42".repeat(32)}`))
    return Json.stringify(yield* Effect.provideService(action, Signer.Signer, signer))
  }).pipe(Effect.provideService(Venue, mainnet), Effect.provide(Secp256k1.layer), Effect.runPromise)

const bigBlocks = (): Promise<string> => signed(ActionBuilder.useBigBlocks({ nonce: began + fresh() }))

const order = (): Promise<string> => {
  const number = fresh()
  const cloid = `0x${number.toString(16).padStart(32, "0")}` as const
  const terms = { asset: 1, side: "buy", priceInQuote: "1100.5", sizeInBase: "0.2", timeInForce: "Gtc", cloid } as const
  return signed(ActionBuilder.placeOrders({ orders: [terms] }, { nonce: began + number }))
}

const candleQuery = (): string => {
  const startTime = began - (100 + fresh()) * hour
  return JSON.stringify({ type: "candleSnapshot", req: { coin: "BTC", interval: "1h", startTime, endTime: began } })
}

/** A window whose closed bars the gateway has. */
const rollingQuery = (): string => {
  const startTime = began - 100 * hour + fresh()
  return JSON.stringify({
    type: "candleSnapshot",
    req: { coin: everTraded, interval: "1h", startTime, endTime: began }
  })
}

/** Waits until the forming bar is no longer fresh. */
const formingIsStale = () => new Promise<void>((resolve) => setTimeout(resolve, formingFresh + 100))

const storageRead = (): string =>
  JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "eth_getStorageAt",
    params: [`0x${"11".repeat(20)}`, `0x${fresh().toString(16)}`, "latest"]
  })

const plural = (count: number, word: string): string => `${count} ${word}${count === 1 ? "" : "s"}`

const functionsOf = (files: ReadonlyMap<string, ReadonlyArray<Entered>>): number =>
  files.values().reduce((sum, functions) => sum + functions.length, 0)

const totalOf = (name: string, files: ReadonlyMap<string, ReadonlyArray<Entered>>): string =>
  `${name}: ${plural(files.size, "file")}, ${plural(functionsOf(files), "function")}`

const textOf = (name: string, files: ReadonlyMap<string, ReadonlyArray<Entered>>): string =>
  [
    ...[...files].flatMap(([file, functions]) => [
      file,
      `  ${functions.map(({ count, name }) => count === 1 ? name : `${name} x${count}`).join(", ")}`
    ]),
    totalOf(name, files)
  ].join("\n")

const callsText = (calls: Calls): string =>
  `calls: ${
    [...calls].filter(([, count]) => count > 0).toSorted(([, a], [, b]) => b - a)
      .map(([library, count]) => `${library} ${count}`).join(", ")
  }`

/** The first sentence of the docstring that a module begins with. */
const summaryOf = (file: string): string => {
  const text = /^\/\*\*(?<text>.*?)\*\//su.exec(sourceOf(file))?.groups?.["text"] ?? ""
  const line = text.replaceAll(/^\s*\* ?/gmu, "").trim().split("\n\n")[0]?.replaceAll(/\s+/gu, " ") ?? ""
  return (/^.*?\.(?= |$)/u.exec(line)?.[0] ?? line).replaceAll("|", "\\|")
}

const markdownOf = (name: string, files: ReadonlyMap<string, ReadonlyArray<Entered>>): string =>
  [
    `### ${totalOf(name, files)}`,
    "",
    "| File | Functions | Holds |",
    "| ---- | --------- | ----- |",
    ...[...files].map(([file, functions]) =>
      `| \`${file.replace(/^packages\//u, "")}\` | ${functions.length} | ${summaryOf(file)} |`
    ),
    ""
  ].join("\n")

const upstream = await Upstream.listen()
const processes: Array<Traced> = []
try {
  const gateway = await start(
    "packages/trigate/src/trigate.ts",
    ["serve"],
    {
      TRIGATE_PORT: "0",
      // no timer of its own runs beside the call
      TRIGATE_MAX_LAG: "1 hour",
      TRIGATE_TRADING_API_URL: upstream.url,
      TRIGATE_TRADING_NODE_URL: `${upstream.url}/node`,
      TRIGATE_LAYER2_URL: `${upstream.url}/layer2`
    },
    /http:\/\/[^\s/]+(?= \()/u
  )
  processes.push(gateway)
  const client = await start("scripts/trace/client.ts", [gateway.ready], {}, /client is ready/u)
  processes.push(client)
  const kinds: ReadonlyArray<Kind> = [
    { name: "order", limit: 28, process: gateway, send: post(`${gateway.ready}/exchange`, order) },
    { name: "signed action", limit: 28, process: gateway, send: post(`${gateway.ready}/exchange`, bigBlocks) },
    { name: "candle query", limit: 24, process: gateway, send: post(`${gateway.ready}/info`, candleQuery) },
    {
      name: "rolling candle query",
      limit: 24,
      process: gateway,
      prepare: formingIsStale,
      send: post(`${gateway.ready}/info`, rollingQuery)
    },
    { name: "JSON-RPC read", limit: 21, process: gateway, send: post(`${gateway.ready}/evm`, storageRead) },
    {
      name: "client call",
      process: client,
      send: async () => {
        await evaluate(client.inspector, "globalThis.traced()")
      }
    }
  ]
  for (const kind of kinds) {
    const { calls, files } = await trace(kind)
    console.log(options.markdown ? markdownOf(kind.name, files) : textOf(kind.name, files))
    if (!options.markdown) console.log(`${callsText(calls)}\n`)
    if (options.check && kind.limit !== undefined && files.size > kind.limit) {
      console.error(`${kind.name}: ${files.size} files, the limit is ${kind.limit}`)
      process.exitCode = 1
    }
  }
} finally {
  for (const { child, inspector } of processes) {
    inspector.close()
    child.removeAllListeners("close")
    child.kill("SIGTERM")
  }
  upstream.close()
}
