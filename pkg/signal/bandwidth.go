package signal

import "github.com/volsfu/volsfu/pkg/volumetric"

const (
	// MaxBitrate bounds every rate in a message: 1 Tbit/s, so that sums of them stay far from the end of 64 bits.
	MaxBitrate volumetric.Bitrate = 1e12
	// MaxParity is the largest share of parity packets that a publisher is asked for.
	MaxParity = 0.25
)

// BitrateLimits bound what a receiver is sent. 0 is no limit of the receiver's own; the server's limits hold in any case.
type BitrateLimits struct {
	Max volumetric.Bitrate `json:"max_bps,omitempty"`
	// Min is what the receiver knows that its link carries: the server's estimate does not fall below it.
	Min volumetric.Bitrate `json:"min_bps,omitempty"`
	// Start is what the receiver believes that its link carries: the server's first estimate, until the receiver's first feedback of a peer connection.
	Start volumetric.Bitrate `json:"start_bps,omitempty"`
}

// SetLimits replaces the limits on what the receiver is sent.
type SetLimits struct {
	Header
	BitrateLimits
}

// Uplink says what a publisher cannot send for want of bandwidth. Each message is the whole state: what it does not name is sent, if wanted.
type Uplink struct {
	Header
	// Estimate is what the publisher's uplink carries, in bit/s; 0 where it does not know.
	Estimate volumetric.Bitrate `json:"estimate_bps"`
	// GaveUp are the tracks that it has stopped for that reason.
	GaveUp []OwnTrack `json:"gave_up"`
}

// OwnTrack names one track of the client's own.
type OwnTrack struct {
	Publication string             `json:"publication"`
	Tile        int                `json:"tile"`
	Quality     volumetric.Quality `json:"quality"`
}

// Wanted tells a publisher which of its tracks somebody takes, or soon may: the others need not be encoded or sent until a later message names
// them. Each message is the whole state of the publications that it names. Until the first one everything is wanted.
type Wanted struct {
	Header
	Publications []WantedPublication `json:"publications"`
}

// WantedPublication is what is wanted of one publication.
type WantedPublication struct {
	Publication string `json:"publication"`
	// Tiles are the wanted qualities of each tile, ascending.
	Tiles [][]volumetric.Quality `json:"tiles"`
	// Parity is how many parity packets the frames shall have, as a share of their source packets: 0 to MaxParity.
	Parity float64 `json:"parity,omitempty"`
}

// Bandwidth tells a receiver what the server thinks of its link, when it changes: at most twice per second, but at once where Estimate or Allocated falls by more than a quarter.
type Bandwidth struct {
	Header
	// Estimate is what the link carries.
	Estimate volumetric.Bitrate `json:"estimate_bps"`
	// Allocated is the rate of the qualities that the server has decided to send, without audio.
	Allocated volumetric.Bitrate `json:"allocated_bps"`
	// Wanted is the rate of what it would send if the link carried anything and everything were in sight.
	Wanted volumetric.Bitrate `json:"wanted_bps"`
}

// Validate implements Request.
func (m *SetLimits) Validate() error { return m.reply(m.check()) }

func (l BitrateLimits) check() error {
	if err := checkBitrate("max_bps", l.Max); err != nil {
		return err
	}
	if err := checkBitrate("min_bps", l.Min); err != nil {
		return err
	}
	if err := checkBitrate("start_bps", l.Start); err != nil {
		return err
	}
	if l.Max != 0 && l.Min > l.Max {
		return invalid("min_bps is %d, expected at most max_bps, which is %d", l.Min, l.Max)
	}
	if l.Max != 0 && l.Start > l.Max {
		return invalid("start_bps is %d, expected at most max_bps, which is %d", l.Start, l.Max)
	}
	if l.Start != 0 && l.Start < l.Min {
		return invalid("start_bps is %d, expected at least min_bps, which is %d", l.Start, l.Min)
	}
	return nil
}

func checkBitrate(what string, b volumetric.Bitrate) error {
	if b < 0 || b > MaxBitrate {
		return invalid("%s is %d, expected 0 to %d", what, b, MaxBitrate)
	}
	return nil
}

// Validate implements Request. Whether there are such tracks is not its matter: a publication may just have ended.
func (m *Uplink) Validate() error { return m.reply(m.check()) }

func (m *Uplink) check() error {
	if err := checkBitrate("estimate_bps", m.Estimate); err != nil {
		return err
	}
	if m.GaveUp == nil {
		return invalid("gave_up is missing")
	}
	if len(m.GaveUp) > MaxGaveUp {
		return invalid("%d tracks given up, expected at most %d", len(m.GaveUp), MaxGaveUp)
	}
	for _, track := range m.GaveUp {
		if err := volumetric.ValidateName("publication", track.Publication); err != nil {
			return err
		}
		if err := checkTile(track.Tile); err != nil {
			return err
		}
		if track.Quality < 0 || track.Quality >= volumetric.MaxQualities {
			return invalid("quality is %d, expected 0 to %d", track.Quality, volumetric.MaxQualities-1)
		}
	}
	return nil
}
