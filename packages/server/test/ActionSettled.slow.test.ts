/** A gateway that is killed while it sends an order: another one on the same store finds out what became of it, and sends nothing. */
import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { get, post } from "@trigate/testing/Gateway"
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as PostgresServer from "@trigate/testing/PostgresServer"
import type { Reply, Seen } from "@trigate/testing/RecordingUpstream"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as RedisServer from "@trigate/testing/RedisServer"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

const cloid = "0x000000000000000000000000000000aa"

/** A venue that takes an order and never responds to it. */
const venue = Effect.gen(function*() {
  let arrived = (): void => {}
  const sent = new Promise<void>((resolve) => {
    arrived = resolve
  })
  const answer = ({ body, path }: Seen): Reply => {
    if (path === "/exchange") {
      arrived()
      return "silence"
    }
    const query: unknown = JSON.parse(body)
    const [oid, type] = [JsonParts.at(query, "oid"), JsonParts.at(query, "type")]
    if (type === "userRole") return { body: `{"role":"user"}` }
    if (type !== "orderStatus" || oid !== cloid) return { body: `{"status":"unknownOid"}` }
    const order = {
      coin: "BTC",
      side: "B",
      limitPx: "1000.0",
      sz: "0.1",
      origSz: "0.1",
      oid: 7,
      // the clocks of test and gateway are those of this machine
      timestamp: Math.floor(performance.timeOrigin + performance.now()),
      cloid,
      reduceOnly: false,
      orderType: "Limit",
      tif: "Gtc",
      isTrigger: false,
      triggerPx: "0.0",
      triggerCondition: "N/A",
      isPositionTpsl: false,
      children: []
    }
    return {
      body: JSON.stringify({
        status: "order",
        order: { order, status: "open", statusTimestamp: order.timestamp }
      })
    }
  }
  return { ...yield* recordingUpstream(answer), sent: Effect.promise(() => sent) }
})

const settles = Effect.fnUntraced(function*(store: { readonly [name: string]: string }) {
  const { seen, sent, url } = yield* venue
  const environment = {
    TRIGATE_TRADING_API_URL: url,
    TRIGATE_ONCE_DEADLINE: "3 seconds",
    TRIGATE_ACCESS_LOG: "off",
    ...store
  }
  const [killed, other] = yield* Effect.all([gatewayProcess(environment), gatewayProcess(environment)], {
    concurrency: "unbounded"
  })
  const nonce = yield* Clock.currentTimeMillis
  const signed = yield* Effect.orDie(SandboxSigner.signAction(keys.trader, {
    nonce,
    action: {
      type: "order",
      orders: [{ a: 0, b: true, p: "1000", s: "0.1", r: false, t: { limit: { tif: "Gtc" } }, c: cloid }],
      grouping: "na"
    }
  }))
  const call = yield* Effect.forkChild(Effect.exit(post(`${killed.url}/exchange`, JSON.stringify(signed))))
  yield* Effect.raceFirst(
    sent,
    Effect.flatMap(
      Fiber.join(call),
      (exit) => Effect.die(new Error(`Ended before it was sent: ${JSON.stringify(exit)}`))
    )
  )
  killed.signal("SIGKILL")
  assert.isNull(yield* Effect.promise(() => killed.ended))
  const reference = `${other.url}/actions?signer=${keys.trader.address}&nonce=${nonce}&wait=30`
  const { json, text } = yield* Effect.raceFirst(
    Effect.repeat(get(reference), {
      until: (found) => !["sent", "unknown"].includes(String(JsonParts.at(found.json, "state")))
    }),
    Effect.flatMap(
      Effect.promise(() => other.ended),
      (code) => Effect.die(new Error(`The other one ended (${code}):\n${other.printed()}`))
    )
  )
  assert.strictEqual(JsonParts.at(json, "state"), "accepted", text)
  assert.deepStrictEqual(JsonParts.at(json, "settled"), {
    by: "orderStatus",
    entries: [{ _tag: "Resting", oid: 7, cloid }]
  })
  assert.lengthOf(seen.filter(({ path }) => path === "/exchange"), 1)
})

describe("an order of a gateway that was killed", () => {
  it.live.runIf(PostgresServer.isInstalled)(
    "is settled by another one on the same Postgres, and sent once",
    () => Effect.flatMap(PostgresServer.postgresServer, ({ url }) => settles({ TRIGATE_DATABASE_URL: url }))
  )

  it.live.runIf(RedisServer.isInstalled)(
    "is settled by another one on the same Redis, and sent once",
    () => Effect.flatMap(RedisServer.redisServer, ({ url }) => settles({ TRIGATE_REDIS_URL: url }))
  )
})
