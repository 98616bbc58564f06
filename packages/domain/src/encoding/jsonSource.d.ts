/** ECMAScript "JSON.parse source text access" (V8 11.4, Node 21), which the ES2024 library does not declare yet. */
interface JSON {
  parse(
    text: string,
    reviver: (this: unknown, key: string, value: unknown, context: { readonly source?: string }) => unknown
  ): unknown
  rawJSON(text: string): object
}
