/** Components whose code is loaded when they are first shown. */
import { signal } from "@preact/signals"
import type { ComponentType } from "preact"
import { useEffect } from "preact/hooks"

/** Makes a component whose code is loaded when it is first shown. */
export const lazily = (load: () => Promise<ComponentType>): ComponentType => {
  const loaded = signal<ComponentType | undefined>(undefined)
  const failed = signal(false)
  const Lazy = () => {
    useEffect(() => {
      load().then((Body) => (loaded.value = Body), () => (failed.value = true))
    }, [])
    const Body = loaded.value
    return Body === undefined
      ? <p class="muted">{failed.value ? "This part did not load; reload the page." : "Loading …"}</p>
      : <Body />
  }
  return Lazy
}
