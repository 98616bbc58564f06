/**
 * Accounts and storage of a sandbox's EVM chain, as immutable values. The values of successive blocks share their
 * unchanged parts, so each value takes little memory.
 */
import { type Address, type Data, type Hash, lowerCase } from "@trigate/domain/encoding/Hex"
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"

/** An account or a contract; the balance is in wei. */
export interface Account {
  readonly nonce: bigint
  readonly balance: bigint
  /** The code of a contract; `0x` for an account without code. */
  readonly code: Data
}

/** Accounts by address, and storage words by {@link wordKey}. */
export interface World {
  readonly accounts: HashMap.HashMap<Address, Account>
  readonly words: HashMap.HashMap<string, Hash>
  /** Returns the initial word of a storage slot that was never written. */
  readonly unwritten: (address: Address, slot: bigint) => Hash
}

/** 32 zero bytes: an empty storage word, or the hash of an unsealed block. */
export const zeroWord: Hash = `0x${"0".repeat(64)}`

const nobody: Account = { nonce: 0n, balance: 0n, code: "0x" }

/** Makes a state with some accounts and no written storage words. */
export const make = (
  accounts: Iterable<readonly [Address, Partial<Account>]>,
  unwritten: World["unwritten"] = () => zeroWord
): World => ({
  accounts: HashMap.fromIterable(Array.from(accounts, ([address, account]) => [address, { ...nobody, ...account }])),
  words: HashMap.empty(),
  unwritten
})

/** Returns the key of a storage word, normalized for letter case and leading zeros. */
export const wordKey = (address: Address, slot: bigint): string => `${lowerCase(address)}/${slot.toString(16)}`

/** Returns an account. For an address without an account, returns an empty account. */
export const readAccount = ({ accounts }: World, address: Address): Account =>
  Option.getOrElse(HashMap.get(accounts, lowerCase(address)), () => nobody)

/** Returns a storage word. */
export const readWord = ({ unwritten, words }: World, address: Address, slot: bigint): Hash =>
  Option.getOrElse(HashMap.get(words, wordKey(address, slot)), () => unwritten(lowerCase(address), slot))

/** Returns the state with some fields of an account changed. */
export const withAccount = (world: World, address: Address, changes: Partial<Account>): World => ({
  ...world,
  accounts: HashMap.set(world.accounts, lowerCase(address), { ...readAccount(world, address), ...changes })
})

/** Returns the state with `word` in a storage slot. */
export const withWord = (world: World, address: Address, slot: bigint, word: Hash): World => ({
  ...world,
  words: HashMap.set(world.words, wordKey(address, slot), word)
})

/** Returns the state without an account. */
export const withoutAccount = (world: World, address: Address): World => ({
  ...world,
  accounts: HashMap.remove(world.accounts, lowerCase(address))
})

/** Returns the state without the written storage words of a contract. */
export const withoutWords = (world: World, address: Address): World => ({
  ...world,
  words: HashMap.filter(world.words, (_, key) => !key.startsWith(lowerCase(address)))
})
