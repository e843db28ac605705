package sfu

import (
	"slices"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Profile describes how clients of one protocol take part in a room. All clients of the protocol share the Profile,
// which does not change.
type Profile struct {
	// Name is the protocol's name in the log.
	Name string
	// Resumes is set if the place of a client whose websocket broke is kept for the grace time, in which the client may
	// resume.
	Resumes bool
	// TakesLeave is set if a client sends a message before it leaves. A peer connection that ends without the message
	// has failed.
	TakesLeave bool
	// Acknowledges is set if a client acknowledges assignments. Slots of other clients carry their assignments once
	// their lines are negotiated.
	Acknowledges bool
	// Offers is set if a client makes the only offer. ICE is restarted by the client alone.
	Offers bool
	// Parity is set if a client reads parity packets.
	Parity bool
	// Traces is set if a client can be asked for the times of its frames.
	Traces bool
	// TakesData is set if a client reads data messages.
	TakesData bool
	// Converted is set if a client publishes VR2Gather packets, which the data plane converts. A publication of the
	// client is announced to the others after its first frame.
	Converted bool
	// Named returns the outlet of a named line. If Named is not nil, lines have names by which the client identifies
	// their content: no line is spare, and a line does not change its publication.
	Named func(egress.Outlet, subscriber.Name) NamedOutlet
	// Withheld returns the reason why a client cannot receive a publication, empty if it can. If Withheld is nil, a
	// client can receive all publications.
	Withheld func(*volumetric.Publication) string
	// OnePerKind is set if a client can receive only one publication of each kind from each publisher.
	OnePerKind bool
}

// NamedOutlet sends the packets of a named line.
type NamedOutlet interface {
	egress.Outlet
	subscriber.NamedOutput
}

// signallingProfile is the profile of signalling v1.
var signallingProfile = Profile{
	Name: "signalling", Resumes: true, TakesLeave: true, Acknowledges: true, Parity: true, Traces: true,
	TakesData: true,
}

// reads reports whether a client can receive a publication.
func (f *Profile) reads(p *presence.Publication) bool {
	return f.Withheld == nil || f.Withheld(&p.Description) == ""
}

// first returns the index of the first of a publisher's publications that has the kind and that a client can receive,
// -1 if there is none.
func (f *Profile) first(publications []*presence.Publication, kind volumetric.Kind) int {
	return slices.IndexFunc(publications, func(p *presence.Publication) bool {
		return p.Description.Kind == kind && f.reads(p)
	})
}

// second reports whether the publisher has an earlier publication of the same kind that a client can receive.
func (f *Profile) second(publications []*presence.Publication, p *presence.Publication) bool {
	first := f.first(publications, p.Description.Kind)
	return first >= 0 && publications[first] != p
}
