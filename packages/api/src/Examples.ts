/**
 * Example requests for the reference page. The sandbox serves all of them, so the *Send* button works for each.
 *
 * The initial state of every sandbox contains the contracts, tokens, transactions and signers that the requests name.
 */
import type { SignedAction } from "@trigate/domain/actions/Action"

const token = "EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz"
const wallet = "EQDXZ2c5LnA12Eum-DlguTmfYkMOvNeFCh4rBD0tgmwjcFI-"

/** The address of a token on the token chain. */
export const tokenAddress = token

/**
 * An endpoint key. A gateway without keys accepts any endpoint key; a gateway with keys accepts only keys that it
 * issued.
 */
export const endpointKey = "any-key"

/** The ID of an action in the action log. */
export const actionId = "0xe96687078e0d81d63281ba712b0b246c5df4571362b83c0259d64808482ec366"

/** The signer and the nonce that identify an action in the action log. */
export const actionSigner = "0x14791697260e4c9a71f18484c9f997b308e59325"
export const actionNonce = "1767225600000"

/** A request to create a key for a caller that has no valid key. */
export const keyCreation = {
  name: "desk",
  scope: { classes: ["read", "sign"] },
  quota: { requestsPerSecond: 20 },
  lifetime: 7_776_000_000
} as const

/** A request to rotate a caller's key. The caller's earlier keys remain valid for 12 hours. */
export const keyRotation = { overlap: 43_200_000 } as const

/** The sequence number of a recorded request. */
export const requestSequence = "12"

/**
 * A signed action. Its nonce is too old for the venue, so the reference page of a sandbox gateway shows a newly signed
 * action instead.
 */
export const signedAction: SignedAction = {
  action: { type: "evmUserModify", usingBigBlocks: true },
  nonce: 1_767_225_600_000,
  signature: {
    r: "0x63c29fe073c2ada3960409e22580a61d34105f484a65a152848002e69c47dc7e",
    s: "0x67cd2edd1325009100e9a0b06a546e64e38e389cc71b582f9c1d3bfeb49997f6",
    v: 27
  }
}

/** The coin, interval and period of a file of bars. */
export const candleFile = { coin: "BTC", interval: "1d", from: 1_767_225_600_000, to: 1_769_817_600_000 } as const

const call = <const Method extends string, const Params>(method: Method, params: Params) => ({
  jsonrpc: "2.0" as const,
  id: 1,
  method,
  params
})

/** JSON-RPC calls to the trading chain's EVM. */
export const evmCalls = [
  call("eth_getStorageAt", ["0x5555555555555555555555555555555555555555", "0x2", "latest"]),
  call("eth_bigBlockGasPrice", [])
] as const

/** JSON-RPC calls to the layer 2. */
export const layer2Calls = [
  call("eth_getTransactionReceipt", ["0xffbd8fdbaf5800e2f7df0d5a73efee4fe8a9ef54d53f10798bbb76f7bb08c39e"]),
  call("eth_blockNumber", [])
] as const

/** JSON-RPC calls to the token chain. */
export const tokenCalls = [
  call("getTokenData", { address: token }),
  call("runGetMethod", { address: wallet, method: "seqno", stack: [] })
] as const

/** A read method of the token chain that needs no params, for a GET request over REST. */
export const tokenRead = "getMasterchainInfo"

/** A method of the token chain with its params, for a POST request over REST. */
export const tokenPost = { method: "getTokenData", params: { address: token } } as const
