/** Recorded responses of real upstreams: the files of `packages/server/test/fixtures`. */
import * as Fs from "node:fs"

const folder = new URL("../../server/test/fixtures/", import.meta.url)

/** Reads a recorded file. */
export const text = (name: string): string => Fs.readFileSync(new URL(name, folder), "utf8")
