/** `trigate keys` on a key file, SQLite and Postgres: what it prints where, and that a gateway on them follows. */
import { assert, describe, it } from "@effect/vitest"
import * as Key from "@trigate/callers/KeyStore"
import { gateway, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { isInstalled, postgresDatabase } from "@trigate/testing/PostgresServer"
import { sample } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { folder, run, runFully } from "./run.ts"

const keyLine = /^tg_[0-9a-f]{10}_[0-9a-f]{64}\n$/u

const prefixOf = (key: string): string => Key.parse(key.trim())?.prefix ?? ""

/** Runs `trigate keys …` on the keys of an environment. */
const on = (environment: { readonly [name: string]: string }) => (...args: ReadonlyArray<string>) =>
  run(["keys", ...args], { environment })

const cells = (stdout: string) => stdout.trimEnd().split("\n").map((line) => line.split(/ {2,}/u))

const day = 86_400_000

describe("trigate keys", () => {
  it.live("makes, lists, rotates and revokes at a gateway that runs, by its admin routes", () =>
    Effect.gen(function*() {
      const file = Path.join(yield* folder, "keys.json")
      const operator = yield* on({ TRIGATE_CALLERS: file })("create", "operator", "--classes", "admin")
      const { url } = yield* gateway({ TRIGATE_CALLERS: file })
      const keys = (...args: ReadonlyArray<string>) =>
        runFully(["keys", ...args, "--admin", url], { environment: { TRIGATE_ADMIN_KEY: operator.stdout.trim() } })

      const made = yield* keys("create", "desk", "--classes", "read", "--burst", "5", "--expires", "90d")
      assert.match(made.stdout, keyLine)
      assert.include(made.stderr, `keys: the gateway at ${url}\n`)
      const again = yield* keys("create", "desk")
      assert.deepStrictEqual([again.code, again.stdout], [3, ""])
      const next = yield* keys("rotate", "desk", "--overlap", "1h", "--json")
      assert.strictEqual(JsonParts.value(next.stdout, "prefix"), prefixOf(String(JsonParts.value(next.stdout, "key"))))
      const listed = yield* keys("list")
      assert.sameMembers(cells(listed.stdout).slice(1).map(([name, prefix, state]) => `${name} ${prefix} ${state}`), [
        `operator ${prefixOf(operator.stdout)} valid`,
        `desk ${prefixOf(made.stdout)} valid`,
        `desk ${String(JsonParts.value(next.stdout, "prefix"))} valid`
      ])
      const ended = yield* run(["keys", "revoke", "desk", "--key", prefixOf(made.stdout), "--gateway", url], {
        environment: { TRIGATE_ADMIN_KEY: operator.stdout.trim() }
      })
      assert.deepStrictEqual(cells(ended.stdout).slice(1), [["desk", prefixOf(made.stdout), "revoked"]])
      // the store is the gateway's
      const stored = yield* on({ TRIGATE_CALLERS: file })("list", "--all")
      assert.lengthOf(stored.stdout.split("\n").filter((line) => line.includes("revoked")), 1)
    }))

  it.effect("take one target: a gateway that runs, or a key file", () =>
    Effect.gen(function*() {
      const { code, stderr } = yield* on({})("list", "--admin", "http://127.0.0.1:1", "--callers", "keys.json")
      assert.deepStrictEqual([code, stderr], [
        2,
        "trigate: --admin and --callers are mutually exclusive; omit one\n"
      ])
    }))

  const places: ReadonlyArray<
    readonly [place: string, environment: (folder: string) => { readonly [name: string]: string }]
  > = [
    ["a key file", (path) => ({ TRIGATE_CALLERS: Path.join(path, "keys.json") })],
    ["SQLite", (path) => ({ TRIGATE_DATABASE_URL: Path.join(path, "trigate.sqlite") })],
    [
      "SQLite that a gateway asks",
      (path) => ({ TRIGATE_CALLERS: "keys", TRIGATE_DATABASE_URL: Path.join(path, "trigate.sqlite") })
    ]
  ]
  for (const [place, environmentIn] of places) {
    it.effect(`makes, lists, rotates and revokes: ${place}`, () =>
      Effect.gen(function*() {
        const keys = on(environmentIn(yield* folder))
        yield* TestClock.adjust(day)
        const made = yield* keys(
          "create",
          "desk",
          "--classes",
          "read,sign",
          "--chains",
          "trading",
          "--burst",
          "5",
          "--expires",
          "90d"
        )
        assert.strictEqual(made.code, 0)
        assert.match(made.stdout, keyLine)
        const first = prefixOf(made.stdout)
        assert.strictEqual(
          made.stderr,
          `The key of desk is shown only once: only its hash is stored. Logs show its prefix, ${first}.\n` +
            "The key is valid until 1970-04-02T00:00Z.\n" +
            "Callers send the key in Authorization: Bearer, in X-API-Key, or as the first segment of the path.\n"
        )
        const open = yield* keys("create", "bot", "--json")
        assert.deepStrictEqual(Object.keys(JSON.parse(open.stdout) as object), [
          "name",
          "prefix",
          "hash",
          "createdAt",
          "key"
        ])

        yield* TestClock.adjust(day)
        const rotated = yield* keys("rotate", "desk", "--overlap", "12h")
        assert.match(rotated.stdout, keyLine)
        const second = prefixOf(rotated.stdout)
        assert.strictEqual(
          rotated.stderr,
          `The key of desk is shown only once: only its hash is stored. Logs show its prefix, ${second}.\n` +
            "The key is valid until 1970-04-03T00:00Z.\n" +
            `The previous keys remain valid: ${first} (until 1970-01-03T12:00Z).\n`
        )
        const may = "chains=trading classes=read+sign burst=5"
        const botPrefix = String(JsonParts.value(open.stdout, "prefix"))
        const listed = cells((yield* keys("list")).stdout)
        assert.deepStrictEqual(listed[0], ["NAME", "KEY", "STATE", "CREATED", "EXPIRES", "LAST USED", "MAY"])
        assert.sameDeepMembers(listed.slice(1), [
          ["desk", first, "valid", "1970-01-02T00:00Z", "1970-01-03T12:00Z", "-", may],
          ["bot", botPrefix, "valid", "1970-01-02T00:00Z", "-", "-", "everything"],
          ["desk", second, "valid", "1970-01-03T00:00Z", "1970-04-03T00:00Z", "-", may]
        ])

        const revoked = yield* keys("revoke", "desk", "--key", second)
        assert.deepStrictEqual(cells(revoked.stdout), [["NAME", "KEY", "STATE"], ["desk", second, "revoked"]])
        yield* TestClock.adjust(day / 2)
        assert.deepStrictEqual(cells((yield* keys("list")).stdout).slice(1).map(([name]) => name), ["bot"])
        assert.sameDeepMembers(cells((yield* keys("list", "--all")).stdout).slice(1).map((row) => row.slice(1, 3)), [
          [first, "expired"],
          [botPrefix, "valid"],
          [second, "revoked"]
        ])
        const all = yield* keys("list", "--all", "--json")
        assert.sameDeepMembers(
          (JSON.parse(all.stdout) as ReadonlyArray<object>).map((key) => [
            JsonParts.at(key, "name"),
            JsonParts.at(key, "state")
          ]),
          [["bot", "valid"], ["desk", "expired"], ["desk", "revoked"]]
        )
        for (const { stderr, stdout } of [all, yield* keys("list", "--all")]) {
          for (const key of [made.stdout, rotated.stdout]) assert.notInclude(stdout + stderr, key.trim().slice(14))
          assert.notInclude(stdout, "hash")
        }
      }))

    it.effect(`says in one line what it cannot do: ${place}`, () =>
      Effect.gen(function*() {
        const keys = on(environmentIn(yield* folder))
        yield* keys("create", "desk")
        const refused: ReadonlyArray<readonly [args: ReadonlyArray<string>, line: string]> = [
          [["create", "desk"], "desk already has a key: rotate it, or revoke it first"],
          [["create", "a b"], "A name consists of 1 to 64 letters, digits, dots, dashes and underscores"],
          [["rotate", "nobody"], "nobody has no valid key: create one"],
          [["revoke", "nobody"], "nobody has no valid key"],
          [["revoke", "desk", "--key", "0123456789"], "desk has no valid key 0123456789"]
        ]
        for (const [args, line] of refused) {
          assert.deepStrictEqual(yield* keys(...args), { code: 2, stdout: "", stderr: `trigate: ${line}\n` })
        }
        assert.strictEqual((yield* keys("create", "x", "--classes", "write")).code, 2)
        assert.strictEqual((yield* keys("create", "x", "--signers", "0x12")).code, 2)
        assert.strictEqual((yield* keys("create", "x", "--burst", "0")).code, 2)
        assert.strictEqual((yield* keys("create", "x", "--burst", "1.5")).code, 2)
        assert.strictEqual((yield* keys("create", "x", "--expires", "90")).code, 2)
        assert.strictEqual(cells((yield* keys("list")).stdout).length, 2)
      }))
  }

  it.effect("needs to be told where keys are, and finds none where there are none", () =>
    Effect.gen(function*() {
      const nowhere = yield* on({})("list")
      assert.deepStrictEqual(nowhere, {
        code: 2,
        stdout: "",
        stderr:
          "trigate: no key store is configured: set TRIGATE_DATABASE_URL to a database, or TRIGATE_CALLERS to a key file\n"
      })
      const path = yield* folder
      const absent = yield* on({ TRIGATE_DATABASE_URL: Path.join(path, "none.sqlite") })("list")
      assert.deepStrictEqual([absent.code, absent.stdout], [1, ""])
      assert.match(absent.stderr, /^trigate: the database does not respond \(\w+\)\n$/u)
      assert.deepStrictEqual(Fs.readdirSync(path), [])
      const file = Path.join(path, "keys.json")
      Fs.writeFileSync(file, `{"version":1,"keys":[]}`, { mode: 0o600 })
      const empty = yield* on({})("list", "--callers", file)
      assert.deepStrictEqual(empty, {
        code: 0,
        stdout: "No key is valid; trigate keys create creates one\n",
        stderr: ""
      })
    }))

  it.effect("reads the settings of a gateway from their files, secrets included", () =>
    Effect.gen(function*() {
      const path = yield* folder
      const secrets = Path.join(path, "trigate.env")
      Fs.writeFileSync(secrets, `TRIGATE_DATABASE_URL=${Path.join(path, "keys.sqlite")}\n`)
      const made = yield* on({})("create", "desk", "--env-file", secrets)
      assert.match(made.stdout, keyLine)
      assert.strictEqual(cells((yield* on({})("list", "--env-file", secrets)).stdout)[1]?.[0], "desk")
    }))
})

/** A gateway serves what the commands make, and no longer what they end. */
const followed = Effect.fnUntraced(function*(environment: { readonly [name: string]: string }) {
  const keys = on(environment)
  const first = (yield* keys("create", "desk")).stdout.trim()
  const { url } = yield* gateway({ ...environment, TRIGATE_CALLERS: environment["TRIGATE_CALLERS"] ?? "keys" })
  const ask = (key: string) =>
    Effect.map(post(`${url}/info`, `{"type":"spotMeta"}`, { authorization: `Bearer ${key}` }), ({ status }) => status)
  assert.strictEqual(yield* ask(first), 200)
  const second = (yield* keys("rotate", "desk")).stdout.trim()
  assert.deepStrictEqual([yield* ask(second), yield* ask(first)], [200, 200])
  yield* keys("revoke", "desk", "--key", prefixOf(first))
  assert.strictEqual(yield* Effect.repeat(ask(first), { until: (status) => status !== 200 }), 401)
  assert.strictEqual(yield* ask(second), 200)
  yield* keys("revoke", "desk")
  assert.strictEqual(yield* Effect.repeat(ask(second), { until: (status) => status !== 200 }), 401)
})

const keyStores: ReadonlyArray<
  readonly [name: string, environment: Effect.Effect<{ readonly [name: string]: string }, never, Scope.Scope>]
> = [
  ["a file", Effect.map(folder, (path) => ({ TRIGATE_CALLERS: Path.join(path, "keys.json") }))],
  ["SQLite", Effect.map(folder, (path) => ({ TRIGATE_DATABASE_URL: Path.join(path, "trigate.sqlite") }))],
  ...(isInstalled
    ? [["Postgres", Effect.map(postgresDatabase, ({ url }) => ({ TRIGATE_DATABASE_URL: url }))] as const]
    : [])
]

describe("a gateway", () => {
  for (const [name, environment] of sample("stores of keys", keyStores, 1)) {
    it.live(`follows the keys of ${name}`, () => Effect.flatMap(environment, followed))
  }
})

describe("a command that asks a gateway with keys", () => {
  it.live("sends the key of TRIGATE_GATEWAY_KEY, and shows it to nobody", () =>
    Effect.gen(function*() {
      const file = Path.join(yield* folder, "keys.json")
      const key = (yield* on({ TRIGATE_CALLERS: file })("create", "desk")).stdout.trim()
      const { url } = yield* gateway({ TRIGATE_CALLERS: file })
      const ask = (environment: { readonly [name: string]: string }) =>
        run(["evm", "gas", "--json"], { environment: { TRIGATE_GATEWAY_URL: url, ...environment } })
      const served = yield* ask({ TRIGATE_GATEWAY_KEY: key })
      assert.strictEqual(served.code, 0)
      const without = yield* ask({})
      assert.strictEqual(without.code, 3)
      assert.include(without.stderr, "This gateway requires a key")
      assert.strictEqual((yield* ask({ TRIGATE_GATEWAY_KEY: "" })).code, 3)
      const wrong = `${key.slice(0, -4)}ffff`
      const refused = yield* ask({ TRIGATE_GATEWAY_KEY: wrong })
      assert.deepStrictEqual([refused.code, refused.stdout], [3, ""])
      for (const { stderr, stdout } of [served, refused]) {
        assert.notInclude(stdout + stderr, wrong.slice(14, -4))
      }
    }))
})
