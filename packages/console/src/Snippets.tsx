/** How to connect a program to this gateway: a snippet for each client library, with the gateway's own URL. */
import { signal } from "@preact/signals"
import * as Gateway from "./Gateway.ts"

interface Snippet {
  readonly title: string
  readonly text: (url: string) => string
}

/** The snippets, each a complete program. A test runs every snippet except the Python one, which needs a package. */
const snippets: { readonly [name: string]: Snippet } = {
  curl: {
    title: "curl",
    text: (url) => `curl -s ${url}/info -H 'content-type: application/json' -d '{"type":"allMids"}'`
  },
  nktkas: {
    title: "@nktkas/hyperliquid (TypeScript)",
    text: (url) =>
      `import { HttpTransport, InfoClient } from "@nktkas/hyperliquid"

const info = new InfoClient({ transport: new HttpTransport({ apiUrl: "${url}" }) })
console.log(await info.allMids())`
  },
  ccxt: {
    title: "ccxt (TypeScript)",
    text: (url) =>
      `import { hyperliquid } from "ccxt"

const gateway = "${url}"
const exchange = new hyperliquid({ urls: { api: { public: gateway, private: gateway } } })
console.log(await exchange.fetchTicker("ETH/USDC:USDC"))`
  },
  python: {
    title: "hyperliquid-python-sdk (Python)",
    text: (url) =>
      `from hyperliquid.info import Info

info = Info("${url}", skip_ws=True)
print(info.all_mids())`
  },
  viem: {
    title: "viem (HyperEVM and the layer 2)",
    text: (url) =>
      `import { createPublicClient, http } from "viem"

const hyperEvm = createPublicClient({ transport: http("${url}/evm") })
const layer2 = createPublicClient({ transport: http("${url}/l2") })
console.log(await hyperEvm.getGasPrice(), await layer2.getBlockNumber())`
  },
  ton: {
    title: "@ton/ton (TON)",
    text: (url) =>
      `import { Address } from "@ton/core"
import { TonClient } from "@ton/ton"

const ton = new TonClient({ endpoint: "${url}/api/v2/jsonRPC" })
console.log(await ton.getBalance(Address.parse("EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz")))`
  }
}

const chosen = signal("curl")

/** The card with the snippets. */
export const Snippets = () => {
  const { text, title } = snippets[chosen.value] ?? { title: "", text: () => "" }
  const program = text(Gateway.address)
  return (
    <section class="card" aria-labelledby="connect-title">
      <h2 id="connect-title">Connect your client</h2>
      <div class="row">
        <label>
          Client{" "}
          <select value={chosen.value} onChange={({ currentTarget: { value } }) => (chosen.value = value)}>
            {Object.entries(snippets).map(([name, { title }]) => <option key={name} value={name}>{title}</option>)}
          </select>
        </label>
        <button type="button" aria-label={`Copy: ${title}`} onClick={() => void navigator.clipboard.writeText(program)}>
          Copy
        </button>
      </div>
      <pre tabIndex={0} aria-label={`Program: ${title}`}>{program}</pre>
      <p class="muted">
        {Gateway.hasKey.value
          ? "Callers send their key as Authorization: Bearer, or as the first segment of the path. "
          : ""}
        The program uses the address of this page. If the gateway has an admin listener, use the address of the other
        listener.
      </p>
    </section>
  )
}
