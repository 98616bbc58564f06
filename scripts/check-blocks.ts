/**
 * Checks the types of the code blocks of guides, READMEs and docstrings against the declarations of the packages, which `tsc -b`
 * writes: `npm run types` runs this program after it.
 */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { documents } from "../test/guides/documents.ts"
import { root } from "../test/guides/run.ts"
import { check } from "../test/guides/types.ts"

const packages = fs.globSync("packages/*/tsconfig.json", { cwd: root }).map((file) => path.join(root, file))
const said = await Effect.runPromise(Effect.scoped(check(documents, packages)))
for (const line of said) console.error(line)
process.exitCode = said.length === 0 ? 0 : 1
