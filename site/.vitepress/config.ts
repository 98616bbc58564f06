/**
 * The documentation as a site: the Markdown files of the repository, where they are, with navigation and a search.
 *
 * `npm run site` installs what it takes beside this file, so that nobody else installs it, and builds the site into `dist`.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import type { DefaultTheme } from "vitepress"
import { defineConfig } from "vitepress"
import { slugOf } from "../../scripts/headings.ts"
import { libraries } from "../library.mjs"

const root = path.resolve(import.meta.dirname, "../..")
const repository = "https://github.com/trigate/trigate/blob/main"

/** The pages, as paths in the repository. */
const pages = new Set(
  fs.globSync([
    "*.md",
    "docs/**/*.md",
    "packages/*/README.md",
    "examples/*/README.md",
    "site/home.md",
    "site/library/*.md"
  ], { cwd: root })
)

/** The file of a page in the site: a folder is the page of its README, and the root has a page of its own. */
const placed = (page: string): string =>
  page === "site/home.md"
    ? "index.md"
    : page === "README.md"
    ? "about.md"
    : page.replace(/^site\//u, "").replace(/README\.md$/u, "index.md")

/** The address of a page. */
const addressOf = (page: string): string => `/${placed(page).replace(/(?:index)?\.md$/u, "")}`

/** What a link of a page leads to: a page of the site, or a file of the repository; what is nowhere stays and fails the build. */
const resolved = (page: string, link: string): string => {
  if (/^[a-z][a-z+.-]*:|^#|^\/\//iu.test(link)) return link
  const [, target = "", fragment = ""] = /^([^#]*)(.*)$/u.exec(link) ?? []
  const file = path.join(path.dirname(page), decodeURIComponent(target))
  const readme = path.join(file, "README.md")
  const found = [file, readme].find((each) => pages.has(each))
  if (found !== undefined) return `${addressOf(found)}${fragment}`
  return fs.existsSync(path.join(root, file)) ? `${repository}/${file}${fragment}` : link
}

/** The sections of the index, each with the documents at the start of its list items: the navigation follows the index. */
const sections = fs.readFileSync(path.join(root, "docs/README.md"), "utf8").split(/^## /mu).slice(1).flatMap(
  (section) => {
    const [text = "", ...lines] = section.split("\n")
    const items = lines.flatMap((line): Array<DefaultTheme.SidebarItem> => {
      const [, text, link] = /^- \[([^\]]+)\]\(([^)]+)\)/u.exec(line) ?? []
      return text === undefined || link === undefined || !link.endsWith(".md")
        ? []
        : [{ text, link: resolved("docs/README.md", link) }]
    })
    return items.length === 0 ? [] : [{ text, items, collapsed: text === "Decisions" }]
  }
)

/** The console's mark. */
const mark = `data:image/svg+xml;base64,${
  fs.readFileSync(path.join(root, "packages/console/src/public/icon.svg")).toString("base64")
}`

/** What a page would load from somewhere else. */
const foreign = /<(?:script|link|img|source|iframe)\b[^>]*\b(?:src|href)="(?:https?:)?\/\/|url\(["']?(?:https?:)?\/\//u

export default defineConfig({
  title: "Trigate",
  description: "A typed gateway for Hyperliquid, TON and an EVM layer 2, and the Effect library it is made of",
  srcDir: root,
  // everything but the pages
  srcExclude: [
    "{.*,benchmarks,deploy,node_modules,scripts,test}/**",
    "site/{.*,node_modules}/**",
    "site/library/packages.md",
    "packages/*/*/**",
    "packages/*/CHANGELOG.md",
    "examples/*/*/**"
  ],
  rewrites: placed,
  cleanUrls: true,
  head: [["link", { rel: "icon", href: mark }]],
  // the pages of typedoc are written after those of this site
  ignoreDeadLinks: [/^\/reference\//u],
  vite: {
    plugins: [{
      // the pages lie outside of the folder in which Vue is installed; what renders them lies in it
      name: "vue-of-the-site",
      enforce: "pre",
      resolveId: (source, _importer, { ssr }) =>
        ssr === true && /^vue(?:\/|$)/u.test(source) ? { id: source, external: true } : null
    }]
  },
  buildEnd: ({ outDir }) => {
    const asking = fs.globSync("**/*.{html,css}", { cwd: outDir })
      .filter((file) => foreign.test(fs.readFileSync(path.join(outDir, file), "utf8")))
    if (asking.length > 0) throw new Error(`These files ask somebody else: ${asking.join(", ")}`)
  },
  themeConfig: {
    logo: { src: mark, alt: "" },
    nav: [
      { text: "Start", link: "/docs/tutorial" },
      { text: "Guides", link: "/docs/#guides" },
      { text: "Reference", link: "/docs/#reference" },
      { text: "Library", link: "/library/" },
      { text: "GitHub", link: "https://github.com/trigate/trigate" }
    ],
    sidebar: {
      "/library/": [{
        text: "Library",
        link: "/library/",
        items: libraries.map((name) => ({ text: `@trigate/${name}`, link: `/library/${name}` }))
      }],
      "/": sections
    },
    outline: [2, 3],
    search: { provider: "local" }
  },
  markdown: {
    // anchors as on GitHub
    anchor: { slugify: slugOf },
    config: (md) => {
      md.core.ruler.push("links-of-the-repository", ({ env, tokens }) => {
        const page = path.relative(root, String(env.realPath ?? env.path))
        for (const { children } of tokens) {
          for (const token of children ?? []) {
            const href = token.type === "link_open" ? token.attrGet("href") : null
            if (href !== null) token.attrSet("href", resolved(page, href))
          }
        }
      })
      const { fence } = md.renderer.rules
      // GitHub draws diagrams, and this site does not
      md.renderer.rules.fence = (tokens, index, ...rest) =>
        tokens[index]?.info.trim() === "mermaid" ? "" : fence?.(tokens, index, ...rest) ?? ""
    }
  }
})
