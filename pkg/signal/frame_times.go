package signal

import (
	"encoding/json"
	"strconv"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// MaxFrameTimes is the maximum number of frames in a message, over all tracks: half a second of
	// 2,048 tile frames per second.
	MaxFrameTimes = 1024
	// FrameTimesHead is the number of values before the stamps of a frame: frame number, size in
	// bytes, and time of the first stamp.
	FrameTimesHead = 3
	// SenderStamps, ServerStamps and RelayStamps are the numbers of stamps per frame in messages about
	// senders, the server and the servers before it.
	SenderStamps = 11
	ServerStamps = 8
	RelayStamps  = 2
	// UnknownStamp is the value of a stamp that was not taken.
	UnknownStamp = -1
	// MaxStamp is the maximum time from the first stamp of a frame to any other, in nanoseconds:
	// one minute.
	MaxStamp = 60e9
	// MaxClockOffset is the maximum offset between two clocks, in nanoseconds: 100 years.
	MaxClockOffset = 100 * 366 * 86400 * 1e9
)

// Trace starts or stops messages about frame times. A client requests the times of the frames that
// the server sends to it. The server requests from a client the times of the frames that the client
// publishes, as long as any participant in the room has requested them.
type Trace struct {
	Header
	FrameTimes bool `json:"frame_times"`
}

// FrameHost identifies the host that took the stamps.
type FrameHost string

// The hosts of stamps in messages. Receivers keep their own stamps.
const (
	FrameHostSender FrameHost = "sender"
	FrameHostServer FrameHost = "server"
	// FrameHostRelay is the server of the sender, if it is not that of the receiver.
	FrameHostRelay FrameHost = "relay"
)

// ClockSource identifies the source of a host's time.
type ClockSource string

// The sources of time.
const (
	// ClockEstimated: the offset from the server's clock is estimated from round trips.
	ClockEstimated ClockSource = "estimated"
	// ClockSystem: the system's clock is assumed to be correct.
	ClockSystem ClockSource = "system"
	// ClockPTP: the system's clock is synchronized by the precision time protocol (IEEE 1588).
	ClockPTP ClockSource = "ptp"
)

// HostClock describes the conversion of a host's times to the server's clock. All values are in
// nanoseconds.
type HostClock struct {
	Source ClockSource `json:"source"`
	// Offset was added to the host's times.
	Offset int64 `json:"offset_ns"`
	// Bound is the maximum error for any network path. Uncertainty is the maximum error if both
	// directions of the path have the same delay.
	Bound       int64 `json:"bound_ns"`
	Uncertainty int64 `json:"uncertainty_ns"`
	// Disagreement is the estimated error of a clock that is assumed to be correct.
	Disagreement int64 `json:"disagreement_ns,omitempty"`
}

// FrameTimes contains the stamps that one host took of many frames, of all its tracks, about every
// half second. A publishing client sends its own stamps. The server forwards them, with the
// participant's name, to the participants that requested frame times, and adds messages with its
// own stamps, and with those of the servers that the frames have passed before.
type FrameTimes struct {
	Header
	Host  FrameHost `json:"host"`
	Clock HostClock `json:"clock"`
	// Tracks contains the tracks with their frames.
	Tracks []TrackTimes `json:"tracks"`
	// Dropped is the number of frames omitted since the previous message because there were too
	// many.
	Dropped int `json:"dropped,omitempty"`

	// text is the encoded message after Prepare.
	text []byte
}

// TrackTimes contains the stamps of frames of one tile at one quality.
type TrackTimes struct {
	// Participant is the publisher of the track. Only the server sets this field.
	Participant string             `json:"participant,omitempty"`
	Publication string             `json:"publication"`
	Tile        int                `json:"tile"`
	Quality     volumetric.Quality `json:"quality"`
	// Frames contains a list of integers per frame: the frame number, the size of the encoded tile
	// in bytes, the time of the first stamp in microseconds of UTC since 1970 by the server's
	// clock, and for each stamp of the host, in their order, the nanoseconds since the first stamp,
	// or UnknownStamp.
	Frames [][]int64 `json:"frames"`
}

// Validate implements Request.
func (m *Trace) Validate() error { return nil }

// Validate implements Request. The tracks need not exist, because a publication may just have
// ended.
func (m *FrameTimes) Validate() error { return m.reply(m.check()) }

func (m *FrameTimes) check() error {
	switch {
	case m.Host != FrameHostSender:
		return invalid("host is %.32q, expected %q from a client", m.Host, FrameHostSender)
	case m.Tracks == nil:
		return invalid("tracks is missing")
	case m.Dropped < 0:
		return invalid("dropped is %d, expected 0 or more", m.Dropped)
	}
	if err := m.Clock.check(); err != nil {
		return err
	}
	frames := 0
	for i := range m.Tracks {
		if err := m.Tracks[i].check(); err != nil {
			return err
		}
		// A track without frames counts as one frame, so that the number of tracks is bounded, too.
		if frames += max(1, len(m.Tracks[i].Frames)); frames > MaxFrameTimes {
			return invalid("the message has more than %d frames", MaxFrameTimes)
		}
	}
	return nil
}

func (c *HostClock) check() error {
	switch c.Source {
	case ClockEstimated, ClockSystem, ClockPTP:
	default:
		return invalid("clock.source is %.32q, expected %q, %q or %q", c.Source, ClockEstimated, ClockSystem, ClockPTP)
	}
	for _, field := range []struct {
		name         string
		value, least int64
	}{
		{"offset_ns", c.Offset, -MaxClockOffset}, {"bound_ns", c.Bound, 0}, {"uncertainty_ns", c.Uncertainty, 0},
		{"disagreement_ns", c.Disagreement, -MaxClockOffset},
	} {
		if field.value < field.least || field.value > MaxClockOffset {
			return invalid(
				"clock.%s is %d, expected %d to %d",
				field.name,
				field.value,
				field.least,
				int64(MaxClockOffset),
			)
		}
	}
	return nil
}

func (t *TrackTimes) check() error {
	if err := optionalName("participant", t.Participant); err != nil {
		return err
	}
	if err := volumetric.ValidateName("publication", t.Publication); err != nil {
		return err
	}
	if err := checkTile(t.Tile); err != nil {
		return err
	}
	if t.Quality < 0 || t.Quality >= volumetric.MaxQualities {
		return invalid("quality is %d, expected 0 to %d", t.Quality, volumetric.MaxQualities-1)
	}
	if t.Frames == nil {
		return invalid("frames is missing")
	}
	for _, frame := range t.Frames {
		if err := checkFrameTimes(frame); err != nil {
			return err
		}
	}
	return nil
}

func checkFrameTimes(frame []int64) error {
	if len(frame) != FrameTimesHead+SenderStamps {
		return invalid("a frame has %d numbers, expected %d", len(frame), FrameTimesHead+SenderStamps)
	}
	if number := frame[0]; number < 0 || number > 1<<32-1 {
		return invalid("frame number is %d, expected 0 to %d", number, int64(1<<32-1))
	}
	if bytes := frame[1]; bytes < 0 || bytes > 1<<32-1 {
		return invalid("size of a frame is %d bytes, expected 0 to %d", bytes, int64(1<<32-1))
	}
	// The sum of this time and any stamp in nanoseconds since 1970 must fit 64 bits.
	if at := frame[2]; at < 0 || at > MaxClockOffset/1000 {
		return invalid("time of the first stamp is %d µs, expected 0 to %d", at, int64(MaxClockOffset/1000))
	}
	for _, stamp := range frame[FrameTimesHead:] {
		if stamp < UnknownStamp || stamp > MaxStamp {
			return invalid("a stamp is %d, expected %d to %d", stamp, UnknownStamp, int64(MaxStamp))
		}
	}
	return nil
}

// Prepare encodes the message once for all receivers. The message must not be changed after the
// first call. Further calls do nothing.
func (m *FrameTimes) Prepare() {
	if m.text == nil {
		m.Type = m.messageType()
		m.text = m.marshal()
	}
}

// MarshalJSON writes every list of the message, or returns the prepared text.
func (m *FrameTimes) MarshalJSON() ([]byte, error) {
	if m.text != nil {
		return m.text, nil
	}
	return m.marshal(), nil
}

// marshal encodes the message without reflection, which takes three times as long: there are
// hundreds of frames per second with a dozen numbers each.
func (m *FrameTimes) marshal() []byte {
	const messageSize, trackSize, numberSize = 256, 128, 10
	size := messageSize
	for i := range m.Tracks {
		size += trackSize + len(m.Tracks[i].Frames)*(FrameTimesHead+SenderStamps)*numberSize
	}
	dst := appendValue(append(make([]byte, 0, size), `{"type":`...), m.Type)
	if m.ID != "" {
		dst = appendValue(append(dst, `,"id":`...), m.ID)
	}
	dst = appendValue(append(dst, `,"host":`...), m.Host)
	dst = appendValue(append(dst, `,"clock":`...), &m.Clock)
	dst = append(dst, `,"tracks":[`...)
	for i := range m.Tracks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = m.Tracks[i].append(dst)
	}
	dst = append(dst, ']')
	if m.Dropped != 0 {
		dst = strconv.AppendInt(append(dst, `,"dropped":`...), int64(m.Dropped), 10)
	}
	return append(dst, '}')
}

// append appends the encoded track to dst.
func (t *TrackTimes) append(dst []byte) []byte {
	dst = append(dst, '{')
	if t.Participant != "" {
		dst = append(appendValue(append(dst, `"participant":`...), t.Participant), ',')
	}
	dst = appendValue(append(dst, `"publication":`...), t.Publication)
	dst = strconv.AppendInt(append(dst, `,"tile":`...), int64(t.Tile), 10)
	dst = strconv.AppendInt(append(dst, `,"quality":`...), int64(t.Quality), 10)
	dst = append(dst, `,"frames":[`...)
	for i, frame := range t.Frames {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '[')
		for k, number := range frame {
			if k > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(dst, number, 10)
		}
		dst = append(dst, ']')
	}
	return append(dst, "]}"...)
}

// appendValue appends a value that always has a JSON encoding.
func appendValue(dst []byte, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic("texts and numbers have no JSON: " + err.Error())
	}
	return append(dst, text...)
}
