/** The server: the backend's own routes, and the gateway's below a path of theirs. Both use the same chains. */
import * as Gateway from "@trigate/server/Gateway"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import { BackendApi } from "./Api.ts"
import { CandleArchive } from "./CandleArchive.ts"
import * as Handlers from "./Handlers.ts"
import { Staking } from "./Staking.ts"

export interface Options {
  /** Where archives of bars go. */
  readonly folder: string
}

const prefix = "/gateway"

const own = HttpApiBuilder.layer(BackendApi, { openapiPath: "/openapi.json" }).pipe(Layer.provide(Handlers.layer))

/** The routes over whatever chains, key and HTTP server the program provides. */
export const layer = ({ folder }: Options) =>
  HttpRouter.serve(Layer.merge(own, Gateway.layer({ prefix, docs: false }))).pipe(
    Layer.provide([CandleArchive.layer(folder), Staking.layer]),
    Layer.provide(Gateway.layerDefaults({ sandbox: false }))
  )
