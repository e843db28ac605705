package admin

import "time"

// ServerState is the state of the whole server. Counters start with the server.
type ServerState struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	// Now is the server's time at this state.
	Now time.Time `json:"now"`
	// Draining is set if the server refuses new participants and stops when all have left.
	Draining   bool `json:"draining"`
	Goroutines int  `json:"goroutines"`
	// Tracks counts incoming streams, Slots outgoing ones, ActiveSlots those that forward a track.
	Tracks      int   `json:"tracks"`
	Slots       int   `json:"slots"`
	ActiveSlots int   `json:"active_slots"`
	CacheBytes  int64 `json:"cache_bytes"`
	// Received and Sent count packets by kind.
	Received Traffic `json:"received"`
	Sent     Traffic `json:"sent"`
	Frames   Frames  `json:"frames"`
	Switches uint64  `json:"switches"`
	NACKs    NACKs   `json:"nacks"`
	// Residence is the time of packets in the server without pacing delay, in milliseconds since the server started.
	ResidenceP50 float64 `json:"residence_p50_ms"`
	ResidenceP99 float64 `json:"residence_p99_ms"`
	// Addresses are the addresses of the media port that clients are told. TURN is nil without a TURN server.
	Addresses []string   `json:"addresses"`
	TURN      *TURNState `json:"turn,omitempty"`
}

// TURNState is the state of the server's TURN server.
type TURNState struct {
	// URLs are the URLs that clients are told.
	URLs []string `json:"urls"`
	// Tested is set when the self-test at the start has ended. Error is its failure, empty if TURN works.
	Tested bool   `json:"tested"`
	Error  string `json:"error,omitempty"`
}

// Traffic counts bytes of packets' payload by kind.
type Traffic struct {
	Packets        uint64 `json:"packets"`
	Media          uint64 `json:"media_bytes"`
	Parity         uint64 `json:"parity_bytes"`
	Retransmission uint64 `json:"retransmission_bytes"`
	Audio          uint64 `json:"audio_bytes"`
	Probe          uint64 `json:"probe_bytes"`
}

// Frames counts frames forwarded to receivers, and frames dropped whole, by reason.
type Frames struct {
	Forwarded uint64 `json:"forwarded"`
	Late      uint64 `json:"dropped_late"`
	Overrun   uint64 `json:"dropped_overrun"`
	Budget    uint64 `json:"dropped_budget"`
}

// NACKs counts lost packets and requests for them. Received counts NACK messages from receivers, Answered packets
// retransmitted to them. Requested counts requests to publishers, repeated ones included. Recovered, Delayed and Lost
// count packets of publishers, each once: retransmitted on request, requested but arrived without retransmission, and
// given up. A packet that arrives after that remains in Lost.
type NACKs struct {
	Received  uint64 `json:"received"`
	Answered  uint64 `json:"answered"`
	Requested uint64 `json:"requested"`
	Recovered uint64 `json:"recovered"`
	Delayed   uint64 `json:"delayed"`
	Lost      uint64 `json:"lost"`
}
