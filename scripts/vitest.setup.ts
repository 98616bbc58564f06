/** Property tests run the same cases everywhere; `TRIGATE_TEST_SEED` runs others, and `npm run test:slow` four times as many. */
import { sampleRuns, seed } from "@trigate/testing/Sample"
import * as Arbitrary from "effect/Arbitrary"

Arbitrary.configureGlobal({ check: { runs: sampleRuns(100), seed } })
