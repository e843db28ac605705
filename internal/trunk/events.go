package trunk

import (
	"net/netip"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/forward/trace"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Event is an event of Host.Step.
type Event interface{ event() }

// Events about a trunk.
type (
	// Linked reports an open trunk.
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
	// PacketsReceived reports that authenticated packets of a node have arrived, at most once per receivedInterval.
	PacketsReceived struct {
		Node        string
		Incarnation uint64
	}
	// Silent reports that nothing has arrived from a node for SilentAfter.
	Silent struct {
		Node        string
		Incarnation uint64
	}
	// Refused reports a handshake that failed, with the reason. Omitted is the number of failed handshakes since the
	// last event Refused that were not reported, because they were more than refusalRate.
	Refused struct {
		Address netip.AddrPort
		Reason  string
		Omitted uint64
	}
	// PortFailed reports that the port for trunks cannot receive, or cannot be opened again. The host tries each second
	// to open the port.
	PortFailed struct{ Err error }
	// Unsent reports a control message that could not be sent, with the reason.
	Unsent struct{ Node, Reason string }
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
	// Relayed has the times of frames of a mirrored publication in the nodes before this one. Offset was added to the
	// times of the home, Bound is the maximum error for any network path, and Uncertainty the maximum error if both
	// directions of each path have the same delay.
	Relayed struct {
		Node, Room                 string
		Ref                        volumetric.PublicationRef
		ID                         uint64
		Offset, Bound, Uncertainty time.Duration
		Frames                     []trace.Relay
	}
	// Masked are the qualities of a mirrored publication that the trunk does not carry.
	Masked struct {
		Node, Room string
		Ref        volumetric.PublicationRef
		ID         uint64
		Tiles      []allocate.QualitySet
	}
)

func (Linked) event()          {}
func (Unlinked) event()        {}
func (PacketsReceived) event() {}
func (Silent) event()          {}
func (Refused) event()         {}
func (PortFailed) event()      {}
func (Unsent) event()          {}
func (Received) event()        {}
func (Took) event()            {}
func (Rates) event()           {}
func (GaveUp) event()          {}
func (Relayed) event()         {}
func (Masked) event()          {}
