/** Sets what is deployed on the token chain. */
import type { InvalidAddress } from "@trigate/domain/RequestError"
import * as TonAddress from "@trigate/domain/TonAddress"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import { withEntry, withoutEntry } from "./Entries.ts"
import type { Contract, Dialect } from "./TokenContracts.ts"
import { accountKey } from "./TokenContracts.ts"
import type { TokenState } from "./TokenServer.ts"

/** What can be set on the token chain; addresses come in any form and fail with `InvalidAddress` where they are none. */
export interface TokenControls {
  /** Contracts by raw address. */
  readonly state: Ref.Ref<TokenState>
  /** Deploys a contract, or replaces it; answers about it come in `dialect`, C++ when not given. */
  readonly putContract: (
    address: string,
    contract: Contract,
    dialect?: Dialect
  ) => Effect.Effect<void, InvalidAddress>
  /** Publishes a JSON document at a URI that contracts may point to. */
  readonly putDocument: (uri: string, document: unknown) => Effect.Effect<void>
  /** Takes a contract away: its account is uninitialized. */
  readonly removeContract: (address: string) => Effect.Effect<void, InvalidAddress>
}

/** Controls over the token chain. */
export const make = (state: Ref.Ref<TokenState>): TokenControls => ({
  state,
  putContract: (address, contract, dialect = "cpp") =>
    Effect.flatMap(Effect.fromResult(TonAddress.parse(address)), (account) =>
      Ref.update(state, (known) => ({
        ...known,
        contracts: withEntry(known.contracts, accountKey(account), { contract, dialect })
      }))),
  putDocument: (uri, document) =>
    Ref.update(state, (known) => ({ ...known, documents: withEntry(known.documents, uri, document) })),
  removeContract: (address) =>
    Effect.flatMap(Effect.fromResult(TonAddress.parse(address)), (account) =>
      Ref.update(state, (known) => ({
        ...known,
        contracts: withoutEntry(known.contracts, accountKey(account))
      })))
})
