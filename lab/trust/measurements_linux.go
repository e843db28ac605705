package trust

// measurements are the parts of each check, by the check's number.
var measurements = map[int][]measurement{
	// Networks, relay, certificates.
	3: {renewals},

	// Encryption.

	// Rooms.

	// WHIP, WHEP, recordings.
	10: {recorded},

	// Attacks and fuzzed inputs.
	11: {attacks},
	12: {fuzzed},
}
