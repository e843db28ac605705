package admin

import "time"

// ServerState is what goes on in the server as a whole. Counts are since it started.
type ServerState struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	// Now is the server's clock when it said so.
	Now time.Time `json:"now"`
	// Draining says that the server takes nobody new and ends when all have gone.
	Draining   bool `json:"draining"`
	Goroutines int  `json:"goroutines"`
	// Tracks are incoming streams, Slots outgoing ones, ActiveSlots those that carry something.
	Tracks      int   `json:"tracks"`
	Slots       int   `json:"slots"`
	ActiveSlots int   `json:"active_slots"`
	CacheBytes  int64 `json:"cache_bytes"`
	// Received and Sent are packets by what they are.
	Received Traffic `json:"received"`
	Sent     Traffic `json:"sent"`
	Frames   Frames  `json:"frames"`
	Switches uint64  `json:"switches"`
	NACKs    NACKs   `json:"nacks"`
	// Residence is how long packets stay in the server besides what pacing holds them, in milliseconds since the server started.
	ResidenceP50 float64 `json:"residence_p50_ms"`
	ResidenceP99 float64 `json:"residence_p99_ms"`
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

// Frames counts frames forwarded to receivers, and those dropped whole, by reason.
type Frames struct {
	Forwarded uint64 `json:"forwarded"`
	Late      uint64 `json:"dropped_late"`
	Overrun   uint64 `json:"dropped_overrun"`
	Budget    uint64 `json:"dropped_budget"`
}

// NACKs counts lost packets and requests for them. Received are NACK messages of receivers, Answered packets sent
// again to them. Requested counts requests to publishers, repeated ones included. Recovered, Delayed and Lost count
// packets of publishers, each once: those retransmitted on request, those requested that came by themselves, and those
// given up.
type NACKs struct {
	Received  uint64 `json:"received"`
	Answered  uint64 `json:"answered"`
	Requested uint64 `json:"requested"`
	Recovered uint64 `json:"recovered"`
	Delayed   uint64 `json:"delayed"`
	Lost      uint64 `json:"lost"`
}
