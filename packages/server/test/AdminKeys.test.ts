/** The keys of callers over the admin routes: the same rules as the command line's, for a key with the class admin. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as KeyStore from "@trigate/callers/KeyStore"
import * as KeyStoreFile from "@trigate/callers/KeyStoreFile"
import * as Admin from "@trigate/client/Admin"
import * as Connection from "@trigate/client/Connection"
import { gateway, get, post } from "@trigate/testing/Gateway"
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import { flipReason } from "@trigate/testing/Reason"
import * as SpanTree from "@trigate/testing/SpanTree"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Tracer from "effect/Tracer"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"

/** A file of keys with that of an operator. */
const keyFile = Effect.gen(function*() {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "admin-keys-"))),
    (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
  )
  const file = Path.join(folder, "keys.json")
  const store = Context.get(
    yield* Layer.build(Layer.provide(KeyStoreFile.layer(file), NodeFileSystem.layer)),
    KeyStore.KeyStore
  )
  const operator = yield* Effect.orDie(store.create({ name: "operator", scope: { classes: ["admin"] } }))
  return { file, operator }
})

/** A gateway that asks for the keys of such a file. */
const keyed = Effect.gen(function*() {
  const { file, operator } = yield* keyFile
  const { url } = yield* gateway({ TRIGATE_CALLERS: file })
  return { file, operator, url }
})

const as = (url: string, key?: Redacted.Redacted) =>
  Layer.provide(
    Connection.layer({ baseUrl: url, ...(key === undefined ? {} : { key }) }),
    FetchHttpClient.layer
  )

const asks = (url: string, key: Redacted.Redacted) =>
  Effect.map(
    post(`${url}/info`, `{"type":"spotMeta"}`, { authorization: `Bearer ${Redacted.value(key)}` }),
    ({ status }) => status
  )

describe("keys over the admin routes", () => {
  it.live("are made, listed without their hashes, rotated and revoked, and count at once", () =>
    Effect.gen(function*() {
      const { file, operator, url } = yield* keyed
      yield* Effect.gen(function*() {
        const first = yield* Admin.createKey({
          name: "desk",
          scope: { classes: ["read"] },
          quota: { requestsPerSecond: 20 },
          lifetime: 3_600_000
        })
        assert.deepInclude(first.record, {
          name: "desk",
          state: "valid",
          scope: { classes: ["read"] },
          quota: { requestsPerSecond: 20 },
          expiresAt: first.record.createdAt + 3_600_000
        })
        assert.match(Redacted.value(first.key), new RegExp(`^tg_${first.record.prefix}_[0-9a-f]{64}$`, "u"))
        assert.strictEqual(yield* asks(url, first.key), 200)

        const second = yield* Admin.rotateKey("desk", { overlap: 1_800_000 })
        assert.strictEqual(second.record.expiresAt, second.record.createdAt + 3_600_000)
        assert.deepStrictEqual([yield* asks(url, first.key), yield* asks(url, second.key)], [200, 200])

        const { asked, keys } = yield* Admin.keys()
        assert.isTrue(asked)
        assert.deepStrictEqual(
          keys.map(({ expiresAt, name, prefix, state }) => [name, prefix, state, expiresAt]),
          [
            ["operator", operator.record.prefix, "valid", undefined],
            ["desk", first.record.prefix, "valid", second.record.createdAt + 1_800_000],
            ["desk", second.record.prefix, "valid", second.record.expiresAt]
          ]
        )
        assert.notInclude(JSON.stringify(keys), operator.record.hash)

        const [ended] = yield* Admin.revokeKeys("desk", { prefix: first.record.prefix })
        assert.deepInclude(ended, { prefix: first.record.prefix, state: "revoked" })
        yield* Admin.revokeKeys("desk")
        assert.deepStrictEqual((yield* Admin.keys()).keys.map(({ state }) => state), ["valid", "revoked", "revoked"])
        // the file that the command line changes holds the same, and neither key
        const kept = Fs.readFileSync(file, "utf8")
        assert.include(kept, second.record.prefix)
        for (const { key } of [first, second]) assert.notInclude(kept, Redacted.value(key))
      }).pipe(Effect.provide(as(url, operator.key)))
    }))

  it.live("are for a key with the class admin alone", () =>
    Effect.gen(function*() {
      const { operator, url } = yield* keyed
      const { key } = yield* Effect.provide(Admin.createKey({ name: "desk" }), as(url, operator.key))
      const calls = [
        Effect.asVoid(Admin.keys()),
        Effect.asVoid(Admin.createKey({ name: "other" })),
        Effect.asVoid(Admin.rotateKey("operator")),
        Effect.asVoid(Admin.revokeKeys("operator"))
      ]
      for (const call of calls) {
        assert.strictEqual((yield* flipReason(Effect.provide(call, as(url))))._tag, "Unauthorized")
        const refused = yield* flipReason(Effect.provide(call, as(url, key)))
        assert(refused._tag === "NotPermitted")
        assert.deepStrictEqual([refused.missing, refused.needed], ["classes", "admin"])
      }
      const { keys } = yield* Effect.provide(Admin.keys(), as(url, operator.key))
      assert.deepStrictEqual(keys.map(({ name, state }) => [name, state]), [["operator", "valid"], ["desk", "valid"]])
    }))

  it.live("are refused as on the command line, and by what the request has wrong", () =>
    Effect.gen(function*() {
      const { operator, url } = yield* keyed
      const authorization = `Bearer ${Redacted.value(operator.key)}`
      const asked = (path: string, body: string, headers = {}) =>
        post(`${url}${path}`, body, { authorization, ...headers })
      for (
        const [path, body, status, detail] of [
          ["/admin/keys", `{"name":"operator"}`, 400, "operator already has a key: rotate it, or revoke it first"],
          ["/admin/keys/nobody/rotate", "{}", 400, "nobody has no valid key: create one"],
          ["/admin/keys/nobody/revoke", "{}", 400, "nobody has no valid key"],
          ["/admin/keys", `{"name":"a","scope":{"classes":["everything"]}}`, 400, "scope.classes.0"],
          ["/admin/keys", `{"name":"no spaces"}`, 400, "name"],
          ["/admin/keys", `{"name":"a","name":"b"}`, 400, "name"],
          ["/admin/keys", `{"name":"a","lifetime":0}`, 400, "lifetime"]
        ] as const
      ) {
        const answer = yield* asked(path, body)
        assert.deepStrictEqual([path, answer.status], [path, status])
        assert.include(answer.text, detail)
      }
      const foreign = yield* asked("/admin/keys", `{"name":"evil"}`, { origin: "https://evil.example" })
      assert.strictEqual(foreign.status, 403)
      const { keys } = yield* Effect.provide(Admin.keys(), as(url, operator.key))
      assert.deepStrictEqual(keys.map(({ name }) => name), ["operator"])
    }))

  it.live("are in no log, no audit log, no span, no metric and no list", () => {
    const { text, tracer } = SpanTree.make()
    return Effect.gen(function*() {
      const { file, operator } = yield* keyFile
      const running = yield* gatewayProcess({ TRIGATE_CALLERS: file, TRIGATE_AUDIT_LOG: "stdout" })
      const { url } = yield* Effect.provideService(gateway({ TRIGATE_CALLERS: file }), Tracer.Tracer, tracer)
      const secrets = [Redacted.value(operator.key)]
      for (const at of [running.url, url]) {
        const name = at === url ? "desk" : "bot"
        const made = yield* Effect.provide(Admin.createKey({ name }), as(at, operator.key))
        const next = yield* Effect.provide(Admin.rotateKey(name), as(at, operator.key))
        assert.strictEqual(yield* asks(at, next.key), 200)
        secrets.push(...[made, next].map(({ key }) => Redacted.value(key)))
        const authorization = { authorization: `Bearer ${Redacted.value(operator.key)}` }
        const told = [yield* get(`${at}/metrics`), yield* get(`${at}/admin/keys`, authorization)].map(({ text }) =>
          text
        )
        for (const secret of secrets) assert.notInclude(told.join(" "), secret)
      }
      running.signal("SIGTERM")
      yield* Effect.promise(() => running.ended)
      assert.include(running.printed(), `"route":"admin.rotateKey"`)
      assert.include(text(), "admin.rotateKey")
      for (const secret of secrets) assert.notInclude(`${running.printed()} ${text()}`, secret)
    }).pipe(Effect.scoped)
  })

  it.live("are none where the gateway asks nobody for one, and nobody can make one for later", () =>
    Effect.gen(function*() {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "admin-keys-"))),
        (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
      )
      const { url } = yield* gateway({
        TRIGATE_LAYER2_URL: "http://127.0.0.1:9/key",
        TRIGATE_DATABASE_URL: Path.join(folder, "actions.sqlite")
      })
      assert.deepStrictEqual(yield* Effect.provide(Admin.keys(), as(url)), { asked: false, keys: [] })
      const refused = yield* flipReason(
        Effect.provide(Admin.createKey({ name: "later", scope: { classes: ["admin"] } }), as(url))
      )
      assert.strictEqual(refused._tag, "InvalidRequest")
    }))
})
