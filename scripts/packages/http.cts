/**
 * `node:http` for the bundle. An import of it reads each of its exports, `WebSocket` among them, for which Node loads a client of
 * 10 000 lines that the program does not use. That takes 50 ms of processor time at each start.
 */
module.exports = process.getBuiltinModule("node:http")
