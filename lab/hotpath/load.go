package hotpath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrLoad says that a load cannot be measured; it is wrapped with what is wrong.
var ErrLoad = errors.New("invalid load")

// Load is what publishers send and receivers take.
type Load struct {
	Publishers int `json:"publishers"`
	Receivers  int `json:"receivers"`
	// Together makes the first publishers receivers as well, in the same peer connection; Receivers counts them.
	Together bool `json:"together,omitempty"`
	// Tracks per publisher are taken by every receiver; UnwatchedTracks by nobody. With more than one of Qualities each of Tracks is as many tracks, of
	// which the highest quality is taken.
	Tracks          int `json:"tracks"`
	Qualities       int `json:"qualities"`
	UnwatchedTracks int `json:"unwatched_tracks"`
	// Mbps is what the tracks of all publishers have together, in 10^6 bit/s of frames; unwatched tracks have the same rate each, on top.
	Mbps float64 `json:"mbps"`
	// FrameRate is in frames per second.
	FrameRate float64 `json:"fps"`
	// Spread is the part of the frame interval over which a frame's packets are sent; 0 sends each frame at once.
	Spread float64 `json:"spread"`
	// Loss is the share of packets that is lost between server and receivers, each way; RTT the round-trip time there. With either, receivers are whole
	// clients that ask for what is missing.
	Loss float64       `json:"loss"`
	RTT  time.Duration `json:"-"`
	// RTTMilliseconds is RTT for reports.
	RTTMilliseconds float64 `json:"rtt_ms"`
}

// defaultSpread is what the client library does by default.
const defaultSpread = 0.4

// DefaultLoad is the load of the first claim: 4 tracks of one publisher with 50 Mbit/s together, taken by 10 receivers.
func DefaultLoad() Load {
	return Load{Publishers: 1, Receivers: 10, Tracks: 4, Qualities: 1, Mbps: 50, FrameRate: 30, Spread: defaultSpread}
}

// Validate reports the first thing that is wrong.
func (l Load) Validate() error {
	tracks := l.Tracks*l.Qualities + l.UnwatchedTracks
	switch {
	case l.Publishers < 1 || l.Receivers < 0:
		return fmt.Errorf("%w: %d publishers and %d receivers, expected at least 1 and 0", ErrLoad, l.Publishers, l.Receivers)
	case l.Together && l.Receivers < l.Publishers:
		return fmt.Errorf("%w: %d publishers among %d receivers", ErrLoad, l.Publishers, l.Receivers)
	case l.Tracks < 1 || l.Tracks > volumetric.MaxTiles || l.UnwatchedTracks < 0 || l.UnwatchedTracks > volumetric.MaxTiles:
		return fmt.Errorf("%w: %d tracks and %d unwatched tracks, expected 1 to %d and 0 to %d", ErrLoad, l.Tracks, l.UnwatchedTracks, volumetric.MaxTiles, volumetric.MaxTiles)
	case l.Qualities < 1 || l.Qualities > volumetric.MaxQualities:
		return fmt.Errorf("%w: %d qualities, expected 1 to %d", ErrLoad, l.Qualities, volumetric.MaxQualities)
	case !(l.FrameRate > 0 && l.FrameRate <= 1000):
		return fmt.Errorf("%w: %g frames per second, expected more than 0, up to 1000", ErrLoad, l.FrameRate)
	case !(l.Mbps > 0) || l.rawFrameBytes() > payload.MaxFrameBytes:
		return fmt.Errorf("%w: %g Mbit/s over %d tracks at %g fps, expected more than 0, and frames of at most %d bytes", ErrLoad, l.Mbps, tracks, l.FrameRate, payload.MaxFrameBytes)
	case !(l.Spread >= 0 && l.Spread <= 1):
		return fmt.Errorf("%w: a spread of %g frame intervals, expected 0 to 1", ErrLoad, l.Spread)
	case !(l.Loss >= 0 && l.Loss < 1) || l.RTT < 0 || l.RTT > time.Minute:
		return fmt.Errorf("%w: loss %g and round-trip time %v, expected a share below 1 and up to a minute", ErrLoad, l.Loss, l.RTT)
	}
	return nil
}

// impaired says that something lies between server and receivers.
func (l Load) impaired() bool { return l.Loss > 0 || l.RTT > 0 }

// rawFrameBytes is one frame's share of the bit rate.
func (l Load) rawFrameBytes() float64 {
	return l.Mbps * 1e6 / 8 / l.FrameRate / float64(l.Publishers*l.Tracks*l.Qualities)
}

// frameBytes is the size of each frame: such that its last fragment has room for a stamp.
func (l Load) frameBytes() int {
	bytes := max(int(math.Round(l.rawFrameBytes())), stampBytes)
	if rest := bytes % payload.FragmentSize; rest > 0 && rest < stampBytes {
		bytes += stampBytes - rest
	}
	return bytes
}

// packetsPerFrame is the number of packets of each frame.
func (l Load) packetsPerFrame() int { return payload.SourceFragments(l.frameBytes()) }

// streams is how many streams the receiver with this number gets: those of all publishers but itself.
func (l Load) streams(receiver int) int {
	if l.Together && receiver < l.Publishers {
		return (l.Publishers - 1) * l.Tracks
	}
	return l.Publishers * l.Tracks
}

// watchers is how many receivers take each publisher's tracks.
func (l Load) watchers() int {
	if l.Together {
		return l.Receivers - 1
	}
	return l.Receivers
}

// watches tells whether a receiver takes a publisher's tracks, both by their places: who publishes in a common room does not take its own.
func (l Load) watches(receiver, publisher int) bool { return !l.Together || receiver != publisher }

// timesTaken bounds how many packets per second are decrypted to take their times: it costs a core about 5 % with Pion's receiving path.
const timesTaken = 10_000

// every is how many packets one receiver gets for one whose times are taken.
func (l Load) every() int {
	perSecond := float64(l.Publishers*l.Tracks*l.packetsPerFrame()) * l.FrameRate
	return max(1, int(math.Ceil(perSecond/timesTaken)))
}

// stampBytes is what begins the data of every fragment: when it was sent, and when the first fragment of its frame was, in nanoseconds since 1970.
const stampBytes = 16

// writeStamp writes both times into a payload, behind its descriptor.
func writeStamp(packet []byte, sent, begun time.Time) {
	binary.BigEndian.PutUint64(packet[payload.DescriptorSize:], uint64(sent.UnixNano()))
	binary.BigEndian.PutUint64(packet[payload.DescriptorSize+8:], uint64(begun.UnixNano()))
}

// readStamp reads both times.
func readStamp(packet []byte) (sent, begun time.Time, ok bool) {
	if len(packet) < payload.DescriptorSize+stampBytes {
		return sent, begun, false
	}
	sent = time.Unix(0, int64(binary.BigEndian.Uint64(packet[payload.DescriptorSize:])))
	begun = time.Unix(0, int64(binary.BigEndian.Uint64(packet[payload.DescriptorSize+8:])))
	return sent, begun, true
}
