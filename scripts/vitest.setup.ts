/** The cases of property tests follow from the commit or from `TRIGATE_TEST_SEED`; `npm run test:slow` runs four times as many. */
import { sampleRuns, seed } from "@trigate/testing/Sample"
import * as Arbitrary from "effect/Arbitrary"

Arbitrary.configureGlobal({ check: { runs: sampleRuns(100), seed } })
