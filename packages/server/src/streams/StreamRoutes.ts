/** The routes `GET /ws` and `GET /{endpointKey}/ws`: who may open a WebSocket is decided before it is one. */
import { CallerKeys } from "@trigate/callers/CallerKeys"
import { Quotas } from "@trigate/callers/Quotas"
import { CurrentCaller } from "@trigate/domain/Caller"
import { ChainNotConfigured } from "@trigate/domain/errors/RequestError"
import { permitted } from "@trigate/domain/operations/Operation"
import { Exchange } from "@trigate/trading/Exchange"
import { Info } from "@trigate/trading/Info"
import * as Effect from "effect/Effect"
import { Load } from "../process/Load.ts"
import * as AccessLog from "../requests/AccessLog.ts"
import type { IncomingRequest } from "../requests/IncomingRequest.ts"
import * as ProblemResponse from "../requests/ProblemResponse.ts"
import * as RequestRecord from "../requests/RequestRecord.ts"
import { Sessions } from "./Sessions.ts"

const noUpgrade = ProblemResponse.plainProblem(
  426,
  "Upgrade Required",
  "This route is a WebSocket: connect to it with ws:// or wss://",
  { headers: { upgrade: "websocket", connection: "Upgrade" } }
)

/** The handler of the routes. It serves by the services of the context from now on. */
export const make = Effect.fnUntraced(function*(anyInfo: boolean) {
  const sessions = yield* Sessions
  sessions.use({
    exchange: yield* Exchange,
    info: yield* Info,
    anyInfo,
    load: yield* Load,
    quotas: yield* Quotas,
    keys: yield* CallerKeys,
    log: yield* AccessLog.AccessLog
  })
  return Effect.fnUntraced(function*({ adapted: request }: IncomingRequest) {
    const record = yield* RequestRecord.CurrentRequestRecord
    const refusal = RequestRecord.refusalOf(record)
    if (refusal !== undefined) return yield* refusal
    yield* permitted({ chain: "trading", class: "read" })
    if (sessions.streams() === undefined) {
      return yield* new ChainNotConfigured({
        chain: "trading",
        detail: "No official API of the trading chain is configured"
      })
    }
    if (request?.headers["upgrade"]?.toLowerCase() !== "websocket") return noUpgrade
    const caller = yield* CurrentCaller
    yield* sessions.admit(caller)
    return yield* Effect.orDie(sessions.run(request, caller, record.key, record))
  })
})
