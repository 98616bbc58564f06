/**
 * The constructions that make our text hard to read, with what to write instead.
 *
 * Terms of the domain are exempt by their patterns, and the venue's own texts by {@link exemptFiles}.
 */

/** A construction of comments, messages and documents, or of the names of declarations. */
export interface Construction {
  readonly name: string
  readonly kind: "text" | "function" | "type"
  readonly pattern: RegExp
  readonly instead: string
}

const text = (name: string, pattern: RegExp, instead: string): Construction => ({
  name,
  kind: "text",
  pattern,
  instead
})

export const constructions: ReadonlyArray<Construction> = [
  text("answers", /\banswer(?:s|ed)\b/giu, "returns, responds, serves"),
  text("held", /\bheld\b/giu, "cached, stored, recorded, reserved"),
  text("kept", /\bkept\b/giu, "stored, retained, cached"),
  text("told", /\b(?:told|tells)\b/giu, "reported, returned, logged"),
  text("whoever", /\b(?:whoever|whomever|somebody|nobody)\b/giu, "the operator, the caller, the client, no one"),
  text("so many", /\b(?:so many|as many as|so much)\b/giu, "the number of, up to N"),
  text(
    "what is",
    /\bwhat (?:is(?! wrong)|was|are|it|they|that|came|comes|goes|answers|became|becomes)\b/giu,
    "the noun that is meant"
  ),
  text(
    "is none",
    /(?<!there )\b(?:(?:is|are|was) none\b|is no\b(?!\s+(?:\*\s+)?longer))/giu,
    "is not a …, there is no …"
  ),
  text("gives", /\b(?:gives? back|gave back|gives (?:a|an|the)|is given)\b/giu, "returns, provides, refunds"),
  text(
    "goes on",
    /\b(?:goes on|went on|go on|goes out|went out|comes by|came by)\b/giu,
    "continues, is sent, is received"
  ),
  text("away", /\b(?:is|are|was|were|being) away\b/giu, "is unreachable, is down"),
  text(
    "as it came",
    /\b(?:as (?:it|they) (?:stands?|came|comes?)|and the like|the like of)\b/giu,
    "unchanged, as received, similar"
  ),
  text("stands", /\b(?:stands?|stood) (?:in|at|behind|before|beside|here|there|again)\b/giu, "is in, is listed in"),
  text("word on", /\b(?:word on|in its own words|in words)\b/giu, "response, a message"),
  // the lint rule reads the value of a comment, and that of a docstring begins with `*`
  text(
    "noun clause",
    /^\*\s+(?:\*\s+)?(?:What|Who|Whose|Whoever|Where|Which)\b(?! is wrong)/gu,
    "a verb in the third person, or the noun that is meant"
  ),
  text("none if", /[;,] none (?:if|for|unless|when|without)\b/giu, "`None`, `undefined` or an empty list"),
  text(
    "sending",
    /\b(?:first|second|each|this|one|another|earlier|repeated) sendings?\b/giu,
    "attempt, resend"
  ),
  text("late joiner", /\blate joiners?\b/giu, "a caller that joins later"),
  text("reasons for which", /\breasons? for which\b/giu, "why, the reason why"),
  text("time when", /\bthe time when\b/giu, "time at which"),
  text("that of", /\b(?:is|are|be) that of\b/giu, "the noun again, or the owner's name with 's"),
  text("says", /\bsays\b/gu, "states, reports, shows"),
  text("else", /[,(;] else\b/gu, "otherwise; default: …"),
  text("no answer", /\b(?:no|without an) answer\b/giu, "no response, unanswered"),
  text("in X's words", /\bin the \w+'s (?:own )?words\b/giu, "with the venue's messages"),
  text("that runs", /\b(?:gateway|process|node) that runs\b/giu, "a running gateway"),
  text("rate", /\b(?:requests|messages|bytes|units|weight|calls|events) an? (?:second|minute)\b/giu, "per second"),
  text("leave out", /\b(?:leave|leaves|left|leaving) \S+ out\b/giu, "omit"),
  text("letter case counts", /\bletter case counts\b/giu, "case-sensitive"),
  text("under a nonce", /\bunder the (?:nonce|cloid)\b/giu, "with the nonce"),
  text("from a time on", /\bfrom an? (?:time|moment|point) on\b/giu, "from the given time"),
  text("meanwhile", /\bmeanwhile\b/giu, "in the meantime"),
  text("reorganisation", /\breorganisations?\b/giu, "reorg"),
  {
    name: "…Of",
    kind: "function",
    pattern: /^[a-z]\w*Of$/u,
    instead: "a name for what it returns: parseRange, formatAge"
  },
  {
    name: "bare type",
    kind: "type",
    pattern: /^(?:Place|Fault|Call|Outcome|Read|Held|Answer|Refusal)$/u,
    instead: "a name that search finds: DatabaseLocation, CandleCall"
  }
]

/** Files whose texts are those of others, with the reason. */
export const exemptFiles: ReadonlyArray<{ readonly pattern: RegExp; readonly reason: string }> = [
  {
    pattern: /^packages\/sandbox\/src\/venue\/(?:VenueRefusal|Words)\.ts$/u,
    reason: "the venue's messages, verbatim"
  },
  {
    pattern: /^docs\/(?:operations|openapi|errors|configuration|metrics)\.(?:md|json)$/u,
    reason: "generated from the sources"
  },
  { pattern: /^packages\/[^/]+\/src\/index\.ts$/u, reason: "generated from the sources" }
]

/** Returns the uses of constructions of one kind in a text or a name, by the name of the construction. */
export const findIn = (kind: Construction["kind"], value: string): ReadonlyArray<Construction> =>
  constructions.flatMap((construction) =>
    construction.kind === kind ? Array.from(value.match(construction.pattern) ?? [], () => construction) : []
  )
