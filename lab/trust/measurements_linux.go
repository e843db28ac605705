package trust

// measurements are the parts of each check, by the check's number.
var measurements = map[int][]measurement{
	// Networks, relay, certificates.
	3: {renewals},

	// Encryption.

	// Rooms.
	7: {dataMessages},

	// WHIP, WHEP, recordings.

	// Attacks and fuzzed inputs.
	11: {attacks},
	12: {fuzzed},
}
