/** `GET /docs`: the API reference, complete in one page so that it works without the internet. */
import { GatewayApi } from "@trigate/api/GatewayApi"
import * as HttpApiScalar from "effect/http-api/HttpApiScalar"

/** The page; its script is part of it, no font and no proxy is fetched. */
export const layer = HttpApiScalar.layer(GatewayApi, {
  path: "/docs",
  scalar: { withDefaultFonts: false, theme: "default" }
})
