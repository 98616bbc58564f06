/**
 * The initial content of every sandbox, whatever its seed. It contains a working example for each documented call.
 *
 * The private keys of `keys` are those of a public test mnemonic ("test test … junk"). Never send value to their
 * addresses.
 */
import type { Address, Hash } from "@trigate/domain/encoding/Encoding"
import * as SandboxAccounts from "@trigate/domain/unstable/Sandbox"
import type { TestKey } from "@trigate/domain/unstable/Sandbox"
import { mainnet, testnet } from "@trigate/signing/VenueProfile"

export type { TestKey } from "@trigate/domain/unstable/Sandbox"

/** Test keys by role. */
export const keys = {
  /** An account with stake to delegate. */
  trader: SandboxAccounts.trader,
  /** A validator in good standing. */
  validator: {
    address: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
    privateKey: "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"
  },
  /** A jailed validator. */
  jailedValidator: {
    address: "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc",
    privateKey: "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a"
  },
  /** A multi-sig account with a threshold of two out of three: `leader`, `cosigner` and `thirdCosigner`. */
  multiSigUser: {
    address: "0x90f79bf6eb2c4f870365e785982e1f101e93b906",
    privateKey: "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6"
  },
  /**
   * The leader and first co-signer of `multiSigUser` and `treasury`. The leader sends the actions of these accounts.
   */
  leader: {
    address: "0x15d34aaf54267db7d7c367839aaf71a00a2c6a65",
    privateKey: "0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a"
  },
  /** The second co-signer of `multiSigUser` and `treasury`. */
  cosigner: {
    address: "0x9965507d1a55bcc2695c58ba16fb37d819b0a4dc",
    privateKey: "0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba"
  },
  /** The third co-signer of `multiSigUser` and `treasury`. */
  thirdCosigner: {
    address: "0x976ea74026e726554db657fa54763abd0c3a0aa9",
    privateKey: "0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e"
  },
  /**
   * A multi-sig account with a threshold of three out of five: `leader`, `cosigner`, `thirdCosigner`, `fourthCosigner`
   * and `fifthCosigner`.
   */
  treasury: {
    address: "0xa0ee7a142d267c1f36714e4a8f75612f20a79720",
    privateKey: "0x2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6"
  },
  /** The fourth co-signer of `treasury`. */
  fourthCosigner: {
    address: "0xbcd4042de499d14e55001ccbb24a551f3b954096",
    privateKey: "0xf214f2b2cd398c806f84e317254e0f0b801d0643303237d97a22a48e01628897"
  },
  /** The fifth co-signer of `treasury`. */
  fifthCosigner: {
    address: "0x71be63f3384f5fb98995898a86b02fb2426c5788",
    privateKey: "0x701b615bbdfb9de65240bc28bd21bbc0d996645a3dd57e7b12bc2bdf6f192c82"
  },
  /** An API wallet of the trader. */
  agent: {
    address: "0x14dc79964da2c08b23698b3d3cc7ca32193d9955",
    privateKey: "0x4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356"
  },
  /** An account unknown to the venue. */
  stranger: {
    address: "0x23618e81e3f5cdf7f54c3d65f7fbc0abf5b21e8f",
    privateKey: "0xdbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97"
  }
} as const satisfies { readonly [Role in string]: TestKey }

/** The initial stake of the trader and the multi-sig accounts: 1000 HYPE, in units of 10^-8 HYPE. */
export const traderStake = 100_000_000_000n

/** Coin names for `candleSnapshot`, including an unknown coin. */
export const coins = {
  perpetual: "BTC",
  spotByName: "PURR/USDC",
  spotByIndex: "@107",
  builder: "xyz:XYZ100",
  unknown: "NOSUCHCOIN"
} as const

/**
 * Chain IDs of the EVMs: HyperEVM on mainnet and testnet, and, for the layer 2, an ID that no public chain
 * uses.
 */
export const chainIds = { mainnet: mainnet.evmChainId, testnet: testnet.evmChainId, layer2: 31_337 } as const

/** Contracts of HyperEVM. */
export const contracts = {
  /** The wrapped native token. Its first three storage slots contain name, symbol and decimals. */
  wrapped: "0x5555555555555555555555555555555555555555",
  /** Multicall3, at the address that it has on most chains. */
  multicall: "0xca11bde05977b3631167028862be2a173976ca11",
  /** The system contract that sends actions to the venue. The sandbox refuses calls of it. */
  coreWriter: "0x3333333333333333333333333333333333333333",
  /** An address without a contract: all its storage words are zero. */
  none: "0x000000000000000000000000000000000000dead"
} as const satisfies { readonly [name: string]: Address }

/**
 * A test key for the token chain, and the wallets of this key. The key's seed is the SHA-256 hash of "trigate sandbox":
 * never send value to these wallets.
 */
export const tokenKey = {
  /** The seed of an Ed25519 key pair, 32 bytes in hex. */
  seed: "c8eb4069f679751612874a7b9e5409d3d80d0e1e90afaa0bac7d9dd4a88a2cd3",
  /** The wallet of the test key (wallet v4 R2), with 100 TON. The first message from the wallet deploys it. */
  wallet: "EQBhGRkJV30LzndLmqT9gjtTpMoIRwM_tuBYVO2GSyafAolk",
  /** The jetton wallet of `wallet` for the jetton `tokens.onchain`, with 1000 TRIG. */
  jettonWallet: "EQBtQfdQCIjRZJw-b-re4S0CC1oAQpBPZ9rYyTcVGryfZs92"
} as const

/** Contracts of the token chain. */
export const tokens = {
  /**
   * A jetton with on-chain metadata and a supply above 2^64. Responses about this jetton have the format of C++
   * servers.
   */
  onchain: "EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz",
  /**
   * A jetton with on-chain metadata and a supply above 2^53. Responses about this jetton have the format of Python
   * servers: the supply is a JSON number.
   */
  number: "EQAp41LJUS7fO1kfrfCeuOB8zHkY-wrqn9afADJfnnRaayaX",
  /**
   * A jetton with only `uri` and `decimals` on chain; name and symbol are in the document at the URI. Responses about
   * this jetton have the format of Python servers.
   */
  semichain: "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs",
  /**
   * Like `semichain`, a jetton with only `uri` and `decimals` on chain. The document at the URI cannot be fetched.
   * Responses about this jetton have the format of C++ servers.
   */
  semichainCpp: "EQDDfe26lyKi2lOUfWIlne-m4W6Uy9lk4175wjymiMxjLA8o",
  /** A jetton without on-chain metadata; all its metadata is in the document at its URI. */
  offchain: "EQCYx3lrTfcq5epCAVmfCFnD1Of_cbn4g8xeeIALuKsNNaSM",
  /** A jetton wallet: the contract with one owner's balance. It is not the jetton's master contract. */
  jettonWallet: "EQBybcAXkDY5fgIE0Qcgb6mGd2fez3B0EhkBQ2aLv69jWfnU",
  nftItem: "EQBUXuQI612W1e71Gk5atugejGqteQeDa8hA9tTwREcXWQiv",
  nftCollection: "EQBG-g6ahkAUGWpefWbx-D_9sQ8oWbvy6puuq78U2c4NUDFS",
  /** A plain wallet: an active contract, but not a token contract. */
  wallet: "EQDXZ2c5LnA12Eum-DlguTmfYkMOvNeFCh4rBD0tgmwjcFI-",
  /** The address `wallet` with its last character changed, so that the checksum is wrong. */
  invalid: "EQDXZ2c5LnA12Eum-DlguTmfYkMOvNeFCh4rBD0tgmwjcFI_",
  /** The owner and admin of the token contracts in this record. */
  admin: "EQCqLezWtbjqr63KJUzhOUAids2egkCx7_SlAOOi0e4BA0yv"
} as const

/** Transactions of the layer 2. */
export const transactions = {
  opStack: "0xffbd8fdbaf5800e2f7df0d5a73efee4fe8a9ef54d53f10798bbb76f7bb08c39e",
  opLegacy: "0xb16fb4bc23b35113df8f1467b39e508322ff1e16030118fafef0713d80a93f01",
  opDeposit: "0x91f03958010092f701f6ba746a837a5192d5357479c51b4f4f53a602b84bc591",
  arbitrum: "0x1d1c25e3f7532c3c02b3a500462e82c0235a10bc0ce79f3d36ca37cbc38d9f0f",
  zksync: "0xb8cbd6a0a6084c262fce4adbf20e2e744288cc5c252f09c6346003d54f2c2df0",
  linea: "0xbc45036beef2106df261d103b61ff311e27c5eb079983b8181b4b8ff27cddc36",
  /** A failed transaction: the `status` of its receipt is 0x0. */
  failed: "0x6c73ddffcae3ff10afa05bf760f6a06eddd79876695aacefb5fb264c8bab6304",
  /** A transaction that created a contract: its `to` is null. */
  creation: "0x163a6df38186e2de6df8d5af2fa8ed483a1b8bb9faa8b164d664f3a546b442ec",
  /** A transaction that is mined ten seconds after the chain starts, and finalized a minute after that. */
  pending: "0xa09080b4c553d2af855a8853d83f10ab37d19e70ad0342d587beb858d5584cf0",
  /** A transaction that the sequencer preconfirms when the chain starts, and that is in a block ten seconds later. */
  preconfirmed: "0x4be79a9b1f6eb4ed8f5ff2ac2c6ffde77aa5b3c2d31d3d1c4d67e0a6e1d8c3a7",
  unknown: "0x00000000000000000000000000000000000000000000000000000000deadbeef"
} as const satisfies { readonly [name: string]: Hash }
