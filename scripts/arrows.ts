/**
 * Which package may import which. The lint rule `trigate/arrows` reads this table at every import, and `npm run arrows` compares
 * it with the package files, the project references and the modules that a service really loads.
 */
import * as path from "node:path"

export interface Package {
  /** The packages of this repository that it may import. */
  readonly arrows: ReadonlyArray<string>
  /** What it takes from npm besides `effect`: code that only computes. */
  readonly codecs?: ReadonlyArray<string>
  /** What it takes from npm besides `effect`: code that does I/O. No module that declares a service may load it. */
  readonly drivers?: ReadonlyArray<string>
  /** Modules that import nothing but `effect` and `domain`, because every caller and every mock imports them. */
  readonly contracts?: ReadonlyArray<string>
}

export const table: Readonly<Record<string, Package>> = {
  domain: { arrows: [] },
  signing: { arrows: ["domain"], codecs: ["@noble/curves", "@noble/hashes", "hash-wasm", "secp256k1", "viem"] },
  stores: { arrows: ["domain"] },
  upstream: { arrows: ["domain", "stores"], codecs: ["@noble/hashes"], drivers: ["undici"] },
  // the driver of SQLite is Node's own module
  archive: { arrows: ["domain", "stores"], codecs: ["hyparquet", "hyparquet-writer"] },
  // the nodes, heads, logs and filters of an EVM chain, and the layer 2
  evm: { arrows: ["domain", "upstream"], codecs: ["@noble/hashes"], contracts: ["Layer2"] },
  trading: {
    arrows: ["archive", "domain", "evm", "signing", "stores", "upstream"],
    contracts: ["Exchange", "Info", "TradingEvm"]
  },
  // `@ton/core` asks for `@ton/crypto` as a peer
  tokens: {
    arrows: ["domain", "upstream"],
    codecs: ["@ton/core", "@ton/crypto"],
    drivers: ["undici"],
    contracts: ["TokenChain"]
  },
  callers: { arrows: ["domain", "stores"], codecs: ["@noble/hashes"] },
  api: { arrows: ["domain"] },
  client: { arrows: ["api", "domain"] },
  // the client for programs without Effect: the client and the signing, behind promises
  sdk: { arrows: ["client", "domain", "signing"] },
  // all chains of one process in one layer
  chains: { arrows: ["evm", "signing", "tokens", "trading"] },
  // a page in a browser, which the server carries as it was built
  console: {
    arrows: ["api", "client", "domain", "signing"],
    codecs: ["@preact/signals", "lightweight-charts", "preact"]
  },
  sandbox: {
    arrows: ["archive", "domain", "evm", "signing", "tokens", "trading", "upstream"],
    codecs: [
      "@ethereumjs/block",
      "@ethereumjs/common",
      "@ethereumjs/evm",
      "@ethereumjs/tx",
      "@ethereumjs/util",
      "@ethereumjs/vm",
      "@ton/core",
      "@ton/crypto",
      "@ton/sandbox",
      "viem"
    ]
  },
  server: {
    arrows: [
      "api",
      "archive",
      "callers",
      "domain",
      "evm",
      "sandbox",
      "signing",
      "stores",
      "tokens",
      "trading",
      "upstream"
    ],
    drivers: ["@effect/platform-node", "@effect/sql-pg", "redis"]
  },
  cli: {
    arrows: ["archive", "callers", "client", "domain", "evm", "server", "signing", "trading"],
    drivers: ["@effect/platform-node"]
  },
  // the program that people install: one file, bundled from the others
  trigate: { arrows: ["cli"] },
  // gateways, the venue and the stores that they share, in one process on simulated time
  simulation: {
    arrows: ["callers", "domain", "evm", "sandbox", "server", "signing", "stores", "tokens", "trading", "upstream"]
  },
  // what tests share: no package may import it
  testing: {
    arrows: ["callers", "client", "domain", "sandbox", "server", "signing", "upstream"],
    codecs: ["@noble/curves"],
    drivers: ["@effect/platform-node"]
  }
}

/** The packages that run on Node and may load every driver: programs, and what tests share. */
export const programs: ReadonlySet<string> = new Set(["server", "cli", "trigate", "testing"])

/** Modules that turn something on by being loaded. They have no exports, so their names are not those of modules. */
const switches: ReadonlySet<string> = new Set(["effect/schema/SchemaJITCompiler/enable"])

const beneath = (specifier: string, name: string): boolean => `${specifier}/`.startsWith(`${name}/`)

/** Whether a specifier names a module rather than a barrel or an internal module: its last segment is capitalised. */
const namesModule = (specifier: string): boolean =>
  /\/[A-Z][^/]*$/u.test(specifier) && !specifier.includes("/internal/")

/** Whether a module of the repository may import `specifier`. `file` is its path from the root. */
export const mayImport = (file: string, specifier: string): boolean => {
  const [, name = "", module = ""] = /^packages\/([^/]+)\/src\/(.+)\.tsx?$/u.exec(file) ?? []
  const entry = table[name]
  if (entry === undefined) return true
  const isProgram = programs.has(name)
  const isContract = entry.contracts?.includes(module) === true
  if (specifier.startsWith(".")) {
    return path.posix.join(path.posix.dirname(file), specifier).startsWith(`packages/${name}/src/`)
  }
  if (specifier.startsWith("node:")) {
    return isProgram || /Undici/u.test(module) || (name === "archive" && /Sqlite/u.test(module)) ||
      (name === "sandbox" && /^(?:tokens\/Token(?:Executor|Worker)|streams\/VenueStreams)$/u.test(module))
  }
  if (beneath(specifier, "effect")) return namesModule(specifier) || (isProgram && switches.has(specifier))
  if (specifier.startsWith("@trigate/")) {
    const [, target = ""] = specifier.split("/")
    return entry.arrows.includes(target) && namesModule(specifier) && (!isContract || target === "domain")
  }
  if (isContract) return false
  if ((entry.codecs ?? []).some((codec) => beneath(specifier, codec))) return true
  const driver = (entry.drivers ?? []).find((candidate) => beneath(specifier, candidate))
  if (driver === undefined) return false
  return isProgram ? namesModule(specifier) : /Undici/u.test(module)
}
