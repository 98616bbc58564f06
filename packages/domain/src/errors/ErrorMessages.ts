/** Rewrites schema errors for readers who do not know the schemas: replaces schema names with descriptions. */
import { CandleInterval } from "../candles/Candle.ts"

const words: { readonly [name: string]: string } = {
  never: "no such member",
  number: "a JSON number",
  bigint: "a JSON integer",
  string: "a string",
  boolean: "true or false",
  array: "an array",
  object: "an object",
  Address: "a 20-byte address in 0x hex",
  CandleInterval: `one of ${CandleInterval.literals.join(", ")}`,
  CandleWindowRequest: "an object with coin, interval, startTime and endTime",
  Hash: "32 bytes in 0x hex",
  Millis: "milliseconds since the epoch as a JSON integer",
  Signature: "an object with r, s and v",
  SignatureChainId: "a chain id in 0x hex",
  SignaturePart: "0x hex of 1 to 64 digits",
  StorageSlot: "a storage position of 1 to 64 digits in 0x hex",
  TonAddress: "a token-chain address",
  VaultAddress: "a 20-byte address in hex",
  VenueChain: "\"Mainnet\" or \"Testnet\""
}

const named = /^Expected (?<names>\w+(?: \| \w+)*)$/u

/** Replaces the schema names in a message with descriptions. */
export const replaceSchemaNames = (message: string): string => {
  const names = named.exec(message)?.groups?.["names"]
  if (names === undefined) return message === "Expected no excess property" ? "Unknown member" : message
  const known = names === "number | bigint" ? ["bigint"] : names.split(" | ")
  return `Expected ${known.map((name) => Object.hasOwn(words, name) ? words[name] : name).join(" or ")}`
}
