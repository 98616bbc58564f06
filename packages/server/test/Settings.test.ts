/** What the server makes of its settings: the same as the `layerConfig` of an embedded program, or a refusal in one line. */
import { assert, describe, it } from "@effect/vitest"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import { unwrapReason } from "@trigate/domain/errors/GatewayError"
import * as Layer2Chain from "@trigate/evm/Layer2Chain"
import { defaultSeed } from "@trigate/sandbox/unstable/Seed"
import { defaultLimits } from "@trigate/sandbox/unstable/venue/Venue"
import * as Settings from "@trigate/server/settings/SettingsSources"
import { settings } from "@trigate/server/unstable/settings/Settings"
import { mainnet } from "@trigate/signing/VenueProfile"
import * as Tokens from "@trigate/tokens/Tokens"
import * as Admission from "@trigate/trading/admission/Admission"
import * as Trading from "@trigate/trading/Trading"
import * as Clock from "effect/Clock"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { bodyOf } from "./bodies.ts"

const environment = (values: Readonly<Record<string, string>>) =>
  Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(values))

const built = <A, E>(layer: Layer.Layer<A, E>) => Effect.asVoid(Effect.scoped(Layer.build(layer)))

const trading = built(Trading.layerConfig())
const tokens = built(Tokens.layerConfig())
const layer2 = built(Layer2Chain.layerConfig())
const every = [trading, tokens, layer2]

const urls = {
  good: ["", "https://a.example/KEY", " https://a.example/KEY , http://127.0.0.1:8080/", "https://a.example,"],
  bad: [" ", ",", " , ", "ftp://a.example", "a.example", "https://a.example?key=K", "https://a.example,b", "https://"]
}
const numbers = { good: ["", "1", "0.5", "1e3", " 7 "], bad: ["0", "-1", "Infinity", "NaN", "1,5", "many"] }
const durations = {
  good: ["", "500ms", "2s", "1m", "0.5 seconds", "1 second"],
  bad: ["10", "0 seconds", "-1 seconds", "soon", "10 parsecs", "1 hour 2 minutes"]
}
const addresses = [`0x${"1".repeat(40)}`, `0x${"2".repeat(40)}`]

/** The settings that both read, with texts that both take and texts that both refuse. */
const table: ReadonlyArray<{
  readonly name: keyof typeof settings
  readonly library: ReadonlyArray<typeof trading>
  readonly good: ReadonlyArray<string>
  readonly bad: ReadonlyArray<string>
}> = [
  { name: "network", library: [trading], good: ["", "mainnet", "testnet"], bad: ["Mainnet", "devnet", " mainnet"] },
  { name: "strict", library: [trading], good: ["", "on", "off"], bad: ["yes", "true", "ON"] },
  {
    name: "relayActions",
    library: [trading],
    good: ["", "*", "none", "cancel", "cancel, order", "order,"],
    bad: ["cancel,*", "*,*", "none,order", "None none", ",", " ", "cancel order", "9lives", "a-b"]
  },
  {
    name: "signers",
    library: [trading],
    good: ["", addresses.join(","), ` ${addresses.join(" , ")} `],
    bad: [",", "0x12", `${addresses.join(",")},x`, "*"]
  },
  { name: "readDeadline", library: every, ...durations },
  { name: "onceDeadline", library: every, ...durations },
  { name: "tradingApiWeight", library: every, ...numbers },
  { name: "tradingNodeRps", library: every, ...numbers },
  { name: "tokenChainRps", library: every, ...numbers },
  { name: "layer2Rps", library: every, ...numbers },
  { name: "tradingApiUrl", library: [trading], ...urls },
  { name: "tradingNodeUrl", library: [trading], ...urls },
  { name: "tokenChainUrl", library: [tokens], ...urls },
  { name: "layer2Url", library: [layer2], ...urls }
]

describe("a setting that the server and a library package read", () => {
  for (const { bad, good, library, name } of table) {
    const { env } = settings[name]

    for (const text of good) {
      it.effect(`is taken by both: ${env}=${text}`, () =>
        Effect.gen(function*() {
          yield* Settings.load.pipe(environment({ [env]: text }))
          for (const build of library) yield* build.pipe(environment({ [env]: text }))
        }))
    }

    for (const text of bad) {
      it.effect(`is refused by both: ${env}=${text}`, () =>
        Effect.gen(function*() {
          const refused = yield* Effect.flip(Settings.load.pipe(environment({ [env]: text })))
          assert.strictEqual(refused.setting, env)
          for (const build of library) {
            const error = yield* Effect.flip(build.pipe(environment({ [env]: text })))
            assert.strictEqual(error._tag, "ConfigError")
            assert.include(error.message, env)
          }
        }))
    }
  }

  for (const text of ["", "*", "none", "cancel", "order,cancel"]) {
    it.effect(`relays the same actions: ${settings.relayActions.env}=${text}`, () =>
      Effect.gen(function*() {
        const given = environment({ [settings.relayActions.env]: text })
        const server = Admission.make(mainnet, Admission.toOptions(yield* Settings.load.pipe(given)))
        const library = Admission.make(mainnet, yield* Admission.config.pipe(given))
        const now = yield* Clock.currentTimeMillis
        for (const type of ["order", "cancel", "scheduleCancel", "fromTheFuture"]) {
          const body = Utf8.encode(bodyOf(now, JSON.stringify({ type })))
          const isRelayed = text === "" ? type !== "fromTheFuture" : text === "*" || text.split(",").includes(type)
          const expected = isRelayed ? type : "UnsupportedAction"
          for (const { admit } of [server, library]) {
            const decision = yield* Effect.match(admit(body), {
              onFailure: (error) => unwrapReason(error)._tag,
              onSuccess: ({ actionType }) => actionType
            })
            assert.strictEqual(decision, expected)
          }
        }
      }))
  }
})

const secret = "s3cr3t"

/** The value holds the secret wherever it can. */
const wrong: ReadonlyArray<readonly [name: string, value: string]> = [
  ["TRIGATE_HOST", `${secret} and more`],
  ["TRIGATE_PORT", secret],
  ["TRIGATE_NETWORK", secret],
  ["TRIGATE_TRADING_NODE_URL", `https://node.example/${secret}?key=${secret}`],
  ["TRIGATE_SIGNERS", `0x0123456789abcdef0123456789abcdef01234567,${secret}`],
  ["TRIGATE_STRICT", secret],
  ["TRIGATE_RELAY_ACTIONS", `order,${secret} x`],
  ["TRIGATE_RELAY_METHODS", `debug_traceCall,${secret}`],
  ["TRIGATE_TRADING_API_WEIGHT", secret],
  ["TRIGATE_READ_DEADLINE", "10"],
  ["TRIGATE_PORT", "65536"],
  ["TRIGATE_PORT", "80.5"],
  ["TRIGATE_PORT", "-1"],
  ["TRIGATE_TRADING_API_URL", secret],
  ["TRIGATE_TRADING_API_URL", `ftp://node.example/${secret}`],
  ["TRIGATE_TRADING_NODE_URL", `https://node.example/ok,${secret}`],
  ["TRIGATE_TOKEN_CHAIN_URL", `https://${secret} node.example`],
  ["TRIGATE_TOKEN_CHAIN_URL", `https:///${secret}:99999999`],
  ["TRIGATE_LAYER2_URL", `//${secret}`],
  ["TRIGATE_LAYER2_URL", `https://node.example:99999/${secret}`],
  ["TRIGATE_SIGNERS", secret],
  ["TRIGATE_SIGNERS", "0x0123456789abcdef0123456789abcdef0123456"],
  ["TRIGATE_SIGNERS", ","],
  ["TRIGATE_STRICT", "yes"],
  ["TRIGATE_RELAY_INFO", "l2Book"],
  ["TRIGATE_CORS_ORIGINS", secret],
  ["TRIGATE_CORS_ORIGINS", "https://app.example/"],
  ["TRIGATE_CORS_ORIGINS", "https://App.example"],
  ["TRIGATE_CORS_ORIGINS", "https://app.example:443"],
  ["TRIGATE_CORS_ORIGINS", "*,https://app.example"],
  ["TRIGATE_CORS_ORIGINS", "null"],
  ["TRIGATE_RELAY_METHODS", ","],
  ["TRIGATE_RELAY_METHODS", "*"],
  ["TRIGATE_RELAY_METHODS", "eth_*"],
  ["TRIGATE_RELAY_METHODS", "zks_*,toString"],
  ["TRIGATE_RELAY_METHODS", "eth_sendTransaction"],
  ["TRIGATE_RELAY_METHODS", "debug_traceCall,eth_SENDRawTransaction"],
  ["TRIGATE_RELAY_METHODS", "eth_submitWork"],
  ["TRIGATE_RELAY_METHODS", "eth_newFilter"],
  ["TRIGATE_RELAY_METHODS", "eth_unsubscribe"],
  ["TRIGATE_BATCH_LIMIT", "0"],
  ["TRIGATE_BATCH_LIMIT", "1001"],
  ["TRIGATE_BATCH_LIMIT", "1.5"],
  ["TRIGATE_TRADING_API_WEIGHT", "0"],
  ["TRIGATE_TRADING_NODE_RPS", secret],
  ["TRIGATE_TOKEN_CHAIN_RPS", "-1"],
  ["TRIGATE_LAYER2_RPS", "Infinity"],
  ["TRIGATE_READ_DEADLINE", `10 ${secret}`],
  ["TRIGATE_ONCE_DEADLINE", "-1 seconds"],
  ["TRIGATE_ACCESS_LOG", "true"],
  ["TRIGATE_DATABASE_URL", `mysql://${secret}@db.example/${secret}`],
  ["TRIGATE_DATABASE_URL", `postgres:${secret}`],
  ["TRIGATE_DATABASE_URL", `postgres://${secret}@db.example:99999/${secret}`],
  ["TRIGATE_DATABASE_URL", `file:${secret}?mode=memory`]
]

describe("a setting that the server refuses", () => {
  for (const [name, value] of wrong) {
    it.effect(`is named in one line, without its value: ${name}=${value}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Settings.load.pipe(environment({ [name]: value })))
        assert.strictEqual(error.setting, name)
        assert.isTrue(error.message.startsWith(`${name} is not valid: expected `), error.message)
        assert.notInclude(error.message, secret)
        assert.notInclude(error.message, "\n")
      }))
  }

  for (
    const [value, why] of [
      ["l2book=1s", "l2book is not a known query type"],
      [
        "openOrders=61s",
        "The maximum age of openOrders is at most 1m, because this query returns the state of one user"
      ],
      ["a\nb=1s", `expected ${settings.infoFreshness.takes}`]
    ] as const
  ) {
    it.effect(`names what is wrong with it, where it holds no secret: ${JSON.stringify(value)}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Settings.load.pipe(environment({ TRIGATE_INFO_FRESHNESS: value })))
        assert.strictEqual(error.message, `TRIGATE_INFO_FRESHNESS is not valid: ${why}`)
      }))
  }
})

it("the defaults of the sandbox's settings are those of the sandbox", () => {
  const { sandboxAccounts, sandboxFills, sandboxSeed } = settings
  assert.deepStrictEqual(
    [sandboxSeed.fallback, sandboxAccounts.fallback, sandboxFills.fallback],
    [defaultSeed, defaultLimits.accounts, defaultLimits.fills]
  )
})
