/**
 * The errors of EVM nodes: exhausted rate limits, reverted calls, unsupported methods, and refused queries of logs, where
 * a smaller query may be served.
 *
 * Nodes agree on neither codes nor texts, so patterns match their messages.
 */
import * as Predicate from "effect/Predicate"
import { InvalidRequest, UnsupportedMethod, UpstreamRateLimited, UpstreamUnavailable } from "../errors/GatewayError.ts"
import type { CommonFailure } from "../errors/GatewayError.ts"
import { problemType } from "../errors/Problem.ts"
import type { RpcResponse } from "./EvmProtocol.ts"

// the codes of EIP-1474 and QuickNode, and the HTTP status 429, which some providers send as the code
const rateLimitCodes = new Set([-32005, -32007, 429])

/** Returns whether an error code means that a rate limit is exhausted. */
export const isRateLimit = (code: number): boolean => rateLimitCodes.has(code)

/** The size of a query of logs. */
export interface LogQuerySize {
  readonly blocks: number
  /** The largest number of alternatives for the address or for one topic; at least 1. */
  readonly alternatives: number
}

/**
 * The limit of a node that a query may exceed.
 *
 * - `blocks`: the number of blocks in the range.
 * - `alternatives`: the number of addresses, or of alternatives for a topic.
 * - `results`: the number or the size of the matching logs, or the time to find them.
 * - `unknown`: the error does not say so; it may also have another cause.
 *
 * `limit` is the largest number of blocks or alternatives that the node serves, if its message contains that number. For
 * the reasons `results` and `unknown`, it is a number of blocks that the node may serve.
 */
export interface LogRefusal {
  readonly reason: "blocks" | "alternatives" | "results" | "unknown"
  readonly limit: number | undefined
}

// messages of reth, geth and its forks, Nitro, zkSync, Infura, Alchemy, QuickNode, Chainstack, BlockPI, dRPC
const ofResults =
  /more than [\d,_]+ (?:results|logs)|too many (?:results|logs)|(?:response|result|log)s?(?: set| response)?(?: is)? (?:size|too (?:large|big))|exceeds? (?:the )?(?:max(?:imum)? )?(?:number of )?(?:results|logs)|logs matched|max(?:imum)? results|(?:query|request|execution)[^.]{0,20} time(?:d)?[ -]?out/iu
const ofBlocks =
  /block[ _-]?range|\brange (?:is )?(?:too|limit)|\brange \d+ exceeds|\branges? over|(?:exceeds?|maximum|max|limited|up to|at most|too many)[^.]{0,60}\b(?:blocks?|range)\b/iu
const ofAlternatives =
  /(?:max|limit|exceed|only|too many|at most|allowed)[^.]{0,60}\b(?:address|topic)|\b(?:address|topic)[^.]{0,60}(?:max|limit|exceed|only|too many|at most|allowed)/iu
// messages of reth, geth and Nethermind for a range outside the chain; smaller parts of it fail too
const ofOtherBlocks = /beyond (?:the )?(?:current )?head|invalid block range(?: params)?\.?$|cannot be found/iu

const ofRate =
  /too many (?:requests|calls|connections)|(?<!(?:higher|more|increased) )rate[ _-]?limit|(?:requests?|calls?)[ _-](?:rate|count|limit|quota)|number of requests|\b(?:requests?|calls?|units?|credits?) ?(?:per |\/ ?)(?:s|sec|second|m|min|minute|h|hour|day|month)\b|\b(?:rps|qps)\b|throttl/iu
// words that a message about the size of a query may also contain
const ofCapacity =
  /quota|capacity|throughput|credits|daily|monthly|concurren|usage limit|overloaded|\bbusy\b|try again (?:later|in)|retry (?:after|in)|slow down/iu
const ofAccess =
  /unauthori[sz]ed|forbidden|access denied|permission|not (?:permitted|authori[sz]ed)|authenticat|api[ _-]?key|\bjwt\b|(?:invalid|missing|unknown|expired|wrong) (?:access |project )?(?:key|token|id)\b/iu
const ofMethod =
  /\bmethod\b.{0,60}(?:not (?:found|supported|available|allowed|whitelisted|implemented|enabled)|does(?: not|n't) exist|unsupported|disabled)|(?:unsupported|unknown) method/iu

const methodCodes: ReadonlySet<number> = new Set([-32601, -32700])

/** The code that EIP-1474 defines for any exceeded limit. Nodes send it for rates and for the size of a query. */
const anyLimit = -32005

/** The errors of a gateway in front of the node that a smaller query may avoid. */
const gatewayRefusals: ReadonlySet<unknown> = new Set(["InvalidRequest", "LogRangeTooWide", "PayloadTooLarge"])

const number = /(?<![\dxa-f.])(?<digits>\d{1,3}(?:[,_]\d{3})+|\d{1,9})(?<thousands>k)?(?![\da-f])/giu

/** Returns the largest of the numbers in `words` that are below `requested`; `undefined` if there is no such number. */
export const limitIn = (words: string, requested: number): number | undefined => {
  let limit: number | undefined
  for (const { groups } of words.matchAll(number)) {
    const digits = Number(groups?.["digits"]?.replace(/[,_]/gu, ""))
    const value = groups?.["thousands"] === undefined ? digits : digits * 1000
    if (value > 0 && value < requested && value > (limit ?? 0)) limit = value
  }
  return limit
}

const range = /\[(?<from>0x[\da-f]{1,12}), ?(?<to>0x[\da-f]{1,12})\]/iu

/** Returns the number of blocks in the range that a message suggests, if it is smaller than `requested`. */
const suggestedIn = (words: string, requested: number): number | undefined => {
  const { from, to } = range.exec(words)?.groups ?? {}
  const blocks = Number(to) - Number(from) + 1
  return blocks > 0 && blocks < requested ? blocks : undefined
}

/** Returns whether a message reports that the range or the result of a query is too large. */
export const isOfSize = (message: string): boolean =>
  ofBlocks.test(message) || ofResults.test(message) || ofAlternatives.test(message)

type RpcError = Pick<Extract<RpcResponse, { readonly _tag: "Error" }>, "code" | "error" | "isForbidden" | "message">

/** Returns whether an error of `eth_getLogs` may mean that the query is too large. */
export const isLogRefusal = ({ code, error, isForbidden, message }: RpcError): boolean => {
  if (isForbidden === true || methodCodes.has(code) || ofOtherBlocks.test(message) || ofRate.test(message)) return false
  const { valueOrUndefined: said } = error
  const data = Predicate.hasProperty(said, "data") ? said.data : undefined
  if (Predicate.hasProperty(data, "_tag") && Predicate.isString(data._tag)) return gatewayRefusals.has(data._tag)
  if (isOfSize(message)) return true
  return (code === anyLimit || !isRateLimit(code)) &&
    !ofCapacity.test(message) && !ofAccess.test(message) && !ofMethod.test(message)
}

/** Returns the limit that a query of logs may exceed; `undefined` if a smaller query would not be served either. */
export const readLogRefusal = (
  response: RpcResponse,
  { alternatives, blocks }: LogQuerySize
): LogRefusal | undefined => {
  if (response._tag === "Result" || (blocks < 2 && alternatives < 2) || !isLogRefusal(response)) return undefined
  const { message } = response
  const suggested = suggestedIn(message, blocks)
  if (ofResults.test(message)) return { reason: "results", limit: suggested }
  if (ofBlocks.test(message)) return { reason: "blocks", limit: limitIn(message, blocks) }
  return alternatives > 1 && ofAlternatives.test(message)
    ? { reason: "alternatives", limit: limitIn(message, alternatives) }
    : { reason: "unknown", limit: suggested ?? limitIn(message, blocks) }
}

// "method not supported" of EIP-1474 and the standard "method not found"; nodes use either
const unsupportedCodes = new Set([-32601, -32004])

/**
 * Returns whether a node's error reports a revert. Recognizes the messages of geth and its forks, of OpenEthereum, and
 * of older nodes.
 */
const isRevert = (code: number, message: string): boolean =>
  code === 3 || code === -32015 || (code === -32000 && /\brevert/iu.test(message))

/** Matches the data of a revert, with or without the prefix `Reverted`. */
const revertData = /^(?:Reverted )?(?<data>0x(?:[0-9a-fA-F]{2})*)$/u

/**
 * Converts a node's error about a revert to the encoded form of `CallReverted`. Returns `undefined` for any other
 * error. Operations that do not declare `CallReverted` do not decode this form.
 */
export const decodeRevert = (upstream: string, code: number, message: string, error: unknown): object | undefined => {
  if (!isRevert(code, message)) return undefined
  const data = Predicate.hasProperty(error, "data") ? error.data : undefined
  const hex = Predicate.isString(data) ? revertData.exec(data)?.groups?.["data"] : undefined
  return {
    _tag: "CallReverted",
    type: problemType("CallReverted"),
    detail: `${upstream} returned error ${code}: ${message}`,
    upstream,
    code,
    ...(hex === undefined ? {} : { data: hex })
  }
}

export const failureOfCode = (upstream: string, method: string, code: number, message: string): CommonFailure => {
  const detail = `${upstream} returned error ${code}: ${message}`
  if (unsupportedCodes.has(code)) return new UnsupportedMethod({ method, detail })
  if (code === -32602 || code === -32600 || code === -32700) {
    return new InvalidRequest({ errors: [{ path: ["params"], message }], detail })
  }
  if (isRateLimit(code)) return new UpstreamRateLimited({ upstream, detail })
  return new UpstreamUnavailable({ upstream, attempts: 1, detail })
}
