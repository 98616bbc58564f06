/** `trigate inspect`: what a gateway sees in a signed body. */
import { Inspection } from "@trigate/domain/Inspection"
import * as Json from "@trigate/domain/Json"
import { printableLines } from "@trigate/domain/Printable"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Inspector from "@trigate/trading/Inspector"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Input from "./Input.ts"

const encode = Schema.encodeEffect(Inspection)

/** `trigate inspect`. Needs no gateway and sends nothing. */
export const command = Command.make("inspect", {
  body: Argument.String("body").pipe(
    Argument.withDescription("File with the JSON body of POST /exchange; - reads standard input")
  ),
  network: Input.network,
  expectedSigner: Input.addressFlag("expected-signer").pipe(
    Flag.optional,
    Flag.withDescription("Address that should have signed; if another did, the output names the likely mistake")
  )
}, ({ body, expectedSigner }) =>
  Effect.gen(function*() {
    const bytes = yield* Input.bytes(body)
    const inspector = yield* Inspector.Inspector
    const seen = yield* Effect.mapError(
      inspector.inspect(bytes, Option.getOrUndefined(expectedSigner)),
      ({ message }) => Input.fault(`${Input.nameOf(body)}: ${message}`)
    )
    yield* Console.log(printableLines(Json.stringifyPretty(yield* Effect.orDie(encode(seen)))))
  })).pipe(
    Command.provide(({ network }) => Layer.provide(Inspector.layer(), VenueProfile.layer(network))),
    Command.withDescription("Print, as JSON, what a gateway sees in a signed body; nothing is sent"),
    Command.withExamples([
      { command: "trigate inspect body.json", description: "Scheme, digest, signer, nonce and warnings of a body" },
      {
        command: "trigate inspect --expected-signer 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266 body.json",
        description: "Name the mistake that makes the signature somebody else's"
      }
    ])
  )
