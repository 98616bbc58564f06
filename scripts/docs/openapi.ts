/** docs/openapi.json: the contract. */
import { GatewayApi } from "@trigate/api/GatewayApi"
import * as OpenApi from "effect/http-api/OpenApi"

const sorted = <A>(entries: Readonly<Record<string, A>>): Readonly<Record<string, A>> =>
  Object.fromEntries(Object.entries(entries).toSorted(([a], [b]) => a < b ? -1 : 1))

/** The contract, with paths and components by name: their order means nothing, and a sorted one gives small differences. */
export const openApiText = (): string => {
  const { components, paths, ...rest } = OpenApi.fromApi(GatewayApi)
  const ordered = {
    ...rest,
    paths: sorted(paths),
    components: { ...components, schemas: sorted(components.schemas) }
  }
  return `${JSON.stringify(ordered, undefined, 2)}\n`
}
