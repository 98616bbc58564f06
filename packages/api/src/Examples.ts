/**
 * Example requests for the reference page. The sandbox serves all of them, so the *Send* button works for each.
 *
 * The initial state of every sandbox contains the contracts, tokens, transactions and signers that the requests name.
 */
import type { ActionType, Signature } from "@trigate/domain/actions/Action"
import type { ActionOf } from "@trigate/domain/unstable/actions/ActionSchemas"

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

/** The first nonce of {@link signedActions}. */
export const firstNonce = 1_767_225_600_000

const sign = <const Action extends ActionOf<ActionType>>(
  action: Action,
  place: number,
  signature: Signature
) => ({ action, nonce: firstNonce + place, signature })

const cloid = "0x7d0c1a5e4b3f42c8a9d6e1f203b45c67"
const order = { a: 0, b: true, p: "50000", s: "0.001", r: false, t: { limit: { tif: "Gtc" } }, c: cloid } as const

/**
 * An order, its modification, its cancellation, a transfer and the choice of big blocks, each signed by the sandbox's
 * trader. Their nonces are too old for the venue, so the reference of a sandbox gateway signs the actions again.
 */
export const signedActions = [
  sign({ type: "order", orders: [order], grouping: "na" }, 0, {
    r: "0xfede4d60640d79ebd9047991620a859375849df89a82b4528a51604e3c24ac9f",
    s: "0x17d1d5e0edd6eec64a46aa686212dde9925214106cb272a983e4750c5e83bf8b",
    v: 28
  }),
  sign({ type: "modify", oid: cloid, order: { ...order, p: "51000" } }, 1, {
    r: "0xaa379fa2691f6832bbd324384ec476de17565835778eabda501ae4bee2c24d71",
    s: "0x041a4246f04765f97a096f7db4b79e5f56a08ed930edad1bf418c10b1ee5ca39",
    v: 28
  }),
  sign({ type: "cancelByCloid", cancels: [{ asset: 0, cloid }] }, 2, {
    r: "0x511a20ba86dd67d903b7fa6bf01d39791bc780c89e48858ebbf256b81516b017",
    s: "0x5a36fe8c817af40313d155f6aa930f8784f79401fb8a17550913f7911fc8aacb",
    v: 27
  }),
  sign(
    {
      type: "usdSend",
      signatureChainId: "0x66eee",
      hyperliquidChain: "Mainnet",
      destination: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
      amount: "1",
      time: firstNonce + 3
    },
    3,
    {
      r: "0xd6da309834d1819718fbb238e8b42de785a93a50a7052460e6490b55b4a4aa0f",
      s: "0x076de9e396098bdf993d5b334822cb51d5954c4e0e7f1d95cda63da7f2abe5d1",
      v: 28
    }
  ),
  sign({ type: "evmUserModify", usingBigBlocks: true }, 4, {
    r: "0x5faff21b0fcab990655c0e3e6ac8e85c86837aa0a9d169be36466f1b12acad17",
    s: "0x4b1f036844a03ea1421a8a70484a0b1ea49ca55d55b2c726ce8d1f6b8a06aa12",
    v: 28
  })
] as const

/** The coin, interval and period of a file of bars. */
export const candleFile = { coin: "BTC", interval: "1d", from: 1_767_225_600_000, to: 1_769_817_600_000 } as const

const call = <const Method extends string, const Params>(method: Method, params: Params) => ({
  jsonrpc: "2.0" as const,
  id: 1,
  method,
  params
})

/** JSON-RPC calls to HyperEVM. */
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
