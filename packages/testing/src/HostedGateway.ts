/**
 * Starts gateways in a process of their own. All test files of a run share this process, because starting a process
 * takes seconds of processor time.
 */
import * as Effect from "effect/Effect"
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Net from "node:net"
import * as Path from "node:path"
import * as JsonParts from "./JsonParts.ts"
import { endWithRun, oncePerRun } from "./OncePerRun.ts"

const main = new URL("HostedGatewayMain.ts", import.meta.url).pathname

/** Runs the module `$1` with Node, `$0`. Waits until its socket, `$2`, exists, and prints the ID of its process. */
const startProgram = `
"$0" "$1" "$2" >"$2.log" 2>&1 </dev/null &
while [ ! -S "$2" ]; do
  kill -0 $! 2>/dev/null || exit 1
  sleep 0.02
done
echo $!
`

/** Returns the path of the process's socket. The first call in a test run starts the process. */
const socketPath = (): string =>
  Path.join(
    oncePerRun("gateways", (folder) => {
      const socket = Path.join(folder, "socket")
      const { PATH, NODE_COMPILE_CACHE } = process.env
      const { status, stdout } = spawnSync("bash", ["-c", startProgram, process.execPath, main, socket], {
        encoding: "utf8",
        env: { PATH, NODE_COMPILE_CACHE }
      })
      if (status !== 0) throw new Error(Fs.readFileSync(`${socket}.log`, "utf8"))
      endWithRun(Number(stdout))
    }),
    "socket"
  )

interface Hosted {
  readonly connection: Net.Socket
  readonly url: string
}

/** Starts a gateway with the given environment in the shared process. The gateway stops when the scope closes. */
export const hostedGateway = (environment: { readonly [name: string]: string }) =>
  Effect.acquireRelease(
    Effect.callback<Hosted>((resume) => {
      const fail = (reason: string) => resume(Effect.die(new Error(`The gateway did not start:\n${reason}`)))
      // the gateway lives as long as the connection
      const connection = Net.connect(socketPath(), () => connection.write(`${JSON.stringify(environment)}\n`))
      let received = ""
      connection.setEncoding("utf8").on("data", (chunk: string) => {
        received += chunk
        if (!received.endsWith("\n")) return
        const failure = JsonParts.value(received, "failure")
        if (failure === undefined) resume(Effect.succeed({ connection, url: String(JsonParts.value(received, "url")) }))
        else fail(JSON.stringify(failure))
      })
      connection.once("error", ({ message }) => fail(message))
      connection.once("close", () => fail("its process closed the connection"))
    }),
    ({ connection }) => Effect.sync(() => connection.destroy())
  )

/** The fixed time, in milliseconds, of a sandbox that is started with the environment `stillMarket`. */
export const stillTime = Date.UTC(2026, 0, 5, 12, 30)

/**
 * The environment of a sandbox with a fixed clock. In each run, an order meets the same book, even if the test is slow.
 */
export const stillMarket = { TRIGATE_SANDBOX_CLOCK: "2026-01-05T12:30:00Z" }
