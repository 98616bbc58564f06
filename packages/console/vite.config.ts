/** Builds the console's page into the server's package, which carries it. */
import { transformAsync } from "@babel/core"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vite"
import * as Pure from "../../scripts/packages/pure.ts"

const libraries = /\/packages\/(?!console\/)[^/]+\/src\/.*\.ts$/u

export default defineConfig({
  root: fileURLToPath(new URL("src", import.meta.url)),
  base: "./",
  logLevel: "warn",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  plugins: [{
    name: "pure",
    enforce: "post",
    transform: {
      filter: { id: libraries },
      // a schema or an API that the page does not use is left out, as in the published packages
      handler: async (code, id) => {
        const result = await transformAsync(code, {
          filename: id,
          babelrc: false,
          configFile: false,
          plugins: [Pure.plugin],
          sourceMaps: true
        })
        return result?.code == null ? null : { code: result.code, map: result.map ?? null }
      }
    }
  }],
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
