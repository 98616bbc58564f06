/** `trigate journal`: the signed actions that nobody has an answer to, and what became of one. */
import * as Transport from "@trigate/client/Transport"
import { resendAdvice } from "@trigate/domain/ExchangeOperations"
import * as JsonText from "@trigate/domain/JsonText"
import type { Resolution } from "@trigate/domain/Resolution"
import { isDecided, readResolution } from "@trigate/domain/Resolution"
import type { UpstreamUnavailable } from "@trigate/domain/UpstreamError"
import * as Database from "@trigate/server/Database"
import * as JournalSettings from "@trigate/server/JournalSettings"
import * as Settings from "@trigate/server/Settings"
import * as Journal from "@trigate/trading/Journal"
import * as JournalSql from "@trigate/trading/JournalSql"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as GatewayAccess from "./GatewayAccess.ts"
import { UsageFault } from "./Input.ts"

/** Why the journal could not be read, in one line. */
export class JournalFault extends Schema.TaggedError<JournalFault>()("JournalFault", { message: Schema.String }) {}

/** No action of the journal has the ID. */
export class ActionAbsent extends Schema.TaggedError<ActionAbsent>()("ActionAbsent", { id: Schema.String }) {
  override get message() {
    return `${this.id} is no action of the journal`
  }
}

/** The bytes were sent again, or could not be, and what became of the action is as unknown as before. */
export class StillUnknown extends Schema.TaggedError<StillUnknown>()("StillUnknown", { message: Schema.String }) {}

const fault = (message: string): JournalFault => new JournalFault({ message })

const inMemory =
  "TRIGATE_DATABASE_URL is not set: a gateway without it keeps its journal in memory, which nobody else can read"

const settings = Effect.mapError(Settings.load, ({ message }) => new UsageFault({ message }))

/** The journal that a gateway in this environment would use; creates nothing. */
const journalOfEnvironment = Layer.unwrap(Effect.gen(function*() {
  const found = yield* settings
  const place = yield* Effect.fromOption(JournalSettings.placeOf(found), () => new UsageFault({ message: inMemory }))
  return JournalSql.layerExisting(JournalSettings.optionsOf(found)).pipe(
    Layer.provide(Database.layer(place, "existing"))
  )
}))

const unreadable = ({ detail }: UpstreamUnavailable): JournalFault => fault(detail ?? "The journal cannot be read")

const unanswered = Journal.Journal.use((journal) => Effect.mapError(journal.unanswered, unreadable))

const drop = (id: string) => Journal.Journal.use((journal) => Effect.mapError(journal.forget(id), unreadable))

const textOf = (entry: Journal.Unanswered): string => new TextDecoder().decode(entry.body)

const sentAt = (entry: Journal.Unanswered): string => DateTime.formatIso(DateTime.makeUnsafe(entry.openedAt))

/** One line of JSON; `body` is the text to send again, byte for byte. */
const lineOf = (entry: Journal.Unanswered): string =>
  JsonText.stringify({ ...entry, openedAt: sentAt(entry), body: textOf(entry) })

const short = (id: string): string => id.slice(0, 12)

const rowOf = (entry: Journal.Unanswered): ReadonlyArray<string> => [
  short(entry.id),
  entry.state === "inFlight" ? "in flight" : entry.state,
  sentAt(entry),
  entry.actionType,
  entry.signer ?? "nobody can tell",
  String(entry.nonce)
]

const tableOf = (entries: ReadonlyArray<Journal.Unanswered>): string => {
  const rows = [["ID", "STATE", "SENT", "ACTION", "SIGNER", "NONCE"], ...entries.map(rowOf)]
  const width = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0))
  return rows.map((row) => row.map((cell, column) => cell.padEnd(width(column))).join("  ").trimEnd()).join("\n")
}

const listing = (entries: ReadonlyArray<Journal.Unanswered>, network: string): string => {
  const [first] = entries
  return first === undefined ? `No signed action is without an answer (${network})` : [
    `${entries.length} signed ${entries.length === 1 ? "action is" : "actions are"} without an answer (${network})`,
    "",
    tableOf(entries),
    "",
    "Each may have been taken, or not. To find out about one:",
    `  trigate journal resolve ${short(first.id)}`,
    `${resendAdvice}.`
  ].join("\n")
}

const idArgument = Argument.String("id").pipe(Argument.withDescription("An ID of the list, or as much as is unique"))

const entryOf = Effect.fnUntraced(function*(prefix: string) {
  const [found, ...others] = (yield* unanswered).filter(({ id }) => id.startsWith(prefix))
  if (found === undefined) return yield* new ActionAbsent({ id: prefix })
  if (others.length > 0) {
    return yield* new UsageFault({ message: `${prefix} begins the IDs of ${others.length + 1} actions` })
  }
  return found
})

const meaningOf = (resolution: Resolution, { nonce }: Journal.Unanswered): string => {
  switch (resolution._tag) {
    case "Landed":
      return `It landed the first time: the venue has seen the nonce ${nonce} (${resolution.rejection.message})`
    case "Accepted":
      return "It was taken now, and had not been before"
    case "Rejected":
      return resolution.first === "notTaken"
        ? `It was not taken, neither now nor before (${resolution.rejection.message})`
        : `It was refused now (${resolution.rejection.message}); that does not say what became of it before`
  }
}

const send = Effect.fnUntraced(function*(gateway: URL, { body, nonce }: Journal.Unanswered) {
  const { post } = Transport.own(yield* HttpClient.HttpClient, { baseUrl: gateway })
  const answer = yield* Effect.mapError(
    post("/exchange", new TextDecoder().decode(body)),
    ({ reason }) =>
      fault(
        reason._tag === "DecodeError"
          ? `the gateway at ${gateway.origin} broke its answer off`
          : `no gateway answers at ${gateway.origin}; name another with --gateway`
      )
  )
  return yield* readResolution(answer, { nonce })
})

const resolve = Command.make("resolve", {
  id: idArgument,
  gateway: GatewayAccess.gatewayFlag
}, ({ gateway, id }) =>
  Effect.gen(function*() {
    const url = yield* GatewayAccess.baseUrlOf(gateway)
    const entry = yield* entryOf(id)
    const resolution = yield* Effect.mapError(
      send(url, entry),
      (error) => new StillUnknown({ message: `Still unknown: ${error.message}` })
    )
    const meaning = meaningOf(resolution, entry)
    if (!isDecided(resolution)) return yield* new StillUnknown({ message: meaning })
    // a gateway with another journal does not know of this entry
    yield* drop(entry.id)
    yield* Console.log(meaning)
  })).pipe(
    Command.provide(Layer.merge(journalOfEnvironment, FetchHttpClient.layer)),
    Command.withDescription("Send the identical bytes of one action again, and say what the answer means"),
    Command.withExamples([{ command: "trigate journal resolve 0x1f2e3d4c5b" }])
  )

const forget = Command.make("forget", { id: idArgument }, ({ id }) =>
  Effect.gen(function*() {
    const entry = yield* entryOf(id)
    yield* drop(entry.id)
    yield* Console.log(`${entry.id} is forgotten`)
  })).pipe(
    Command.provide(journalOfEnvironment),
    Command.withDescription("Drop one action whose fate you know; nothing is sent"),
    Command.withExamples([{ command: "trigate journal forget 0x1f2e3d4c5b" }])
  )

/** The command. */
export const command = Command.make("journal", {
  json: Flag.Boolean("json").pipe(
    Flag.withDefault(false),
    Flag.withDescription("One line of JSON for each action, with the bytes to send again")
  )
}, ({ json }) =>
  Effect.gen(function*() {
    const entries = yield* unanswered
    const { network } = yield* settings
    if (!json) yield* Console.log(listing(entries, network))
    else yield* Effect.forEach(entries, (entry) => Console.log(lineOf(entry)), { discard: true })
  })).pipe(
    Command.provide(journalOfEnvironment),
    Command.withDescription("List the signed actions without an answer, from the database of TRIGATE_DATABASE_URL"),
    Command.withSubcommands([resolve, forget]),
    Command.withExamples([
      { command: "trigate journal", description: "What a crash or a broken connection has left open" },
      { command: "trigate journal resolve 0x1f2e3d4c5b", description: "Find out what became of one" }
    ])
  )
