/**
 * The chains to which wallets connect. A wallet can sign with the ID of its connected chain while the venue hashes
 * another chain ID. The inspector tries the IDs in this list to find this mistake.
 */

/**
 * The chains to which wallets connect, most likely first: Ethereum and the chains of the venue's bridge, the venue's
 * EVM, then other chains that wallets list.
 */
export const walletChains: ReadonlyArray<{ readonly id: number; readonly name: string }> = [
  { id: 42_161, name: "Arbitrum One" },
  { id: 1, name: "Ethereum" },
  { id: 421_614, name: "Arbitrum Sepolia" },
  { id: 999, name: "HyperEVM" },
  { id: 998, name: "HyperEVM testnet" },
  { id: 8453, name: "Base" },
  { id: 1337, name: "the chain ID of L1 actions" },
  { id: 10, name: "OP Mainnet" },
  { id: 56, name: "BNB Smart Chain" },
  { id: 137, name: "Polygon" },
  { id: 31_337, name: "a local chain of Hardhat or Anvil" },
  { id: 11_155_111, name: "Sepolia" },
  { id: 43_114, name: "Avalanche" },
  { id: 59_144, name: "Linea" },
  { id: 100, name: "Gnosis" },
  { id: 250, name: "Fantom" },
  { id: 324, name: "zkSync Era" },
  { id: 1101, name: "Polygon zkEVM" },
  { id: 5000, name: "Mantle" },
  { id: 534_352, name: "Scroll" },
  { id: 81_457, name: "Blast" },
  { id: 84_532, name: "Base Sepolia" },
  { id: 42_220, name: "Celo" },
  { id: 130, name: "Unichain" },
  { id: 146, name: "Sonic" },
  { id: 480, name: "World Chain" },
  { id: 80_094, name: "Berachain" },
  { id: 7777777, name: "Zora" },
  { id: 34_443, name: "Mode" },
  { id: 25, name: "Cronos" },
  { id: 1284, name: "Moonbeam" },
  { id: 2020, name: "Ronin" },
  { id: 204, name: "opBNB" },
  { id: 169, name: "Manta Pacific" },
  { id: 252, name: "Fraxtal" },
  { id: 167_000, name: "Taiko" },
  { id: 97, name: "BNB Smart Chain testnet" },
  { id: 5, name: "Goerli" },
  { id: 17_000, name: "Holesky" },
  { id: 80_001, name: "Mumbai" },
  { id: 80_002, name: "Amoy" },
  { id: 421_613, name: "Arbitrum Goerli" },
  { id: 42_170, name: "Arbitrum Nova" },
  { id: 11_155_420, name: "OP Sepolia" },
  { id: 0, name: "no chain" }
]

const names: ReadonlyMap<number, string> = new Map(walletChains.map(({ id, name }) => [id, name]))

/** Formats a chain ID with the name of its chain. */
export const chainName = (id: number | bigint): string => {
  const name = names.get(Number(id))
  return name === undefined ? String(id) : `${id}, ${name}`
}
