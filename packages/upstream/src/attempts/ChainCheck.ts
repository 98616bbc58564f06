/**
 * Finds the addresses of an EVM upstream that are on a wrong chain.
 *
 * Without a configured chain ID, the right chain is the chain of most addresses; in a tie, it is the chain of the most
 * preferred address. An address that does not respond still counts with its last known chain. Otherwise, addresses on a
 * wrong chain could become the majority while the other addresses are down.
 */
import * as Deferred from "effect/Deferred"
import type { Upstream } from "../Upstream.ts"
import type { AddressState } from "./AddressState.ts"

/** An upstream whose addresses must be on one chain. */
export interface Checked {
  readonly upstream: Upstream
  /**
   * The expected chain ID. Without it, the addresses are compared with each other, and a single address is not checked.
   */
  readonly chainId?: bigint
}

const majority = (ids: ReadonlyArray<bigint>): bigint | undefined => {
  const votes = new Map<bigint, number>()
  for (const id of ids) votes.set(id, (votes.get(id) ?? 0) + 1)
  const most = Math.max(...votes.values())
  return [...votes].find(([, count]) => count === most)?.[0]
}

/** The addresses of one upstream whose chains are compared with each other. */
export class ChainGroup {
  readonly addresses: ReadonlyArray<AddressState>
  readonly #expected: bigint | undefined
  /** The signal that every address has been checked once. */
  readonly firstRound = Deferred.makeUnsafe<void>()

  constructor(addresses: ReadonlyArray<AddressState>, expected: bigint | undefined) {
    this.addresses = addresses
    this.#expected = expected
  }

  get isChecked(): boolean {
    return Deferred.isDoneUnsafe(this.firstRound)
  }

  /**
   * Compares the known chains of the addresses. Returns the addresses that have moved between the right chain and a
   * wrong chain, each with the right chain ID.
   */
  compare(): ReadonlyArray<{ readonly address: AddressState; readonly right: bigint }> {
    const right = this.#expected ?? majority(this.addresses.flatMap(({ chainId }) => chainId ?? []))
    if (right === undefined) return []
    return this.addresses.flatMap((address) => {
      const isWrong = address.chainId !== undefined && address.chainId !== right
      if (address.chainId === undefined || isWrong === address.isOnWrongChain) return []
      address.isOnWrongChain = isWrong
      address.report(isWrong ? "wrong_chain" : undefined)
      return [{ address, right }]
    })
  }
}
