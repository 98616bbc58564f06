/** The program `trigate` as one file, as people install it: it starts in a third of the time that its modules take. */
import { spawnSync } from "node:child_process"
import * as Path from "node:path"
import { oncePerRun } from "./OncePerRun.ts"

const bundler = new URL("../../../scripts/packages/bundle.ts", import.meta.url).pathname

/** Returns the file to start. The first who asks in a run of the tests builds it. */
export const bundledProgram = (): string =>
  Path.join(
    oncePerRun("program", (folder) => {
      const { status, stderr } = spawnSync(process.execPath, [bundler, folder], { encoding: "utf8" })
      if (status !== 0) throw new Error(stderr)
    }),
    "dist/trigate.js"
  )
