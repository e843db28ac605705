package signal

import "github.com/volsfu/volsfu/pkg/volumetric"

const (
	// MaxBitrate is the upper bound of every bit rate in a message: 1 Tbit/s, so that sums of bit
	// rates stay far below the range of 64 bits.
	MaxBitrate volumetric.Bitrate = 1e12
	// MaxParity is the largest share of parity packets that the server requests from a publisher.
	MaxParity = 0.25
)

// BitrateLimits limits the bit rate sent to a receiver, in bit/s. A value of 0 sets no limit by the
// receiver; the limits of the server apply in any case.
type BitrateLimits struct {
	Max volumetric.Bitrate `json:"max_bps,omitempty"`
	// Min is the bit rate that the receiver's link is known to carry. The server's estimate does
	// not fall below Min.
	Min volumetric.Bitrate `json:"min_bps,omitempty"`
	// Start is the bit rate that the receiver expects its link to carry. The server uses Start as
	// its estimate on a peer connection until the receiver's first feedback.
	Start volumetric.Bitrate `json:"start_bps,omitempty"`
}

// SetLimits replaces the limits on the bit rate sent to the receiver.
type SetLimits struct {
	Header
	BitrateLimits
}

// Uplink reports the tracks that a publisher does not send because of insufficient bandwidth. Each
// message contains the complete state: the publisher sends every wanted track that the message does
// not name.
type Uplink struct {
	Header
	// Estimate is the estimated bit rate of the publisher's uplink, in bit/s; 0 means unknown.
	Estimate volumetric.Bitrate `json:"estimate_bps"`
	// GaveUp lists the tracks that the publisher has stopped because of insufficient bandwidth.
	GaveUp []OwnTrack `json:"gave_up"`
}

// OwnTrack names a track that the client itself publishes.
type OwnTrack struct {
	Publication string             `json:"publication"`
	Tile        int                `json:"tile"`
	Quality     volumetric.Quality `json:"quality"`
}

// Wanted reports to a publisher which of its tracks are received, or may soon be received, by any
// participant. The publisher need not encode or send the other tracks until a later message names
// them. Each message contains the complete state of the publications that it names. Before the
// first message all tracks are wanted.
type Wanted struct {
	Header
	Publications []WantedPublication `json:"publications"`
}

// WantedPublication lists the wanted tracks of one publication.
type WantedPublication struct {
	Publication string `json:"publication"`
	// Tiles contains the wanted qualities of each tile, in ascending order.
	Tiles [][]volumetric.Quality `json:"tiles"`
	// Parity is the requested number of parity packets per source packet of a frame, 0 to
	// MaxParity.
	Parity float64 `json:"parity,omitempty"`
	// LowestTaken reports for each tile whether a participant receives the lowest quality. The publisher copies the
	// frames of this quality on the second path. LowestTaken is nil for a publisher without a second path.
	LowestTaken []bool `json:"lowest_taken,omitempty"`
}

// Bandwidth reports the server's view of the receiver's link when the view changes: at most twice
// per second, but immediately if Estimate or Allocated falls by more than a quarter.
type Bandwidth struct {
	Header
	// Estimate is the estimated bit rate of the link.
	Estimate volumetric.Bitrate `json:"estimate_bps"`
	// Allocated is the bit rate of the qualities that the server has decided to send, without
	// audio.
	Allocated volumetric.Bitrate `json:"allocated_bps"`
	// Wanted is the bit rate that the server would send if the link had no limit and every tile
	// were in view.
	Wanted volumetric.Bitrate `json:"wanted_bps"`
	// L4S is the state of L4S on the hop to the receiver: off, testing, capable, marked, classic or
	// failed. It is empty if the server does not report it.
	L4S string `json:"l4s,omitempty"`
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

// Validate implements Request. The tracks need not exist, because a publication may just have
// ended.
func (m *Uplink) Validate() error { return m.reply(m.check()) }

func (m *Uplink) check() error {
	if err := checkBitrate("estimate_bps", m.Estimate); err != nil {
		return err
	}
	if err := checkList("gave_up", "tracks given up", m.GaveUp, MaxGaveUp); err != nil {
		return err
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
