package sfu

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// Towards VR2Gather peers a line carries one tile of one client, or its sound: its name in the description says so, and packets name it, too. It does so for good, as
// long as there may be more lines. Once there may not, one that is idle takes another name with the next offer: newcomers would never be sent otherwise.

// namedOutlet is what a line towards a VR2Gather peer is sent on, under the name that it has. Its methods are safe for the data plane while it is renamed.
type namedOutlet struct {
	forward.Outlet
	payloadType uint8
	present     atomic.Pointer[forward.VR2GatherOutlet]
}

func newNamedOutlet(o forward.Outlet, name vr2gather.Track) *namedOutlet {
	n := &namedOutlet{Outlet: o, payloadType: description.PayloadTypeVR2GatherVideo}
	if name.Kind == volumetric.KindAudio {
		n.payloadType = description.PayloadTypeVR2GatherAudio
	}
	n.rename(name)
	return n
}

// rename has what follows go out under another name, whose frames are numbered anew.
func (n *namedOutlet) rename(name vr2gather.Track) {
	n.present.Store(forward.NewVR2GatherOutlet(n.Outlet, name, n.payloadType))
}

// Restart says that another publication follows.
func (n *namedOutlet) Restart() { n.present.Load().Restart() }

// Queue implements forward.Outlet.
func (n *namedOutlet) Queue(h *rtp.Header, body []byte) error { return n.present.Load().Queue(h, body) }

// RetransmissionSSRC implements forward.Outlet.
func (n *namedOutlet) RetransmissionSSRC() uint32 { return n.present.Load().RetransmissionSSRC() }

// PayloadType implements forward.Outlet.
func (n *namedOutlet) PayloadType(mime string) (media, retransmission uint8, ok bool) {
	return n.present.Load().PayloadType(mime)
}

// waitingFor finds the target that an idle slot is to carry, -1 where there is none.
func (t *slotTable) waitingFor(s *slot) int {
	waiting := t.waiting[s.kind]
	if !t.named {
		return min(len(waiting), 1) - 1
	}
	if s.name != nil {
		own := slices.IndexFunc(waiting, func(w *target) bool { return *s.name == nameOf(w) })
		if own >= 0 || t.count(s.kind) < t.limit {
			return own
		}
	}
	return slices.IndexFunc(waiting, func(w *target) bool { return !t.hasName(nameOf(w)) })
}

// name gives a line the name of what it is to carry, which a peer has to be told by an offer where the line has another.
func (t *slotTable) name(s *slot, name vr2gather.Track) {
	if s.name != nil && *s.name == name {
		return
	}
	s.renamed = s.offered != nil
	if s.renamed {
		t.renames++
	}
	s.name = &name
}

// answered takes the answer to an offer: lines that were renamed before it carry what their names say.
func (t *slotTable) answered() {
	for _, s := range t.slots {
		if !s.renamed || *s.offered != *s.name {
			continue
		}
		s.renamed = false
		s.acknowledged = s.generation
		if s.plain != nil {
			s.plain.rename(*s.name)
		}
	}
}

// hasName tells whether a line has that name.
func (t *slotTable) hasName(name vr2gather.Track) bool {
	return slices.ContainsFunc(t.slots, func(s *slot) bool { return s.name != nil && *s.name == name })
}

// namedCount is how many lines of a kind a VR2Gather peer shall have: those that there are, and one for each name that has none.
func (t *slotTable) namedCount(kind volumetric.Kind) int {
	n := t.count(kind)
	for _, w := range t.waiting[kind] {
		if !t.hasName(nameOf(w)) {
			n++
		}
	}
	return n
}

// offer notes the names that are about to be offered. Lines for which there is nothing any more get a name that nothing has: they could not be renamed later without
// another offer. Publications that end while their lines are being made are rare.
func (t *slotTable) offer() {
	for _, s := range t.slots {
		if s.name == nil {
			s.name = &vr2gather.Track{Kind: s.kind, Client: math.MaxUint32, Quality: nameQuality(s.kind)}
		}
		s.offered = s.name
	}
}
