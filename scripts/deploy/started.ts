/** How a deployment starts the gateway, and the settings that it has then: read as the gateway reads them. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { adminAddress } from "@trigate/server/GatewayServer"
import { ProcessEnvironment, read } from "@trigate/server/settings/SettingsSources"
import type { Environment } from "@trigate/server/settings/SettingsSources"
import type { Settings } from "@trigate/server/unstable/settings/Settings"
import { findLocation } from "@trigate/server/unstable/stores/Stores"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { equal } from "../steps.ts"

/** What a manifest says of the start. */
export interface Started {
  readonly environment: Environment
  /** What follows `trigate`. */
  readonly args: ReadonlyArray<string>
  /** The files of the checkout that stand for those of the deployment, by their path there. */
  readonly files: ReadonlyMap<string, string>
}

/** The file of which a deployment's secret file is a copy. */
export const example = "deploy/trigate.env.example"

const fileAt = ({ files }: Started, path: string): string => {
  const file = files.get(path)
  if (file === undefined) throw new Error(`Nothing is mounted at ${path}, only ${[...files.keys()].join(", ")}`)
  return file
}

const settingsOf = (environment: Environment, files: { file?: string; environmentFile?: string }) =>
  Effect.runPromise(
    read(files).pipe(
      Effect.provideService(ProcessEnvironment, environment),
      Effect.provide(NodeFileSystem.layer)
    )
  )

const holdsSecret = (value: unknown): boolean =>
  Redacted.isRedacted(value)
  || (Option.isOption(value) && Option.isSome(value) && holdsSecret(value.value))
  || (Array.isArray(value) && value.some(holdsSecret))

/**
 * The settings of a gateway that a deployment starts in the working folder /etc/trigate.
 *
 * Fails if a name is no setting, if a value is not valid, and if a secret stands anywhere but in the secret file.
 */
export const settings = async (started: Started): Promise<Settings> => {
  const [command, flag, secret = "", ...more] = started.args
  equal("arguments", [command, flag, ...more], ["serve", "--env-file"])
  const plain = started.files.get("/etc/trigate/trigate.config.yaml")
  const open = await settingsOf(started.environment, plain === undefined ? {} : { file: plain })
  const leaked = Object.entries(open).find(([, value]) => holdsSecret(value))
  if (leaked !== undefined) throw new Error(`${leaked[0]} is a secret, and does not stand in the secret file`)
  return settingsOf(started.environment, {
    ...(plain === undefined ? {} : { file: plain }),
    environmentFile: fileAt(started, secret)
  })
}

/** The port of the admin listener in every deployment. */
export const expectedAdminPort = 8081

/** Fails unless the settings lead to a gateway that its replicas share stores with, that others reach at a port, and that starts. */
export const shared = (what: string, settings: Settings, expectedPort: number): void => {
  const { adminPort, databaseUrl, host, port, redisUrl } = settings
  equal(`${what}: why it does not start`, Result.getFailure(findLocation(settings)), Option.none())
  equal(`${what}: host`, host, "0.0.0.0")
  equal(`${what}: port`, port, expectedPort)
  equal(`${what}: why its admin listener does not start`, Result.getFailure(adminAddress(settings)), Option.none())
  // else metrics and readiness in detail would be there for every caller
  equal(`${what}: port of the admin listener`, adminPort, Option.some(expectedAdminPort))
  equal(`${what}: Redis`, Option.isSome(redisUrl), true)
  equal(
    `${what}: Postgres`,
    Option.map(databaseUrl, (url) => Redacted.value(url).startsWith("postgres:")),
    Option.some(true)
  )
}
