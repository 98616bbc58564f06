/** The anchors that GitHub gives to the headings of a document. */

const withoutFences = (markdown: string): string => markdown.replace(/^( *)(```+)[\s\S]*?^\1\2/gmu, "")

/** The anchor of a heading's text. */
export const slugOf = (heading: string): string =>
  heading.trim().toLowerCase().replace(/[^\p{L}\p{N}\p{M}\p{Pc} -]/gu, "").replaceAll(" ", "-")

/** What a heading shows: the text of its links. */
const shown = (heading: string): string => heading.replace(/\[([^\]]*)\]\([^)]*\)/gu, "$1")

/** All anchors of a document; a heading that stands twice is numbered. */
export const anchorsOf = (markdown: string): ReadonlySet<string> => {
  const anchors = new Set<string>()
  for (const [, heading = ""] of withoutFences(markdown).matchAll(/^#{1,6} +(.+)$/gmu)) {
    const slug = slugOf(shown(heading))
    let anchor = slug
    for (let number = 1; anchors.has(anchor); number += 1) anchor = `${slug}-${number}`
    anchors.add(anchor)
  }
  return anchors
}
