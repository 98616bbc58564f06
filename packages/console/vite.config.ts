/** Builds the console's page into the server's package, which carries it. */
import { fileURLToPath } from "node:url"
import { defineConfig } from "vite"

export default defineConfig({
  root: fileURLToPath(new URL("src", import.meta.url)),
  base: "./",
  logLevel: "warn",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  resolve: { extensions: [".ts", ".tsx", ".mjs", ".js"] },
  build: {
    outDir: fileURLToPath(new URL("../server/console", import.meta.url)),
    emptyOutDir: true,
    target: "es2022",
    assetsDir: "console",
    modulePreload: { polyfill: false },
    // WebAssembly that the page's policy does not allow: without it, the signer hashes in JavaScript
    rolldownOptions: { external: ["hash-wasm"] },
    // the licences of what the page holds ask to be passed on with every copy
    license: { fileName: "licenses.md" }
  }
})
