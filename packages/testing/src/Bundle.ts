/**
 * The program `trigate` as one bundled file, as it is published. The bundle starts in a third of the time that the
 * separate modules need.
 */
import { spawnSync } from "node:child_process"
import * as Path from "node:path"
import { oncePerRun } from "./OncePerRun.ts"

const bundler = new URL("../../../scripts/packages/bundle.ts", import.meta.url).pathname

/** Returns the path of the bundled program. The first call in a test run builds the bundle. */
export const bundledProgram = (): string =>
  Path.join(
    oncePerRun("program", (folder) => {
      const { status, stderr } = spawnSync(process.execPath, [bundler, folder], { encoding: "utf8" })
      if (status !== 0) throw new Error(stderr)
    }),
    "dist/trigate.js"
  )
