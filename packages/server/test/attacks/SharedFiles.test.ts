import { assert, describe, it } from "@effect/vitest"
import { gateway, post } from "@trigate/testing/Gateway"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { bigBlocks, bodyOf } from "../bodies.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "trigate-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

/** A process that lets everyone read and write what it creates. */
const looseUmask = Effect.acquireRelease(
  Effect.sync(() => process.umask(0)),
  (before) => Effect.sync(() => process.umask(before))
)

const modesIn = (path: string) =>
  Fs.readdirSync(path).toSorted().map((name) => [name, (Fs.statSync(Path.join(path, name)).mode & 0o777).toString(8)])

describe("the files of an action log", () => {
  it.live("are for their owner alone, whatever the umask", () =>
    Effect.gen(function*() {
      const path = yield* folder
      yield* looseUmask
      const api = yield* recordingUpstream(() => ({
        status: 200,
        body: `{"status":"ok","response":{"type":"default"}}`
      }))
      const { url } = yield* gateway({
        TRIGATE_TRADING_API_URL: api.url,
        TRIGATE_DATABASE_URL: Path.join(path, "actions.sqlite")
      })
      const answer = yield* post(`${url}/exchange`, bodyOf(yield* Clock.currentTimeMillis, bigBlocks))
      assert.strictEqual(answer.status, 200)
      assert.deepStrictEqual(modesIn(path), [
        ["actions.sqlite", "600"],
        ["actions.sqlite-shm", "600"],
        ["actions.sqlite-wal", "600"]
      ])
    }))

  it.live("keep the mode that somebody gave them", () =>
    Effect.gen(function*() {
      const path = yield* folder
      Fs.writeFileSync(Path.join(path, "actions.sqlite"), "")
      Fs.chmodSync(Path.join(path, "actions.sqlite"), 0o640)
      const { url } = yield* gateway({
        TRIGATE_TRADING_API_URL: "http://127.0.0.1:1",
        TRIGATE_DATABASE_URL: Path.join(path, "actions.sqlite")
      })
      yield* post(`${url}/exchange`, bodyOf(yield* Clock.currentTimeMillis, bigBlocks))
      assert.deepStrictEqual(modesIn(path)[0], ["actions.sqlite", "640"])
    }))
})
