/** Returns the trimmed values of a submitted form, by field name. */
export const formTexts = (event: SubmitEvent): { readonly [name: string]: string } => {
  event.preventDefault()
  return event.currentTarget instanceof HTMLFormElement
    ? Object.fromEntries(
      [...new FormData(event.currentTarget)].map((
        [name, value]
      ) => [name, typeof value === "string" ? value.trim() : ""])
    )
    : {}
}
