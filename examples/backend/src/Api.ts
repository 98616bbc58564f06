/** The backend's own HTTP API. */
import { CandleWindowRequest } from "@trigate/domain/candles/Candle"
import { Address, Hash } from "@trigate/domain/encoding/Encoding"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as Schema from "effect/Schema"
import { failures } from "./Failures.ts"

/** A file of bars. `isWhole` is false if the venue no longer keeps the oldest bars of the window. */
export const Archived = Schema.Struct({ file: Schema.String, bars: Schema.Natural, isWhole: Schema.Boolean })

/** HYPE to delegate, as a decimal amount. */
export const Stake = Schema.Struct({ validator: Address, hype: Schema.String })

/** A transaction of the layer 2 that is in a block. */
export const Deposit = Schema.Struct({ status: Schema.Literals(["success", "failure"]), block: Schema.BigInt })

export class Desk extends HttpApiGroup.make("desk").add(
  HttpApiEndpoint.post("archive", "/archives", {
    payload: CandleWindowRequest,
    success: Archived,
    error: failures
  }),
  HttpApiEndpoint.post("stake", "/stakes", {
    payload: Stake,
    success: Schema.Struct({ nonce: Schema.Natural }),
    error: failures
  }),
  HttpApiEndpoint.get("deposit", "/deposits/:hash", {
    params: { hash: Hash },
    success: Deposit,
    error: failures
  })
) {}

export class BackendApi extends HttpApi.make("backend").add(Desk) {}
