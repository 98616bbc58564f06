/** A venue in a process of its own, as CI has it: `trigate sandbox` on a free port, and what a test sets about it. */
import { spawn } from "node:child_process"
import { createRequire } from "node:module"

export interface Sandbox extends AsyncDisposable {
  readonly url: string
  /** Sends a control, such as `faults` or `prices`. */
  readonly control: (what: string, body: object) => Promise<void>
}

/** Starts the venue, and waits for its ready line. */
export const startSandbox = async (...flags: ReadonlyArray<string>): Promise<Sandbox> => {
  const { resolve } = createRequire(import.meta.url)
  const program = resolve("trigate/package.json").replace(/package\.json$/u, "src/trigate.ts")
  const child = spawn(process.execPath, [program, "sandbox", "--port", "0", ...flags], {
    // without settings of the machine or of the test runner
    env: Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("TRIGATE_"))),
    stdio: ["ignore", "pipe", "inherit"]
  })
  const ended = new Promise<void>((resolve) => child.on("close", () => resolve()))
  let printed = ""
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on("data", (chunk: Buffer) => {
      printed += chunk.toString("utf8")
      const found = /listens on (?<url>http:\S+)/u.exec(printed)?.groups?.["url"]
      if (found !== undefined) resolve(found)
    })
    child.on("close", (code) => reject(new Error(`It ended with ${code} before it listened`)))
  })
  return {
    url,
    control: async (what, body) => {
      const reply = await fetch(`${url}/admin/sandbox/${what}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body)
      })
      if (!reply.ok) throw new Error(await reply.text())
    },
    [Symbol.asyncDispose]: () => {
      child.kill()
      return ended
    }
  }
}
