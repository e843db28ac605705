package sfu

import (
	"slices"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Profile is how clients of one protocol take part in a room. All clients of the protocol share it, and it does not
// change.
type Profile struct {
	// Name is the protocol's name in the log.
	Name string
	// Resumes says that a client whose websocket broke may come back within the grace time, for which its place is
	// kept.
	Resumes bool
	// TakesLeave says that a client sends a message before it leaves: a peer connection that ends without one has
	// failed.
	TakesLeave bool
	// Acknowledges says that a client acknowledges assignments. The slots of other clients carry their assignments once
	// their lines are negotiated.
	Acknowledges bool
	// Parity says that a client reads parity packets.
	Parity bool
	// Traces says that a client can be asked for the times of its frames.
	Traces bool
	// Converted says that a client publishes in VR2Gather's packets, which the data plane converts. Its publications
	// are announced to the others once a first frame has come.
	Converted bool
	// Named returns what sends the packets of a line, if lines have names by which the client knows what they carry: no
	// line is spare, and none changes its publication. If Named is nil, lines have no names.
	Named func(egress.Outlet, subscriber.Name) NamedOutlet
	// Withheld returns why a client cannot be sent a publication, empty if it can. If Withheld is nil, a client can be
	// sent all publications.
	Withheld func(*volumetric.Publication) string
	// OnePerKind says that a client takes one publication of each kind from each publisher.
	OnePerKind bool
}

// NamedOutlet sends the packets of a line that has a name.
type NamedOutlet interface {
	egress.Outlet
	subscriber.NamedOutput
}

// signallingProfile is that of clients that speak signalling v1.
var signallingProfile = Profile{
	Name: "signalling", Resumes: true, TakesLeave: true, Acknowledges: true, Parity: true, Traces: true,
}

// reads reports whether a client can be sent a publication.
func (f *Profile) reads(p *publication) bool {
	return f.Withheld == nil || f.Withheld(&p.Description) == ""
}

// first returns the index of the publication of a kind that a client can be sent, of those of one publisher, -1 if
// there is none.
func (f *Profile) first(publications []*publication, kind volumetric.Kind) int {
	return slices.IndexFunc(publications, func(p *publication) bool { return p.Description.Kind == kind && f.reads(p) })
}

// second reports whether its publisher has another publication of that kind that a client can be sent, and had it
// before.
func (f *Profile) second(publications []*publication, p *publication) bool {
	first := f.first(publications, p.Description.Kind)
	return first >= 0 && publications[first] != p
}
