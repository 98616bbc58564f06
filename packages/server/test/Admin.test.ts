/** The routes of whoever runs the gateway, and where they stand. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as KeyStore from "@trigate/callers/KeyStore"
import * as KeyStoreFile from "@trigate/callers/KeyStoreFile"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import type { Gateway } from "@trigate/testing/Gateway"
import { gateway, get, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { keyFile } from "./keyFile.ts"
import { liveGateway } from "./liveGateway.ts"

const duplicate = `{"status":"err","response":"Invalid nonce: duplicate nonce"}`

/** The text of a signed action of the trader's. */
const signed = (nonce: number) =>
  Effect.map(
    Effect.orDie(
      SandboxSigner.signAction(keys.trader, { nonce, action: { type: "evmUserModify", usingBigBlocks: true } })
    ),
    (action) => ({ text: JSON.stringify(action), signature: action.signature })
  )

const idsAt = ({ adminUrl }: Pick<Gateway, "adminUrl">) =>
  Effect.map(
    get(`${adminUrl}/admin/actions`),
    ({ json }) => Array.isArray(json) ? json.map((entry) => String(JsonParts.value(JSON.stringify(entry), "id"))) : []
  )

describe("the action log of a gateway that runs", () => {
  it.live("is listed without signatures, and each action can be found out about or forgotten", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({ api: () => ({ status: 502, body: "" }) })
      const now = yield* Clock.currentTimeMillis
      const first = yield* signed(now)
      const second = yield* signed(now + 1)
      for (const { text } of [first, second]) {
        assert.strictEqual((yield* post(`${live.url}/exchange`, text)).status, 504)
      }
      const answer = yield* get(`${live.adminUrl}/admin/actions`)
      assert.strictEqual(answer.status, 200)
      assert.deepStrictEqual(
        [0, 1].map((index) =>
          ["state", "actionType", "signer", "nonce"].map((name) => JsonParts.value(answer.text, index, name))
        ),
        [now, now + 1].map((nonce) => ["unknown", "evmUserModify", keys.trader.address, nonce])
      )
      for (const { r, s } of [first.signature, second.signature]) {
        assert.notInclude(answer.text, r.slice(2))
        assert.notInclude(answer.text, s.slice(2))
      }
      const [one, two] = yield* idsAt(live)
      live.api.respond = () => ({ body: duplicate })
      assert.deepStrictEqual((yield* post(`${live.adminUrl}/admin/actions/${one}/resolve`, "{}")).json, {
        _tag: "Landed",
        message: "Invalid nonce: duplicate nonce"
      })
      assert.strictEqual(live.api.seen.at(-1)?.body, first.text)
      assert.deepStrictEqual(yield* idsAt(live), [two])
      live.api.respond = () => ({ status: 502, body: "" })
      assert.deepInclude((yield* post(`${live.adminUrl}/admin/actions/${two}/resolve`, "{}")).json, {
        _tag: "StillUnknown"
      })
      const sent = live.api.seen.length
      assert.deepStrictEqual((yield* post(`${live.adminUrl}/admin/actions/${two}/forget`, "{}")).json, {
        forgotten: true
      })
      assert.deepStrictEqual((yield* post(`${live.adminUrl}/admin/actions/${two}/forget`, "{}")).json, {
        forgotten: false
      })
      assert.deepStrictEqual((yield* post(`${live.adminUrl}/admin/actions/${two}/resolve`, "{}")).json, {
        _tag: "Absent"
      })
      assert.deepStrictEqual(yield* idsAt(live), [])
      assert.strictEqual((yield* post(`${live.url}/exchange`, second.text)).status, 409)
      assert.strictEqual(live.api.seen.length, sent)
    }))

  it.live("does not hide that the venue refuses a leg of an action that it takes now", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({ api: () => ({ status: 502, body: "" }) })
      yield* post(`${live.url}/exchange`, (yield* signed(yield* Clock.currentTimeMillis)).text)
      const [id] = yield* idsAt(live)
      const statuses = `{"statuses":["success",{"error":"Insufficient margin"}]}`
      live.api.respond = () => ({ body: `{"status":"ok","response":{"type":"order","data":${statuses}}}` })
      assert.deepStrictEqual((yield* post(`${live.adminUrl}/admin/actions/${id}/resolve`, "{}")).json, {
        _tag: "Accepted",
        message: "Insufficient margin"
      })
      assert.deepStrictEqual(yield* idsAt(live), [])
    }))

  it.live("does nothing for a page of another site", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({ api: () => ({ status: 502, body: "" }) })
      const now = yield* Clock.currentTimeMillis
      yield* post(`${live.url}/exchange`, (yield* signed(now)).text)
      const [id] = yield* idsAt(live)
      for (const what of ["forget", "resolve"]) {
        const refused = yield* post(`${live.url}/admin/actions/${id}/${what}`, "{}", { origin: "https://evil.example" })
        assert.strictEqual(refused.status, 403)
        assert.include(refused.json, { _tag: "NotPermitted" })
      }
      assert.deepStrictEqual(yield* idsAt(live), [id])
      assert.lengthOf(live.api.seen, 1)
    }))
})

const statuses = (url: string, paths: ReadonlyArray<string>) =>
  Effect.forEach(paths, (path) => Effect.map(get(`${url}${path}`), ({ status }) => status))

const paths = ["/health/live", "/health/ready", "/metrics", "/admin/actions", "/openapi.json", "/"]

describe("where the admin routes stand", () => {
  it.live("beside the others on a loopback address", () =>
    Effect.gen(function*() {
      const { adminUrl, url } = yield* gateway({})
      assert.strictEqual(adminUrl, url)
      assert.deepStrictEqual(yield* statuses(url, paths), [200, 200, 200, 200, 200, 200])
    }))

  it.live("nowhere on an address that others can reach", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({ TRIGATE_HOST: "0.0.0.0", TRIGATE_CALLERS: "open" })
      assert.deepStrictEqual(yield* statuses(url.replace("0.0.0.0", "127.0.0.1"), paths), [
        200,
        200,
        200,
        404,
        200,
        404
      ])
    }))

  it.live("on a listener of their own, with the details: callers learn whether the gateway is ready, and no more", () =>
    Effect.gen(function*() {
      const live = yield* gateway({ TRIGATE_ADMIN_PORT: "0" })
      assert.notStrictEqual(live.adminUrl, live.url)
      assert.deepStrictEqual(yield* statuses(live.url, paths), [200, 200, 404, 404, 200, 404])
      assert.deepStrictEqual(yield* statuses(live.adminUrl, paths), [200, 200, 200, 200, 200, 200])
      assert.deepStrictEqual((yield* get(`${live.url}/health/ready`)).json, {
        status: "ready",
        sandbox: true,
        network: "mainnet"
      })
      assert.nestedProperty((yield* get(`${live.adminUrl}/health/ready`)).json, "actionLog.used")
      // the console asks its own origin for what it shows
      assert.strictEqual((yield* post(`${live.adminUrl}/info`, `{"type":"spotMeta"}`)).status, 200)
      // new settings reach both
      yield* live.reload({ TRIGATE_ADMIN_PORT: "0", TRIGATE_STRICT: "on" })
      assert.deepStrictEqual(yield* statuses(live.adminUrl, paths), [200, 200, 200, 200, 200, 200])
      yield* live.drain.drain("1 milli")
      for (const url of [live.url, live.adminUrl]) {
        const { json, status } = yield* get(`${url}/health/ready`)
        assert.strictEqual(status, 503)
        assert.propertyVal(json, "status", "draining")
      }
    }))

  it.live("not where others reach them, unless there are keys", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(gateway({ TRIGATE_ADMIN_PORT: "0", TRIGATE_ADMIN_HOST: "0.0.0.0" }))
      assert(error._tag === "SettingsError")
      assert.strictEqual(
        error.message,
        "other machines can reach 0.0.0.0: set TRIGATE_ADMIN_HOST to a loopback address, or set TRIGATE_CALLERS so that keys are required, " +
          "and create a key with the class admin"
      )
    }))

  it.live("behind a key with the class admin: each of them on an address that others can reach", () =>
    Effect.gen(function*() {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "admin-"))),
        (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
      )
      const file = Path.join(folder, "keys.json")
      const store = Context.get(
        yield* Layer.build(Layer.provide(KeyStoreFile.layer(file), NodeFileSystem.layer)),
        KeyStore.KeyStore
      )
      const operator = yield* Effect.orDie(store.create({ name: "operator", scope: { classes: ["admin"] } }))
      const trader = yield* Effect.orDie(store.create({ name: "trader" }))
      const { adminUrl } = yield* gateway({
        TRIGATE_CALLERS: file,
        TRIGATE_ADMIN_HOST: "0.0.0.0",
        TRIGATE_ADMIN_PORT: "0"
      })
      const at = adminUrl.replace("0.0.0.0", "127.0.0.1")
      for (const path of ["/health/live", "/health/ready", "/metrics", "/admin/actions"]) {
        const with_ = (key: Redacted.Redacted) =>
          get(`${at}${path}`, { authorization: `Bearer ${Redacted.value(key)}` })
        assert.deepInclude((yield* get(`${at}${path}`)).json, { _tag: "Unauthorized" })
        assert.deepInclude((yield* with_(trader.key)).json, {
          _tag: "NotPermitted",
          missing: "classes",
          needed: "admin"
        })
        assert.strictEqual((yield* with_(operator.key)).status, 200)
      }
      // the scope of the operator's key is asked for as anywhere else
      assert.deepInclude((yield* post(`${at}/info`, `{"type":"spotMeta"}`)).json, { _tag: "Unauthorized" })
      assert.deepInclude(
        (yield* post(`${at}/info`, `{"type":"spotMeta"}`, { authorization: `Bearer ${Redacted.value(operator.key)}` }))
          .json,
        { _tag: "NotPermitted", missing: "classes", needed: "read" }
      )
      // the pages are the same for everyone, and a browser sends no key with the address that somebody types
      assert.deepStrictEqual(yield* statuses(at, ["/", "/docs", "/openapi.json", "/console"]), [200, 200, 200, 404])
    }))

  it.live("on an address that others can reach count each request of a caller once", () =>
    Effect.gen(function*() {
      const { file, keys: [key = ""] } = yield* keyFile({
        name: "operator",
        scope: { classes: ["admin", "read"] },
        quota: { requestsPerSecond: 0.001, burst: 5, concurrentCalls: 1 }
      })
      const { adminUrl } = yield* gateway({
        TRIGATE_CALLERS: file,
        TRIGATE_ADMIN_HOST: "0.0.0.0",
        TRIGATE_ADMIN_PORT: "0"
      })
      const at = adminUrl.replace("0.0.0.0", "127.0.0.1")
      const headers = { authorization: `Bearer ${key}` }
      const left = [
        yield* get(`${at}/admin/actions`, headers),
        yield* get(`${at}/health/live`, headers),
        yield* post(`${at}/info`, `{"type":"spotMeta"}`, headers)
      ].map((answer) => [answer.status, answer.headers.get("ratelimit")?.replace(/;t=.*$/u, "")])
      assert.deepStrictEqual(left, [[200, `"requests";r=4`], [200, `"requests";r=3`], [200, `"requests";r=2`]])
    }))
})
