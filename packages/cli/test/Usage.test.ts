import { assert, describe, it } from "@effect/vitest"
import { settings } from "@trigate/server/unstable/settings/Settings"
import * as Effect from "effect/Effect"
import * as Http from "node:http"
import { run } from "./run.ts"

const nobody = "http://127.0.0.1:1"

const refused = Effect.fnUntraced(function*(args: string, code: number, line: string) {
  const ended = yield* run(args === "" ? [] : args.split(" "))
  assert.deepStrictEqual(ended, { code, stdout: "", stderr: `${line}\n` }, args)
})

/** A server that speaks HTTP without TLS. */
const plainServer = Effect.acquireRelease(
  Effect.callback<{ readonly port: number; readonly server: Http.Server }>((resume) => {
    const server = Http.createServer()
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resume(Effect.succeed({ server, port: address !== null && typeof address === "object" ? address.port : 0 }))
    })
  }),
  ({ server }) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
)

const key = `0x${"ac".repeat(32)}`
const validator = `0x${"7".repeat(40)}`

describe("a command line that is wrong", () => {
  it.effect("ends in one line that names the help to read", () =>
    Effect.gen(function*() {
      yield* refused(
        "evm gas --jsn",
        2,
        "trigate: Unrecognized flag: --jsn in command trigate evm gas; see trigate evm gas --help"
      )
      yield* refused("nonsense", 2, "trigate: Unknown subcommand \"nonsense\" for \"trigate\"; see trigate --help")
      yield* refused(
        "tokn x",
        2,
        "trigate: Unknown subcommand \"tokn\" for \"trigate\"; did you mean token?; see trigate --help"
      )
      yield* refused("token", 2, "trigate: Missing required argument: address; see trigate token --help")
      yield* refused(
        "big-blocks maybe",
        2,
        "trigate: Invalid value for argument <state>: \"maybe\". Expected: \"on\" | \"off\"; see trigate big-blocks --help"
      )
      yield* refused(
        `delegate ${validator} 1.123456789`,
        2,
        "trigate: Invalid value for argument <amount>: \"1.123456789\". Expected: an amount of HYPE above 0 with up to 8 " +
          "decimals, such as 1.5; see trigate delegate --help"
      )
      yield* refused(
        "evm storage 0x12 0",
        2,
        "trigate: Invalid value for argument <address>: \"0x12\". Expected: 20 bytes in hex, 0x first; see trigate evm " +
          "storage --help"
      )
      yield* refused(
        "receipt 0x12",
        2,
        "trigate: Invalid value for argument <hash>: \"0x12\". Expected: 32 bytes in hex, 0x first; see trigate receipt " +
          "--help"
      )
      yield* refused(
        "serve --raed-deadline 5s",
        2,
        "trigate: Unrecognized flag: --raed-deadline in command trigate serve; did you mean --read-deadline?; see trigate " +
          "serve --help"
      )
      yield* refused("serve --port x", 2, "trigate: --port is not valid: expected a port from 0 to 65535")
    }))

  it.effect("does not repeat a private key that went into the wrong place", () =>
    Effect.gen(function*() {
      yield* refused(
        `delegate ${key} 1`,
        2,
        "trigate: Invalid value for argument <validator>: \"<64 hex digits>\". Expected: 20 bytes in hex, 0x first; see " +
          "trigate delegate --help"
      )
      yield* refused(
        `delegate ${validator} 1 ${key}`,
        2,
        "trigate: Unexpected positional argument: \"<64 hex digits>\"; see trigate delegate --help"
      )
      yield* refused(
        `delegate ${validator} 1 --key-env ${key}`,
        2,
        "trigate: Invalid value for flag --key-env: \"<64 hex digits>\". Expected: the name of an environment variable; " +
          "see trigate delegate --help"
      )
      yield* refused(
        `big-blocks on --dry-run --key-file ${key}`,
        2,
        "trigate: <64 hex digits> cannot be read"
      )
    }))

  it.effect("without a subcommand names those that there are", () =>
    refused("info", 2, "trigate: Missing subcommand: spot-meta, candles, raw; see trigate info --help"))

  it.effect("is told which numbers an option takes", () =>
    Effect.gen(function*() {
      const propose = `multisig propose delegate ${validator} 1 --account ${validator} --leader ${validator}`
      const help = "see trigate multisig propose delegate --help"
      for (const given of ["0", "11", "x", "1.5"]) {
        yield* refused(
          `${propose} --threshold ${given}`,
          2,
          `trigate: Invalid value for flag --threshold: "${given}". Expected: a whole number from 1 to 10; ${help}`
        )
      }
      // seconds
      yield* refused(
        `${propose} --nonce 1767225600`,
        2,
        "trigate: Invalid value for flag --nonce: \"1767225600\". Expected: milliseconds since 1970, such as 1767225600000; " +
          help
      )
    }))
})

describe("no gateway", () => {
  const line = `trigate: No gateway responds at ${nobody}; start one with trigate serve, or name another with --gateway`

  it.live("ends every command that needs one in one line", () =>
    Effect.forEach([
      "evm gas",
      "info spot-meta",
      "info candles BTC 1h --out csv",
      "info raw {\"type\":\"meta\"}",
      "status",
      "status --json",
      "token EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz",
      `receipt 0x${"1".repeat(64)}`,
      `receipt --wait 0x${"1".repeat(64)}`
    ], (args) => refused(`${args} --gateway ${nobody}`, 5, line)))

  it.live("says why nobody can be reached, where the system knows", () =>
    Effect.gen(function*() {
      const port = yield* Effect.scoped(Effect.map(plainServer, ({ port }) => port))
      const advice = "start one with trigate serve, or name another with --gateway"
      const closed = `http://127.0.0.1:${port}`
      yield* refused(
        `evm gas --gateway ${closed}`,
        5,
        `trigate: No gateway responds at ${closed} (no program listens on the port); ${advice}`
      )
      const plain = `https://127.0.0.1:${(yield* plainServer).port}`
      yield* refused(
        `evm gas --gateway ${plain}`,
        5,
        `trigate: No gateway responds at ${plain} (it does not speak TLS; try http://); ${advice}`
      )
    }))

  it.live("is found before anything is signed", () =>
    Effect.gen(function*() {
      const ended = yield* run(["big-blocks", "on", "--gateway", nobody], {
        environment: { TRIGATE_PRIVATE_KEY: key }
      })
      assert.deepStrictEqual(ended, { code: 5, stdout: "", stderr: `${line}\n` })
    }))

  it.effect("is not asked for at an address that is none, whose secrets are not repeated", () =>
    Effect.gen(function*() {
      const wanted = "trigate: --gateway (or TRIGATE_GATEWAY_URL) must be an http(s) URL without a query"
      yield* refused("evm gas --gateway localhost:8080/SECRET", 2, wanted)
      yield* refused("evm gas --gateway http://localhost?key=SECRET", 2, wanted)
    }))

  it.live("leaves an endpoint key in the address untold", () => refused(`evm gas --gateway ${nobody}/SECRET`, 5, line))
})

describe("help", () => {
  const commands = [
    "",
    "info",
    "info spot-meta",
    "info candles",
    "info raw",
    "evm",
    "evm storage",
    "evm gas",
    "token",
    "receipt",
    "delegate",
    "undelegate",
    "big-blocks",
    "multisig",
    "multisig propose",
    "multisig propose delegate",
    "multisig propose undelegate",
    "multisig propose big-blocks",
    "multisig propose action",
    "multisig approve",
    "multisig submit",
    "serve",
    "sandbox",
    "status",
    "check",
    "inspect",
    "actions",
    "actions list",
    "actions resolve",
    "actions forget"
  ]

  it.effect("of every command says what it does, and describes every argument and flag", () =>
    Effect.forEach(commands, (command) =>
      Effect.gen(function*() {
        const { code, stderr, stdout } = yield* run([...command.split(" ").filter((word) => word !== ""), "--help"])
        assert.deepStrictEqual({ code, stderr }, { code: 0, stderr: "" }, command)
        assert.match(stdout, /^DESCRIPTION\n {2}[A-Z]/u, command)
        assert.include(stdout, `USAGE\n  ${["trigate", ...command.split(" ")].join(" ").trim()}`, command)
        if (command === "serve") {
          for (const { env, flag } of Object.values(settings)) {
            assert.match(stdout, new RegExp(`^  --${flag} value .*${env}`, "mu"))
          }
        }
        const listed = stdout.split("\n").filter((line) => /^ {2}(?:--)?[a-z][a-z-]*(?:,? [^ ]+)? {2,}/u.test(line))
        for (const line of listed) assert.match(line, /\S {2,}\S/u, `${command}: ${line}`)
        for (const line of stdout.split("\n")) assert.notMatch(line, /^ {2}--[a-z-]+(?: \S+)?$/u, `${command}: ${line}`)
      }), { discard: true }))

  it.effect("lists the exit codes, and the completions complete", () =>
    Effect.gen(function*() {
      assert.include((yield* run(["--help"])).stdout, "    7  a signed action was sent and its outcome is unknown\n")
      for (const shell of ["bash", "zsh", "fish"]) {
        const { code, stdout } = yield* run(["--completions", shell])
        assert.strictEqual(code, 0)
        assert.include(stdout, "big-blocks")
        assert.include(stdout, "expected-signer")
      }
    }))
})
