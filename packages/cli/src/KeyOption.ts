/** Where a command finds the private key that signs: in the environment or in a file, never among its arguments. */
import { commandLine } from "@trigate/domain/Settings"
import * as Signer from "@trigate/signing/Signer"
import * as Flag from "effect/cli/Flag"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Input from "./Input.ts"
import { UsageFault } from "./UsageFault.ts"

/** The options of a command that signs. */
export const flags = {
  keyEnv: Flag.String("key-env").pipe(
    Flag.withMetavar("name"),
    Flag.filter((name) => /^[A-Za-z_][A-Za-z0-9_]*$/u.test(name), () => "the name of an environment variable"),
    Flag.optional,
    Flag.withDescription(`Environment variable with the private key (default: ${commandLine.privateKey})`)
  ),
  keyFile: Flag.String("key-file").pipe(
    Flag.withMetavar("path"),
    Flag.optional,
    Flag.withDescription("File with the private key, 32 bytes in hex; - reads standard input")
  )
}

/** What {@link flags} read. */
export interface KeyOption {
  readonly keyEnv: Option.Option<string>
  readonly keyFile: Option.Option<string>
}

const fault = (message: string) => new UsageFault({ message })

const fromEnvironment = (name: string) =>
  Config.Redacted(name).pipe(
    Effect.mapError(() =>
      fault(`No private key: set ${name}, or name another variable with --key-env or a file with --key-file`)
    ),
    Effect.filterOrFail((key) => Redacted.value(key).trim() !== "", () =>
      fault(`${name} is empty; it takes a private key`))
  )

const keyOf = ({ keyEnv, keyFile }: KeyOption) => {
  if (Option.isSome(keyFile)) {
    return Option.isSome(keyEnv)
      ? Effect.fail(fault("--key-env and --key-file name two keys; leave one out"))
      : Effect.map(Input.text(keyFile.value), Redacted.make)
  }
  return fromEnvironment(Option.getOrElse(keyEnv, () => commandLine.privateKey))
}

const placeOf = ({ keyEnv, keyFile }: KeyOption): string =>
  Option.match(keyFile, {
    onNone: () => Option.getOrElse(keyEnv, () => commandLine.privateKey),
    onSome: Input.nameOf
  })

/** The signer of the options' key. */
export const signer = Effect.fnUntraced(function*(option: KeyOption) {
  const key = yield* keyOf(option)
  return yield* Effect.mapError(
    Signer.makePrivateKey(Redacted.make(Redacted.value(key).trim())),
    ({ message }) => fault(`${placeOf(option)}: ${message}`)
  )
})
