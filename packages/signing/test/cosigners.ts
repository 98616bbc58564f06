/** Keys that sign in this process, with viem's own signing, which shares no code with this package. */
import type { Signature } from "@trigate/domain/actions/Action"
import type { Cosigner } from "@trigate/signing/multisig/MultiSigProposal"
import * as Signable from "@trigate/signing/unstable/actions/ActionHash"
import * as Effect from "effect/Effect"
import { privateKeyToAccount } from "viem/accounts"

/** A signature in its three parts. */
export const parts = (signed: string): Signature => ({
  r: `0x${signed.slice(2, 66)}`,
  s: `0x${signed.slice(66, 130)}`,
  v: signed.endsWith("1b") ? 27 : 28
})

/** The co-signer who holds a private key. */
export const cosigner = (privateKey: `0x${string}`): Cosigner => {
  const account = privateKeyToAccount(privateKey)
  return {
    address: account.address,
    sign: (signable) => {
      const { domain, message, primaryType, types } = Signable.typedData(signable)
      return Effect.map(
        Effect.promise(() => account.signTypedData({ domain, types, primaryType, message })),
        parts
      )
    }
  }
}

/** The keys of a public test mnemonic. */
export const keys = [
  "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
  "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
  "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
  "0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
  "0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
  "0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e"
] as const

/** The co-signer who holds the key at an index. */
export const cosignerOf = (index: number): Cosigner => {
  const key = keys[index]
  if (key === undefined) throw new Error(`No key ${index}`)
  return cosigner(key)
}

export const nonce = 1_795_230_000_000

/** A delegation with more digits than a double holds. */
export const delegation = {
  type: "tokenDelegate",
  signatureChainId: "0x66eee",
  hyperliquidChain: "Mainnet",
  validator: "0x5AC99df645f3414876c816caa18b2d234024b487",
  wei: 18_446_744_073_709_551_615n,
  isUndelegate: false,
  nonce
}

/** The delegation by an account of five authorized users, three of whom have to approve; the first one sends it. */
export const request = {
  network: "mainnet",
  multiSigUser: "0x90F79bf6EB2c4f870365E785982E1f101E93b906",
  outerSigner: cosignerOf(0).address,
  action: delegation,
  nonce,
  threshold: 3,
  authorizedUsers: [0, 1, 2, 3, 4].map((index) => cosignerOf(index).address)
} as const
