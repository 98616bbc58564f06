import { assert, describe, it } from "@effect/vitest"
import * as GatewayStatus from "@trigate/server/unstable/Chains"
import * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

const rooms = [
  [{ familiar: 0.79, strangers: 0.79 }, "enough"],
  [{ familiar: 0.8, strangers: 0 }, "nearly full"],
  [{ familiar: 0, strangers: 1 }, "nearly full"],
  [{ familiar: 1, strangers: 0.5 }, "nearly full"],
  [{ familiar: 1, strangers: 1 }, "full"]
] as const

const accounts = { waiting: 1, subscribing: 1, refilling: 1, live: 1 }
const eventLog = { backing: "Redis", state: "up", role: "writer", position: "a:1", accounts, unrecorded: 0 } as const

describe("the degraded parts of a gateway", () => {
  it("are those whose store is unreachable, and the event log while events of an account do not arrive", () => {
    assert.deepStrictEqual(GatewayStatus.degradedParts({}), [])
    assert.deepStrictEqual(GatewayStatus.degradedParts({ callers: "up", redis: "up", eventLog }), [])
    assert.deepStrictEqual(GatewayStatus.degradedParts({ callers: "unread", redis: "away" }), ["callers", "redis"])
    const logs = [
      { ...eventLog, state: "away" as const },
      { ...eventLog, unrecorded: 1 }
    ]
    for (const log of logs) assert.deepStrictEqual(GatewayStatus.degradedParts({ eventLog: log }), ["eventLog"])
  })
})

for (const [used, room] of rooms) {
  it.effect(`an action log with ${used.familiar} and ${used.strangers} of its parts used is told as: ${room}`, () => {
    const log = Layer.effect(
      ActionLog.ActionLog,
      Effect.map(ActionLogMemory.make(), (log) => ActionLog.ActionLog.of({ ...log, used: Effect.succeed(used) }))
    )
    return Effect.gen(function*() {
      assert.deepStrictEqual(yield* GatewayStatus.StoreReadiness.use(({ probe }) => probe), {
        actionLog: { backing: "memory", state: "up", used, room }
      })
    }).pipe(Effect.provide(Layer.provide(GatewayStatus.layerStoreReadiness, log)))
  })
}
