package edge

import (
	"errors"
	"net/netip"
	"time"
)

// Errors of Set.
var (
	ErrUnknownRule = errors.New("unknown rule")
	ErrUnknownPath = errors.New("unknown path")
	ErrOrder       = errors.New("invalid order")
)

// Triggers of an Order.
const (
	TriggerStart = "start"
	TriggerStop  = "stop"
)

// Order is a wish of an operator or a program for one rule or for all rules.
type Order struct {
	// Rule is the name of a rule, or "" for all.
	Rule string `json:"rule,omitempty"`
	// Copies replaces the copies of the rule until the edge ends. Nil keeps them.
	Copies *Copies `json:"copies,omitempty"`
	// Trigger starts or stops the copies of a rule in mode auto: TriggerStart, TriggerStop, or "" for neither.
	Trigger string `json:"trigger,omitempty"`
}

// PathState is the ability of a path to carry packets of this edge.
type PathState string

// States of a path.
const (
	PathUp          PathState = "up"
	PathNoInterface PathState = "no-interface" // the interface does not exist
	PathDown        PathState = "down"         // the interface is down or has no carrier
	PathNoAddress   PathState = "no-address"   // the interface does not have the local address
	PathNoRoute     PathState = "no-route"     // no route over the interface leads to the remote address
	PathNoNeighbour PathState = "no-neighbour" // the address of the next hop on the link is not known
)

// Status is a snapshot of an edge. All counts are since the edge was attached: they continue after a readoption.
type Status struct {
	Name    string    `json:"name"`
	Peer    string    `json:"peer"`
	Started time.Time `json:"started"`
	// Readopted reports whether the process found the programs of a process that had died.
	Readopted bool `json:"readopted"`
	// Format, Epoch and Rules are those of the sender, and empty without one.
	Format string `json:"format,omitempty"`
	Epoch  uint16 `json:"epoch,omitempty"`
	// PeerAlive reports whether packets may be copied: a report of the other edge arrived within the last second, and
	// it has not left. Without a sender: whether any valid message arrived within the last second.
	PeerAlive bool          `json:"peer_alive"`
	Paths     []PathStatus  `json:"paths"`
	Rules     []RuleStatus  `json:"rules,omitempty"`
	Sent      SentTotals    `json:"sent"`
	Control   ControlCounts `json:"control"`
}

// SentTotals are counts of the sender.
type SentTotals struct {
	// Packets and Bytes are those of the packets that the rules selected, each counted once, without headers of copies.
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	// Plain packets were selected, but left unchanged: the other edge did not live. Refused ones cannot be numbered.
	Plain   uint64 `json:"plain"`
	Refused uint64 `json:"refused"`
	// CostFactor is the packets sent on all paths per selected packet: 1 without copies, 0 before the first packet.
	CostFactor float64 `json:"cost_factor"`
}

// PathStatus is the state of a path.
type PathStatus struct {
	Name      string     `json:"name"`
	Interface string     `json:"interface"`
	Local     netip.Addr `json:"local"`
	Remote    netip.Addr `json:"remote"`
	// MTU is the largest outer packet in bytes, 0 while the interface does not exist.
	MTU      int          `json:"mtu"`
	State    PathState    `json:"state"`
	Sent     PathSent     `json:"sent"`
	Received PathReceived `json:"received"`
	Report   *PathReport  `json:"report,omitempty"`
}

// PathSent are the counts of a sender on a path.
type PathSent struct {
	Packets      uint64 `json:"packets"`
	Bytes        uint64 `json:"bytes"`
	FailedClones uint64 `json:"failed_clones"`
	Oversize     uint64 `json:"oversize"`
}

// PathReceived are the counts of a receiver on a path.
type PathReceived struct {
	Packets   uint64 `json:"packets"`
	Bytes     uint64 `json:"bytes"`
	First     uint64 `json:"first"`
	Repeated  uint64 `json:"repeated"`
	Outside   uint64 `json:"outside"`
	Malformed uint64 `json:"malformed"`
	Refused   uint64 `json:"refused"`
	// Congested copies were dropped: the path has marked them, and the inner packet cannot carry the mark (RFC 6040).
	Congested uint64 `json:"congested"`
}

// PathReport contains the facts that the other edge last reported of a path.
type PathReport struct {
	// Loss, InTime and OnlyInTime are shares of the packets sent on the path: lost; in time; and in time on no other
	// path.
	Loss       float64 `json:"loss"`
	InTime     float64 `json:"in_time"`
	OnlyInTime float64 `json:"only_in_time"`
	// DelaySeconds is the delay above the fastest copy.
	DelaySeconds float64 `json:"delay_seconds"`
}

// RuleStatus is the state of a rule of the sender.
type RuleStatus struct {
	Name string `json:"name"`
	// To is the prefix of the destinations whose packets the rule selects.
	To     netip.Prefix `json:"to"`
	Copies Copies       `json:"copies"`
	// Set are the paths of the packets and Probes the paths that are only probed.
	Set       []string `json:"set"`
	Probes    []string `json:"probes"`
	Triggered bool     `json:"triggered"`
	// Reason is the reason of the last change of the set, and Since its time.
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
}

// ControlCounts are counts of control messages.
type ControlCounts struct {
	HellosSent      uint64 `json:"hellos_sent"`
	HellosReceived  uint64 `json:"hellos_received"`
	ReportsSent     uint64 `json:"reports_sent"`
	ReportsReceived uint64 `json:"reports_received"`
	// Malformed, Forged, Replayed and Reflected messages were dropped. Stale messages have a valid authentication code,
	// and do not answer a message of the last second.
	Malformed uint64 `json:"malformed"`
	Forged    uint64 `json:"forged"`
	Replayed  uint64 `json:"replayed"`
	Reflected uint64 `json:"reflected"`
	Stale     uint64 `json:"stale"`
	// Misplaced messages arrived on another path than the other edge sent them on.
	Misplaced uint64 `json:"misplaced"`
}
