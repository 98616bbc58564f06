/**
 * The process of `oneProcess.ts`. A program has ended when nothing is left that this process waits for, as where Node runs it
 * alone; one that calls `process.exit` or fails ends the process.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { pathToFileURL } from "node:url"

interface Command {
  readonly args: ReadonlyArray<string>
  readonly cwd: string
}

const mark = process.argv[2] ?? ""
let count = 0
let isRunning = false
let isSettled = false

process.setMaxListeners(0)
process.stdout.setMaxListeners(0)
process.stderr.setMaxListeners(0)

const run = async ({ args: [file = "", ...args], cwd }: Command) => {
  isRunning = true
  isSettled = false
  count += 1
  process.channel?.unref()
  process.chdir(cwd)
  const module = path.resolve(cwd, file)
  process.argv = [process.execPath, module, ...args]
  process.exitCode = undefined
  // the number, because a module is evaluated once for each address
  await import(`${pathToFileURL(module).href}?${count}`)
  isSettled = true
}

process.on("message", (command: Command) => void run(command))
process.on("beforeExit", () => {
  if (!isRunning) return
  isRunning = false
  // what Node ends with when a module waits for what never comes
  const code = isSettled ? process.exitCode ?? 0 : 13
  process.exitCode = undefined
  for (const stream of [1, 2]) fs.writeSync(stream, `${mark} ${code}\n`)
  process.channel?.ref()
})
process.on("disconnect", () => process.exit())
