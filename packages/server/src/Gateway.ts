/**
 * The gateway's routes over the five chain services, for the bundled server and for anyone's own.
 *
 * A server of one's own provides `layerRoutes` with the five services (live, memory or sandbox) and with `layerDefaults`, and
 * serves its `HttpRouter`. `Observe.layer` adds what the bundled server puts around every request.
 */
import * as Layer from "effect/Layer"
import * as CallerKeys from "./CallerKeys.ts"
import * as DocsPage from "./DocsPage.ts"
import * as Drain from "./Drain.ts"
import { GatewayStatus } from "./GatewayStatus.ts"
import * as Routes from "./Routes.ts"

/** All routes of the contract, its OpenAPI document and its reference page. */
export const layerRoutes = Layer.merge(Routes.layer, DocsPage.layer)

/** What readiness tells of a server of one's own. */
export interface Defaults {
  /** Whether the services are sandbox ones. */
  readonly sandbox: boolean
  /** The trading chain's network; mainnet when not given. */
  readonly network?: "mainnet" | "testnet"
}

/**
 * What the routes need besides the five services: every well-formed endpoint key passes, readiness tells what is given here
 * and no upstreams, and turns when `Drain` is told to drain.
 */
export const layerDefaults = (
  { network = "mainnet", sandbox }: Defaults
): Layer.Layer<CallerKeys.CallerKeys | Drain.Drain | GatewayStatus> => {
  const chain = { mode: sandbox ? "sandbox" as const : "live" as const, upstreams: {} }
  return Layer.mergeAll(
    CallerKeys.layerOpen,
    Drain.layer,
    Layer.succeed(GatewayStatus, { sandbox, network, chains: { trading: chain, tokens: chain, layer2: chain } })
  )
}
