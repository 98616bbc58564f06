/** The requests that once got a wrong answer, in the folder `corpus`. */
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as path from "node:path"
import { Finding } from "./request.ts"

const folder = path.join(import.meta.dirname, "corpus")
const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Finding))
const encode = Schema.encodeSync(Finding)

/** All of them, by the name of their file. */
export const read = (): ReadonlyArray<Finding> =>
  fs.readdirSync(folder).toSorted().map((name) => decode(fs.readFileSync(path.join(folder, name), "utf8")))

const slug = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]+/gu, "-").slice(0, 48)

/** Writes one, and says to which file. */
export const write = (finding: Finding): string => {
  const { complaint, index, seed, target } = finding
  const file = path.join(folder, `${slug(complaint)}-${target}-${seed}-${index}.json`)
  fs.writeFileSync(file, `${JSON.stringify(encode(finding), undefined, 2)}\n`)
  return file
}
