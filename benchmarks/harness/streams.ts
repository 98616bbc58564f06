/** What the suite of streams asks of the process that is the venue and the callers, and what that answers. */
import * as Schema from "effect/Schema"
import type { Server } from "./processes.ts"

const Callers = Schema.Struct({
  /** The relay. */
  url: Schema.String,
  /** Paths of the socket, which the callers take in turns. */
  paths: Schema.Array(Schema.String),
  count: Schema.Int,
  /** How many coins every caller subscribes to. */
  coins: Schema.Int,
  /** Heads are those of an EVM node. */
  channel: Schema.Literals(["bbo", "trades", "l2Book", "newHeads"])
})

export const ConnectRequest = Callers
export type ConnectRequest = typeof ConnectRequest.Type
export const Connected = Schema.Struct({ sockets: Schema.Int })
export type Connected = typeof Connected.Type

export const RunRequest = Schema.Struct({
  seconds: Schema.Number,
  /** Updates a second, over all coins; each is delivered to every caller. */
  perSecond: Schema.optionalKey(Schema.Number),
  /** In place of a rate: the most updates that are under way. */
  window: Schema.optionalKey(Schema.Int)
})
export type RunRequest = typeof RunRequest.Type

export const RunResult = Schema.Struct({
  /** Deliveries, if nothing is conflated or lost. */
  expected: Schema.Int,
  delivered: Schema.Int,
  /** Those within the time of the run. */
  within: Schema.Int,
  bytes: Schema.Int,
  seconds: Schema.Number,
  p50Millis: Schema.Number,
  p99Millis: Schema.Number,
  /** Sockets that are still open. */
  open: Schema.Int
})
export type RunResult = typeof RunResult.Type

export const StormRequest = Callers
export type StormRequest = typeof StormRequest.Type
export const StormResult = Schema.Struct({
  /** Sockets that received a frame of each coin. */
  sockets: Schema.Int,
  /** Until the last upgrade. */
  connectedMillis: Schema.Number,
  /** Until the last socket had a frame of each coin. */
  servedMillis: Schema.Number,
  slowestProbeMillis: Schema.Number,
  probes: Schema.Int
})
export type StormResult = typeof StormResult.Type

export const MineRequest = Schema.Struct({
  /** Blocks that count; as many come before them. */
  blocks: Schema.Int,
  everyMillis: Schema.Number
})
export type MineRequest = typeof MineRequest.Type
export const MineResult = Schema.Struct({
  blocks: Schema.Int,
  /** Requests for the newest block over HTTP. */
  polls: Schema.Int
})
export type MineResult = typeof MineResult.Type

const ask = async <A>(
  { name, url }: Server,
  path: string,
  request: unknown,
  answer: Schema.Codec<A, unknown>
): Promise<A> => {
  const response = await fetch(`${url}${path}`, { method: "POST", body: JSON.stringify(request) })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${name} ${path}: ${text}`)
  return Schema.decodeUnknownSync(Schema.fromJsonString(answer))(text)
}

export const connect = (callers: Server, request: ConnectRequest) => ask(callers, "/connect", request, Connected)
export const run = (callers: Server, request: RunRequest) => ask(callers, "/run", request, RunResult)
export const storm = (callers: Server, request: StormRequest) => ask(callers, "/storm", request, StormResult)
export const mine = (callers: Server, request: MineRequest) => ask(callers, "/mine", request, MineResult)
export const close = (callers: Server) => ask(callers, "/close", {}, Schema.Unknown)
