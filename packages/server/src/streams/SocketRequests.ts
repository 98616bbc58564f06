/**
 * Serves the requests that callers send as messages of a socket. The limits, quotas and metrics of HTTP requests apply
 * to these requests too.
 */
import type { Quotas } from "@trigate/callers/Quotas"
import { CurrentCaller } from "@trigate/domain/Caller"
import type { Caller } from "@trigate/domain/Caller"
import { Overloaded } from "@trigate/domain/errors/CallerError"
import type { QuotaExceeded } from "@trigate/domain/errors/CallerError"
import * as JsonRpc from "@trigate/domain/operations/JsonRpc"
import type { Surface } from "@trigate/domain/operations/Operation"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { FeedChain } from "../Chains.ts"
import type { Load } from "../process/Load.ts"
import * as RequestRecord from "../requests/RequestRecord.ts"
import type { Route } from "../routes/RpcRoutes.ts"
import { idIn } from "./RpcSession.ts"
import * as StreamPosts from "./StreamPosts.ts"

/** The services that are built from the current settings. */
export interface Services extends StreamPosts.Services {
  readonly load: Load["Service"]
  readonly quotas: Quotas["Service"]
  /** The JSON-RPC route of each chain. */
  readonly rpc: { readonly [chain in FeedChain]: Pick<Route, "reply"> }
}

/** The chain of a JSON-RPC socket, and the surface that received its handshake. */
export interface RpcRoute {
  readonly chain: FeedChain
  readonly surface: Surface
}

/** Makes the functions that serve the requests of sockets. `services` returns `undefined` before the first settings are applied. */
export const make = (context: Context.Context<never>, now: () => number, services: () => Services | undefined) => {
  let posts = 0

  const counted = (caller: Caller, quotas: Quotas["Service"]) =>
    caller.quota.requestsPerSecond === undefined && caller.quota.concurrentCalls === undefined
      ? Effect.succeed({ end: () => {} })
      : quotas.count(caller, 1)

  /** Returns the response to a `post` message; `undefined` for a query that the venue cannot decode. */
  const post = (kind: "action" | "info", payload: string, caller: Caller): Effect.Effect<string | undefined> =>
    Effect.suspend(() => {
      const current = services()
      if (current === undefined) return Effect.never
      const answer = kind === "action" ? StreamPosts.action : StreamPosts.info
      const record = RequestRecord.make(current.load, `ws-${(posts++).toString(36)}`)
      record.route = "streams.post"
      record.caller = caller
      const start = now()
      const refused = (error: Overloaded | QuotaExceeded): StreamPosts.Reply => ({
        response: kind === "action" ? StreamPosts.refusedAction(error) : StreamPosts.refusedInfo(error),
        operation: kind === "action" ? "exchange" : "info",
        status: error.status,
        error: error._tag
      })
      const asked: Effect.Effect<StreamPosts.Reply, Overloaded | QuotaExceeded> = current.load.isBusy
        ? Effect.fail(new Overloaded({ retryAfter: 1, detail: "The gateway is overloaded" }))
        : Effect.acquireUseRelease(
          counted(caller, current.quotas),
          () => answer(current, { payload, requestId: record.id ?? "" }),
          ({ end }) => Effect.sync(end)
        )
      return asked.pipe(
        Effect.catch((error) => Effect.succeed(refused(error))),
        Effect.provideService(CurrentCaller, caller),
        Effect.map(({ error, operation, response, status }) => {
          record.error = error
          record.operations.push({ operation, outcome: error ?? "ok" })
          RequestRecord.count(context, record, status, now() - start)
          return response
        })
      )
    })

  /** Returns the response to a JSON-RPC message. Counts the message as a request. */
  const reply = ({ chain, surface }: RpcRoute) => (text: string, caller: Caller): Effect.Effect<string | undefined> =>
    Effect.suspend(() => {
      const current = services()
      if (current === undefined) return Effect.never
      const { load, quotas, rpc } = current
      const record = RequestRecord.make(load, `ws-${(posts++).toString(36)}`)
      record.route = `${chain === "trading" ? "evm" : chain}.socket`
      record.caller = caller
      const start = now()
      const ends: Array<() => void> = []
      const count = (calls: number) => Effect.map(quotas.count(caller, calls), ({ end }) => void ends.push(end))
      record.admitted = {
        caller,
        provide: (effect) => Effect.provideService(effect, CurrentCaller, caller),
        countMore: count,
        end: () => {}
      }
      const isCounted = caller.quota.requestsPerSecond !== undefined || caller.quota.concurrentCalls !== undefined
      const asked: Effect.Effect<string | undefined, Overloaded | QuotaExceeded> = load.isBusy
        ? Effect.fail(new Overloaded({ retryAfter: 1, detail: "The gateway is overloaded" }))
        : Effect.andThen(
          isCounted ? count(1) : Effect.void,
          Effect.suspend(() => rpc[chain].reply(text, { record, surface }))
        )
      return asked.pipe(
        Effect.catch((error) => {
          record.error = error._tag
          return Effect.succeed(JsonRpc.errorText(idIn(text), JsonRpc.errorObject(error)))
        }),
        Effect.ensuring(Effect.sync(() => {
          for (const end of ends) end()
        })),
        Effect.provideService(CurrentCaller, caller),
        Effect.map((response) => {
          RequestRecord.count(context, record, 200, now() - start)
          return response
        })
      )
    })

  return { post, reply }
}
