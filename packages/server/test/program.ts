/** The bundled gateway as a command: run to its end, with what it printed on each stream. */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as Http from "node:http"

export interface Ended {
  /** `null` when a signal ended it. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program under the given environment alone, until it ends by itself. */
export const run = (
  file: URL,
  args: ReadonlyArray<string>,
  environment: { readonly [name: string]: string } = {}
): Effect.Effect<Ended> =>
  Effect.callback((resume) => {
    const child = spawn(process.execPath, [file.pathname, ...args], {
      env: { PATH: process.env["PATH"], ...environment },
      stdio: ["ignore", "pipe", "pipe"]
    })
    const printed = { stdout: "", stderr: "" }
    child.stdout.on("data", (chunk: Buffer) => {
      printed.stdout += chunk.toString("utf8")
    })
    child.stderr.on("data", (chunk: Buffer) => {
      printed.stderr += chunk.toString("utf8")
    })
    child.on("close", (code) => resume(Effect.succeed({ code, ...printed })))
    return Effect.sync(() => child.kill("SIGKILL"))
  })

const main = new URL("../src/main.ts", import.meta.url)

/** Runs `main.ts` with some arguments. */
export const program = (args: ReadonlyArray<string>, environment: { readonly [name: string]: string } = {}) =>
  run(main, args, environment)

export interface Said {
  readonly status: number
  readonly body: string
  /** Whether the connection had served a request before. */
  readonly reused: boolean
}

/** One kept-alive connection to a server; requests on it wait for each other. */
export const connection = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => new Http.Agent({ keepAlive: true, maxSockets: 1 })),
    (agent) => Effect.sync(() => agent.destroy())
  ),
  (agent) => (url: string, body?: string) =>
    Effect.callback<Said, Error>((resume) => {
      const request = Http.request(url, {
        agent,
        method: body === undefined ? "GET" : "POST",
        headers: body === undefined ? {} : { "content-type": "application/json" }
      }, (response) => {
        let text = ""
        response.on("data", (chunk: Buffer) => {
          text += chunk.toString("utf8")
        })
        response.on("end", () => {
          resume(Effect.succeed({ status: response.statusCode ?? 0, body: text, reused: request.reusedSocket }))
        })
      })
      request.on("error", (error) => resume(Effect.fail(error)))
      request.end(body)
    })
)

export interface HeldUpstream {
  readonly url: string
  /** Settles when the first request has come. */
  readonly asked: Promise<void>
  /** Answers every request that has come and will come. */
  readonly release: (body: string) => void
}

/** A server that answers nobody until it is told what. */
export const heldUpstream = Effect.acquireRelease(
  Effect.callback<HeldUpstream & { readonly close: () => void }>((resume) => {
    const asked = Promise.withResolvers<void>()
    const told = Promise.withResolvers<string>()
    const server = Http.createServer((request, response) => {
      request.resume().on("end", () => {
        asked.resolve()
        void told.promise.then((body) => response.writeHead(200, { "content-type": "application/json" }).end(body))
      })
    })
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      const port = address !== null && typeof address === "object" ? address.port : 0
      resume(Effect.succeed({
        url: `http://127.0.0.1:${port}`,
        asked: asked.promise,
        release: told.resolve,
        close: () => {
          server.closeAllConnections()
          server.close()
        }
      }))
    })
  }),
  ({ close }) => Effect.sync(close)
)
