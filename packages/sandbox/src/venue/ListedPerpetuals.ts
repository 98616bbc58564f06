/**
 * The real venue's perpetuals in its order, which determines their asset numbers, and the venue's margin tables.
 *
 * Facts of February 2026: the query `metaAndAssetCtxs` as sonirico/go-hyperliquid 5dbb746 recorded it; the volumes are
 * the geometric mean of that day and of a day of August 2025 in the same repository.
 */

/** A part of a position above a value, in dollars, and the maximum leverage of that part. */
export interface MarginTier {
  readonly lowerBound: number
  readonly maxLeverage: number
}

/** The venue's margin tables with several tiers. A table below 50 has one tier, after whose leverage it is named. */
export const marginTables: ReadonlyMap<
  number,
  { readonly description: string; readonly tiers: ReadonlyArray<MarginTier> }
> = new Map([
  [51, { description: "tiered 10x", tiers: [{ lowerBound: 0, maxLeverage: 10 }, { lowerBound: 3e6, maxLeverage: 5 }] }],
  [52, {
    description: "tiered 10x (2)",
    tiers: [{ lowerBound: 0, maxLeverage: 10 }, { lowerBound: 20e6, maxLeverage: 5 }]
  }],
  [53, {
    description: "tiered 20x",
    tiers: [{ lowerBound: 0, maxLeverage: 20 }, { lowerBound: 40e6, maxLeverage: 10 }]
  }],
  [54, {
    description: "tiered 20x (2)",
    tiers: [{ lowerBound: 0, maxLeverage: 20 }, { lowerBound: 70e6, maxLeverage: 10 }]
  }],
  [55, {
    description: "tiered 25x",
    tiers: [{ lowerBound: 0, maxLeverage: 25 }, { lowerBound: 100e6, maxLeverage: 15 }]
  }],
  [56, {
    description: "tiered 40x",
    tiers: [{ lowerBound: 0, maxLeverage: 40 }, { lowerBound: 150e6, maxLeverage: 20 }]
  }]
])

/** A perpetual of {@link perpetuals}. */
export interface ListedPerpetual {
  readonly coin: string
  readonly sizeDecimals: number
  readonly marginTable: number
  readonly isStrictIsolated: boolean
  readonly price: number
  /** The volume in a day, and the open interest, in dollars; zero for a delisted coin. */
  readonly dayValue: number
  readonly interestValue: number
}

/**
 * One perpetual in each row: the coin, the decimals of a size, the margin table (with `s`: strictly isolated margin), the
 * price, and thousands of dollars of volume and of open interest. A row without volume is delisted; `Assets.ts` describes
 * a coin that is alone in its row.
 */
const rows = `
BTC
ETH
ATOM 2 5 1.86 1600 2700
MATIC 1 20 0.376
DYDX 1 5 0.111 170 1700
SOL
AVAX
BNB
APE 1 5 0.125 370 820
OP 1 51 0.183 2900 3600
LTC 2 52 52.4 12000 17000
ARB
DOGE
INJ 1 51 3.17 3300 4300
SUI
kPEPE
CRV 1 52 0.238 12000 7400
LDO 1 51 0.341 7600 3700
LINK
STX 1 5 0.265 1200 1100
RNDR 1 20 6.9
CFX 0 5 0.0473 670 260
FTM 0 10 0.717
GMX 2 3 5.97 450 400
SNX 1 3 0.282 300 480
XRP
BCH 3 52 470 3200 5600
APT 2 52 1.06 3900 5700
AAVE
COMP 2 5 16.4 440 640
MKR 4 51 1.83e+03
WLD 1 52 0.377 5800 7100
FXS 1 5 0.655
HPOS 0 3s 0.0419
RLB 0 3s 0.071
UNIBOT 3 3s 7.64
YGG 0 3 0.0398 220 150
TRX 0 51 0.269 5000 8000
kSHIB 0 51 0.00598 3300 2900
UNI 1 52 3.34 6200 23000
SEI 0 51 0.0756 7300 2100
RUNE 1 5 0.399 490 910
OX 0 3s 0.00746
FRIEND 1 3s 4.72
SHIA 0 3s 0.000621
CYBER 1 3 1.04
ZRO 1 5 1.48 2900 21000
BLZ 0 5 0.07
DOT 1 51 1.32 4700 6700
BANANA 1 3 4.36 240 170
TRB 2 3 14.1 570 370
FTT 1 3 0.291 83 100
LOOM 0 10 0.0712
OGN 0 3 0.0557
RDNT 0 5 0.0183
ARK 0 3 0.173 110 240
BNT 0 3 0.383
CANTO 0 5 0.066
REQ 0 3 0.155
BIGTIME 0 3 0.0143 170 230
KAS 0 3 0.0295 230 720
ORBS 0 3 0.0194
BLUR 0 3 0.0197 260 670
TIA 1 52 0.323 4000 2200
BSV 2 3 13.1 160 570
ADA 0 52 0.261 25000 15000
TON 1 51 1.29 3900 7900
MINA 0 3 0.0628 92 420
POLYX 0 3 0.0421 96 240
GAS 1 3 1.66 650 330
PENDLE 0 5 1.19 6300 4100
STG 0 3 0.154
FET 0 5 0.16 1100 1300
STRAX 0 10 1.58
NEAR 1 52 1.02 8300 8800
MEME 0 3 0.000715 2000 540
ORDI 2 3 2.66 320 180
BADGER 1 5 0.888
NEO 2 5 2.79 710 330
ZEN 2 5 5.69 430 820
FIL 1 5 0.909 750 1900
PYTH 0 5 0.0428 1300 980
SUSHI 1 3 0.201 480 210
ILV 2 3 12.1
IMX 1 5 0.153 290 1100
kBONK 0 52 0.00607 11000 3900
GMT 0 3 0.012 110 290
SUPER 0 3 0.12 320 350
USTC 0 3 0.00457 79 170
NFTI 1 3s 6.56
JUP 0 51 0.16 5800 3900
kLUNC 0 3 0.0351 200 390
RSR 0 3 0.00162 100 200
GALA 0 3 0.00403 390 520
JTO 0 5 0.239 2000 910
NTRN 0 3 0.124
ACE 2 3 0.178 210 200
MAV 0 3 0.0174 400 140
WIF 0 5 0.22 7200 4900
CAKE 1 3 1.33 350 950
PEOPLE 0 3 0.00666 190 90
ENS 2 5 5.66 540 420
ETC 2 5 8.35 500 1200
XAI 1 3 0.0104 160 580
MANTA 1 3 0.066 130 240
UMA 1 3 0.503 380 250
ONDO 0 51 0.246 3600 2800
ALT 0 3 0.00794 250 390
ZETA 1 3 0.0512 220 470
DYM 1 3 0.0416 160 410
MAVIA 1 3 0.0386 190 1400
W 1 5 0.0201 570 880
PANDORA 5 3s 3.03e+03
STRK 1 5 0.0495 1400 2900
PIXEL 0 3 0.024
AI 1 3 0.126
TAO 3 5 167 4000 6900
AR 2 5 2.02 610 590
MYRO 0 3 0.0158
kFLOKI 0 5 0.0303 1500 430
BOME 0 3 0.00041 190 140
ETHFI 1 5 0.452 1800 3300
ENA 0 52 0.12 44000 16000
MNT 1 5 0.62 2700 1900
TNSR 1 3 0.0437 140 130
SAGA 1 3 0.0308 160 540
MERL 0 3 0.0462 880 590
HBAR 0 5 0.0844 2100 2900
POPCAT 0 3 0.0491 4200 2000
OMNI 2 3 4.19
EIGEN 2 5 0.211 920 1800
REZ 0 3 0.00314 120 130
NOT 0 3 0.000394 69 140
TURBO 0 3 0.00108 460 310
BRETT 0 3 0.00746 670 600
IO 1 3 0.109 340 310
ZK 0 5 0.0234 1600 1900
BLAST 0 3 0.000528 130 800
LISTA 0 3 0.125
MEW 0 3 0.000582 55 84
RENDER 1 5 1.34 420 1200
kDOGS 0 3 0.137
POL 0 5 0.0954 4100 2400
CATI 0 3 0.0828
CELO 0 3 0.0789 160 350
HMSTR 0 3 0.000172 84 2200
SCR 1 3 0.0519 500 140
NEIROETH 0 5 0.0181
kNEIRO 1 3 0.0751 360 270
GOAT 0 3 0.0221 230 350
MOODENG 0 3 0.0455 950 750
GRASS 1 3 0.188 800 620
PURR 0 3 0.0751 1600 3300
PNUT 1 3 0.0481 1300 430
XLM 0 5 0.157 2200 3200
CHILLGUY 0 3 0.00992 360 330
SAND 0 5 0.0823 620 290
IOTA 0 3 0.0714 140 260
ALGO 0 5 0.0945 610 840
HYPE
ME 1 3 0.138 150 250
MOVE 0 3 0.0223 340 410
VIRTUAL 1 5 0.554 3800 5900
PENGU 0 5 0.00636 14000 1900
USUAL 1 3 0.0155 180 250
FARTCOIN 1 52 0.197 58000 31000
AI16Z 1 5 0.0616
AIXBT 0 3 0.0205 410 410
ZEREBRO 0 3 0.0078 560 720
BIO 0 3 0.0252 2600 260
GRIFFAIN 0 3 0.00883 400 1200
SPX 1 5 0.279 5200 2200
S 0 5 0.0449 1600 1100
MORPHO 1 5 1.18 2700 3700
TRUMP 1 52 3.3 9500 6400
MELANIA 1 3 0.123 840 1300
ANIME
VINE 0 3 0.0181 760 430
VVV 2 3 1.81 220 1700
JELLY 0 3 0.0376
BERA 1 5 0.395 4100 3000
TST 0 3 0.0104 120 130
LAYER 0 3 0.0815 130 360
IP 1 3 1.22 5000 5200
OM 1 3 0.0436 800 1400
KAITO 0 5 0.315 1000 1500
NIL 0 3 0.0433 130 360
PAXG 3 51 4900 6900 87000
PROMPT 0 3 0.0489 380 2200
BABY 0 3 0.0124 310 220
WCT 0 3 0.0558 120 400
HYPER 0 3 0.0941 840 510
ZORA 0 3 0.0231 3400 1400
INIT 0 3 0.0653 470 710
DOOD 0 3 0.00366 220 390
LAUNCHCOIN 0 3 0.0604
NXPC 0 3 0.285 430 400
SOPH 0 3 0.0091 220 410
RESOLV 0 3 0.0772 1600 4600
SYRUP 0 3 0.262 850 2500
PUMP 0 52 0.00206 55000 45000
PROVE 0 3 0.298 1000 370
YZY 0 3 0.329 4100 570
XPL 0 51 0.081 25000 19000
WLFI 0 5 0.109 16000 13000
LINEA 0 3 0.00335 1400 920
SKY 0 3 0.0599 1700 1400
ASTER 0 5 0.527 35000 30000
AVNT 0 5 0.192 2800 1100
STBL 0 3 0.0388 750 2900
0G 0 3 0.516 1600 850
HEMI 0 3 0.011 530 2200
APEX 0 3 0.284 990 740
2Z 0 3 0.0909 1200 1400
ZEC 2 52 231 120000 51000
MON 0 5 0.0175 14000 25000
MET 0 3 0.203 2200 2200
MEGA 0 3s 0.122 710 4100
CC 0 3 0.166 5600 5400
ICP 1 5 2.38 4700 1500
AERO 0 3 0.318 2100 2200
STABLE 0 3 0.0173 5100 1700
FOGO 0 3 0.026 1400 980
LIT 0 5 1.56 34000 46000
XMR 3 5 301 21000 22000
AXS 1 5 1.32 8300 3400
DASH 2 5 36.5 2500 11000
SKR 0 3 0.026 9000 2000`

/** The perpetuals, in the order of the venue's list; of those that `Assets.ts` describes, only the coin. */
export const perpetuals: ReadonlyArray<ListedPerpetual | string> = rows.trim().split("\n").map((row) => {
  const [coin = "", sizeDecimals, table = "", price, dayValue = "0", interestValue = "0"] = row.split(" ")
  return sizeDecimals === undefined ? coin : {
    coin,
    sizeDecimals: Number(sizeDecimals),
    marginTable: Number.parseInt(table, 10),
    isStrictIsolated: table.endsWith("s"),
    price: Number(price),
    dayValue: Number(dayValue) * 1000,
    interestValue: Number(interestValue) * 1000
  }
})
