/**
 * Signs and sends actions: loads the key, checks the gateway, shows the action, signs it, and sends it at most once.
 */
import { Connection } from "@trigate/client/Connection"
import * as Exchange from "@trigate/client/Exchange"
import * as Health from "@trigate/client/Health"
import * as Info from "@trigate/client/Info"
import { type AnySignedAction, resendAdvice } from "@trigate/domain/actions/Action"
import { ActionEntry, type ActionResult, Cloid, requireAll } from "@trigate/domain/actions/ActionOutcome"
import { type Address, printable, stringify } from "@trigate/domain/encoding/Encoding"
import { OutcomeUnknown, UnknownAsset } from "@trigate/domain/errors/GatewayError"
import { closestWord } from "@trigate/domain/errors/Problem"
import { commandLine } from "@trigate/server/unstable/settings/Settings"
import * as Signer from "@trigate/signing/Signer"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Config from "effect/Config"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stdio from "effect/Stdio"
import * as Terminal from "effect/Terminal"
import * as GatewayAccess from "./GatewayAccess.ts"
import * as Output from "./Output.ts"
import * as Report from "./Report.ts"

/** The options for the private key. A key is never an argument, because other processes of the machine can see arguments. */
export const keyFlags = {
  keyEnv: Flag.String("key-env").pipe(
    Flag.withMetavar("name"),
    Flag.filter((name) => /^[A-Za-z_][A-Za-z0-9_]*$/u.test(name), () => "the name of an environment variable"),
    Flag.optional,
    Flag.withDescription(`Environment variable with the private key (default: ${commandLine.privateKey})`)
  ),
  keyFile: Output.textFlag("key-file", "path", "File with the private key (32 bytes in hex); - for standard input")
}

/** The values of {@link keyFlags}. */
export interface KeyOptions {
  readonly keyEnv: Option.Option<string>
  readonly keyFile: Option.Option<string>
}

/** The options of a command that signs an action and sends it. */
export const flags = {
  ...keyFlags,
  dryRun: Output.booleanFlag("dry-run", "Sign, print the body for POST /exchange, send nothing"),
  yes: Flag.Boolean("yes").pipe(
    Flag.withAlias("y"),
    Flag.withDefault(false),
    Flag.withDescription("Send without confirmation (default: asks on a terminal, unless the gateway is a sandbox)")
  )
}

/** The values of {@link flags}, with the network. */
export interface Options extends KeyOptions {
  readonly dryRun: boolean
  readonly yes: boolean
  readonly network: VenueProfile["name"]
}

const keyFromEnvironment = (name: string) =>
  Config.Redacted(name).pipe(
    Effect.mapError(() =>
      Output.fault(`No private key: set ${name}, or name another variable with --key-env or a file with --key-file`)
    ),
    Effect.filterOrFail(
      (key) => Redacted.value(key).trim() !== "",
      () => Output.fault(`${name} is empty: set it to a private key`)
    )
  )

const readableByOthers = 0o077

/** Reads a key file. Refuses a file that other users of the machine can read. */
const readKeyFile = Effect.fnUntraced(function*(path: string) {
  if (path === "-" || process.platform === "win32") return yield* Output.text(path)
  const files = yield* FileSystem.FileSystem
  const { mode, type } = yield* Effect.mapError(files.stat(path), () => Output.fault(`${path} cannot be read`))
  return type === "File" && (mode & readableByOthers) !== 0
    ? yield* Output.fault(`Other users can read ${path}; restrict it to its owner: chmod 600 ${path}`)
    : yield* Output.text(path)
})

/** Makes the signer of the private key in the options. Fails with `UsageFault`, which never contains the key. */
export const loadSigner = Effect.fnUntraced(function*({ keyEnv, keyFile }: KeyOptions) {
  const name = Option.getOrElse(keyEnv, () => commandLine.privateKey)
  if (Option.isSome(keyFile) && Option.isSome(keyEnv)) {
    return yield* Output.fault("--key-env and --key-file are mutually exclusive; omit one")
  }
  const key = Option.isSome(keyFile)
    ? Redacted.make(yield* readKeyFile(keyFile.value))
    : yield* keyFromEnvironment(name)
  const place = Option.match(keyFile, { onNone: () => name, onSome: Output.displayName })
  return yield* Effect.mapError(
    Signer.makePrivateKey(Redacted.make(Redacted.value(key).trim())),
    ({ message }) => Output.fault(`${place}: ${message}`)
  )
})

/** A signed action, with sentences that describe its effects. */
export interface Signed {
  readonly body: AnySignedAction
  readonly signer: Address
  readonly says: ReadonlyArray<string>
}

/** Returns the readiness of a gateway. Fails if it serves another network than the one to sign for. */
export const checkNetwork = Effect.fnUntraced(function*(access: GatewayAccess.Access, network: VenueProfile["name"]) {
  const ready = yield* GatewayAccess.over(access, Health.ready())
  if (ready.network !== network) {
    return yield* Output.fault(
      `The gateway expects signatures for ${ready.network}, and this signature would be for ${network}; nothing was sent. ` +
        `Name the network with --network, or another gateway with --gateway`
    )
  }
  return ready
})

/** The user declined to send the action. */
export class Declined extends Schema.TaggedError<Declined>()("Declined", {}) {
  override get message() {
    return "Nothing was sent"
  }
}

/** Asks on a terminal whether to send; any reply except yes means no. */
const confirm = Effect.gen(function*() {
  const stdio = yield* Stdio.Stdio
  if (!(yield* stdio.stdinIsTerminal)) return
  yield* Console.error("Send it? [y/N]")
  const reply = yield* Terminal.Terminal.use(({ readLine }) => readLine)
  if (!/^y(?:es)?$/iu.test(reply.trim())) return yield* new Declined()
}).pipe(Effect.catchTag("QuitError", () => new Declined()))

const decodeOrders = Schema.decodeUnknownOption(Schema.Struct({
  action: Schema.Struct({ orders: Schema.Array(Schema.Struct({ c: Cloid })) })
}))

/** Prints the command that shows the outcome of an order with a client order ID. */
const printLookup = (body: AnySignedAction): Effect.Effect<void> =>
  Option.match(decodeOrders(body), {
    onNone: () => Effect.void,
    onSome: ({ action: { orders: [order] } }) =>
      order === undefined
        ? Effect.void
        : Console.error(`The gateway looks up the outcome; to see it: trigate actions show ${order.c}`)
  })

/**
 * Sends an action once. If the outcome remains unknown, for example after an interruption, prints the signer, the nonce
 * and the bytes.
 */
export const send = Effect.fnUntraced(function*(access: GatewayAccess.Access, { body, signer }: Signed) {
  const unknown = (upstream: string, detail: string) =>
    new OutcomeUnknown({ upstream, nonce: body.nonce, signer, advice: resendAdvice, detail })
  const printBytes = Console.error(
    `The signed bytes, which you can send again unchanged: ${printable(stringify(body))}`
  )
  return yield* Exchange.submit(body).pipe(
    Effect.provideService(Connection, access.connection),
    Effect.catchTag("OutcomeUnknown", ({ message, upstream }) => unknown(upstream, message)),
    Effect.timeoutOrElse({
      duration: GatewayAccess.maxWait,
      orElse: () => unknown("gateway", `The gateway did not respond within ${GatewayAccess.maxWait / 1000} seconds`)
    }),
    Effect.tapErrorTag("OutcomeUnknown", () => Effect.andThen(printBytes, printLookup(body))),
    Effect.onInterrupt(() =>
      Effect.andThen(printBytes, Report.error(unknown("gateway", "Interrupted while the action was in flight")))
    )
  )
})

/** Describes the result of a leg. */
export const describeEntry = ActionEntry.match({
  Resting: ({ oid }) => `order ${oid} is resting`,
  Filled: ({ avgPx, oid, totalSz }) => `order ${oid} is filled: ${totalSz} at ${avgPx}`,
  Waiting: ({ kind }) => kind === "waitingForFill" ? "waits for the fill of its parent order" : "waits for its trigger",
  Done: ({ twapId }) => twapId === undefined ? "done" : `TWAP order ${twapId} runs`,
  Rejected: ({ message, reason }) => `rejected (${reason}): ${message}`,
  Unrecognised: ({ raw }) => `unrecognised status: ${stringify(raw)}`
})

/**
 * Returns a row for each leg of an action, that is, for each entry of its batch. Returns an empty list for a single leg
 * that succeeded and is not a TWAP order.
 */
const legRows = ({ entries }: ActionResult): ReadonlyArray<readonly [name: string, value: string]> =>
  entries.length === 1 && entries.every((entry) => entry._tag === "Done" && entry.twapId === undefined)
    ? []
    : entries.map((entry, at) => [`leg ${at + 1}`, describeEntry(entry)])

/** Returns whether the venue accepted the action but refused every leg of it, that is, every entry of its batch. */
const isRefused = ({ entries }: ActionResult): boolean => entries.every((entry) => entry._tag === "Rejected")

/**
 * Signs with the key in the options and sends the action once. If `--dry-run` is set, prints the signed body instead of
 * sending it.
 *
 * Prints the result of each leg (entry of the action's batch), then fails with `ActionRejected` if the venue refused a
 * leg. A missing key is reported before the gateway is called. Without `--dry-run`, the function `sign` is called only
 * if the gateway responds and its network is `network`.
 */
export const run = Effect.fnUntraced(function*<E, R>(
  { dryRun, network, yes, ...key }: Options,
  sign: (signer: Signer.Signer["Service"]) => Effect.Effect<Signed, E, R>
) {
  const by = yield* loadSigner(key)
  if (dryRun) {
    const { body, says } = yield* sign(by)
    yield* Output.printNotes(says)
    return yield* Console.log(printable(stringify(body)))
  }
  const access = yield* GatewayAccess.connect
  const { sandbox } = yield* checkNetwork(access, network)
  const signed = yield* sign(by)
  const behind = sandbox ? "the sandbox, with simulated funds" : `a gateway for ${network}`
  yield* Output.printNotes([...signed.says, `The action is sent to ${access.origin}: ${behind}.`])
  if (!sandbox && !yes) yield* confirm
  const result = yield* send(access, signed)
  const { body: { nonce }, signer } = signed
  yield* Output.print({
    json: { ...result, nonce, signer },
    table: Output.facts([
      ["venue", isRefused(result) ? "rejected" : "accepted"],
      ["signer", signer],
      ["nonce", String(nonce)],
      ...legRows(result)
    ])
  })
  yield* requireAll(result)
})

/** The argument for the coin to trade or to follow. */
export const coin = Argument.String("coin").pipe(
  Argument.withDescription("Perpetual (BTC), spot pair (PURR/USDC, @107) or dex:COIN; case-sensitive")
)

/** Declares the option `--dex`. */
export const dexFlag = (otherwise: string) =>
  Output.textFlag("dex", "name", `A builder-deployed dex of perpetuals (default: ${otherwise})`)

/**
 * Returns the dexes of perpetuals that a command covers: the one in {@link dexFlag}, or all, the venue's own first. The
 * name of the venue's own is empty. Fails with `UnknownAsset` for a dex that the venue does not list.
 */
export const dexes = Effect.fnUntraced(function*(dex: Option.Option<string>) {
  const listed = (yield* GatewayAccess.send(Info.perpDexs())).flatMap((each) => each?.name ?? [])
  if (Option.isNone(dex)) return ["", ...listed]
  if (listed.includes(dex.value)) return [dex.value]
  const meant = closestWord(dex.value, listed)
  const hint = meant === undefined ? "" : `: did you mean "${meant}"?`
  return yield* new UnknownAsset({ coin: dex.value, detail: `Unknown dex "${dex.value}"${hint}` })
})

/** Returns the query field that selects a dex; an empty object for the venue's own. */
export const inDex = (dex: string): { readonly dex?: string } => dex === "" ? {} : { dex }

/** Returns the account for which a key signs: the key's own account, or the master account of an API wallet. */
export const ofSigner = Effect.fnUntraced(function*(signer: Address) {
  const { data, role } = yield* GatewayAccess.send(Info.userRole({ user: signer }))
  return role === "agent" ? data?.user ?? signer : signer
})

/** The argument for an account. */
export const accountArgument = Output.address("account").pipe(
  Argument.optional,
  Argument.withDescription("Account: 20 bytes in hex (default: the account of your private key)")
)

/** Returns the account in the argument; without an argument, the account of the private key in the options. */
export const find = Effect.fnUntraced(function*(address: Option.Option<Address>, key: KeyOptions) {
  if (Option.isSome(address)) return address.value
  return yield* ofSigner((yield* loadSigner(key)).address)
})
