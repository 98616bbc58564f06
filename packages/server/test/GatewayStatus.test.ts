import { assert, it } from "@effect/vitest"
import * as GatewayStatus from "@trigate/server/GatewayStatus"
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
