/** The client of a Trigate gateway with promises. `@trigate/sdk/Orders` is the layer for programs with Effect. */
export type { Cloid, OrderId } from "@trigate/domain/actions/ActionOutcome"
export type { NewOrder, OpenOrder, Placed, PlacedAll } from "@trigate/signing/Orders"
export { createClient, isError } from "./Client.ts"
export type { Client, ClientError, Options, SigningClient, SigningOptions } from "./Client.ts"
