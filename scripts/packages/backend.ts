/** Tries `examples/backend` outside of the repository: installs it from the tarballs, compiles and tests it, and starts it. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { equal, runBeside } from "../steps.ts"
import { root } from "./manifest.ts"

const source = path.join(root, "examples/backend")

// what a team would clone; in a checkout the folder may also hold what was installed there
const files = ["package.json", "package-lock.json", "tsconfig.json", "src", "test"]

const decodeTests = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({ numPassedTests: Schema.Int, numTotalTests: Schema.Int }))
)

const install = (app: string) =>
  Effect.gen(function*() {
    for (const file of files) fs.cpSync(path.join(source, file), path.join(app, file), { recursive: true })
    yield* runBeside(process.execPath, [path.join(import.meta.dirname, "vendor.ts")], app)
    yield* runBeside("npm", ["ci", "--loglevel=error", "--no-audit", "--no-fund"], app)
    yield* runBeside("npm", ["run", "types"], app)
    yield* runBeside("npm", ["test", "--", "--reporter=json", "--outputFile=run.json"], app)
    const { numPassedTests, numTotalTests } = decodeTests(fs.readFileSync(path.join(app, "run.json"), "utf8"))
    equal("tests of the backend", numPassedTests, numTotalTests)
    return numPassedTests
  })

/** The program over a gateway that stands in for the upstreams; the result is where it listens. */
const started = (app: string, gateway: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ readonly url: string; readonly stop: () => void }>((resume) => {
        const child = spawn(process.execPath, ["src/main.ts"], {
          cwd: app,
          env: {
            PATH: process.env["PATH"],
            PORT: "0",
            // a public key of the sandbox
            STAKING_KEY: "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
            TRIGATE_TRADING_API_URL: gateway,
            TRIGATE_TRADING_NODE_URL: `${gateway}/any-key`,
            TRIGATE_TOKEN_CHAIN_URL: `${gateway}/any-key`,
            TRIGATE_LAYER2_URL: `${gateway}/any-key`
          }
        })
        let printed = ""
        const read = (chunk: Buffer) => {
          printed += chunk.toString("utf8")
          const url = /Listening on (http:\/\/127\.0\.0\.1:\d+)/u.exec(printed)?.[1]
          if (url !== undefined) resume(Effect.succeed({ url, stop: () => child.kill("SIGKILL") }))
        }
        child.stdout.on("data", read)
        child.stderr.on("data", read)
        child.on("close", () => resume(Effect.die(new Error(`The backend ended before it listened:\n${printed}`))))
      }),
      ({ stop }) => Effect.sync(stop)
    ),
    ({ url }) => url
  )

const Archived = Schema.Struct({ file: Schema.String, bars: Schema.Int, isWhole: Schema.Boolean })
const decodeArchived = Schema.decodeUnknownSync(Archived)

const minutes = 2500

const ask = async (url: string, app: string): Promise<void> => {
  const post = (route: string, body: unknown) =>
    fetch(`${url}${route}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body)
    })
  const endTime = Math.floor(Date.now() / 60_000 - 1) * 60_000 - 1
  const window = { interval: "1m", startTime: endTime + 1 - minutes * 60_000, endTime }
  const archived = decodeArchived(await (await post("/archives", { coin: "BTC", ...window })).json())
  equal("bars", archived, { file: archived.file, bars: minutes, isWhole: true })
  equal("lines", fs.readFileSync(path.join(app, archived.file), "utf8").trimEnd().split("\n").length, minutes)
  const unknown = await post("/archives", { coin: "NOSUCHCOIN", ...window })
  equal("an unknown coin", [unknown.status, await unknown.json()], [
    422,
    { _tag: "Refused", code: "UnknownAsset", detail: `The venue knows no coin "NOSUCHCOIN"` }
  ])
  const stake = await post("/stakes", { validator: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8", hype: "1.5" })
  equal("a stake", stake.status, 200)
  const hash = "0xffbd8fdbaf5800e2f7df0d5a73efee4fe8a9ef54d53f10798bbb76f7bb08c39e"
  equal("a deposit", (await fetch(`${url}/deposits/${hash}`)).status, 200)
  equal("the gateway", (await post("/gateway/info", { type: "spotMeta" })).status, 200)
}

/** Installs, tests and starts the example in an empty folder, and asks it over the sandbox of a gateway. */
export const backend = (app: string, gateway: string) =>
  Effect.gen(function*() {
    const tests = yield* install(app)
    const url = yield* started(app, gateway)
    yield* Effect.promise(() => ask(url, app))
    return `${tests} tests; it archives ${minutes} bars, stakes, waits for a deposit, and mounts the gateway`
  })
