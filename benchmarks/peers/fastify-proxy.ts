/** The plugin that a user of Fastify takes, as its documentation sets it up. */
import proxy from "@fastify/http-proxy"
import { fastify } from "fastify"

const app = fastify({ logger: false, keepAliveTimeout: 75_000 })
await app.register(proxy, { upstream: process.argv[2] ?? "" })
console.log(`listens on ${await app.listen({ host: "127.0.0.1", port: 0 })}`)
