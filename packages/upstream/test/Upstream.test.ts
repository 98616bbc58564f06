import { assert, it } from "@effect/vitest"
import * as Upstream from "@trigate/upstream/unstable/Upstream"

const space = (...addresses: ReadonlyArray<string>) => Upstream.cacheSpace(Upstream.make("layer2", addresses))

it("a space is the same for the same addresses, another for others, and shows none of them", () => {
  const one = space("https://node.example/0123456789abcdef")
  // what replicas of earlier versions use, too
  assert.strictEqual(one, "layer2/c71c2fdf932d9099")
  assert.strictEqual(space("https://node.example/0123456789abcdef/"), one)
  assert.notStrictEqual(space("https://node.example/0123456789abcdee"), one)
  assert.notStrictEqual(space("https://node.example/0123456789abcdef", "https://b.example"), one)
})

const concealed = (address: string, text: string, status = 404): string | undefined => {
  const [target] = Upstream.targets(Upstream.make("layer2", [address]), "")
  return target?.conceal === undefined ? text : target.conceal(status, text)
}

/** An address, what a server says, and what is left of it. */
const refusals: ReadonlyArray<readonly [what: string, address: string, said: string, left: string]> = [
  ["a long key, wherever it stands", "https://node.example/0123456789abcdef", "x0123456789abcdefx", "x…x"],
  [
    "a short key, as a word",
    "https://node.example/k7Qz",
    "no key k7Qz, /k7Qz/evm, k7Qzx, \"k7Qz\"",
    "no key …, /…/evm, k7Qzx, \"…\""
  ],
  [
    "a key of three letters, in a path",
    "https://node.example/abc/evm",
    "Cannot POST /abc/evm: abc",
    "Cannot POST /…/evm: abc"
  ],
  ["no names of routes", "https://node.example/api/v2/rpc/k7Qz", "/api/v2/rpc/k7Qz: rpc", "/api/v2/rpc/…: rpc"],
  ["a key as it was sent", "https://node.example/pass%20word%21", "GET /pass%20word%21", "GET /…"],
  ["a key decoded", "https://node.example/pass%20word%21", "no such user: pass word!", "no such user: …"],
  ["a key encoded by the server", "https://node.example/key:with@signs", "GET /key%3Awith%40signs", "GET /…"],
  ["a key encoded in small letters", "https://node.example/key:with@signs", "GET /key%3awith%40signs", "GET /…"],
  [
    "a key that was configured in small letters",
    "https://node.example/a%2fb%2fc%2fd",
    "/a%2Fb%2Fc%2Fd a/b/c/d",
    "/… …"
  ],
  [
    "a decoded key in a JSON text",
    "https://node.example/a%22b%2Fc%22d%5C",
    String.raw`"a\"b/c\"d\\" and "a\"b\/c\"d\\"`,
    `"…" and "…"`
  ],
  ["a short key with a dash", "https://node.example/any-key", "any-key any.key many-keys", "… any.key many-keys"],
  ["a short key, decoded and encoded", "https://node.example/a%2Fb%40", "/a%2Fb%40 /a/b@ /a%2fb%40", "/… /… /…"],
  [
    "a key of other letters",
    "https://node.example/ключ",
    "/ключ /%D0%BA%D0%BB%D1%8E%D1%87 /%d0%ba%d0%bb%d1%8e%d1%87",
    "/… /… /…"
  ],
  ["a short key of signs", "https://node.example/a-b!$*", "/a-b!$* a-b!%24*", "/… …"],
  ["a key of two signs", "https://node.example/+)", "/+) /%2B)", "/… /…"],
  ["nothing where there is no key", "https://node.example", "a / b", "a / b"]
]

for (const [what, address, said, left] of refusals) {
  it(`a refusal holds ${what}`, () => {
    assert.strictEqual(concealed(address, said), left)
  })
}

const key = "https://node.example/hyperliquid/0123456789abcdef"

/** An address, a body with HTTP 200, and what is left of it. */
const data: ReadonlyArray<readonly [what: string, address: string, body: string, left: string]> = [
  ["loses a key", key, `{"result":"/0123456789abcdef"}`, `{"result":"/…"}`],
  ["keeps a word of the path", key, `{"name":"hyperliquid"}`, `{"name":"hyperliquid"}`],
  ["keeps a word of the path beside a key", key, `["hyperliquid/0123456789abcdef"]`, `["hyperliquid/…"]`],
  ["loses both where it is an error", key, `{"error":"/hyperliquid/0123456789abcdef"}`, `{"error":"/…/…"}`],
  [
    "loses both in those answers of a batch that are errors",
    key,
    `[{"error":"/hyperliquid"}, {"result":"/hyperliquid"}]`,
    `[{"error":"/…"},{"result":"/hyperliquid"}]`
  ],
  ["keeps a short key", "https://node.example/k7Qz", `{"coin":"k7Qz"}`, `{"coin":"k7Qz"}`],
  [
    "loses a short key in an error",
    "https://node.example/k7Qz",
    `{"status":"err","response":"k7Qz"}`,
    `{"status":"err","response":"…"}`
  ],
  ["keeps a number", "https://node.example/12345678", `{"n":12345678}`, `{"n":12345678}`],
  [
    "stays JSON",
    "https://node.example/n123456789abcdef",
    String.raw`["\\n123456789abcdef","\n123456789abcdef"]`,
    String.raw`["\\…","\\…"]`
  ]
]

for (const [what, address, body, left] of data) {
  it(`data ${what}`, () => {
    assert.strictEqual(concealed(address, body, 200), left)
  })
}
