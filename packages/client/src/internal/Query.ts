/** The queries of the venue. Each query is one request. */
import * as Paths from "@trigate/api/Paths"
import type { CallFailure } from "@trigate/domain/errors/GatewayError"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import { typedMethodMapper } from "@trigate/domain/operations/Operation"
import type { Connection } from "../Connection.ts"
import { ask, served } from "./Served.ts"

/** Sends a query. */
export const send: InfoProtocol.Send<CallFailure, Connection> = ({ body }) =>
  ask(({ chains }) => chains.post(Paths.info, body.text))

/** Makes the function that sends a query and decodes the response. */
export const query = typedMethodMapper<CallFailure, Connection>((operation) =>
  InfoProtocol.makeMethod(served(operation))("GatewayClient", send)
)
