/** Handles the backend's own API. The compiler refuses a handler that leaves an error of the chains unhandled. */
import { Layer2 } from "@trigate/evm/Layer2"
import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { BackendApi } from "./Api.ts"
import { CandleArchive } from "./CandleArchive.ts"
import { fail } from "./Failures.ts"
import { Staking } from "./Staking.ts"

export const layer = HttpApiBuilder.group(
  BackendApi,
  "desk",
  Effect.fnUntraced(function*(handlers) {
    const archive = yield* CandleArchive
    const layer2 = yield* Layer2
    const staking = yield* Staking
    return handlers.handleAll({
      archive: ({ payload }) => archive.write(payload).pipe(Effect.catch(fail)),
      stake: ({ payload: { hype, validator } }) =>
        staking.delegate(validator, hype).pipe(
          Effect.map((nonce) => ({ nonce })),
          Effect.catch(fail)
        ),
      // a poll that fails is a poll without an answer, so that nothing here is to be tried later
      deposit: ({ params: { hash } }) =>
        layer2.waitForReceipt({ hash, deadline: "30 seconds" }).pipe(
          Effect.map(({ blockNumber, status }) => ({ status, block: blockNumber })),
          Effect.catch(fail)
        )
    })
  })
)
