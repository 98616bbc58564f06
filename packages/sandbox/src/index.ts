/**
 * Every public module of `@trigate/sandbox` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/sandbox/…`: Node then loads only those.
 */

/** A venue, a token chain and a layer 2 in memory, which provide the same services as the live chains. */
export * as Sandbox from "./Sandbox.ts"

/** The initial content of every sandbox, whatever its seed. It contains a working example for each documented call. */
export * as SandboxExamples from "./SandboxExamples.ts"

/** Signs the typed data (EIP-712) of actions with test keys, as a wallet does. */
export * as SandboxSigner from "./SandboxSigner.ts"

/** The state of a sandbox's chains, from its initial content on. Tests can read and set it while the chains are in use. */
export * as SandboxState from "./SandboxState.ts"

/** Candle history of the sandbox: every closed bar since the listing of a coin, as if the bars had been recorded. */
export * as VenueArchive from "./venue/VenueArchive.ts"
