/** ccxt's class for the venue, with no other option than its base URL and what keeps a test short. */
import { BaseError, hyperliquid } from "ccxt"

/** Client and version. */
export const client = "ccxt 4.5.84"

/** What signs, if anything does. */
export interface Credentials {
  readonly address: string
  readonly privateKey: string
}

/** The exchange at a base URL; without its own limiter, which would wait for a limit a minute that no test reaches. */
export const exchangeAt = (url: string, key?: Credentials) =>
  new hyperliquid({
    urls: { api: { public: url, private: url } },
    enableRateLimit: false,
    ...(key === undefined ? {} : { walletAddress: key.address, privateKey: key.privateKey })
  })

/** The name of the class that ccxt tells a failure by, and its words. */
export const classified = (error: unknown): { readonly name: string; readonly message: string } =>
  error instanceof BaseError ? { name: error.constructor.name, message: error.message } : { name: "", message: "" }
