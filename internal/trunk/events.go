package trunk

import (
	"net/netip"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Event is an event of Host.Step.
type Event interface{ event() }

// Events about a trunk.
type (
	// Linked reports that a trunk is there.
	Linked struct {
		Node        string
		Incarnation uint64
		Version     int
	}
	// Unlinked reports that a trunk has ended: the demand of the node has ended, and its tracks are not bound.
	Unlinked struct {
		Node        string
		Incarnation uint64
		Reason      string
	}
	// Heard reports that authenticated packets of a node have arrived, at most once per heardInterval.
	Heard struct {
		Node        string
		Incarnation uint64
	}
	// Silent reports that nothing has arrived from a node for SilentAfter.
	Silent struct {
		Node        string
		Incarnation uint64
	}
	// Refused reports a remote server that could not open a trunk, with the reason.
	Refused struct {
		Address netip.AddrPort
		Reason  string
	}
	// Received passes a payload of another node's Send.
	Received struct {
		Node    string
		Payload []byte
	}
)

// Events about a publication.
type (
	// Took is the whole demand of a node for a publication of this node.
	Took struct {
		Node, Room string
		Ref        volumetric.PublicationRef
		ID         uint64
		Tiles      []allocate.QualitySet
		Near       []bool
		Parity     float64
	}
	// Rates are the rates of the tracks of a publication of another node, 0 if unknown.
	Rates struct {
		Node, Room string
		Ref        volumetric.PublicationRef
		ID         uint64
		Rates      []volumetric.Bitrate
	}
	// GaveUp are the qualities that the publisher of a mirrored publication has given up.
	GaveUp struct {
		Node, Room string
		Ref        volumetric.PublicationRef
		ID         uint64
		Tiles      []allocate.QualitySet
	}
	// Masked are the qualities of a mirrored publication that the trunk does not carry.
	Masked struct {
		Node, Room string
		Ref        volumetric.PublicationRef
		ID         uint64
		Tiles      []allocate.QualitySet
	}
)

func (Linked) event()   {}
func (Unlinked) event() {}
func (Heard) event()    {}
func (Silent) event()   {}
func (Refused) event()  {}
func (Received) event() {}
func (Took) event()     {}
func (Rates) event()    {}
func (GaveUp) event()   {}
func (Masked) event()   {}

// LinkState is the state of a trunk.
type LinkState struct {
	Node        string
	Incarnation uint64
	Lanes       int
	RTT         time.Duration
	// Offset is added to times of this node to convert them to the other node's clock. Bound is the maximum error.
	// Both are valid if Known is set.
	Offset, Bound time.Duration
	Known         bool
	// Estimate is the sum of the estimates of the lanes, 0 while unknown.
	Estimate volumetric.Bitrate
	Silent   bool
}

// Stats are counters since Listen.
type Stats struct {
	// Links is the number of trunks. Opened and Closed count trunks, Refused handshakes that failed, among them
	// WrongCertificate with a certificate that does not belong to the cluster.
	Links                                     int
	Opened, Closed, Refused, WrongCertificate uint64
	// Untaken counts packets of tracks that were not taken, Malformed refused control messages, Limited payloads that
	// were not sent because of a limit, Ignored datagrams that opened no trunk.
	Untaken, Malformed, Limited, Ignored uint64
	// Masked is the number of taken tracks that the trunks do not carry.
	Masked int
}
