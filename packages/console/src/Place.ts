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

/** The place of now. */
export const place = signal<PanelLocation>(read())

addEventListener("hashchange", () => {
  place.value = read()
})

/** The link to a place. */
export const linkTo = (panel: string, params: PanelLocation["params"] = {}): string => {
  const query = new URLSearchParams(params).toString()
  return `#${panel}${query === "" ? "" : `?${query}`}`
}

/** Goes to a place, as a click on its link does. */
export const go = (panel: string, params: PanelLocation["params"] = {}): void => {
  location.hash = linkTo(panel, params)
}
