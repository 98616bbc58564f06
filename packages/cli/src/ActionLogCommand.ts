/** `trigate actions`: the signed actions without an answer, and what became of one. */
import * as Connection from "@trigate/client/Connection"
import { resendAdvice, ServedExchangeFailure } from "@trigate/domain/ExchangeOperations"
import * as Json from "@trigate/domain/Json"
import { printable } from "@trigate/domain/Printable"
import { outcomeReader } from "@trigate/domain/protocol/ExchangeProtocol"
import { ofOutcome, type Resolution } from "@trigate/domain/Resolution"
import { OutcomeUnknown, type UpstreamUnavailable } from "@trigate/domain/UpstreamError"
import * as ActionLogStore from "@trigate/server/ActionLogStore"
import * as Settings from "@trigate/server/Settings"
import * as ActionLog from "@trigate/trading/ActionLog"
import * as ActionLogSql from "@trigate/trading/ActionLogSql"
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
import * as Input from "./Input.ts"
import * as Output from "./Output.ts"

/** Why the action log could not be read, in one line. */
export class ActionsFault extends Schema.TaggedError<ActionsFault>()("ActionsFault", { message: Schema.String }) {}

/** No action without an answer has the ID. */
export class ActionAbsent extends Schema.TaggedError<ActionAbsent>()("ActionAbsent", { id: Schema.String }) {
  override get message() {
    return `${this.id} is no action without an answer`
  }
}

const inMemory =
  "TRIGATE_DATABASE_URL is not set: a gateway without it keeps its actions in memory, which nobody else can read"

const settings = Effect.mapError(Settings.read({}), ({ message }) => Input.fault(message))

/** The action log of a gateway in this environment; creates nothing. */
const logOfEnvironment = Layer.unwrap(Effect.gen(function*() {
  const found = yield* settings
  const place = yield* Effect.fromOption(
    ActionLogStore.databaseOf(found),
    () => Input.fault(inMemory)
  )
  return ActionLogSql.layerExisting(ActionLogStore.sqlOptionsOf(found)).pipe(
    Layer.provide(ActionLogStore.layerDatabase(place, "existing"))
  )
}))

const unreadable = ({ detail }: UpstreamUnavailable): ActionsFault =>
  new ActionsFault({ message: detail ?? "The action log cannot be read" })

const unanswered = ActionLog.ActionLog.use((log) => Effect.mapError(log.unanswered, unreadable))

const drop = (id: string) => ActionLog.ActionLog.use((log) => Effect.mapError(log.forget(id), unreadable))

const textOf = (entry: Pick<ActionLog.Unanswered, "body">): string => new TextDecoder().decode(entry.body)

const sentAt = (entry: Pick<ActionLog.Unanswered, "openedAt">): string =>
  DateTime.formatIso(DateTime.makeUnsafe(entry.openedAt))

/** One line of JSON; `body` is the text to send again, byte for byte. */
const lineOf = ({ fingerprint, ...entry }: ActionLog.Unanswered): string =>
  Json.stringify({ id: fingerprint, ...entry, openedAt: sentAt(entry), body: textOf(entry) })

const short = (id: string): string => id.slice(0, 12)

const rowOf = (entry: ActionLog.Unanswered): ReadonlyArray<string> => [
  short(entry.fingerprint),
  entry.state,
  sentAt(entry),
  entry.actionType,
  entry.signer ?? "unknown signer",
  String(entry.nonce)
]

const tableOf = (entries: ReadonlyArray<ActionLog.Unanswered>): string =>
  Output.rows(["ID", "STATE", "SENT", "ACTION", "SIGNER", "NONCE"].map(Output.left), entries.map(rowOf))

const listing = (entries: ReadonlyArray<ActionLog.Unanswered>, network: string): string => {
  const [first] = entries
  return first === undefined ? `No signed action is without an answer (${network})` : [
    `${entries.length} signed ${entries.length === 1 ? "action is" : "actions are"} without an answer (${network})`,
    "",
    tableOf(entries),
    "",
    "Each may have been taken, or not. To find out about one:",
    `  trigate actions resolve ${short(first.fingerprint)}`,
    `${resendAdvice}.`
  ].join("\n")
}

const idArgument = Argument.String("id").pipe(Argument.withDescription("An ID of the list, or as much as is unique"))

const entryOf = Effect.fnUntraced(function*(prefix: string) {
  const [found, ...others] = (yield* unanswered).filter(({ fingerprint }) => fingerprint.startsWith(prefix))
  if (found === undefined) return yield* new ActionAbsent({ id: prefix })
  if (others.length > 0) {
    return yield* Input.fault(`${prefix} begins the IDs of ${others.length + 1} actions`)
  }
  return found
})

const meaningOf = (resolution: Resolution, { nonce }: ActionLog.Unanswered): string => {
  switch (resolution._tag) {
    case "Landed":
      return `It landed the first time: the venue has seen the nonce ${nonce} (${resolution.rejection.message})`
    case "Accepted":
      return "It was taken now, and had not been before"
    case "Rejected":
      return `It was not taken, neither now nor before (${resolution.rejection.message})`
  }
}

const readOutcome = outcomeReader(ServedExchangeFailure)

const send = Effect.fnUntraced(function*(gateway: URL, { body, ...entry }: ActionLog.Unanswered) {
  const { chains } = Connection.make(yield* HttpClient.HttpClient, { baseUrl: gateway })
  const identity = entry.signer === undefined ? { nonce: entry.nonce } : { nonce: entry.nonce, signer: entry.signer }
  const outcome = Effect.mapError(
    chains.post("/exchange", new TextDecoder().decode(body)),
    ({ reason }) =>
      new OutcomeUnknown({
        upstream: Connection.label,
        ...identity,
        advice: resendAdvice,
        detail: reason._tag === "DecodeError"
          ? `the gateway at ${gateway.origin} broke its answer off`
          : `no gateway answers at ${gateway.origin}; name another with --gateway`
      })
  ).pipe(Effect.flatMap((answer) => readOutcome(answer, identity)))
  return yield* ofOutcome(outcome, { upstream: Connection.label, ...identity })
})

const resolve = Command.make("resolve", {
  id: idArgument,
  gateway: GatewayAccess.gatewayFlag
}, ({ gateway, id }) =>
  Effect.gen(function*() {
    const url = yield* GatewayAccess.baseUrlOf(gateway)
    const entry = yield* entryOf(id)
    const meaning = meaningOf(yield* send(url, entry), entry)
    // the gateway may have another action log
    yield* drop(entry.fingerprint)
    yield* Console.log(printable(meaning))
  })).pipe(
    Command.provide(Layer.merge(logOfEnvironment, FetchHttpClient.layer)),
    Command.withDescription("Send one action again, byte for byte, and say what the answer means"),
    Command.withExamples([{ command: "trigate actions resolve 0x1f2e3d4c5b" }])
  )

const forget = Command.make("forget", { id: idArgument }, ({ id }) =>
  Effect.gen(function*() {
    const entry = yield* entryOf(id)
    yield* drop(entry.fingerprint)
    yield* Console.log(`${entry.fingerprint} is forgotten`)
  })).pipe(
    Command.provide(logOfEnvironment),
    Command.withDescription("Remove one action whose outcome you know; nothing is sent, and its nonce stays used"),
    Command.withExamples([{ command: "trigate actions forget 0x1f2e3d4c5b" }])
  )

const list = Command.make("list", {
  json: Flag.Boolean("json").pipe(
    Flag.withDefault(false),
    Flag.withDescription("One line of JSON for each action, with the bytes to send again")
  )
}, ({ json }) =>
  Effect.gen(function*() {
    const entries = yield* unanswered
    const { network } = yield* settings
    if (!json) yield* Console.log(listing(entries, network))
    else yield* Effect.forEach(entries, (entry) => Console.log(printable(lineOf(entry))), { discard: true })
  })).pipe(
    Command.provide(logOfEnvironment),
    Command.withDescription("List the signed actions without an answer, from the database of TRIGATE_DATABASE_URL"),
    Command.withExamples([
      { command: "trigate actions list", description: "What a crash or a broken connection has left open" }
    ])
  )

/** The command. */
export const command = Command.make("actions").pipe(
  Command.withDescription("The signed actions without an answer: list them, find out about one, forget one"),
  Command.withSubcommands([list, resolve, forget])
)
