/** Keys of callers in a file, as `trigate keys` writes it. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { KeyStore } from "@trigate/callers/KeyStore"
import type { Creation } from "@trigate/callers/KeyStore"
import * as KeyStoreFile from "@trigate/callers/KeyStoreFile"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"

/** A folder that goes with the scope. */
export const folder = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "callers-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

/** A key file with one key for each caller, and the keys. */
export const keyFile = Effect.fnUntraced(function*(...callers: ReadonlyArray<Creation>) {
  const file = Path.join(yield* folder, "keys.json")
  const store = yield* Effect.provide(
    KeyStore,
    Layer.provide(KeyStoreFile.layer(file), NodeFileSystem.layer)
  )
  const issued = yield* Effect.forEach(callers, store.create)
  return {
    file,
    store,
    keys: issued.map(({ key }) => Redacted.value(key)),
    records: issued.map(({ record }) => record)
  }
})
