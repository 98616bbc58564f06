/** Looks up a receipt by transaction hash, and a token by address. */
import { signal, useSignalEffect } from "@preact/signals"
import * as Layer2 from "@trigate/client/Layer2"
import * as Tokens from "@trigate/client/Tokens"
import { Hash } from "@trigate/domain/encoding/Encoding"
import * as EvmResources from "@trigate/domain/evm/EvmResources"
import type { TokenData } from "@trigate/domain/tokens/TokenData"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Gateway from "./Gateway.ts"
import { Facts, formTexts } from "./Table.tsx"

type Found = { readonly receipt: EvmResources.Receipt } | { readonly token: TokenData } | { readonly nothing: string }

const found = signal<Found | undefined>(undefined)

const decodeHash = Schema.decodeUnknownOption(Hash)

const search = async (wanted: string): Promise<void> => {
  found.value = undefined
  const hash = decodeHash(wanted)
  const outcome = Option.isSome(hash)
    ? await Gateway.run(Layer2.getTransactionReceipt({ hash: hash.value }))
    : await Gateway.run(Tokens.getTokenData({ address: wanted }))
  if (Gateway.place.value.params["of"] !== wanted) return
  if ("failure" in outcome) found.value = { nothing: outcome.failure }
  else if (outcome.value === null) {
    found.value = { nothing: "No receipt: the transaction is unknown or not yet in a block" }
  } else found.value = "transactionHash" in outcome.value ? { receipt: outcome.value } : { token: outcome.value }
}

const ReceiptFacts = ({ receipt }: { readonly receipt: EvmResources.Receipt }) => {
  const { blockHash, blockNumber, contractAddress, effectiveGasPrice, from, gasUsed, logs, status, to } = receipt
  const fee = Option.getOrUndefined(EvmResources.receiptFee(receipt))
  return (
    <section class="card" aria-labelledby="receipt-title">
      <h2 id="receipt-title">
        Receipt <span class={`tag ${status === "success" ? "good" : "bad"}`}>{status}</span>
      </h2>
      <Facts
        pairs={[
          [
            "Block",
            EvmResources.isPreconfirmed(receipt) ? `${blockNumber} (not sealed yet)` : `${blockNumber} ${blockHash}`
          ],
          ["From", from],
          ["To", to ?? "none: it created a contract"],
          ["Created", contractAddress ?? undefined],
          ["Gas used", String(gasUsed)],
          ["Gas price", effectiveGasPrice == null ? undefined : `${EvmResources.formatGwei(effectiveGasPrice)} gwei`],
          ["Fee", fee === undefined ? undefined : EvmResources.formatEther(fee.total)],
          ["Layer-1 fee", fee?.layer1 === undefined ? undefined : EvmResources.formatEther(fee.layer1)]
        ]}
      />
      <h3>{logs.length} logs</h3>
      {logs.map((log) => (
        <details key={String(log.logIndex)}>
          <summary>
            <code>{log.address}</code>
          </summary>
          <pre>{[...log.topics, log.data].join("\n")}</pre>
        </details>
      ))}
    </section>
  )
}

const TokenFacts = ({ token }: { readonly token: TokenData }) => (
  <section class="card" aria-labelledby="token-title">
    <h2 id="token-title">
      {token.name ?? "A token without a name"} <span class="tag">{token.symbol ?? "?"}</span>
    </h2>
    <Facts
      pairs={[
        ["Address", token.address],
        ["Supply", EvmResources.formatUnits(BigInt(token.totalSupply), token.decimals)],
        ["Units", `${token.totalSupply} (${token.decimals} decimals)`],
        ["Mintable", token.mintable ? "yes" : "no"],
        ["Burnable", token.burnable ? "yes" : "no"],
        ["Metadata", token.metadata]
      ]}
    />
  </section>
)

/** The console's panel that looks up receipts and tokens. */
export const Lookup = () => {
  const wanted = Gateway.place.value.params["of"] ?? ""
  useSignalEffect(() => {
    const wanted = Gateway.place.value.params["of"]
    if (wanted !== undefined && wanted !== "") void search(wanted)
  })
  const now = found.value
  return (
    <>
      <section class="card" aria-labelledby="lookup-title">
        <h2 id="lookup-title">Look up a transaction or a token</h2>
        <form
          class="row"
          onSubmit={(event) => Gateway.go("lookup", formTexts(event))}
        >
          <label class="wide">
            Hash of a layer-2 transaction, or address of a jetton{" "}
            <input name="of" defaultValue={wanted} key={wanted} required spellcheck={false} />
          </label>
          <button type="submit">Look up</button>
        </form>
        <p class="muted">
          A transaction shows its status, its logs and its fee, also the part for layer 1; a jetton its name, supply and
          metadata.
        </p>
      </section>
      {now === undefined
        ? null
        : "nothing" in now
        ? <p class="card bad" role="alert">{now.nothing}</p>
        : "token" in now
        ? <TokenFacts token={now.token} />
        : <ReceiptFacts receipt={now.receipt} />}
    </>
  )
}
