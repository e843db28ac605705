package signal

import (
	"encoding/json"
	"strconv"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// MaxFrameTimes is the number of frames in one message of their times, over all tracks: half a second of 2,048 tile frames per second.
	MaxFrameTimes = 1024
	// FrameTimesHead is how many numbers stand before the stamps of a frame: its number, its bytes, and when it began.
	FrameTimesHead = 3
	// SenderStamps and ServerStamps are how many stamps follow in messages of senders and of the server.
	SenderStamps = 11
	ServerStamps = 8
	// UnknownStamp stands for a stamp that was not taken.
	UnknownStamp = -1
	// MaxStamp bounds how long after its beginning a stage of a frame may be reached, in nanoseconds: a minute.
	MaxStamp = 60e9
	// MaxClockOffset bounds the offset between two clocks, in nanoseconds: 100 years.
	MaxClockOffset = 100 * 366 * 86400 * 1e9
)

// Trace asks for messages about the times of frames, or ends them. A client asks the server for those of the frames that it is sent; the server asks a client for
// those of the frames that it publishes, as long as somebody in the room has asked.
type Trace struct {
	Header
	FrameTimes bool `json:"frame_times"`
}

// FrameHost is who took stamps.
type FrameHost string

// The hosts of stamps in messages; receivers keep theirs.
const (
	FrameHostSender FrameHost = "sender"
	FrameHostServer FrameHost = "server"
)

// ClockSource is where a host has its time from.
type ClockSource string

// The sources of time.
const (
	// ClockEstimated: the offset from the server's clock is estimated by round trips.
	ClockEstimated ClockSource = "estimated"
	// ClockSystem: the system's clock is taken for right.
	ClockSystem ClockSource = "system"
	// ClockPTP: the system's clock is kept by the precision time protocol (IEEE 1588).
	ClockPTP ClockSource = "ptp"
)

// HostClock says how a host's times were turned into the server's, in nanoseconds.
type HostClock struct {
	Source ClockSource `json:"source"`
	// Offset was added to the host's own times.
	Offset int64 `json:"offset_ns"`
	// Bound is how far the result may be off whatever the path, and Uncertainty if both directions of it are equally quick.
	Bound       int64 `json:"bound_ns"`
	Uncertainty int64 `json:"uncertainty_ns"`
	// Disagreement is what the estimate finds a clock off that is taken for right.
	Disagreement int64 `json:"disagreement_ns,omitempty"`
}

// FrameTimes brings the stamps that one host took of many frames, of all its tracks, every half second or so. A client that publishes sends those of its own; the
// server passes them on to those who asked, with the participant's name, and adds messages with its own.
type FrameTimes struct {
	Header
	Host  FrameHost `json:"host"`
	Clock HostClock `json:"clock"`
	// Tracks are those whose frames follow.
	Tracks []TrackTimes `json:"tracks"`
	// Dropped is how many frames were left out since the message before, because there were too many.
	Dropped int `json:"dropped,omitempty"`

	// text is the message as it is sent, once it is prepared.
	text []byte
}

// TrackTimes are the stamps of frames of one tile at one quality.
type TrackTimes struct {
	// Participant is who publishes the track; only the server fills it in.
	Participant string             `json:"participant,omitempty"`
	Publication string             `json:"publication"`
	Tile        int                `json:"tile"`
	Quality     volumetric.Quality `json:"quality"`
	// Frames are lists of whole numbers: the frame number, the bytes of the encoded tile, when the first of the stamps was taken, in microseconds of UTC since 1970 by the
	// server's clock, and for each stamp of the host, in their order, how many nanoseconds later it was, or UnknownStamp.
	Frames [][]int64 `json:"frames"`
}

// Validate implements Request.
func (m *Trace) Validate() error { return nil }

// Validate implements Request. Whether there are such tracks is not its matter: a publication may just have ended.
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
		// A track without frames counts, too, so that there are not more of them than frames can be.
		if frames += max(1, len(m.Tracks[i].Frames)); frames > MaxFrameTimes {
			return invalid("more than %d frames in one message", MaxFrameTimes)
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
			return invalid("clock.%s is %d, expected %d to %d", field.name, field.value, field.least, int64(MaxClockOffset))
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
		return invalid("%d numbers of a frame, expected %d", len(frame), FrameTimesHead+SenderStamps)
	}
	if number := frame[0]; number < 0 || number > 1<<32-1 {
		return invalid("frame number is %d, expected 0 to %d", number, int64(1<<32-1))
	}
	if bytes := frame[1]; bytes < 0 || bytes > 1<<32-1 {
		return invalid("bytes of a frame are %d, expected 0 to %d", bytes, int64(1<<32-1))
	}
	// Nanoseconds since 1970 are to fit 64 bits, whatever is added.
	if at := frame[2]; at < 0 || at > MaxClockOffset/1000 {
		return invalid("a frame began at %d µs, expected 0 to %d", at, int64(MaxClockOffset/1000))
	}
	for _, stamp := range frame[FrameTimesHead:] {
		if stamp < UnknownStamp || stamp > MaxStamp {
			return invalid("a stamp is %d, expected %d to %d", stamp, UnknownStamp, int64(MaxStamp))
		}
	}
	return nil
}

// Prepare has the message encoded once, however many it is sent to. It is not to be changed after the first call; more do nothing.
func (m *FrameTimes) Prepare() {
	if m.text == nil {
		m.Type = m.messageType()
		m.text = m.marshal()
	}
}

// MarshalJSON writes every list of the message, and gives what was prepared as it is.
func (m *FrameTimes) MarshalJSON() ([]byte, error) {
	if m.text != nil {
		return m.text, nil
	}
	return m.marshal(), nil
}

// marshal writes the message: there are hundreds of frames per second, of a dozen numbers each, and reflection takes three times as long.
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

// append writes the track.
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

// appendValue appends what always has a form in JSON.
func appendValue(dst []byte, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic("texts and numbers have no JSON: " + err.Error())
	}
	return append(dst, text...)
}
