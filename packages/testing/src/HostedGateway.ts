/**
 * Starts gateways in a child process. All tests of this process share the child process, because starting a process
 * takes most of a second.
 */
import * as Effect from "effect/Effect"
import type { ChildProcess } from "node:child_process"
import { fork } from "node:child_process"
import * as JsonParts from "./JsonParts.ts"

const main = new URL("HostedGatewayMain.ts", import.meta.url).pathname

const waiting = new Map<number, (url: Effect.Effect<string>) => void>()
let host: ChildProcess | undefined
let lastId = 0

const started = (): ChildProcess => {
  if (host !== undefined) return host
  const child = fork(main, { execArgv: [], env: { PATH: process.env["PATH"] } })
  child.on("message", (message) => {
    const id = Number(JsonParts.at(message, "id"))
    const failure = JsonParts.at(message, "failure")
    waiting.get(id)?.(
      failure === undefined
        ? Effect.succeed(String(JsonParts.at(message, "url")))
        : Effect.die(new Error(`The gateway did not start:\n${JSON.stringify(failure)}`))
    )
    waiting.delete(id)
  })
  child.once("exit", (code, signal) => {
    host = undefined
    for (const end of waiting.values()) {
      end(Effect.die(new Error(`The child process of the gateways ended with ${code ?? signal}`)))
    }
    waiting.clear()
  })
  // the child process ends when this process ends, and does not keep this process running
  child.unref()
  child.channel?.unref()
  host = child
  return child
}

/** Starts a gateway with the given environment in the child process. The gateway stops when the scope closes. */
export const hostedGateway = (environment: { readonly [name: string]: string }) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly id: number; readonly url: string }>((resume) => {
      lastId += 1
      const id = lastId
      waiting.set(id, (url) => resume(Effect.map(url, (text) => ({ id, url: text }))))
      started().send({ id, environment })
    }),
    ({ id }) => Effect.sync(() => host?.send({ id, environment: null }))
  )

/** The fixed time, in milliseconds, of a sandbox that is started with the environment `stillMarket`. */
export const stillTime = Date.UTC(2026, 0, 5, 12, 30)

/**
 * The environment of a sandbox with a fixed clock. In each run, an order meets the same book, even if the test is slow.
 */
export const stillMarket = { TRIGATE_SANDBOX_CLOCK: "2026-01-05T12:30:00Z" }
