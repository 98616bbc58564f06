/** The current panel and its parameters, stored in the fragment of the URL so that a link can be shared. */
import { signal } from "@preact/signals"

/** A panel and its parameters. */
export interface PanelLocation {
  readonly panel: string
  readonly params: { readonly [name: string]: string }
}

const read = (): PanelLocation => {
  const [panel = "", query = ""] = location.hash.slice(1).split("?")
  return { panel: panel === "" ? "overview" : panel, params: Object.fromEntries(new URLSearchParams(query)) }
}

/** The current panel and its parameters. */
export const place = signal<PanelLocation>(read())

addEventListener("hashchange", () => {
  place.value = read()
})

/** Returns the link to a panel. */
export const linkTo = (panel: string, params: PanelLocation["params"] = {}): string => {
  const query = new URLSearchParams(params).toString()
  return `#${panel}${query === "" ? "" : `?${query}`}`
}

/** Navigates to a panel, like a click on its link. */
export const go = (panel: string, params: PanelLocation["params"] = {}): void => {
  location.hash = linkTo(panel, params)
}
