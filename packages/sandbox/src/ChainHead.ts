/** Which EVM chain this is, and its newest block: libraries ask that before they ask anything else. */
import type { RpcAnswer } from "@trigate/domain/JsonRpc"
import { methodNotFound } from "@trigate/domain/JsonRpc"
import { quantity } from "./Layer2Family.ts"

/** What a chain is asked about. */
export interface ChainHead {
  readonly chainId: number
  /** Number of the newest block. */
  readonly block: number
}

const result = (value: string): RpcAnswer => ({ _tag: "Result", result: JSON.stringify(value) })

/** Answers a method about the chain itself; any other one is unknown. */
export const answer = ({ block, chainId }: ChainHead, method: string): RpcAnswer => {
  switch (method) {
    case "eth_chainId":
      return result(quantity(chainId))
    case "net_version":
      return result(String(chainId))
    case "eth_blockNumber":
      return result(quantity(block))
    default:
      return methodNotFound(method)
  }
}
