/**
 * Classifies the errors with which nodes refuse an `eth_getLogs` request.
 *
 * Any error of the query may mean that the query is too large, whatever its code and words. The messages of common nodes
 * also state which limit the query exceeds, and how large it is. Only errors that a smaller query would get too are
 * excluded: those about the caller's rate or access, about the method, and about blocks outside the chain.
 */
import * as Predicate from "effect/Predicate"
import * as JsonRpc from "../operations/JsonRpc.ts"
import type { RpcAnswer } from "../operations/JsonRpc.ts"

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

/** Returns the largest of the numbers in `words` that are below `asked`; `undefined` if there is no such number. */
export const limitIn = (words: string, asked: number): number | undefined => {
  let limit: number | undefined
  for (const { groups } of words.matchAll(number)) {
    const digits = Number(groups?.["digits"]?.replace(/[,_]/gu, ""))
    const value = groups?.["thousands"] === undefined ? digits : digits * 1000
    if (value > 0 && value < asked && value > (limit ?? 0)) limit = value
  }
  return limit
}

const range = /\[(?<from>0x[\da-f]{1,12}), ?(?<to>0x[\da-f]{1,12})\]/iu

/** Returns the number of blocks in the range that a message suggests, if it is smaller than `asked`. */
const suggestedIn = (words: string, asked: number): number | undefined => {
  const { from, to } = range.exec(words)?.groups ?? {}
  const blocks = Number(to) - Number(from) + 1
  return blocks > 0 && blocks < asked ? blocks : undefined
}

/** Returns whether a message reports that the range or the result of a query is too large. */
export const isOfSize = (message: string): boolean =>
  ofBlocks.test(message) || ofResults.test(message) || ofAlternatives.test(message)

type RpcError = Pick<Extract<RpcAnswer, { readonly _tag: "Error" }>, "code" | "error" | "isForbidden" | "message">

/** Returns whether an error of `eth_getLogs` may mean that the query is too large. */
export const isLogRefusal = ({ code, error, isForbidden, message }: RpcError): boolean => {
  if (isForbidden === true || methodCodes.has(code) || ofOtherBlocks.test(message) || ofRate.test(message)) return false
  const tag = JsonRpc.member(JsonRpc.member(error.valueOrUndefined, "data"), "_tag")
  if (Predicate.isString(tag)) return gatewayRefusals.has(tag)
  if (isOfSize(message)) return true
  return (code === anyLimit || !JsonRpc.isRateLimit(code)) &&
    !ofCapacity.test(message) && !ofAccess.test(message) && !ofMethod.test(message)
}

/** Returns the limit that a query of logs may exceed; `undefined` if a smaller query would not be served either. */
export const readLogRefusal = (
  answer: RpcAnswer,
  { alternatives, blocks }: LogQuerySize
): LogRefusal | undefined => {
  if (answer._tag === "Result" || (blocks < 2 && alternatives < 2) || !isLogRefusal(answer)) return undefined
  const { message } = answer
  const suggested = suggestedIn(message, blocks)
  if (ofResults.test(message)) return { reason: "results", limit: suggested }
  if (ofBlocks.test(message)) return { reason: "blocks", limit: limitIn(message, blocks) }
  return alternatives > 1 && ofAlternatives.test(message)
    ? { reason: "alternatives", limit: limitIn(message, alternatives) }
    : { reason: "unknown", limit: suggested ?? limitIn(message, blocks) }
}
