/** Starts a gateway in this process, on a free port, with the given settings. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as CallerKeys from "@trigate/callers/CallerKeys"
import { Unauthorized } from "@trigate/domain/errors/GatewayError"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as ServerGateway from "@trigate/server/Gateway"
import * as GatewayServer from "@trigate/server/GatewayServer"
import * as Settings from "@trigate/server/settings/SettingsSources"
import { Drain, EventLoopLag } from "@trigate/server/unstable/process/Load"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Http from "node:http"

export interface Gateway {
  readonly url: string
  /**
   * The base URL of the admin routes (metrics, detailed readiness, action log); equal to `url` if there is no admin
   * listener.
   */
  readonly adminUrl: string
  readonly drain: Drain["Service"]
  /** Applies the settings in the given environment. A setting that is not in the environment gets its default. */
  readonly reload: (environment: Environment) => Effect.Effect<GatewayServer.Change, Settings.SettingsError>
}

export interface Environment {
  readonly [name: string]: string
}

const hasLane = process.env["TRIGATE_TEST_LANE"] !== "off"

const readSettings = (environment: Environment) =>
  Effect.flatMap(Settings.load, Settings.withPolicies).pipe(
    Effect.provide(NodeFileSystem.layer),
    Effect.provideService(
      ConfigProvider.ConfigProvider,
      ConfigProvider.fromUnknown({ TRIGATE_PORT: "0", TRIGATE_ACCESS_LOG: "off", ...environment })
    )
  )

/**
 * Starts a gateway with the given environment. The gateway stops when the scope closes.
 *
 * `lateness` replaces the measurement of event-loop lag: this effect returns the lag of the next timer, in
 * milliseconds. By default, it never returns, so the gateway observes no lag. If the tests' environment contains
 * `TRIGATE_TEST_LANE=off`, the gateway serves no request on its fast lane, which bypasses Effect's HTTP adapter.
 */
export const gateway = Effect.fnUntraced(
  function*(
    environment: Environment,
    lateness: Effect.Effect<number> = Effect.never,
    options: GatewayServer.Options = { fastLane: hasLane }
  ) {
    const context = yield* Layer.build(GatewayServer.layer(yield* readSettings(environment), options)).pipe(
      Effect.provideService(EventLoopLag, () => lateness)
    )
    const { address } = Context.get(context, HttpServer)
    const { reload } = Context.get(context, GatewayServer.Reload)
    const running: Gateway = {
      url: formatAddress(address),
      adminUrl: Context.get(context, GatewayServer.Admin).url,
      drain: Context.get(context, Drain),
      reload: (wanted) => Effect.flatMap(readSettings(wanted), reload)
    }
    return running
  }
)

export interface GatewayResponse {
  /** The requested path. */
  readonly path: string
  readonly status: number
  readonly type: string
  readonly headers: Headers
  readonly text: string
  readonly bytes: Uint8Array
  readonly json: unknown
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const readResponse = (response: Response) =>
  Effect.map(Effect.promise(() => response.arrayBuffer()), (buffer): GatewayResponse => {
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(buffer)
    return {
      path: new URL(response.url).pathname,
      status: response.status,
      type: response.headers.get("content-type") ?? "",
      headers: response.headers,
      text,
      bytes: new Uint8Array(buffer),
      json: parse(text)
    }
  })

/** Sends a request. */
export const send = (url: string, init: RequestInit) =>
  Effect.flatMap(Effect.promise(() => fetch(url, { redirect: "manual", ...init })), readResponse)

/** Sends a POST request with a body of the content type JSON, unless `headers` set another type. */
export const post = (url: string, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
  send(url, { method: "POST", body, headers: { "content-type": "application/json", ...headers } })

export const get = (url: string, headers: Record<string, string> = {}) => send(url, { headers })

/** The only key that the gateway accepts. */
export const known = "known-caller-key"

/** Starts a gateway that accepts only the caller key `known`, and returns its URL. */
export const guardedGateway = Effect.gen(function*() {
  const keys = Layer.succeed(CallerKeys.CallerKeys, {
    check: (key) =>
      Redacted.value(key) === known
        ? Effect.succeed({ id: "key:known", scope: {}, quota: {} })
        : Effect.fail(new Unauthorized({ detail: "The key is not known" }))
  })
  const routes = ServerGateway.layer().pipe(
    Layer.provide(Sandbox.layer()),
    Layer.provide(keys),
    Layer.provide(ServerGateway.layerDefaults({ sandbox: true }))
  )
  const server = NodeHttpServer.layer(() => Http.createServer(), { port: 0, host: "127.0.0.1" })
  const context = yield* Layer.build(
    HttpRouter.serve(routes, { disableLogger: true, disableListenLog: true }).pipe(Layer.provideMerge(server))
  )
  return formatAddress(Context.get(context, HttpServer).address)
})
