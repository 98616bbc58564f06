/** `trigate keys`: creates, lists, rotates and revokes the keys of a gateway's callers. */
import * as KeyStore from "@trigate/callers/KeyStore"
import * as Admin from "@trigate/client/Admin"
import { Quota, Scope } from "@trigate/domain/Caller"
import type { CallFailure } from "@trigate/domain/errors/GatewayError"
import { words } from "@trigate/domain/unstable/Setting"
import { settings as declared } from "@trigate/server/unstable/settings/Settings"
import * as CallerStore from "@trigate/server/unstable/stores/Stores"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Output from "../Output.ts"
import * as Target from "../Target.ts"

/**
 * The fields of a key that the CLI displays. `hash` is present only if the key was read from a store, because a running
 * gateway does not return it.
 */
export const KeyShown = Schema.Struct({
  ...KeyStore.KeyRecord.fields,
  hash: Schema.optionalKey(KeyStore.KeyRecord.fields.hash)
})
export type KeyShown = typeof KeyShown.Type

/** A new key, with its displayed fields. */
export interface KeyIssued {
  readonly key: Redacted.Redacted
  readonly record: KeyShown
}

/** The operations of `trigate keys` on a key store or a running gateway. `E` is the error of an operation. */
export interface Keys<E> {
  readonly list: Effect.Effect<ReadonlyArray<KeyShown>, E>
  readonly create: (creation: KeyStore.Creation) => Effect.Effect<KeyIssued, E>
  readonly rotate: (rotation: KeyStore.Rotation) => Effect.Effect<KeyIssued, E>
  readonly revoke: (
    caller: { readonly name: string; readonly prefix?: string }
  ) => Effect.Effect<ReadonlyArray<Pick<KeyShown, "name" | "prefix">>, E>
}

const encodeLifetime = ({ lifetime }: Pick<KeyStore.Creation, "lifetime">) =>
  lifetime === undefined ? {} : { lifetime: Duration.toMillis(lifetime) }

/** A key as a gateway returns it. */
type ReturnedKey = KeyShown & { readonly state: string }

const shown = ({ state: _, ...record }: ReturnedKey): KeyShown => record

/** Returns the operations on the keys of a running gateway, through its admin routes at a URL. */
export const ofGateway = Effect.fnUntraced(function*(address: string) {
  const sendCalls = yield* Target.admin("keys", address)
  const issued = ({ key, record }: { readonly key: Redacted.Redacted; readonly record: ReturnedKey }): KeyIssued => ({
    key,
    record: shown(record)
  })
  return {
    list: Effect.map(sendCalls(Admin.keys()), ({ keys }) => keys.map(shown)),
    create: (creation: KeyStore.Creation) => {
      const { lifetime: _, ...wanted } = creation
      return Effect.map(sendCalls(Admin.createKey({ ...wanted, ...encodeLifetime(creation) })), issued)
    },
    rotate: (rotation: KeyStore.Rotation) => {
      const overlap = Duration.toMillis(rotation.overlap)
      return Effect.map(sendCalls(Admin.rotateKey(rotation.name, { overlap, ...encodeLifetime(rotation) })), issued)
    },
    revoke: ({ name, prefix }: { readonly name: string; readonly prefix?: string }) =>
      sendCalls(Admin.revokeKeys(name, prefix === undefined ? {} : { prefix }))
  }
})

const where = {
  ...Target.files,
  // on a gateway without an admin listener, the admin routes are on the callers' listener
  admin: Flag.withAlias(Target.adminFlag, "gateway"),
  callers: Output.textFlag(
    declared.callers.flag,
    "value",
    `Key file (default: ${declared.callers.env}, or the database of ${declared.databaseUrl.env})`
  )
}

type Where = Command.Command.Config.Infer<typeof where>

type KeysFault = KeyStore.KeyStoreFault | KeyStore.KeyRefusal | CallFailure

/**
 * Runs a command on API keys. With `--admin`, the keys are those of the running gateway at that URL. Without `--admin`,
 * they are in the key store that the settings name. In the mode `create`, a SQLite file that does not exist is created.
 */
const withKeys = <A, E, R>(
  { admin, callers, ...files }: Where,
  mode: "create" | "existing",
  use: (store: Keys<KeysFault>) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function*() {
    if (Option.isSome(admin)) {
      if (Option.isSome(callers)) {
        return yield* Output.fault("--admin and --callers are mutually exclusive; omit one")
      }
      const client = yield* Layer.build(FetchHttpClient.layer)
      return yield* use(yield* Effect.provideContext(ofGateway(admin.value), client))
    }
    const settings = yield* Target.settings(files, Option.isSome(callers) ? { callers: callers.value } : {})
    const place = yield* Effect.fromOption(
      CallerStore.placeToChange(settings),
      () =>
        Output.fault(
          `no key store is configured: set ${declared.databaseUrl.env} to a database, or ${declared.callers.env} to a key file`
        )
    )
    yield* Target.printStore("keys", place, settings)
    const context = yield* Layer.build(CallerStore.layerStore(place, mode))
    return yield* use(Context.get(context, KeyStore.KeyStore))
  }).pipe(Effect.scoped)

/** Declares a flag whose value is a list of words for one field of a key's scope. */
const wordsFlag = <A>(
  name: keyof Scope,
  schema: Schema.Codec<A, ReadonlyArray<string>>,
  takes: string,
  meaning: string
) =>
  Flag.String(name).pipe(
    Flag.withMetavar("words"),
    Flag.filterMap((text) => Schema.decodeOption(schema)(words(text)), () => takes),
    Flag.withDescription(meaning),
    Flag.optional
  )

const amountFlag = <A>(name: string, schema: Schema.Codec<A, number>, meaning: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("number"),
    Flag.filterMap(
      (text) => /^[0-9]{1,9}(?:\.[0-9]{1,6})?$/u.test(text) ? Schema.decodeOption(schema)(Number(text)) : Option.none(),
      () => "a number above zero; for a count, an integer above zero"
    ),
    Flag.withDescription(meaning),
    Flag.optional
  )

const scopeFlags = {
  chains: wordsFlag(
    "chains",
    Scope.fields.chains.schema,
    "trading, tokens or layer2, comma separated",
    "Chains that the key may use: trading, tokens, layer2 (default: all)"
  ),
  classes: wordsFlag(
    "classes",
    Scope.fields.classes.schema,
    "read, sign, inspect or admin, comma separated",
    "Classes of operations that the key may use: read, sign, inspect, admin (default: all but admin)"
  ),
  operations: wordsFlag(
    "operations",
    Scope.fields.operations.schema,
    "names, comma separated",
    "Action types, query types and methods that the key may use (default: all)"
  ),
  signers: wordsFlag(
    "signers",
    Scope.fields.signers.schema,
    "0x addresses, comma separated",
    "Signers whose actions the key may send (default: any)"
  )
}

const quotaMeanings: { readonly [Name in keyof Quota]-?: string } = {
  requestsPerSecond: "Requests per second (default: no limit)",
  burst: "Maximum requests in a burst (default: those of one second)",
  weightPerMinute: "Weight of the venue's API per minute (default: no limit)",
  unitsPerSecond: "Node request units per second (default: no limit)",
  concurrentCalls: "Maximum concurrent calls (default: no limit)",
  sockets: "Maximum open WebSockets (default: the gateway's limit)",
  subscriptions: "Maximum subscriptions on one WebSocket (default: the gateway's limit)",
  messagesPerMinute: "Maximum messages per minute on one WebSocket (default: the gateway's limit)"
}

const quotaFlags = Record.map(
  quotaMeanings,
  (meaning, name) =>
    amountFlag(name.replaceAll(/[A-Z]/gu, (letter) => `-${letter.toLowerCase()}`), Quota.fields[name].schema, meaning)
)

const decodeScope = Schema.decodeUnknownEffect(Schema.toType(Scope))
const decodeQuota = Schema.decodeUnknownEffect(Schema.toType(Quota))

const durationFlag = (name: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("duration"),
    Flag.filterMap(Output.readDuration, () => "a duration with its unit: 30m, 12h, 90d")
  )

const lifetimeFlag = (otherwise: string) =>
  durationFlag("expires").pipe(
    Flag.withDescription(`How long the key is valid: 12h, 90d (default: ${otherwise})`),
    Flag.optional
  )

const json = Output.booleanFlag("json", "Print JSON instead of text")

const name = Argument.String("name").pipe(Argument.withDescription("Name of the caller, as in logs"))

const encodeRecord = Schema.encodeEffect(KeyShown)

const toLifetime = <A>(expires: Option.Option<A>) => Option.isSome(expires) ? { lifetime: expires.value } : {}

const at = (millis: number): string =>
  DateTime.formatIso(DateTime.makeUnsafe(millis)).replace(/:[0-9]{2}\.[0-9]{3}Z$/u, "Z")

/** Prints a new key on standard output, and notes about it on standard error. */
const printIssued = Effect.fnUntraced(function*({ key, record }: KeyIssued, asJson: boolean, hint: string) {
  const text = Redacted.value(key)
  if (asJson) {
    yield* Output.printJson({ ...(yield* Effect.orDie(encodeRecord(record))), key: text })
  } else {
    yield* Console.log(text)
  }
  yield* Output.printNotes([
    `The key of ${record.name} is shown only once: only its hash is stored. Logs show its prefix, ${record.prefix}.`,
    ...(record.expiresAt === undefined ? [] : [`The key is valid until ${at(record.expiresAt)}.`]),
    hint
  ])
})

const create = Command.make("create", {
  name,
  ...where,
  ...scopeFlags,
  ...quotaFlags,
  expires: lifetimeFlag("until it is revoked"),
  json
}, ({ expires, json, name, ...options }) =>
  withKeys(options, "create", (store) =>
    Effect.gen(function*() {
      const set = Record.getSomes<string, unknown>(options)
      const scope = yield* Effect.orDie(decodeScope(set))
      const quota = yield* Effect.orDie(decodeQuota(set))
      const issued = yield* store.create({
        name,
        ...(Object.keys(scope).length === 0 ? {} : { scope }),
        ...(Object.keys(quota).length === 0 ? {} : { quota }),
        ...toLifetime(expires)
      })
      yield* printIssued(
        issued,
        json,
        "Callers send the key in Authorization: Bearer, in X-API-Key, or as the first segment of the path."
      )
    }))).pipe(
    Command.withDescription(
      "Create a key for a caller that has no valid key, and print it to standard output. It cannot be shown again"
    ),
    Command.withExamples([
      { command: "trigate keys create desk --classes read --expires 90d" },
      { command: "trigate keys create bot --chains trading --signers 0x17281460228691b044e080a5f5257dce8e47f79c" }
    ])
  )

const formatMembers = (members: object | undefined): string =>
  Object.entries(members ?? {}).map(([name, value]) =>
    `${name}=${Array.isArray(value) ? value.join("+") : String(value)}`
  )
    .join(" ")

const formatRow = (record: KeyShown, now: number): ReadonlyArray<string> => [
  record.name,
  record.prefix,
  KeyStore.keyState(record, now),
  at(record.createdAt),
  record.expiresAt === undefined ? "-" : at(record.expiresAt),
  record.lastUsedAt === undefined ? "-" : at(record.lastUsedAt),
  [formatMembers(record.scope), formatMembers(record.quota)].filter((text) => text !== "").join(" ") || "everything"
]

const columns = ["NAME", "KEY", "STATE", "CREATED", "EXPIRES", "LAST USED", "MAY"].map(Output.left)

const list = Command.make(
  "list",
  {
    ...where,
    all: Output.booleanFlag("all", "Include expired and revoked keys"),
    json
  },
  ({ all, json, ...place }) =>
    withKeys(place, "existing", (store) =>
      Effect.gen(function*() {
        const now = yield* Clock.currentTimeMillis
        const records = (yield* store.list).filter((record) => all || KeyStore.isValid(record, now))
        if (json) {
          const toDocument = (record: KeyShown) =>
            Effect.map(
              encodeRecord(record),
              ({ hash: _, ...document }) => ({ ...document, state: KeyStore.keyState(record, now) })
            )
          return yield* Output.printJson(yield* Effect.orDie(Effect.forEach(records, toDocument)))
        }
        return yield* Console.log(
          records.length === 0
            ? `No key ${all ? "exists" : "is valid"}; trigate keys create creates one`
            : Output.rows(columns, records.map((record) => formatRow(record, now)))
        )
      }))
).pipe(
  Command.withDescription("List the keys by their prefixes, which logs show; only the hashes of the keys are stored"),
  Command.withExamples([
    { command: "trigate keys list --all" },
    { command: "trigate keys list --admin http://127.0.0.1:8080", description: "The keys of a running gateway" }
  ])
)

const rotate = Command.make(
  "rotate",
  {
    name,
    ...where,
    overlap: durationFlag("overlap").pipe(
      Flag.withDefault(Duration.days(1)),
      Flag.withDescription("How long the previous keys remain valid: 0s, 12h, 7d (default: 1d)")
    ),
    expires: lifetimeFlag("as long as the previous key"),
    json
  },
  ({ expires, json, name, overlap, ...place }) =>
    withKeys(place, "existing", (store) =>
      Effect.gen(function*() {
        const issued = yield* store.rotate({ name, overlap, ...toLifetime(expires) })
        const now = yield* Clock.currentTimeMillis
        const others = (yield* store.list).filter((record) =>
          record.name === name && record.prefix !== issued.record.prefix && KeyStore.isValid(record, now)
        )
        yield* printIssued(
          issued,
          json,
          others.length === 0
            ? "The previous keys are no longer valid."
            : `The previous keys remain valid: ${
              others.map(({ expiresAt, prefix }) => `${prefix} (until ${at(expiresAt ?? 0)})`).join(", ")
            }.`
        )
      }))
).pipe(
  Command.withDescription(
    "Create another key for a caller, with the same scope and quota; the previous keys remain valid for a while"
  ),
  Command.withExamples([{ command: "trigate keys rotate desk --overlap 12h" }])
)

const revoke = Command.make(
  "revoke",
  {
    name,
    ...where,
    key: Output.textFlag("key", "prefix", "Revoke only the key with this prefix (default: all keys of the caller)")
  },
  ({ key, name, ...place }) =>
    withKeys(place, "existing", (store) =>
      Effect.gen(function*() {
        const ended = yield* store.revoke({ name, ...(Option.isSome(key) ? { prefix: key.value } : {}) })
        yield* Console.log(
          Output.rows(
            ["NAME", "KEY", "STATE"].map(Output.left),
            ended.map(({ name, prefix }) => [name, prefix, "revoked"])
          )
        )
        yield* Output.printNotes(["Within seconds, every gateway with this key store refuses the revoked keys."])
      }))
).pipe(
  Command.withDescription("Revoke all keys of a caller, or one of them, immediately"),
  Command.withExamples([{ command: "trigate keys revoke desk" }])
)

/** `trigate keys`. */
export const command = Command.make("keys").pipe(
  Command.withDescription(
    "Create, list, rotate and revoke the keys of a gateway's callers, in its database or key file, or through a running gateway"
  ),
  Command.withSubcommands([create, list, rotate, revoke])
)
