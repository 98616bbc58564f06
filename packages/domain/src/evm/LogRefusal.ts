/**
 * Parses the errors with which nodes refuse an `eth_getLogs` request that is too large, and the limits in the messages
 * of these errors.
 */
import type { RpcAnswer } from "../operations/JsonRpc.ts"

/**
 * Why a node refused a range: too many blocks, or too many matching logs.
 *
 * `blocks` is the maximum number of blocks, if the message contains it.
 */
export type LogRefusal =
  | { readonly reason: "blocks"; readonly blocks: number | undefined }
  | { readonly reason: "results" }

// messages of reth, geth and its forks, Infura, Alchemy, QuickNode, Chainstack, BlockPI, dRPC
const ofResults =
  /more than [\d,_]+ (?:results|logs)|too many (?:results|logs)|(?:response|result|log)s?(?: set| response)? (?:size|too (?:large|big))|exceeds? (?:the )?(?:max(?:imum)? )?(?:number of )?(?:results|logs)|query timeout/iu
const ofBlocks =
  /block[ _-]?range|range (?:is )?(?:too|limit)|ranges? over|(?:exceeds?|maximum|max|limited|up to|too many)[^.]{0,60}(?:blocks?|range)/iu
// messages of reth, geth and Nethermind for a range outside the chain; smaller parts of it fail too
const ofOtherBlocks = /beyond (?:the )?(?:current )?head|invalid block range(?: params)?\.?$|cannot be found/iu

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

const readReason = (message: string): LogRefusal["reason"] | undefined => {
  if (ofOtherBlocks.test(message)) return undefined
  return ofResults.test(message) ? "results" : ofBlocks.test(message) ? "blocks" : undefined
}

/** Returns whether an error reports that a range of blocks, or its result, is too large. */
export const isLogRefusal = ({ message }: { readonly message: string }): boolean => readReason(message) !== undefined

/** Returns why a node refused the logs of a range of `asked` blocks; `undefined` for any other response. */
export const readLogRefusal = (answer: RpcAnswer, asked: number): LogRefusal | undefined => {
  if (answer._tag === "Result" || asked < 2) return undefined
  const reason = readReason(answer.message)
  return reason === "blocks"
    ? { reason, blocks: limitIn(answer.message, asked) }
    : reason === "results"
    ? { reason }
    : reason
}
