package hotpath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrLoad reports a load that cannot be measured. The wrapping error names the invalid value.
var ErrLoad = errors.New("invalid load")

// Load describes the traffic of publishers and receivers.
type Load struct {
	Publishers int `json:"publishers"`
	Receivers  int `json:"receivers"`
	// Together makes the first publishers receivers as well, in the same peer connection. Receivers includes these
	// receivers.
	Together bool `json:"together,omitempty"`
	// Tracks is the number of tracks per publisher that every receiver subscribes to. UnwatchedTracks is the number
	// without subscribers. With more than one of Qualities, each of Tracks stands for that number of tracks, and
	// receivers get the track of the highest quality.
	Tracks          int `json:"tracks"`
	Qualities       int `json:"qualities"`
	UnwatchedTracks int `json:"unwatched_tracks"`
	// Mbps is the total rate of the tracks of all publishers, in 10^6 bit/s of frames. Unwatched tracks have the same
	// rate each, in addition.
	Mbps float64 `json:"mbps"`
	// FrameRate is in frames per second.
	FrameRate float64 `json:"fps"`
	// Spread is the part of the frame interval over which a frame's packets are sent; 0 sends each frame at once.
	Spread float64 `json:"spread"`
	// Loss is the share of packets lost between server and receivers in each direction; RTT is the round-trip time of
	// that path. If either is set, receivers are whole clients that send NACKs.
	Loss float64       `json:"loss"`
	RTT  time.Duration `json:"-"`
	// RTTMilliseconds is RTT for reports.
	RTTMilliseconds float64 `json:"rtt_ms"`
}

// defaultSpread is the default of the client library.
const defaultSpread = 0.4

// DefaultLoad returns the load of the first claim: 4 tracks of one publisher with 50 Mbit/s in total, forwarded to 10
// receivers.
func DefaultLoad() Load {
	return Load{Publishers: 1, Receivers: 10, Tracks: 4, Qualities: 1, Mbps: 50, FrameRate: 30, Spread: defaultSpread}
}

// Validate reports the first invalid value.
func (l Load) Validate() error {
	tracks := l.Tracks*l.Qualities + l.UnwatchedTracks
	switch {
	case l.Publishers < 1 || l.Receivers < 0:
		return fmt.Errorf("%w: %d publishers and %d receivers, expected at least 1 and 0", ErrLoad, l.Publishers,
			l.Receivers)
	case l.Together && l.Receivers < l.Publishers:
		return fmt.Errorf("%w: %d publishers that also receive and %d receivers, expected at least as many receivers",
			ErrLoad, l.Publishers, l.Receivers)
	case l.Tracks < 1 || l.Tracks > volumetric.MaxTiles || l.UnwatchedTracks < 0 ||
		l.UnwatchedTracks > volumetric.MaxTiles:
		return fmt.Errorf("%w: %d tracks and %d unwatched tracks, expected 1 to %d and 0 to %d", ErrLoad, l.Tracks,
			l.UnwatchedTracks, volumetric.MaxTiles, volumetric.MaxTiles)
	case l.Qualities < 1 || l.Qualities > volumetric.MaxQualities:
		return fmt.Errorf("%w: %d qualities, expected 1 to %d", ErrLoad, l.Qualities, volumetric.MaxQualities)
	case !(l.FrameRate > 0 && l.FrameRate <= 1000):
		return fmt.Errorf("%w: %g frames per second, expected more than 0, up to 1000", ErrLoad, l.FrameRate)
	case !(l.Mbps > 0) || l.rawFrameBytes() > payload.MaxFrameBytes:
		return fmt.Errorf("%w: %g Mbit/s over %d tracks at %g fps, expected more than 0 and frames of at most %d bytes",
			ErrLoad, l.Mbps, tracks, l.FrameRate, payload.MaxFrameBytes)
	case !(l.Spread >= 0 && l.Spread <= 1):
		return fmt.Errorf("%w: a spread of %g frame intervals, expected 0 to 1", ErrLoad, l.Spread)
	case !(l.Loss >= 0 && l.Loss < 1) || l.RTT < 0 || l.RTT > time.Minute:
		return fmt.Errorf("%w: loss %g and round-trip time %v, expected a share below 1 and up to a minute", ErrLoad,
			l.Loss, l.RTT)
	}
	return nil
}

// impaired reports whether the path between server and receivers has loss or delay.
func (l Load) impaired() bool { return l.Loss > 0 || l.RTT > 0 }

// rawFrameBytes returns the size of one frame by the bit rate.
func (l Load) rawFrameBytes() float64 {
	return l.Mbps * 1e6 / 8 / l.FrameRate / float64(l.Publishers*l.Tracks*l.Qualities)
}

// frameBytes returns the size of each frame, enlarged if necessary so that the last fragment has room for a stamp.
func (l Load) frameBytes() int {
	bytes := max(int(math.Round(l.rawFrameBytes())), stampBytes)
	if rest := bytes % payload.FragmentSize; rest > 0 && rest < stampBytes {
		bytes += stampBytes - rest
	}
	return bytes
}

// packetsPerFrame returns the number of packets of each frame.
func (l Load) packetsPerFrame() int { return payload.SourceFragments(l.frameBytes()) }

// wireRate returns the rate on the wire that a receiver gets, in bit/s.
func (l Load) wireRate() float64 {
	packets := l.packetsPerFrame()
	bytes := l.frameBytes() + packets*(payload.DescriptorSize+congestion.PacketOverhead)
	return float64(8*bytes*l.Publishers*l.Tracks) * l.FrameRate
}

// streams returns the number of streams for the receiver with this number: the streams of all publishers except itself.
func (l Load) streams(receiver int) int {
	if l.Together && receiver < l.Publishers {
		return (l.Publishers - 1) * l.Tracks
	}
	return l.Publishers * l.Tracks
}

// watchers returns the number of receivers of each publisher's tracks.
func (l Load) watchers() int {
	if l.Together {
		return l.Receivers - 1
	}
	return l.Receivers
}

// watches reports whether a receiver gets a publisher's tracks, both by index. A publisher in a common room does not
// receive its own tracks.
func (l Load) watches(receiver, publisher int) bool { return !l.Together || receiver != publisher }

// timesTaken bounds the packets per second that are decrypted to read their times. Decryption of this rate uses about 5
// % of a core with Pion's receiving path.
const timesTaken = 10_000

// every returns the interval, in packets, between packets of one receiver whose times are measured.
func (l Load) every() int {
	perSecond := float64(l.Publishers*l.Tracks*l.packetsPerFrame()) * l.FrameRate
	return max(1, int(math.Ceil(perSecond/timesTaken)))
}

// stampBytes is the size of the stamp at the beginning of every fragment's data: the sending times of the fragment and
// of the first fragment of its frame, in nanoseconds since 1970.
const stampBytes = 16

// writeStamp writes both times into a payload, after its descriptor.
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
