/** The versions that the list of clients and the recordings name are those that are installed. */
import { assert, describe, it } from "@effect/vitest"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Fs from "node:fs"
import { names, read } from "./recording.ts"

const text = (path: string) => Fs.readFileSync(new URL(`../../${path}`, import.meta.url), "utf8")

const installed = (client: string) => JsonParts.value(text("package.json"), "devDependencies", client)

const clients = [
  "@modelcontextprotocol/sdk",
  "@nktkas/hyperliquid",
  "@ton/ton",
  "@wagmi/core",
  "ccxt",
  "ethers",
  "hyperliquid",
  "viem",
  "web3"
]

describe("the versions of clients", () => {
  it.each(clients)("of %s in docs/clients.md is the installed one", (client) => {
    const row = text("docs/clients.md").split("\n").find((line) => line.replaceAll("`", "").startsWith(`| ${client} `))
    assert.include(row ?? assert.fail(`no row of ${client}`), ` ${String(installed(client))} `)
  })

  it("in the recordings are those that are installed", () => {
    const named = names.map((name) => read(name).client)
    // what is written by hand after a library of another language has no version here
    const known = new Set([
      "hyperliquid-python-sdk 0.23.0, by hand",
      ...clients.map((client) => `${client} ${String(installed(client))}`)
    ])
    assert.deepStrictEqual([...new Set(named)].filter((client) => !known.has(client)), [])
  })
})
