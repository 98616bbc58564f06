import { assert, it } from "@effect/vitest"
import * as Upstream from "@trigate/upstream/Upstream"
import * as Digest from "effect/crypto/Digest"
import * as Effect from "effect/Effect"

const space = (...addresses: ReadonlyArray<string>) => Upstream.spaceOf(Upstream.make("layer2", addresses))

it.effect("a space is the same for the same addresses, another for others, and shows none of them", () =>
  Effect.gen(function*() {
    const one = yield* space("https://node.example/0123456789abcdef")
    assert.match(one, /^layer2\/[0-9a-f]{16}$/u)
    assert.strictEqual(yield* space("https://node.example/0123456789abcdef/"), one)
    assert.notStrictEqual(yield* space("https://node.example/0123456789abcdee"), one)
    assert.notStrictEqual(yield* space("https://node.example/0123456789abcdef", "https://b.example"), one)
  }).pipe(Effect.provide(Digest.layerWebCrypto)))
