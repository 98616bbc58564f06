import { assert, describe, it } from "@effect/vitest"
import { SignedAction } from "@trigate/domain/actions/Action"
import * as Json from "@trigate/domain/encoding/Encoding"
import * as MultiSigProposal from "@trigate/signing/multisig/MultiSigProposal"
import * as SignerRecovery from "@trigate/signing/unstable/actions/CanonicalAction"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import { sample } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { cosigner, cosignerOf, delegation, nonce, request } from "./cosigners.ts"
import { multis, readBody } from "./vectors.ts"

type Vector = (typeof multis)[number]

const hex = (text: string): `0x${string}` => `0x${text.slice(2)}`

const requestOf = (vector: Vector): MultiSigProposal.ProposalRequest => ({
  network: vector.isMainnet ? "mainnet" : "testnet",
  multiSigUser: hex(vector.multiSigUserInput),
  outerSigner: vector.outerSigner,
  signatureChainId: vector.signatureChainId,
  action: { ...vector.innerAction, type: String(vector.innerAction["type"]) },
  nonce: Number(vector.nonce),
  ...(vector.vaultAddress === null ? {} : { vaultAddress: hex(vector.vaultAddress) }),
  ...(vector.expiresAfter === null ? {} : { expiresAfter: Number(vector.expiresAfter) }),
  threshold: vector.signers.length,
  authorizedUsers: vector.signers
})

/** As it reaches another machine. */
const sendProposal = (proposal: MultiSigProposal.MultiSigProposal) =>
  Effect.flatMap(MultiSigProposal.toJson(proposal), MultiSigProposal.fromJson)

const sendApproval = (approval: MultiSigProposal.MultiSigApproval) =>
  MultiSigProposal.approvalFromJson(MultiSigProposal.approvalToJson(approval))

const bodyText = (signed: SignedAction) => Effect.map(Schema.encodeEffect(SignedAction)(signed), Json.stringify)

const approvalsBy = (proposal: MultiSigProposal.MultiSigProposal, ...indexes: ReadonlyArray<number>) =>
  Effect.forEach(indexes, (index) => MultiSigProposal.approve(proposal, cosignerOf(index)))

describe("the recorded multi-sig vectors, collected across machines", () => {
  for (const vector of sample("multi-sig vectors", multis, 10, ({ innerAction }) => String(innerAction["type"]))) {
    it.effect(vector.id, () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(Number(vector.nonce))
        const proposal = yield* MultiSigProposal.propose(requestOf(vector))
        assert.strictEqual(proposal.digest, vector.inner.digest)
        const approvals = yield* Effect.forEach(vector.privateKeys, (key) =>
          Effect.gen(function*() {
            const received = yield* sendProposal(proposal)
            assert.strictEqual(received.digest, vector.inner.digest)
            return yield* sendApproval(yield* MultiSigProposal.approve(received, cosigner(key)))
          }))
        const leader = cosigner(vector.privateKeys[0] ?? "0x")
        const received = yield* sendProposal(proposal)
        const text = yield* bodyText(yield* MultiSigProposal.assemble(received, approvals, leader))
        assert.deepStrictEqual(readBody(text), readBody(vector.requestBody))
      }))
  }
})

describe("MultiSigApproval.assemble", () => {
  it.effect("takes approvals in any order, counts a co-signer once, and trims inner signatures", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(nonce)
      const proposal = yield* MultiSigProposal.propose(request)
      const [first, second, third] = yield* approvalsBy(proposal, 2, 0, 4)
      assert(first !== undefined && second !== undefined && third !== undefined)
      const shouted = { ...second, signer: hex(`0x${second.signer.slice(2).toUpperCase()}`) }
      const signed = yield* MultiSigProposal.assemble(proposal, [first, second, first, shouted, third], cosignerOf(0))
      const recovered = yield* SignerRecovery.recover(VenueProfile.mainnet, signed)
      assert(recovered.scheme === "multiSig" && signed.action.type === "multiSig")
      assert.strictEqual(recovered.signer, proposal.outerSigner)
      assert.deepStrictEqual<unknown>(
        recovered.inner.map(({ signer }) => signer),
        [first.signer, second.signer, third.signer]
      )
      for (const { r, s } of signed.action.signatures) assert.isTrue(/^0x[1-9a-f]/u.test(r) && /^0x[1-9a-f]/u.test(s))
    }))

  it.effect("refuses fewer co-signers than the threshold, and names the missing", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(nonce)
      const proposal = yield* MultiSigProposal.propose(request)
      const approvals = yield* approvalsBy(proposal, 1, 2)
      const error = yield* Effect.flip(
        MultiSigProposal.assemble(proposal, [...approvals, ...approvals], cosignerOf(0))
      )
      assert(error._tag === "ThresholdNotMet")
      assert.strictEqual(error.threshold, 3)
      assert.deepStrictEqual(error.approved, approvals.map(({ signer }) => signer))
      assert.deepStrictEqual<unknown>(error.missing, [0, 3, 4].map((index) => cosignerOf(index).address.toLowerCase()))
    }))

  it.effect("refuses another leader, another proposal's approval, a forged one, a stranger's, and a late assembly", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(nonce)
      const proposal = yield* MultiSigProposal.propose(request)
      const other = yield* MultiSigProposal.propose({ ...request, action: { ...delegation, wei: 2n } })
      const approvals = yield* approvalsBy(proposal, 0, 1, 2)
      const assemble = (given: ReadonlyArray<MultiSigProposal.MultiSigApproval>, leader = 0) =>
        Effect.flip(MultiSigProposal.assemble(proposal, given, cosignerOf(leader)))

      const leader = yield* assemble(approvals, 1)
      assert(leader._tag === "WrongSigner")
      assert.strictEqual(leader.role, "leader")

      const [foreign] = yield* approvalsBy(other, 3)
      assert(foreign !== undefined)
      assert.strictEqual((yield* assemble([...approvals, foreign]))._tag, "ApprovalOfOther")
      const forged = yield* assemble([...approvals, { ...foreign, digest: proposal.digest }])
      assert(forged._tag === "WrongSigner")
      assert.deepStrictEqual([forged.role, forged.expected], ["cosigner", foreign.signer])

      const { authorizedUsers: _, ...openRequest } = request
      const [stranger] = yield* approvalsBy(yield* MultiSigProposal.propose(openRequest), 5)
      assert(stranger !== undefined)
      assert.strictEqual((yield* assemble([...approvals, stranger]))._tag, "CosignerNotAuthorized")

      yield* TestClock.setTime(nonce + 2 * 86_400_000)
      const late = yield* assemble(approvals)
      assert(late._tag === "ProposalExpired")
      assert.strictEqual(late.because, "nonceWindow")
    }))

  it.effect("has nothing to check against a rule that is not known", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(nonce)
      const { authorizedUsers: _users, threshold: _threshold, ...rest } = request
      const proposal = yield* MultiSigProposal.propose(rest)
      const none = yield* Effect.flip(MultiSigProposal.assemble(proposal, [], cosignerOf(0)))
      assert(none._tag === "ThresholdNotMet")
      const signed = yield* MultiSigProposal.assemble(proposal, yield* approvalsBy(proposal, 5), cosignerOf(0))
      assert.strictEqual(signed.nonce, nonce)
    }))

  it.effect("signs one form of the action and sends another", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(nonce)
      const { authorizedUsers, multiSigUser, network, outerSigner } = request
      const action = {
        type: "userSetAbstraction",
        signatureChainId: "0x66eee",
        hyperliquidChain: "Mainnet",
        user: multiSigUser,
        abstraction: "disabled",
        nonce
      }
      const sentAction = { ...action, abstraction: "i" }
      const given = { network, multiSigUser, outerSigner, nonce, authorizedUsers, action, sentAction }
      const proposal = yield* sendProposal(yield* MultiSigProposal.propose(given))
      assert.strictEqual(proposal.typedData.message["abstraction"], "disabled")
      const { sentAction: _sent, ...alone } = given
      const short = yield* MultiSigProposal.propose({ ...alone, action: sentAction })
      assert.deepStrictEqual(short.typedData, proposal.typedData)
      const signed = yield* MultiSigProposal.assemble(proposal, yield* approvalsBy(proposal, 1, 2), cosignerOf(0))
      assert(signed.action.type === "multiSig")
      assert.deepStrictEqual(signed.action.payload.action, sentAction)
      const { signer } = yield* SignerRecovery.recover(VenueProfile.mainnet, signed)
      assert.strictEqual(signer, proposal.outerSigner)
    }))
})
