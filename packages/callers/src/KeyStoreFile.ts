/**
 * `KeyStore` in a JSON file, for gateways without a database.
 *
 * A gateway only reads the file, so times of last use are not stored. To change the file, a command creates a temporary
 * file next to it, and then renames the temporary file to the name of the key file. While the temporary file exists, no
 * other change can start.
 */
import * as Json from "@trigate/domain/encoding/Encoding"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as KeyStore from "./KeyStore.ts"

/** The version of the file format. */
const version = 1

const Document = Schema.Struct({ version: Schema.Literal(version), keys: Schema.Array(KeyStore.KeyRecord) })

const decode = Schema.decodeUnknownResult(Document, { onExcessProperty: "error" })
const encode = Schema.encodeEffect(Document)
const parse = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))
const isLater = Schema.is(Schema.Struct({ version: Schema.Int.check(Schema.isGreaterThan(version)) }))

const malformed = (message: string) => new KeyStore.KeyStoreFault({ reason: "malformed", message })

/** Decodes a key file. The message of an error does not quote the content of the file. */
const read = (file: string, text: string): Result.Result<ReadonlyArray<KeyStore.KeyRecord>, KeyStore.KeyStoreFault> => {
  const document = Option.getOrUndefined(parse(text))
  if (isLater(document)) {
    return Result.fail(
      new KeyStore.KeyStoreFault({
        reason: "newer",
        message:
          `${file} is of version ${document.version}, and this program reads version ${version}: use a later version of Trigate`
      })
    )
  }
  return Result.mapBoth(decode(document), {
    onFailure: () => malformed(`${file} is not a key file; create one with trigate keys create`),
    onSuccess: ({ keys }) => keys
  })
}

const othersMayWrite = 0o022

const make = Effect.fnUntraced(function*(file: string) {
  const files = yield* FileSystem.FileSystem
  const next = `${file}.new`

  const text = Effect.gen(function*() {
    const { mode } = yield* files.stat(file)
    if ((mode & othersMayWrite) !== 0) {
      return yield* malformed(`${file} can be written by other users, who could add keys: chmod go-w ${file}`)
    }
    return yield* files.readFileString(file)
  })
  const isAbsent = (error: PlatformError | KeyStore.KeyStoreFault): boolean =>
    error._tag === "PlatformError" && error.reason._tag === "NotFound"
  const cannotRead = (error: PlatformError | KeyStore.KeyStoreFault): KeyStore.KeyStoreFault =>
    error._tag === "KeyStoreFault" ? error : malformed(
      isAbsent(error) ? `${file} does not exist; create it with trigate keys create` : `${file} cannot be read`
    )
  const cannotWrite = (error: PlatformError): KeyStore.KeyStoreFault =>
    malformed(
      error.reason._tag === "AlreadyExists"
        ? `${next} exists: another change is in progress, or was interrupted; remove it if no change is running`
        : `${file} cannot be written`
    )

  return yield* KeyStore.make({
    since: (known) =>
      Effect.flatMap(Effect.mapError(text, cannotRead), (found) =>
        found === known
          ? Effect.undefined
          : Effect.fromResult(Result.map(read(file, found), (records) => ({ version: found, records })))),
    modify: (change) =>
      Effect.acquireUseRelease(
        Effect.mapError(files.writeFileString(next, "", { flag: "wx", mode: 0o600 }), cannotWrite),
        () =>
          Effect.gen(function*() {
            const before = yield* Effect.mapError(Effect.catchIf(text, isAbsent, () => Effect.undefined), cannotRead)
            const records = before === undefined ? [] : yield* Effect.fromResult(read(file, before))
            const result = yield* Effect.fromResult(change(records))
            const document = yield* Effect.orDie(encode({ version, keys: KeyStore.changed(records, result) }))
            const replace = Effect.andThen(
              files.writeFileString(next, `${Json.stringifyPretty(document)}\n`),
              files.rename(next, file)
            )
            yield* Effect.mapError(replace, cannotWrite)
            return result
          }),
        // does not remove the temporary file after the rename, because a file with that name then belongs to another
        // change
        (_, exit) => Exit.isSuccess(exit) ? Effect.void : Effect.ignore(files.remove(next))
      ),
    noteUses: () => Effect.void
  })
})

/**
 * Provides the keys in a file. A change creates the file if it does not exist. Only the file's owner can read it.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { NodeFileSystem } from "@effect/platform-node"
 * import { KeyStore, KeyStoreFile } from "@trigate/callers"
 * import { Console, Effect, Layer } from "effect"
 *
 * const store = Layer.provide(KeyStoreFile.layer("new-keys.json"), NodeFileSystem.layer)
 *
 * const program = KeyStore.KeyStore.use(({ create }) => create({ name: "desk" })).pipe(
 *   Effect.flatMap(({ record }) => Console.log(record.name))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, store))
 * ```
 * ```text
 * desk
 * ```
 */
export const layer = (file: string): Layer.Layer<KeyStore.KeyStore, never, FileSystem.FileSystem> =>
  Layer.effect(KeyStore.KeyStore, make(file)).pipe(Layer.provide(SecureRandom.layerWebCrypto))
