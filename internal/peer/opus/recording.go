// Package opus reads Opus packets from Ogg files and writes received packets to such files. The package neither
// encodes nor decodes audio.
package opus

import (
	"bytes"
	_ "embed" // the tone
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/pion/webrtc/v4/pkg/media/oggreader"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Errors of packets and files. They are wrapped with the details.
var (
	ErrPacket = errors.New("invalid Opus packet")
	ErrFile   = errors.New("invalid Ogg Opus file")
)

// ClockRate is the RTP clock rate of Opus in Hz for any sample rate (RFC 7587 section 4.1).
const ClockRate = 48000

// Publication describes Opus audio as RFC 7587 section 7 requires: always two channels, independent of the packets.
func Publication(name string) volumetric.Publication {
	return volumetric.Publication{
		Name:      name,
		Kind:      volumetric.KindAudio,
		Mode:      volumetric.ModeAlternatives,
		Codec:     volumetric.Codec{MIMEType: volumetric.MIMEOpus, ClockRate: ClockRate, Channels: 2},
		Tiles:     make([]volumetric.Tile, 1),
		Qualities: make([]volumetric.QualityLevel, 1),
	}
}

// Recording is a sequence of Opus packets.
type Recording struct {
	Packets []Packet
	// Channels is 1 or 2.
	Channels int
}

// Packet is one Opus packet with its duration.
type Packet struct {
	Data     []byte
	Duration time.Duration
}

// toneFile is two seconds of 440 Hz by sox and `opusenc --bitrate 24 --framesize 20`: 101 packets, in pages of a
// second.
//
//go:embed tone.ogg
var toneFile []byte

// Tone returns two seconds of 440 Hz.
func Tone() *Recording {
	tone, err := Read(bytes.NewReader(toneFile))
	if err != nil {
		panic(fmt.Sprintf("opus: the embedded tone cannot be read: %v", err))
	}
	return tone
}

// Open reads a file.
func Open(name string) (*Recording, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	recording, err := Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return recording, nil
}

// maxFileBytes is more than an hour at 128 kbit/s. A recording is held in memory.
const maxFileBytes = 64 << 20

// Read reads the first logical stream of an Ogg file, which must be Opus with one or two channels (RFC 7845). Errors
// wrap ErrFile or are those of the reader.
func Read(r io.Reader) (*Recording, error) {
	// oggreader checks pages and their checksums, but does not return packet boundaries. These are in the page header,
	// which oggreader discards.
	var page bytes.Buffer
	limited := &io.LimitedReader{R: r, N: maxFileBytes}
	reader, header, err := oggreader.NewWith(io.TeeReader(limited, &page))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	if header.Channels < 1 || header.Channels > 2 || header.ChannelMap != 0 {
		return nil, fmt.Errorf("%w: %d channels in mapping family %d, expected 1 or 2 in family 0", ErrFile,
			header.Channels, header.ChannelMap)
	}
	d := demuxer{recording: &Recording{Channels: int(header.Channels)}, serial: serial(page.Bytes())}
	for !d.ended {
		page.Reset()
		if _, _, err := reader.ParseNextPage(); errors.Is(err, io.EOF) && page.Len() == 0 {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFile, err)
		}
		if err := d.page(page.Bytes()); err != nil {
			return nil, err
		}
	}
	switch {
	case limited.N == 0:
		return nil, fmt.Errorf("%w: the file is too long, expected at most %d bytes", ErrFile, maxFileBytes)
	case len(d.recording.Packets) == 0:
		return nil, fmt.Errorf("%w: the file has no audio", ErrFile)
	}
	return d.recording, nil
}

// demuxer splits the pages of one logical stream into packets (RFC 3533 section 6).
type demuxer struct {
	recording *Recording
	serial    [4]byte
	// partial is a packet that continues in the next page. open is set if there is one.
	partial []byte
	open    bool
	tagged  bool
	ended   bool
}

// Offsets in the header of a page (RFC 3533 section 6), and flags of its type.
const (
	typeOffset     = 5
	serialOffset   = 14
	segmentsOffset = 26
	lacingOffset   = 27

	flagContinued = 1
	flagEnd       = 4
)

func serial(page []byte) [4]byte { return [4]byte(page[serialOffset:]) }

// page handles a complete page, whose length oggreader has checked.
func (d *demuxer) page(page []byte) error {
	if serial(page) != d.serial {
		return nil
	}
	segments := int(page[segmentsOffset])
	lacing, data := page[lacingOffset:lacingOffset+segments], page[lacingOffset+segments:]
	// A continuation without a begin, and a begin without a continuation, belong to a missing page and are discarded.
	skip := page[typeOffset]&flagContinued != 0 && !d.open
	if page[typeOffset]&flagContinued == 0 {
		d.partial, d.open = d.partial[:0], false
	}
	for _, size := range lacing {
		d.partial = append(d.partial, data[:size]...)
		data = data[size:]
		d.open = size == 255
		if d.open {
			continue
		}
		if !skip {
			if err := d.packet(d.partial); err != nil {
				return err
			}
		}
		d.partial, skip = d.partial[:0], false
	}
	d.ended = page[typeOffset]&flagEnd != 0
	return nil
}

// packet handles a complete packet: the first has the comments, the others have audio.
func (d *demuxer) packet(data []byte) error {
	if !d.tagged {
		if !bytes.HasPrefix(data, []byte("OpusTags")) {
			return fmt.Errorf("%w: expected OpusTags after OpusHead, got %.8q", ErrFile, data)
		}
		d.tagged = true
		return nil
	}
	duration, err := Duration(data)
	if err != nil {
		return fmt.Errorf("%w: packet %d: %w", ErrFile, len(d.recording.Packets), err)
	}
	d.recording.Packets = append(d.recording.Packets, Packet{Data: bytes.Clone(data), Duration: duration})
	return nil
}

// maxDuration is the longest packet (RFC 6716 section 3.2.5).
const maxDuration = 120 * time.Millisecond

// Duration returns the duration of a packet, from its first two bytes (RFC 6716 section 3.1). Errors wrap ErrPacket.
func Duration(packet []byte) (time.Duration, error) {
	if len(packet) == 0 {
		return 0, fmt.Errorf("%w: the packet is empty", ErrPacket)
	}
	frames := 2
	switch packet[0] & 3 {
	case 0:
		frames = 1
	case 3:
		if len(packet) < 2 {
			return 0, fmt.Errorf("%w: 1 byte, expected the number of frames in a second one", ErrPacket)
		}
		frames = int(packet[1] & 0x3f)
	}
	duration := time.Duration(frames) * frameDuration(packet[0]>>3)
	if duration == 0 || duration > maxDuration {
		return 0, fmt.Errorf("%w: the duration is %v, expected more than 0 and at most "+
			"%v", ErrPacket, duration, maxDuration)
	}
	return duration, nil
}

// frameDuration returns the length of a frame in each of the 32 configurations of RFC 6716, table 2.
func frameDuration(configuration uint8) time.Duration {
	switch {
	case configuration < 12: // SILK
		return [4]time.Duration{10, 20, 40, 60}[configuration&3] * time.Millisecond
	case configuration < 16: // hybrid
		return [2]time.Duration{10, 20}[configuration&1] * time.Millisecond
	default: // CELT
		return 2500 * time.Microsecond << (configuration & 3)
	}
}
