/** The data of a command on standard output: a table for people, or one JSON document. */
import * as JsonText from "@trigate/domain/JsonText"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { Json } from "./GatewayAccess.ts"

/** Prints what `--json` asks for; integers keep all their digits. */
export const print = Effect.fnUntraced(function*(data: { readonly json: unknown; readonly table: string }) {
  yield* Console.log((yield* Json) ? JsonText.stringifyPretty(data.json) : data.table)
})
