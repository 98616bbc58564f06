/**
 * Bodies of signed actions. A single signature is made up: it recovers to somebody, another one for each action. What a
 * multi-sig holds has to fit together, so its signatures are made with the sandbox's keys.
 */
import { leader, signMultiSig } from "@trigate/testing/MultiSigText"

export const validator = "0x0123456789abcdef0123456789abcdef01234567"

const signature = `{"r":"0x1","s":"0x2","v":27}`

/** A body around the raw text of an action. */
export const bodyOf = (nonce: number, action: string, more = ""): string =>
  `{"action":${action},"nonce":${nonce},"signature":${signature}${more}}`

export const bigBlocks = `{"type":"evmUserModify","usingBigBlocks":true}`

/** The raw text of a delegation of `wei`, which is raw text too. */
export const delegate = (nonce: number, wei = "100000000", chain = `"hyperliquidChain":"Mainnet"`): string =>
  `{"type":"tokenDelegate","signatureChainId":"0x66eee",${chain},"validator":"${validator}","wei":${wei},` +
  `"isUndelegate":false,"nonce":${nonce}}`

/** The raw text of a multi-sig around the raw text of an action; its signatures are nobody's. */
export const multiSig = (inner: string): string =>
  `{"type":"multiSig","signatureChainId":"0x66eee","signatures":[${signature}],` +
  `"payload":{"multiSigUser":"${validator}","outerSigner":"${leader.address}","action":${inner}}}`

/** The body of a multi-sig around the raw text of an action, signed by two co-signers and by their leader. */
export const multiSigBody = (nonce: number, inner: string): string => signMultiSig(bodyOf(nonce, multiSig(inner)))
