/** What calls of contracts return on a sandbox's EVM chain, where that takes running no code. */
import type { Address, Data } from "@trigate/domain/Hex"
import * as Option from "effect/Option"
import { decodeFunctionData, encodeFunctionResult, parseAbi } from "viem/utils"
import type { EvmChain } from "./EvmChain.ts"
import * as Chain from "./EvmChain.ts"
import { contracts } from "./SandboxExamples.ts"
import { lower } from "./VenueState.ts"

/** Code of a contract whose address is in lower case; `0x` where there is none. */
export const codeAt = (chain: EvmChain, address: Address): Data =>
  address === contracts.multicall ? "0xfe" : chain.code(address)

const multicall3 = parseAbi([
  "struct Call { address target; bool allowFailure; bytes callData; }",
  "struct Returned { bool success; bytes returnData; }",
  "function aggregate3(Call[] calls) view returns (Returned[] returnData)",
  "function getEthBalance(address account) view returns (uint256 balance)",
  "function getCurrentBlockTimestamp() view returns (uint256 timestamp)"
])

const decode = Option.liftThrowable((data: Data) => decodeFunctionData({ abi: multicall3, data }))

type Multicall = Option.Option.Value<ReturnType<typeof decode>>

/** What the contract that makes several calls at once returns: libraries put their reads together with it. */
const multicall = (chain: EvmChain, { args, functionName }: Multicall): Data | undefined => {
  switch (functionName) {
    case "getEthBalance":
      return encodeFunctionResult({
        abi: multicall3,
        functionName,
        result: Chain.balanceAt(chain, lower(args[0]), chain.heads.latest)
      })
    case "getCurrentBlockTimestamp":
      return encodeFunctionResult({
        abi: multicall3,
        functionName,
        result: BigInt(Chain.timestampOf(chain.clock, chain.heads.latest))
      })
    case "aggregate3": {
      const results = args[0].map(({ callData, target }) => returned(chain, lower(target), callData))
      return results.every((result) => result !== undefined)
        ? encodeFunctionResult({
          abi: multicall3,
          functionName,
          result: results.map((returnData) => ({ success: true, returnData }))
        })
        : undefined
    }
  }
}

/** What a call of somebody, whose address is in lower case, returns; none where that would take running code. */
export const returned = (chain: EvmChain, to: Address, data: Data): Data | undefined => {
  if (to === contracts.multicall) {
    return Option.getOrUndefined(Option.flatMap(decode(data), (call) => Option.fromUndefinedOr(multicall(chain, call))))
  }
  return chain.code(to) === "0x" ? "0x" : chain.call(to, lower(data))
}
