/** Where a setting comes from: flags, the environment, an environment file, a settings file. */
import { assert, describe, it } from "@effect/vitest"
import * as Settings from "@trigate/server/settings/SettingsSources"
import type { Settings as Decoded } from "@trigate/server/unstable/settings/Settings"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as PlatformError from "effect/PlatformError"
import * as Redacted from "effect/Redacted"
import * as fs from "node:fs"

type Files = { readonly [file: string]: string }

const absent = PlatformError.systemError({ _tag: "NotFound", module: "FileSystem", method: "readFileString" })

interface Given extends Settings.Sources {
  readonly environment?: Settings.Environment
  /** The files of the folder. */
  readonly files?: Files
}

const read = ({ environment = {}, files = {}, ...sources }: Given) =>
  Effect.provideService(
    Effect.provideService(Settings.read(sources), Settings.ProcessEnvironment, environment),
    FileSystem.FileSystem,
    FileSystem.makeNoop({
      exists: (file) => Effect.succeed(Object.hasOwn(files, file)),
      readFileString: (file) => Object.hasOwn(files, file) ? Effect.succeed(files[file] ?? "") : Effect.fail(absent)
    })
  )

const refused = (sources: Given) => Effect.map(Effect.flip(read(sources)), ({ message }) => message)

const plain = (
  { databaseUrl, layer2Url, redisUrl, tokenChainUrl, tradingApiUrl, tradingNodeUrl, ...rest }: Decoded
) => ({
  ...rest,
  urls: [tradingApiUrl, tradingNodeUrl, tokenChainUrl, layer2Url].map((urls) => urls.map(Redacted.value)),
  stores: [databaseUrl, redisUrl].map(Option.map(Redacted.value))
})

describe("settings", () => {
  it.effect("come from a flag before the environment, an environment file and a settings file", () =>
    Effect.gen(function*() {
      const all = {
        flags: { port: "1" },
        environment: { TRIGATE_PORT: "2", TRIGATE_STRICT: "on" },
        environmentFile: "more.env",
        files: {
          "more.env": "# comment\nTRIGATE_PORT=3\nexport TRIGATE_BATCH_LIMIT=\"30\"\nOTHER=1\n",
          "trigate.config.json": `{"port":4,"strict":false,"batchLimit":40,"accessLog":false}`
        }
      }
      const { accessLog, batchLimit, port, strict } = yield* read(all)
      assert.deepStrictEqual({ accessLog, batchLimit, port, strict }, {
        accessLog: false,
        batchLimit: 30,
        port: 1,
        strict: true
      })
      const { port: second } = yield* read({ ...all, flags: {} })
      const { port: third } = yield* read({ ...all, flags: {}, environment: {} })
      const { port: fourth } = yield* read({ ...all, flags: {}, environment: {}, environmentFile: undefined })
      assert.deepStrictEqual([second, third, fourth], [2, 3, 4])
    }))

  it.effect("that are empty are not given", () =>
    Effect.gen(function*() {
      const { batchLimit, port, signers } = yield* read({
        flags: { port: "" },
        environment: { TRIGATE_PORT: "", TRIGATE_SIGNERS: undefined },
        files: { "trigate.config.yaml": "port: 4\nbatchLimit:\n" }
      })
      assert.deepStrictEqual([batchLimit, port, signers], [100, 4, Option.none()])
    }))

  it.effect("of the example for production are valid, with what the gateway then requires", () =>
    Effect.gen(function*() {
      const text = fs.readFileSync(new URL("../../../docs/config/production.toml", import.meta.url), "utf8")
      const found = plain(yield* read({ file: "production.toml", files: { "production.toml": text } }))
      assert.deepInclude(found, { adminHost: "127.0.0.1", adminPort: Option.some(9090), strict: true, accessLog: true })
      assert.deepInclude(found.archive, { coin: "BTC", interval: "1m" })
    }))

  it.effect("of the examples are the same in each format", () =>
    Effect.gen(function*() {
      const found = yield* Effect.forEach(["json", "yaml", "toml"], (kind) => {
        const file = `trigate.config.${kind}`
        const text = fs.readFileSync(new URL(`../../../docs/config/${file}`, import.meta.url), "utf8")
        return Effect.map(read({ files: { [file]: text } }), ({ sources: _, ...settings }) => plain(settings))
      })
      const [json] = found
      assert.deepStrictEqual(found, [json, json, json])
      assert.deepInclude(json, {
        port: 9000,
        strict: true,
        accessLog: false,
        layer2Rps: Option.some(25),
        readDeadline: Duration.seconds(5),
        urls: [
          ["https://api.hyperliquid.xyz"],
          [],
          [],
          ["https://first.example/KEY", "https://second.example/KEY"]
        ]
      })
    }))

  it.effect("are read from the file that is named, and only from it", () =>
    Effect.gen(function*() {
      const files = { "other.toml": "port = 1", "trigate.config.json": "{", "trigate.config.yml": "port: 2" }
      assert.strictEqual((yield* read({ file: "other.toml", files })).port, 1)
      assert.strictEqual((yield* read({ file: "trigate.config.yml", files })).port, 2)
    }))

  const secret = "s3cr3t"
  const url = `https://node.example/${secret}?${secret}`
  const urls = "expected http(s) base URLs, comma separated, without query"
  const help = "see trigate serve --help"

  const wrong: ReadonlyArray<readonly [sources: Given, message: string]> = [
    [{ flags: { layer2Url: url } }, `--layer2-url is not valid: ${urls}`],
    [{ environment: { TRIGATE_LAYER2_URL: url } }, `TRIGATE_LAYER2_URL is not valid: ${urls}`],
    [
      { environmentFile: "a.env", files: { "a.env": `TRIGATE_LAYER2_URL=${url}` } },
      `TRIGATE_LAYER2_URL in a.env is not valid: ${urls}`
    ],
    [
      { files: { "trigate.config.toml": `layer2Url = ["${url}"]` } },
      `layer2Url in trigate.config.toml is not valid: ${urls}`
    ],
    [
      { files: { "trigate.config.json": `{"layer2Url":{"${secret}":1}}` } },
      `layer2Url in trigate.config.json is not valid: ${urls}`
    ],
    [
      { flags: { port: "1" }, files: { "trigate.config.json": `{"layer2Url":[["${secret}"]]}` } },
      `layer2Url in trigate.config.json is not valid: ${urls}`
    ],
    [
      { files: { "trigate.config.yaml": `signers: 0x70997970c51812dc3a010c7d01b50e0d17dc79c8` } },
      "signers in trigate.config.yaml is not valid: expected 0x addresses, comma separated"
    ],
    [
      { environment: { PATH: "x", TRIGATE_PRIVATE_KEY: secret, TRIGATE_STRCT: secret, TRIGATE_PORT: "x" } },
      `TRIGATE_STRCT is not a setting (did you mean TRIGATE_STRICT?); ${help}`
    ],
    [
      { environmentFile: "a.env", files: { "a.env": `TRIGATE_LAYER_URL=${secret}` } },
      `TRIGATE_LAYER_URL in a.env is not a setting (did you mean TRIGATE_LAYER2_URL?); ${help}`
    ],
    [
      { files: { "trigate.config.yaml": `layer2url: ${secret}` } },
      `layer2url in trigate.config.yaml is not a setting (did you mean layer2Url?); ${help}`
    ],
    [
      { files: { "trigate.config.yaml": `TRIGATE_PORT: ${secret}` } },
      `TRIGATE_PORT in trigate.config.yaml is not a setting; ${help}`
    ],
    [
      { files: { "trigate.config.json": "{}", "trigate.config.toml": "" } },
      "trigate.config.json and trigate.config.toml both exist: remove one, or select one with --config"
    ],
    [{ file: "none.yaml" }, "none.yaml cannot be read"],
    [{ environmentFile: "none.env" }, "none.env cannot be read"],
    [{ file: "a.ini", files: { "a.ini": "" } }, "a.ini is not a settings file: expected .json, .yaml or .toml"],
    [
      { files: { "trigate.config.json": `["${secret}"]` } },
      "trigate.config.json is not a settings file: expected an object with settings"
    ],
    [
      { files: { "trigate.config.json": `{"port":1,${secret}` } },
      "trigate.config.json is not valid JSON: see its line 1"
    ],
    [
      { files: { "trigate.config.json": `{\n  "port": 1,\n  "host": ${secret},\n  "strict": true\n}` } },
      "trigate.config.json is not valid JSON: see its line 3"
    ],
    [
      { files: { "trigate.config.json": `{\n  "port": 1\n  "host": "${secret}"\n}` } },
      "trigate.config.json is not valid JSON: see its line 3"
    ],
    [
      { files: { "trigate.config.json": `{\n  "relayActions": [\n    "order",\n    "${secret}"\n` } },
      "trigate.config.json is not valid JSON: see its line 5"
    ],
    [
      { environmentFile: "a.env", files: { "a.env": `# keys\nTRIGATE_PORT=1\n\n${secret}\n` } },
      "a.env is not valid: its line 4 is not NAME=value"
    ],
    [
      { files: { "trigate.config.json": `{"port":1,"port":2}` } },
      "trigate.config.json is not valid JSON"
    ],
    [
      { files: { "trigate.config.yaml": `port: 1\nlayer2Url: *${secret}` } },
      "trigate.config.yaml is not valid YAML: see its line 2"
    ],
    [
      { files: { "trigate.config.yaml": `port: 1\nrelayActions: [order, ${secret}\nstrict: true\n` } },
      "trigate.config.yaml is not valid YAML: see its line 2"
    ],
    [
      { files: { "trigate.config.yaml": `port: 1\nport: ${secret}` } },
      "trigate.config.yaml is not valid YAML: see its line 2"
    ],
    [
      { files: { "trigate.config.toml": `port = 1\nlayer2Url = ${secret}` } },
      "trigate.config.toml is not valid TOML: see its line 2"
    ]
  ]

  it.effect("that are wrong are refused in one line, which names their place and does not quote them", () =>
    Effect.forEach(wrong, ([sources, message]) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* refused(sources), message)
        assert.notInclude(message, secret)
      }), { discard: true }))
})
