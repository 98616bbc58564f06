/** The settings of the venue: the network, admission, and the maximum age of cached responses. */
import { Address } from "@trigate/domain/encoding/Encoding"
import { freshByDefault, type Freshness, mistakeIn } from "@trigate/domain/info/InfoOperations"
import { archiveSetting } from "@trigate/domain/unstable/evm/EvmMethods"
import * as InfoQueries from "@trigate/domain/unstable/info/InfoQueries"
import * as Setting from "@trigate/domain/unstable/Setting"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"

const FileName = Schema.String.check(Schema.isPattern(/^[^\r\n\0]{1,4096}\.(?:ya?ml|toml|json)$/u))

const ActionType = Schema.String.check(Schema.isPattern(/^(?!none$)[A-Za-z][A-Za-z0-9]{0,63}$/u))

const decodeAge = Schema.decodeUnknownOption(Setting.Age)

/** Parses `type=age` pairs such as `allMids=1s,l2Book=500ms`. Fails with a description of the mistake. */
const readFreshness = (text: string): Result.Result<ReadonlyArray<Freshness>, string> => {
  const list: Array<Freshness> = []
  for (const word of Setting.words(text)) {
    const end = word.indexOf("=")
    if (end < 0) return Result.fail(`${word} has no age: write ${word}=1s, for example`)
    const type = word.slice(0, end).trim()
    const fresh = Option.getOrUndefined(decodeAge(word.slice(end + 1).trim()))
    if (fresh === undefined) return Result.fail(`the age of ${type} must be ${Setting.duration}`)
    list.push({ type, fresh })
  }
  const mistake = mistakeIn(list)
  return mistake === undefined ? Result.succeed(list) : Result.fail(mistake)
}

const InfoFreshness = Schema.String.check(
  Schema.makeFilter((text) =>
    Result.match(readFreshness(text), { onFailure: (why) => why, onSuccess: () => undefined })
  )
).pipe(
  Schema.decodeTo(Schema.Array(Schema.Struct({ type: Schema.String, fresh: Schema.Duration })), {
    decode: SchemaGetter.transform((text) => Result.getOrElse(readFreshness(text), () => [])),
    encode: SchemaGetter.transform((list) =>
      list.map(({ fresh, type }) => `${type}=${Duration.toMillis(fresh)}ms`).join(",")
    )
  })
)

// a cached response is valid only while the gateway knows the version of its account (a counter of changes): one minute
const StaleAge = Setting.Age.check(
  Schema.makeFilter<Duration.Duration>((age) => Duration.toMillis(age) <= 60_000 ? undefined : "at most a minute")
)

const joinNames = (types: ReadonlyArray<string>): string => `\`${types.join("`, `")}\``

/** The settings, by member name in a configuration file. */
export const settings = {
  network: Setting.withDefault("TRIGATE_NETWORK", Schema.Literals(["mainnet", "testnet"]), "mainnet", {
    group: "Upstreams",
    meaning: "network for which actions are signed",
    takes: "`mainnet` or `testnet`"
  }),
  tradingNodeArchive: Setting.withDefault(archiveSetting, Setting.OnOff, "off", {
    group: "Upstreams",
    meaning: "whether the trading-chain nodes are archives: /evm then serves state at any block, not only the latest",
    takes: Setting.onOff
  }),
  signers: Setting.optional("TRIGATE_SIGNERS", Setting.nonEmptyWords(Address), {
    group: "Relaying",
    meaning: "signers whose actions are relayed",
    takes: "0x addresses, comma separated"
  }, "unset: any"),
  strict: Setting.withDefault("TRIGATE_STRICT", Setting.OnOff, "off", {
    group: "Relaying",
    meaning: "refuse action forms that appear in the venue's documentation but that the venue does not accept",
    takes: Setting.onOff
  }),
  relayActions: Setting.optional(
    "TRIGATE_RELAY_ACTIONS",
    Schema.Union([Setting.Any, Schema.Literal("none"), Setting.nonEmptyWords(ActionType)]),
    {
      group: "Relaying",
      meaning:
        "action types that /exchange relays, as single actions or inside a multi-sig: the listed types, `*` for any type including unknown ones, " +
        "or `none`",
      takes: "action types, comma separated, `*`, or `none`"
    },
    "unset: every known type, including orders"
  ),
  guard: Setting.optional("TRIGATE_GUARD", FileName, {
    group: "Relaying",
    isPublic: true,
    meaning:
      "file with the policies by which signed actions are refused before they are sent; it is read again with the settings",
    takes: "the path of a .yaml, .toml or .json file"
  }, "unset: no policies"),
  watchAccounts: Setting.list(
    "TRIGATE_WATCH_ACCOUNTS",
    Setting.nonEmptyWords(Address),
    {
      group: "Streams",
      needsRestart: true,
      meaning: "accounts whose events are always logged; other accounts are logged while a resumable stream reads them",
      takes: "0x addresses, comma separated"
    },
    "unset: none"
  ),
  eventLogRows: Setting.withDefault("TRIGATE_EVENT_LOG_ROWS", Setting.Count, "50000", {
    group: "Streams",
    needsRestart: true,
    meaning: "maximum number of stored events of all watched accounts; streams resume from these events",
    takes: Setting.count
  }),
  eventLogAge: Setting.withDefault("TRIGATE_EVENT_LOG_AGE", Setting.Deadline, "1 day", {
    group: "Streams",
    needsRestart: true,
    meaning: "how long an event of a watched account is stored",
    takes: Setting.duration
  }),
  mirrorAge: Setting.withDefault("TRIGATE_MIRROR_AGE", StaleAge, "10 seconds", {
    group: "Caching",
    needsRestart: true,
    meaning:
      "maximum age of responses served from a watched account's streams, without rate-limit weight; `0s` disables this",
    takes: `${Setting.duration}, at most a minute`
  }),
  infoFreshness: Setting.list(
    InfoQueries.freshnessSetting,
    InfoFreshness,
    {
      group: "Caching",
      meaning:
        "maximum age of cached responses to /info queries, by type; `0s` disables caching; for `candleSnapshot`, the age of the forming bar. " +
        "Equal queries share a response up to that age",
      takes:
        "`type=age`, such as `allMids=500ms,openOrders=2s`, comma separated; an age is at most an hour, or a minute " +
        "for queries about a user; `orderStatus` is not accepted",
      isPublic: true
    },
    `unset: ${joinNames([...freshByDefault(1000), "candleSnapshot"])} for a second, ${
      joinNames(freshByDefault(10_000))
    } for ten seconds, ${joinNames(freshByDefault(60_000))} for a minute, ` +
      "`spotMeta` for five minutes; other types are not cached"
  ),
  staleWhenLimited: Setting.withDefault(
    InfoQueries.staleWhenLimitedSetting,
    StaleAge,
    InfoQueries.staleWhenLimitedDefault,
    {
      group: "Caching",
      meaning:
        "maximum age of cached responses to /info queries while the rate limit is exhausted, including the state of " +
        "users; `0s` refuses such queries with 429",
      takes: `${Setting.duration}, at most a minute`
    }
  )
}

/** The decoded settings. */
export type Settings = Setting.Values<typeof settings>
