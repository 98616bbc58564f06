import type { Action, SignedAction } from "@trigate/domain/actions/Action"
import type { TestKey } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { Context, Effect, Layer } from "effect"

/** Signs what the backend sends. */
export class Signer extends Context.Service<Signer, {
  readonly sign: (nonce: number, action: Action) => Effect.Effect<SignedAction>
}>()("example/Signer") {}

/** Signs with a key that everyone knows; in production a wallet signs `Signable.typedData` of @trigate/signing. */
export const layerTestKey = (key: TestKey): Layer.Layer<Signer> =>
  Layer.succeed(
    Signer,
    Signer.of({ sign: (nonce, action) => Effect.orDie(SandboxSigner.signAction(key, { nonce, action })) })
  )
