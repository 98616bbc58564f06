/** The command line `trigate` as a process, under the given environment alone. */
import { run } from "./program.ts"

const cli = new URL("../../cli/src/main.ts", import.meta.url)

export const trigate = (args: ReadonlyArray<string>, environment: { readonly [name: string]: string } = {}) =>
  run(cli, args, environment)
