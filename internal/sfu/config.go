package sfu

import (
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/internal/sfu/dataflow"
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/internal/sfu/peer"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/internal/sfu/roomrecording"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/recording"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/webhook"
)

// ErrConfig is wrapped with the wrong key and the expected value.
var ErrConfig = errors.New("invalid room configuration")

// PanicPlaces are the places that this package names to Config.Guard.
var PanicPlaces = []string{peer.PanicPlace, placeRoom}

// placeRoom is the goroutine of a room.
const placeRoom = "room"

// Events receives the events of rooms.
type Events interface {
	// RoomEvent receives an event, which has no id yet. The events of one room come in their order. RoomEvent is called
	// by the goroutines of rooms and with the mutex of the node's directory: RoomEvent must neither wait nor call the
	// node.
	RoomEvent(webhook.Event)
}

// Cluster receives the events of the rooms of this node for the same rooms on other nodes.
type Cluster interface {
	// Tell queues an event of a room. The events of one room come in their order. Tell is called by the goroutines of
	// rooms and with the mutex of the node's directory: Tell must neither wait nor call the node.
	Tell(room string, e roomevent.Event)
}

// Recorder records rooms. The methods are safe for any goroutine and do not wait for the disk.
type Recorder interface {
	// Automatic returns the qualities in which every room is recorded, empty if rooms are recorded on request.
	Automatic() recording.Qualities
	// Start begins a recording of a room.
	Start(room string, now time.Time) roomrecording.Writer
}

// Config limits rooms and sets how participants join and leave.
type Config struct {
	// Guard confines a panic in a connection's goroutine to its participant, and a panic in a room's goroutine to the
	// room. If Guard is nil, a panic ends the program.
	Guard *panics.Guard `yaml:"-"`
	// Events receives the events of rooms. If Events is nil, there are none.
	Events Events `yaml:"-"`
	// Cluster tells the other nodes of a cluster the events of rooms. If Cluster is nil, there are no other nodes.
	Cluster Cluster `yaml:"-"`
	// Recorder records rooms. If Recorder is nil, rooms cannot be recorded.
	Recorder Recorder `yaml:"-"`

	// ICEServers returns the ICE servers of a session's client, besides the endpoint's STUN servers. nil is none.
	ICEServers func(session string) []signal.ICEServer `yaml:"-"`

	Rooms int `yaml:"rooms" help:"maximum number of rooms"`
	// AutoCreate: a server whose rooms have settings of the API may refuse to open rooms without them.
	AutoCreate          bool `yaml:"auto_create" help:"joins create rooms; otherwise only the API does"`
	ParticipantsPerRoom int  `yaml:"participants_per_room" help:"maximum number of participants in a room"`
	// BearerRooms: a tenth of all rooms by default; addresses of this host may open any number. BearerPlaces: the
	// number of websockets of one token. BearerRoomPlaces: a class that shares one token or one address has room, and a
	// fifth of the places remains for others.
	BearerRooms      int `yaml:"bearer_rooms" help:"rooms opened by one token, or by one address without a token"`
	BearerPlaces     int `yaml:"bearer_places" help:"places of one token or address in all rooms, grace time included"`
	BearerRoomPlaces int `yaml:"bearer_room_places" help:"places of one token or address in one room"`
	// PublicationsPerParticipant: a body, a desk, a voice and a few more.
	PublicationsPerParticipant int `yaml:"publications_per_participant" help:"publications of one participant"`
	TracksPerPublication       int `yaml:"tracks_per_publication" help:"tiles × qualities of one publication"`
	// PublishRate is the number of publications per second that a participant may add, PublishBurst the number at once.
	// Neither applies to the publications of a join. Mutings and requests for times of frames count as publications.
	// Each of them causes a message to every other participant, and publications also changes of slots. A user who
	// looks for the right camera changes publications a few times per minute.
	PublishRate  float64 `yaml:"-"`
	PublishBurst int     `yaml:"-"`
	// DescriptionBytes bounds the descriptions in a room; a participant has a quarter. A joining client receives all
	// descriptions in one message, and clients read at most signal.MaxMessageBytes. 100 participants with one
	// publication of 64 tiles each have 750 kB, of 15 tiles 190 kB.
	DescriptionBytes int `yaml:"-"`

	// DataRate and DataByteRate: chat, gestures and positions of some objects. A burst of two seconds is allowed. Each
	// message goes to all others, so that 100 participants with 50 messages per second would be half a million
	// deliveries; the limit of a room (dataflow.DeliveryRate) is below that.
	DataRate     float64 `yaml:"data_rate" help:"data messages per second of one participant, long-term"`
	DataByteRate int     `yaml:"data_byte_rate" help:"bytes of data messages per second of one participant"`

	// ChoicesPerParticipant bounds the stored quality choices of one receiver: 64 publications of 64 tiles.
	ChoicesPerParticipant int `yaml:"-"`
	// SpareSlots is the number of idle video slots to add, or a quarter of the need if that is more. One publication of
	// 15 tiles needs no new offer to a receiver.
	SpareSlots int `yaml:"-"`
	// SpareAudioSlots is the same for audio slots: two participants may join before a receiver needs a new offer. An
	// operator has no figure to choose another number by: audio has one track per participant, and the share of
	// spareShare makes the number grow with the room.
	SpareAudioSlots int `yaml:"-"`
	// MaxSlots: an SDP has about 1.5 kB per line, and signalling messages are limited to 2 MiB.
	MaxSlots    int           `yaml:"max_slots" help:"maximum number of slots of one receiver"`
	ResumeGrace time.Duration `yaml:"resume_grace" help:"time in which a client may resume after its websocket broke"`

	ConnectTimeout time.Duration `yaml:"connect_timeout" help:"time to connect, or to reconnect after a failure"`
	// AnswerTimeout is the time to answer an offer.
	AnswerTimeout time.Duration `yaml:"-"`
	FrameBytes    int           `yaml:"frame_bytes" help:"maximum size of a frame in bytes, announced to clients"`
	// AllocationInterval is the interval at which a room checks for changes that require other qualities: three frames
	// at 60 frames per second, one and a half at 30.
	AllocationInterval time.Duration `yaml:"-"`
	// ClaimedMin: the capacity of every present access network. A receiver that claims more than its link carries harms
	// the other users of the link. A start_bps up to the server's own start rate is always accepted.
	ClaimedMin volumetric.Bitrate `yaml:"claimed_min_bps" help:"maximum of receivers' min_bps and start_bps, bit/s"`
	// ClockSource is only passed on to clients. The quality of the server's clock is up to its host.
	ClockSource string          `yaml:"clock_source" flag:"clock" help:"clock of this host, for clients: system or ptp"`
	ClockOffset time.Duration   `yaml:"clock_offset" flag:"clock-offset" help:"added to the clock that clients see"`
	Allocation  allocate.Config `yaml:"allocation" help:"allocation of bit rates to qualities"`
	Suppression demand.Config   `yaml:"suppression" help:"uplink suppression: tracks that publishers pause"`
}

// DefaultConfig returns limits for conferences of tens of participants.
func DefaultConfig() Config {
	return Config{
		Rooms:                      1000,
		AutoCreate:                 true,
		ParticipantsPerRoom:        100,
		BearerRooms:                100,
		BearerPlaces:               1000,
		BearerRoomPlaces:           80,
		PublicationsPerParticipant: 8,
		TracksPerPublication:       64,
		DescriptionBytes:           3 << 19,
		PublishRate:                5,
		PublishBurst:               64,
		DataRate:                   50,
		DataByteRate:               64 << 10,
		ChoicesPerParticipant:      4096,
		SpareSlots:                 16,
		SpareAudioSlots:            2,
		MaxSlots:                   1024,
		ResumeGrace:                15 * time.Second,
		ConnectTimeout:             30 * time.Second,
		AnswerTimeout:              15 * time.Second,
		FrameBytes:                 16 << 20,
		AllocationInterval:         50 * time.Millisecond,
		ClaimedMin:                 12_500_000,
		ClockSource:                string(signal.ClockSystem),
		Allocation:                 allocate.DefaultConfig(),
		Suppression:                demand.DefaultConfig(),
	}
}

// Validate returns an error that names the first wrong key.
func (c Config) Validate() error {
	counts := []struct {
		key   string
		value int
		least int
	}{
		{"rooms", c.Rooms, 1},
		{"participants_per_room", c.ParticipantsPerRoom, 1},
		{"bearer_rooms", c.BearerRooms, 1},
		{"bearer_places", c.BearerPlaces, 1},
		{"bearer_room_places", c.BearerRoomPlaces, 1},
		{"publications_per_participant", c.PublicationsPerParticipant, 1},
		{"tracks_per_publication", c.TracksPerPublication, 1},
		{"publish_burst", c.PublishBurst, 1},
		{"choices_per_participant", c.ChoicesPerParticipant, 1},
		{"spare_slots", c.SpareSlots, 0},
		{"max_slots", c.MaxSlots, 1},
		{"frame_bytes", c.FrameBytes, 1},
	}
	for _, count := range counts {
		if count.value < count.least {
			return fmt.Errorf("%w: %s is %d: expected %d or more", ErrConfig, count.key, count.value, count.least)
		}
	}
	if most := signal.MaxMessageBytes - joinedBytes; c.DescriptionBytes < 1 || c.DescriptionBytes > most {
		return fmt.Errorf("%w: description_bytes is %d: expected 1 to %d, so that they fit in one message", ErrConfig,
			c.DescriptionBytes, most)
	}
	if !(c.PublishRate > 0) {
		return fmt.Errorf("%w: publish_rate is %g: expected a number over 0", ErrConfig, c.PublishRate)
	}
	if err := c.checkData(); err != nil {
		return err
	}
	if c.ResumeGrace < 0 || c.ConnectTimeout <= 0 || c.AnswerTimeout <= 0 {
		return fmt.Errorf("%w: resume_grace is %v, connect_timeout is %v and answer_timeout is %v: expected 0 or "+
			"more, and over 0 for the timeouts", ErrConfig, c.ResumeGrace, c.ConnectTimeout, c.AnswerTimeout)
	}
	if c.AllocationInterval < minAllocationInterval {
		return fmt.Errorf("%w: allocation interval is %v: expected %v or more", ErrConfig, c.AllocationInterval,
			minAllocationInterval)
	}
	if c.ClaimedMin < 0 {
		return fmt.Errorf("%w: claimed_min_bps is %d: expected 0 or more", ErrConfig, c.ClaimedMin)
	}
	if source := signal.ClockSource(c.ClockSource); source != signal.ClockSystem && source != signal.ClockPTP {
		return fmt.Errorf("%w: clock_source is %q: expected system or ptp", ErrConfig, c.ClockSource)
	}
	if err := c.Allocation.Validate(); err != nil {
		return fmt.Errorf("%w: allocation: %w", ErrConfig, err)
	}
	if err := c.Suppression.Validate(); err != nil {
		return fmt.Errorf("%w: suppression.%w", ErrConfig, err)
	}
	return nil
}

// joinedBytes is the size of the reply to a join beside descriptions: names of 200 participants with the maximum
// length, of characters that JSON writes as six bytes, and ICE servers. joinedBytes includes the growth of descriptions
// once codecs are known.
const joinedBytes = 256 << 10

// descriptionShare is the share of a room's description bytes that one participant may use, as a divisor. At least that
// many hostile participants are needed to keep the others from publishing.
const descriptionShare = 4

// minAllocationInterval bounds the interval: no frame is shorter, and a large room needs a millisecond for each of its
// receivers.
const minAllocationInterval = 5 * time.Millisecond

// dataLimits returns the limits of the data messages of one participant.
func (c *Config) dataLimits() dataflow.Config {
	return dataflow.Config{Rate: c.DataRate, ByteRate: c.DataByteRate}
}

// checkData checks the limits of data messages in the configuration.
func (c *Config) checkData() error {
	if !(c.DataRate > 0) || c.DataByteRate < signal.MaxDataBytes {
		return fmt.Errorf("%w: data_rate is %g and data_byte_rate is %d: expected over 0, and %d or more", ErrConfig,
			c.DataRate, c.DataByteRate, signal.MaxDataBytes)
	}
	return nil
}

// clock returns a time of this host's clock as clients see it, in microseconds since 1970.
func (c *Config) clock(t time.Time) int64 { return t.Add(c.ClockOffset).UnixMicro() }

// viewpoint converts a viewpoint that was read at the given time. The timestamp in the message is a time of clock.
func (c *Config) viewpoint(m *signal.Viewpoint, read time.Time) allocate.Viewpoint {
	own := *m
	if own.At != 0 {
		own.At -= c.ClockOffset.Microseconds()
	}
	return subscriber.ViewpointOf(&own, read)
}
