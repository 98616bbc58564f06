/**
 * Determines which accounts an action changes, so that older cached states of those accounts are no longer served. The
 * changed accounts are the action's signer, its vault, and the accounts that the action names. If an API wallet signed
 * the action, the wallet's master is also changed.
 *
 * The venue's responses to `userRole` and `extraAgents` name the master of an API wallet. If no caller has sent such a
 * query, the gateway sends one.
 */
import { CurrentCaller, local } from "@trigate/domain/Caller"
import { Address } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import { userRole } from "@trigate/domain/info/InfoOperations"
import type { InfoCall } from "@trigate/domain/info/InfoProtocol"
import * as InfoProtocol from "@trigate/domain/info/InfoProtocol"
import type { UpstreamResponse } from "@trigate/domain/operations/UpstreamResponse"
import type { AccountVersions } from "@trigate/upstream/cache/AccountVersions"
import { IsRefresh } from "@trigate/upstream/limits/RateLimiter"
import type { Pipeline } from "@trigate/upstream/Pipeline"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Admitted } from "./Admission.ts"

/** The queries whose responses name the masters of API wallets. */
export const masterQueries: ReadonlySet<string> = new Set(["userRole", "extraAgents"])

const decodeQuery = Schema.decodeUnknownOption(Schema.Struct({ user: Address }))
const decodeRole = Schema.decodeUnknownOption(Schema.Union([
  Schema.Struct({ role: Schema.Literal("agent"), data: Schema.Struct({ user: Address }) }),
  Schema.Struct({ role: Schema.Literals(["user", "subAccount", "vault"]) })
]))
const decodeAgents = Schema.decodeUnknownOption(Schema.Array(Schema.Struct({ address: Address })))

/**
 * Returns the signers in the response to a query, each with its master; the list of masters is empty if the signer is
 * not an API wallet.
 */
const mastersIn = (
  call: InfoCall,
  { json: { valueOrUndefined: answer }, status }: UpstreamResponse
): ReadonlyArray<readonly [signer: string, accounts: ReadonlyArray<string>]> => {
  const query = decodeQuery(call.body.valueOrUndefined)
  if (status !== 200 || Option.isNone(query)) return []
  const user = query.value.user.toLowerCase()
  if (InfoProtocol.queryType(call) === "extraAgents") {
    return Option.getOrElse(decodeAgents(answer), () => []).map(({ address }) => [address.toLowerCase(), [user]])
  }
  return Option.toArray(decodeRole(answer)).map((found) => [
    user,
    found.role === "agent" ? [found.data.user.toLowerCase()] : []
  ])
}

/** Stores the masters of API wallets from the response to one of {@link masterQueries}. */
export const learn = (
  versions: AccountVersions["Service"],
  call: InfoCall,
  response: UpstreamResponse
): Effect.Effect<void> =>
  Effect.forEach(
    mastersIn(call, response),
    ([signer, accounts]) => versions.learn(signer, accounts),
    { discard: true }
  )

const roleQuery = (user: string): InfoCall => {
  const request = { user }
  return { operation: userRole, request, body: Json.write({ type: userRole.name, ...request }), surface: "gateway" }
}

/**
 * Increments the versions of the accounts that an action changed. If `venueAnswers` is false, does not query the master
 * of the signer.
 */
export type Changed = (admitted: Admitted, venueAnswers: boolean) => Effect.Effect<void>

/** Makes the function {@link Changed} for the account versions of a pipeline; `ask` sends a query to the venue. */
export const make = Effect.fnUntraced(function*<E>(
  { accounts, inTurn }: Pick<Pipeline["Service"], "accounts" | "inTurn">,
  ask: (call: InfoCall) => Effect.Effect<UpstreamResponse, E>
) {
  const scope = yield* Effect.scope
  const asked = new Set<string>()

  const find = (signer: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (asked.has(signer)) return Effect.void
      asked.add(signer)
      const call = roleQuery(signer)
      const found = Effect.flatMap(ask(call), (response) => learn(accounts, call, response)).pipe(
        Effect.provideService(IsRefresh, true),
        Effect.provideService(CurrentCaller, local),
        Effect.ignore,
        Effect.ensuring(Effect.sync(() => asked.delete(signer)))
      )
      return Effect.asVoid(Effect.forkIn(found, scope))
    })

  const changed: Changed = Effect.fnUntraced(function*(admitted, venueAnswers) {
    const { fingerprint, signer } = admitted
    const isOpen = yield* accounts.change(signer ?? fingerprint, admitted.accounts)
    if (!isOpen || !venueAnswers || signer === undefined) return
    const caller = yield* CurrentCaller
    const cost = roleQuery(signer).operation.cost.weight
    yield* inTurn("trading-api", { key: `role ${signer}`, caller: caller.id, cost, start: find(signer) })
  })
  return changed
})
