/** Names of the environment that the command line reads: no settings of a gateway, and no reason for it not to start. */

/** Where the gateway is that commands talk to. */
export const gatewayUrl = "TRIGATE_GATEWAY_URL"

/** The private key that signs. */
export const privateKey = "TRIGATE_PRIVATE_KEY"

/** All of them. */
export const all: ReadonlySet<string> = new Set([gatewayUrl, privateKey])
