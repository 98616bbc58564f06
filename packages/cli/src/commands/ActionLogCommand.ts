/**
 * `trigate actions`: lists signed actions of unknown outcome, and resolves them. `trigate audit`: checks the audit log,
 * in which each sent or refused action is a line.
 */
import * as Admin from "@trigate/client/Admin"
import * as Connection from "@trigate/client/Connection"
import * as Outcomes from "@trigate/client/Exchange"
import * as Health from "@trigate/client/Health"
import { legCountIn, outcomeReader, resendAdvice, ServedExchangeFailure } from "@trigate/domain/actions/Action"
import { ActionId, type ActionRecord, Cloid, legRejection } from "@trigate/domain/actions/ActionOutcome"
import { ofOutcome, type Resolution, type StillUnknown } from "@trigate/domain/actions/Resolution"
import { printable, printableLines, stringify } from "@trigate/domain/encoding/Encoding"
import { OutcomeUnknown, unwrapReason, UpstreamUnavailable } from "@trigate/domain/errors/GatewayError"
import type { Settings } from "@trigate/server/unstable/settings/Settings"
import * as AuditLogWriter from "@trigate/server/unstable/stores/AuditLogWriter"
import * as ActionLogStore from "@trigate/server/unstable/stores/Stores"
import * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogSql from "@trigate/trading/actionLog/ActionLogSql"
import * as Exchange from "@trigate/trading/Exchange"
import type * as LoggedAction from "@trigate/trading/unstable/actionLog/LoggedAction"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as GatewayAccess from "../GatewayAccess.ts"
import * as Output from "../Output.ts"
import * as SignedSending from "../SignedSending.ts"
import * as Target from "../Target.ts"

/** The action log could not be read; the message is one line. */
export class ActionsFault extends Schema.TaggedError<ActionsFault>()("ActionsFault", { message: Schema.String }) {}

/** The log has no action with the given ID, and no unanswered action whose ID starts with it. */
export class ActionAbsent extends Schema.TaggedError<ActionAbsent>()("ActionAbsent", { id: Schema.String }) {
  override get message() {
    return `No action of the log has the ID ${this.id}: with the same options, trigate actions list prints the IDs of unanswered actions`
  }
}

/** A listed action. Its bytes contain the signature, so they are available only if the log is read from a database. */
type Listed = Omit<LoggedAction.Unanswered, "body"> & Partial<Pick<LoggedAction.Unanswered, "body">>

/** The operations of the commands on an action log. */
class Actions extends Context.Service<Actions, {
  /** Returns the network of the log's actions. */
  readonly network: Effect.Effect<string, ActionsFault>
  readonly list: Effect.Effect<ReadonlyArray<Listed>, ActionsFault>
  readonly forget: (entry: Listed) => Effect.Effect<unknown, ActionsFault>
  /**
   * Returns the record of an action by its whole ID, or by the client order ID of one of its orders; `undefined` if the
   * log does not contain it. A gateway waits up to `seconds` until the outcome is known.
   */
  readonly find: (id: string, seconds: number) => Effect.Effect<ActionRecord | undefined, ActionsFault>
  /**
   * Determines the outcome of an action by sending it again, and describes the outcome. If the log is read from a
   * database, the action is sent through `gateway`.
   */
  readonly resolve: (
    entry: Listed,
    gateway: URL
  ) => Effect.Effect<string, ActionsFault | StillUnknown | OutcomeUnknown>
}>()("@trigate/cli/commands/ActionLogCommand/Actions") {}

const whereElse = "name another gateway with --admin, or set TRIGATE_DATABASE_URL to the database of its action log"

const isUnavailable = Schema.is(UpstreamUnavailable)

const toFault = ({ message }: { readonly message: string }): ActionsFault => new ActionsFault({ message })

const decodeText = (body: Uint8Array): string => new TextDecoder().decode(body)

const sentAt = (entry: Pick<LoggedAction.Unanswered, "openedAt">): string =>
  DateTime.formatIso(DateTime.makeUnsafe(entry.openedAt))

/** Formats an action as one line of JSON; `body` is the text to send again, byte for byte. */
const formatLine = ({ body, fingerprint, ...entry }: Listed): string =>
  stringify({
    id: fingerprint,
    ...entry,
    openedAt: sentAt(entry),
    ...(body === undefined ? {} : { body: decodeText(body) })
  })

const isId = Schema.is(ActionId)
const isCloid = Schema.is(Cloid)

const short = (id: string): string => id.slice(0, 12)

const formatRow = (entry: Listed): ReadonlyArray<string> => [
  short(entry.fingerprint),
  entry.state,
  sentAt(entry),
  entry.actionType,
  entry.signer ?? "unknown signer",
  String(entry.nonce)
]

const formatTable = (entries: ReadonlyArray<Listed>): string =>
  Output.rows(["ID", "STATE", "SENT", "ACTION", "SIGNER", "NONCE"].map(Output.left), entries.map(formatRow))

const listing = (entries: ReadonlyArray<Listed>, network: string, where: string): string => {
  const [first] = entries
  return first === undefined ? `No signed action is unanswered (${network})` : [
    `${entries.length} signed ${entries.length === 1 ? "action is" : "actions are"} unanswered (${network})`,
    "",
    formatTable(entries),
    "",
    "It is unknown whether the venue accepted them. To determine the outcome of one:",
    `  trigate actions resolve ${short(first.fingerprint)}${where}`,
    `${resendAdvice}.`
  ].join("\n")
}

const idArgument = Argument.String("id").pipe(
  Argument.withDescription("The ID of an unanswered action (see trigate actions list), or its first digits")
)

const findEntry = Effect.fnUntraced(function*(prefix: string) {
  const [found, ...others] = (yield* Actions.use(({ list }) => list)).filter(({ fingerprint }) =>
    fingerprint.startsWith(prefix)
  )
  if (found === undefined) return yield* new ActionAbsent({ id: prefix })
  if (others.length > 0) {
    return yield* Output.fault(
      `${prefix} is a prefix of the IDs of ${others.length + 1} actions: add digits until it matches one`
    )
  }
  return found
})

const explainResolution = (tag: Resolution["_tag"], message: string, { nonce }: Listed): string => {
  switch (tag) {
    case "Landed":
      return `The first attempt was accepted: the venue has seen the nonce ${nonce} (${message})`
    case "Accepted":
      return `Only this attempt was accepted${message === "" ? "" : `; the venue refused legs of it (${message})`}`
    case "Rejected":
      return `Neither this attempt nor an earlier one was accepted (${message})`
  }
}

const entryIdentity = ({ nonce, signer }: Listed) => signer === undefined ? { nonce } : { nonce, signer }

const readOutcome = outcomeReader(ServedExchangeFailure)

const send = Effect.fnUntraced(function*(client: HttpClient.HttpClient, gateway: URL, entry: Listed) {
  const { chains } = yield* GatewayAccess.connectionTo(client, gateway)
  const identity = entryIdentity(entry)
  const body = decodeText(entry.body ?? new Uint8Array())
  const outcome = Effect.mapError(
    chains.post("/exchange", body),
    ({ reason }) =>
      new OutcomeUnknown({
        upstream: Connection.label,
        ...identity,
        advice: resendAdvice,
        detail: reason._tag === "DecodeError"
          ? `the gateway at ${gateway.origin} closed the connection during its response`
          : `no gateway responds at ${gateway.origin}; name another with --gateway`
      })
  ).pipe(Effect.flatMap((response) => readOutcome(response, { ...identity, legs: legCountIn(body) })))
  return yield* ofOutcome(outcome, { upstream: Connection.label, ...identity })
})

/** Provides the operations on the action log in a database. Creates neither a database nor tables. */
const layerDatabase = (found: Settings, place: ActionLogStore.DatabaseLocation) =>
  Layer.unwrap(Effect.gen(function*() {
    yield* Target.printStore("actions", place, found)
    const actions = Effect.gen(function*() {
      const log = yield* ActionLog.ActionLog
      const client = yield* HttpClient.HttpClient
      const unreadable = ({ detail }: UpstreamUnavailable) =>
        new ActionsFault({ message: detail ?? "The action log cannot be read" })
      const forget = ({ fingerprint }: Listed) => Effect.mapError(log.forget(fingerprint), unreadable)
      return Actions.of({
        network: Effect.succeed(found.network),
        list: Effect.mapError(log.unanswered, unreadable),
        forget,
        find: (id) =>
          Effect.all([log.find({ id }), isCloid(id) ? log.find({ cloid: id }) : Effect.succeed([])]).pipe(
            Effect.mapBoth({
              onFailure: unreadable,
              onSuccess: (all) => all.flat().map(Exchange.recordFrom)[0]
            })
          ),
        resolve: Effect.fnUntraced(function*(entry, gateway) {
          const resolution = yield* send(client, gateway, entry)
          // also removes the entry from this log, because the gateway can use another action log
          yield* forget(entry)
          const rejection = resolution._tag === "Accepted"
            ? Option.getOrUndefined(legRejection(resolution.result))
            : resolution.rejection
          return explainResolution(resolution._tag, rejection?.message ?? "", entry)
        })
      })
    })
    return Layer.effect(Actions, actions).pipe(
      Layer.provide(ActionLogSql.layerExisting(ActionLogStore.toSqlOptions(found))),
      Layer.provide(ActionLogStore.layerDatabase(place, "existing")),
      Layer.provide(FetchHttpClient.layer)
    )
  }))

/** Provides the operations on the action log of a running gateway, through its admin routes. */
const layerGateway = (address: string) =>
  Layer.effect(
    Actions,
    Effect.gen(function*() {
      const over = yield* Target.admin("actions", address)
      const sendCalls = <A>(calls: Effect.Effect<A, { readonly message: string }, Connection.Connection>) =>
        Effect.mapError(over(calls), (error) => {
          const reason: unknown = unwrapReason(error)
          return isUnavailable(reason) && reason.upstream === Connection.label
            ? new ActionsFault({ message: `${reason.message}; ${whereElse}` })
            : toFault(error)
        })
      return Actions.of({
        network: Effect.map(sendCalls(Health.ready()), ({ network }) => network),
        list: Effect.map(
          sendCalls(Admin.actions()),
          (entries) => entries.map(({ id, ...entry }) => ({ fingerprint: id, ...entry }))
        ),
        forget: ({ fingerprint }) => sendCalls(Admin.forget(fingerprint)),
        find: (id, seconds) => {
          const wait = Duration.seconds(seconds)
          return sendCalls(
            Outcomes.outcome({ id }, { wait }).pipe(
              Effect.catchTag(
                "ActionNotFound",
                (error) => isCloid(id) ? Outcomes.outcome({ cloid: id }, { wait }) : error
              ),
              Effect.catchTag("ActionNotFound", () => Effect.undefined)
            )
          )
        },
        resolve: Effect.fnUntraced(function*(entry) {
          const resolution = yield* sendCalls(Admin.resolve(entry.fingerprint))
          if (resolution._tag === "Absent") {
            return yield* new ActionsFault({ message: "The action has already been resolved" })
          }
          if (resolution._tag === "StillUnknown") {
            const { advice, message } = resolution
            return yield* new OutcomeUnknown({
              upstream: Connection.label,
              ...entryIdentity(entry),
              advice,
              detail: message
            })
          }
          return explainResolution(resolution._tag, resolution.message ?? "", entry)
        })
      })
    })
  ).pipe(Layer.provide(FetchHttpClient.layer))

/** The options for the location of the action log. */
const where = { ...Target.files, admin: Target.adminFlag }

type Where = Command.Command.Config.Infer<typeof where>

const quoted = (text: string): string =>
  /^[\w./:@-]+$/u.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`

/** Returns the options for the location as they are written on a command line, so that a suggested command finds the log. */
const whereText = ({ admin, config, environmentFile }: Where): string =>
  Object.entries({ admin, config, "env-file": environmentFile }).flatMap(([name, value]) =>
    Option.isSome(value) ? [` --${name} ${quoted(value.value)}`] : []
  ).join("")

/**
 * Provides the action log that the options select: that of the gateway in `--admin`, that in the configured database, or
 * otherwise that of the gateway that other commands call.
 */
const actionsLayer = ({ admin, config, environmentFile }: Where) =>
  Layer.unwrap(Effect.gen(function*() {
    if (Option.isSome(admin)) return layerGateway(admin.value)
    const found = yield* Effect.mapError(
      Target.settings({ config, environmentFile }),
      ({ message }) => Output.fault(message)
    )
    const place = ActionLogStore.findDatabase(found)
    return Option.isSome(place) ? layerDatabase(found, place.value) : layerGateway(yield* GatewayAccess.usualAddress)
  }))

const resolve = Command.make("resolve", {
  id: idArgument,
  gateway: GatewayAccess.gatewayFlag,
  ...where
}, ({ gateway, id }) =>
  Effect.gen(function*() {
    const url = yield* GatewayAccess.parseBaseUrl(gateway)
    const entry = yield* findEntry(id)
    yield* Console.log(printable(yield* Actions.use((actions) => actions.resolve(entry, url))))
  })).pipe(
    Command.provide((options) => actionsLayer(options)),
    Command.withDescription("Send one action again, byte for byte, and explain the response"),
    Command.withExamples([{ command: "trigate actions resolve 0x1f2e3d4c5b" }])
  )

const forget = Command.make("forget", { id: idArgument, ...where }, ({ id }) =>
  Effect.gen(function*() {
    const entry = yield* findEntry(id)
    yield* Actions.use((actions) => actions.forget(entry))
    yield* Console.log(`${entry.fingerprint} is forgotten`)
  })).pipe(
    Command.provide((options) => actionsLayer(options)),
    Command.withDescription("Remove one action whose outcome you know; nothing is sent, and its nonce stays used"),
    Command.withExamples([{ command: "trigate actions forget 0x1f2e3d4c5b" }])
  )

/** The maximum of `--wait`, in seconds: that of the gateway's route. */
const longestWait = 30

/** Formats the record of an action, one line for each fact. */
const recordLines = ({ id, mayLandUntil, nonce, settled, signer, state }: ActionRecord): string =>
  [
    `${id}: ${state === "neverArrived" ? "never arrived" : state}`,
    `  signer ${signer ?? "unknown"}, nonce ${nonce}`,
    ...(mayLandUntil === undefined
      ? []
      : [`  can still take effect until ${DateTime.formatIso(DateTime.makeUnsafe(mayLandUntil))}`]),
    ...(settled === undefined ? [] : [`  determined by ${settled.by}`]),
    ...(settled?.entries ?? []).map((entry, leg) => `  leg ${leg + 1}: ${SignedSending.describeEntry(entry)}`)
  ].join("\n")

const show = Command.make("show", {
  id: Argument.String("id").pipe(
    Argument.withDescription(
      "The full ID of any action, the cloid of one of its orders, or the first digits of the ID of an unanswered action (see trigate actions list)"
    )
  ),
  json: Output.booleanFlag("json", "As JSON"),
  wait: Output.countFlag("wait", longestWait).pipe(
    Flag.withMetavar("seconds"),
    Flag.withDescription(`Wait until a gateway knows the outcome, at most ${longestWait} seconds`),
    Flag.withDefault(0)
  ),
  ...where
}, ({ id, json, wait }) =>
  Effect.gen(function*() {
    const find = (each: string) => Actions.use((actions) => actions.find(each, wait))
    const whole = isId(id) ? yield* find(id) : undefined
    const record = whole ?? (yield* find((yield* findEntry(id)).fingerprint))
    if (record === undefined) return yield* new ActionAbsent({ id })
    yield* Console.log(json ? printable(stringify(record)) : printableLines(recordLines(record)))
  })).pipe(
    Command.provide((options) => actionsLayer(options)),
    Command.withDescription("Print the state of one action, without sending anything"),
    Command.withExamples([{ command: "trigate actions show 0x1f2e3d4c5b" }])
  )

/** Prints the unanswered actions as a table. */
const printTable = Effect.fnUntraced(function*(place: Where) {
  const entries = yield* Actions.use((actions) => actions.list)
  const network = yield* Actions.use((actions) => actions.network)
  yield* Console.log(listing(entries, network, printable(whereText(place))))
})

const list = Command.make("list", {
  json: Output.booleanFlag(
    "json",
    "Print each action as a line of JSON. If the log is read from a database, the line contains the bytes to send " +
      "again"
  ),
  ...where
}, ({ json, ...where }) =>
  json
    ? Effect.flatMap(
      Actions.use((actions) => actions.list),
      Effect.forEach((entry) => Console.log(printable(formatLine(entry))), { discard: true })
    )
    : printTable(where)).pipe(
    Command.provide((options) => actionsLayer(options)),
    Command.withDescription(
      "List the unanswered signed actions, from the database of TRIGATE_DATABASE_URL or otherwise from a running gateway"
    ),
    Command.withExamples([
      {
        command: "trigate actions list",
        description: "Actions whose outcome is unknown after a crash or a lost connection"
      },
      {
        command: "trigate actions list --admin http://127.0.0.1:8080",
        description: "Unanswered actions of a running gateway"
      }
    ])
  )

const usual: Where = { admin: Option.none(), config: Option.none(), environmentFile: Option.none() }

/** `trigate actions`; alone, it does the same as `trigate actions list`. */
export const command = Command.make("actions", {}, () => printTable(usual)).pipe(
  Command.provide(() => actionsLayer(usual)),
  Command.withDescription("List, show, resolve and forget unanswered signed actions"),
  Command.withSubcommands([list, show, resolve, forget])
)

/** An audit log is not what its gateway wrote; the message is one line. */
export class AuditFault extends Schema.TaggedError<AuditFault>()("AuditFault", { message: Schema.String }) {}

const verify = Command.make("verify", {
  files: Argument.String("file").pipe(
    Argument.withDescription("The files of TRIGATE_AUDIT_LOG, oldest first"),
    Argument.variadic({ min: 1 })
  ),
  expect: Output.textFlag("expect", "hash", "Fail unless the log contains the line with this hash, of an earlier check")
}, ({ expect, files }) =>
  Effect.gen(function*() {
    let earlier: AuditLogWriter.Chain | undefined
    let isFound = false
    const fileSystem = yield* FileSystem.FileSystem
    for (const path of files) {
      const name = Output.displayName(path)
      const fault = (problem: string) => new AuditFault({ message: `${name}: ${printable(problem)}` })
      const lines = fileSystem.stream(path).pipe(Stream.decodeText(), Stream.splitLines)
      const chain = yield* AuditLogWriter.verify(lines, (hash) => {
        isFound ||= hash === Option.getOrUndefined(expect)
      }).pipe(
        Effect.mapError(({ message }) => fault(message))
      )
      const { first, last, lines: count, unchained, unreadable } = chain
      if (earlier !== undefined && count > 0 && first !== earlier.last) {
        return yield* fault(`The file does not follow ${files[files.indexOf(path) - 1]}: lines or files are missing`)
      }
      if (count > 0) earlier = chain
      yield* Output.printText([
        `${name}: ${count} lines form one chain`,
        ...(first === "" ? [] : [`  the first line follows the line with the hash ${first}`]),
        ...(unchained === 0 ? [] : [`  ${unchained} lines at the start have no hash: an earlier version wrote them`]),
        ...(unreadable === 0
          ? []
          : [`  ${unreadable} lines cannot be read: parts of writes that failed, or foreign text`]),
        `  the last line has the hash ${last || "of no line"}`
      ].join("\n"))
    }
    if (Option.isSome(expect) && !isFound) {
      return yield* new AuditFault({
        message: `No line has the hash ${printable(expect.value)}: newer lines are missing`
      })
    }
  })).pipe(
    Command.withDescription("Check that no line of an audit log was changed, removed or moved"),
    Command.withExamples([
      { command: "trigate audit verify audit.jsonl.1 audit.jsonl" },
      {
        command: "trigate audit verify audit.jsonl --expect 5e1f…",
        description:
          "With the hash of an earlier check, which you keep elsewhere: also find newer lines that were removed"
      }
    ])
  )

/** `trigate audit`. */
export const audit = Command.make("audit").pipe(
  Command.withDescription("Check the audit log of TRIGATE_AUDIT_LOG"),
  Command.withSubcommands([verify])
)
