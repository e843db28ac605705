package interop

import (
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
)

const testsPath = "test/interop"

// full runs tests at the load and with the settings of the claims. The tests' default suits a busy machine with the
// race detector.
const full = "-full"

// Checks returns the checks of interoperation, in the order of their numbers.
func Checks(progress lab.Progress) []lab.Check {
	check := func(title string, parts ...suite.Part) *suite.Tests {
		return &suite.Tests{Progress: progress, Title: title, Parts: parts}
	}
	return []lab.Check{
		check("two old peers and one v1 peer, each with 9 tiles × 3 qualities at 30 per second, 73 Mbit/s, and sound: "+
			"1,000 switches",
			suite.Part{Package: testsPath, Pattern: "^TestOldPeersSwitchOnTheServer$", Arguments: []string{full},
				Limit: 5 * time.Minute}),
		check("an old peer's released build, in a network namespace of 10.8.0.0/16",
			suite.Part{Package: testsPath, Pattern: "^TestShippedPeersReachTheServer$", Arguments: []string{full},
				Limit: 5 * time.Minute}),
		check("an old peer is killed, one leaves, one sends garbage; another old peer and two v1 peers continue",
			suite.Part{Package: testsPath, Pattern: "^TestLeavingTheServer$", Arguments: []string{full},
				Limit: 5 * time.Minute}),
		// 10,000 frames at 30 per second take 334 s.
		check("the bridge: 10,000 frames of 100 kB each way at 30 per second, lost ready datagrams, garbage",
			suite.Part{
				Package: testsPath, Pattern: "^TestBridge$", Arguments: []string{full, "-bridge.frames", "10000",
					"-bridge.rate", "30"}, Limit: 20 * time.Minute,
			}),
		check("the Unity package under Mono, and the C library",
			suite.Part{Package: testsPath, Pattern: "^TestUnity", Arguments: []string{full}, Limit: 10 * time.Minute,
				Counted: "tests of the Unity package passed"},
			suite.Part{Package: "clients/c", Pattern: ".", Limit: 10 * time.Minute,
				Counted: "tests of the C library passed"}),
	}
}
