package trust

// measurements are the parts of each check, by the check's number.
var measurements = map[int][]measurement{
	// Networks, relay, certificates.
	1: {networks},
	2: {relayCost},
	3: {renewals},
	4: {relayAttacks},

	// Encryption.
	5: {keys},
	6: {lossy, browsers},

	// Rooms.
	7: {dataMessages},
	8: {downlinks},

	// WHIP, WHEP, recordings.
	9:  {encoders},
	10: {recorded},

	// Attacks and fuzzed inputs.
	11: {attacks},
	12: {fuzzed},
}
