package sfu

import "github.com/volsfu/volsfu/pkg/volumetric"

// profile is how clients of one protocol take part in a room. It is shared by all of them, and does not change.
type profile struct {
	// resumes says that a client whose websocket broke may come back within the grace time, for which its place is
	// kept.
	resumes bool
	// takesLeave says that a client sends a message before it leaves: a peer connection that ends without one has
	// failed.
	takesLeave bool
	// acknowledges says that a client acknowledges assignments; the slots of others carry them once their lines are
	// there.
	acknowledges bool
	// parity says that a client reads parity packets.
	parity bool
	// traces says that a client can be asked for the times of its frames.
	traces bool
	// converted says that what a client publishes has another payload than v1, which the server converts, and is
	// announced to the others once a first frame has come.
	converted bool
	// namedLines says that each line to a client has a name, by which the client knows what the line carries: no line
	// is spare, and none changes its publication.
	namedLines bool
	// withheld returns why a client cannot be sent a publication, empty if it can. If withheld is nil, it can be sent
	// all.
	withheld func(*volumetric.Publication) string
	// onePerKind says that a client takes one publication of each kind from each publisher.
	onePerKind bool
}

var (
	// signallingProfile is that of clients that speak signalling v1.
	signallingProfile = profile{resumes: true, takesLeave: true, acknowledges: true, parity: true, traces: true}
	// vr2GatherProfile is that of clients that speak VR2Gather's dialect.
	vr2GatherProfile = profile{converted: true, namedLines: true, withheld: withheld, onePerKind: true}
)
