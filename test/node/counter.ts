/**
 * A contract to deploy on a node: a number in storage slot 0, an event for every step, and a call that reverts.
 *
 * Compiled by solc 0.8.30 (optimizer at 200 runs, EVM version paris, no metadata) from
 *
 * ```solidity
 * contract Counter {
 *     uint256 public value;
 *     event Counted(uint256 indexed value, address by);
 *     error NotMore(uint256 value);
 *     function count(uint256 times) external {
 *         for (uint256 i = 0; i < times; i++) {
 *             value++;
 *             emit Counted(value, msg.sender);
 *         }
 *     }
 *     function countTo(uint256 next) external {
 *         if (next <= value) revert NotMore(value);
 *         value = next;
 *         emit Counted(next, msg.sender);
 *     }
 * }
 * ```
 */
export const bytecode =
  "0x6080604052348015600f57600080fd5b506101988061001f6000396000f3fe608060405234801561001057600080fd5b50600436106100415760003560e01c80633607b6f7146100465780633b3546c81461005b5780633fa4f2451461006e575b600080fd5b610059610054366004610158565b610089565b005b610059610069366004610158565b6100f7565b61007760005481565b60405190815260200160405180910390f35b60005481116100ba576000546040516366c523d160e11b81526004016100b191815260200190565b60405180910390fd5b600081905560405133815281907fc5cacf704baba5278faf9538c31064df714bebbd331915abfaf64a6b9e89d8979060200160405180910390a250565b60005b818110156101545760008054908061011183610171565b90915550506000546040513381527fc5cacf704baba5278faf9538c31064df714bebbd331915abfaf64a6b9e89d8979060200160405180910390a26001016100fa565b5050565b60006020828403121561016a57600080fd5b5035919050565b60006001820161019157634e487b7160e01b600052601160045260246000fd5b506001019056" as const

export const abi = [
  { type: "error", name: "NotMore", inputs: [{ name: "value", type: "uint256" }] },
  {
    type: "event",
    name: "Counted",
    inputs: [{ name: "value", type: "uint256", indexed: true }, { name: "by", type: "address", indexed: false }]
  },
  {
    type: "function",
    name: "count",
    inputs: [{ name: "times", type: "uint256" }],
    outputs: [],
    stateMutability: "nonpayable"
  },
  {
    type: "function",
    name: "countTo",
    inputs: [{ name: "next", type: "uint256" }],
    outputs: [],
    stateMutability: "nonpayable"
  },
  { type: "function", name: "value", inputs: [], outputs: [{ name: "", type: "uint256" }], stateMutability: "view" }
] as const
