/** Property tests run the same cases everywhere; `TRIGATE_TEST_SEED` runs others. */
import * as Arbitrary from "effect/Arbitrary"

Arbitrary.configureGlobal({ check: { seed: process.env["TRIGATE_TEST_SEED"] ?? "trigate" } })
