package recorder

import (
	"encoding/binary"
	"time"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/recording"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// frameDeadline is the time after its first packet at which an incomplete frame is given up. Publishers are asked for
// missing packets for less than that.
const frameDeadline = time.Second

// prefetched is the number of packets that are loaded into the processor's cache in advance: 9 kB.
const prefetched = 8

// reading is the position of a recording in the log of one track, and the frames that are not complete. A reading
// belongs to the holder of the recording's lock.
type reading struct {
	track       *track.Track
	publication uint32
	tile        int
	quality     volumetric.Quality
	position    int64
	// frames is nil for tracks without payload v1, units for others.
	frames *payload.Reassembler
	units  *units
	unit   recording.Unit
	given  []payload.GivenUp
	// begun is set with the first frame. Frames before it were cut off by the beginning of the recording.
	begun bool
}

// newReading returns a reading that begins with the next packet of the track.
func newReading(t *track.Track, publication uint32, tile int, q volumetric.Quality, frameBytes int) *reading {
	r := &reading{track: t, publication: publication, tile: tile, quality: q, position: t.Log().Head()}
	if t.Framed() {
		config := payload.DefaultConfig()
		config.MaxFrameBytes, config.MaxBytes, config.Deadline = frameBytes, 4*frameBytes, frameDeadline
		r.frames = payload.NewReassembler(config)
	} else {
		r.units = &units{audio: t.Audio()}
	}
	if t.NeedsKey() {
		t.WantKeyFrame()
	}
	return r
}

// sink takes the frames and units of readings. Their data are valid until the method returns.
type sink interface {
	frame(*recording.Frame, *payload.Frame)
	unit(*recording.Unit)
}

// read reads all packets up to the head of the log. read returns the number of packets that the log had removed, and of
// frames that were given up.
func (r *reading) read(now time.Time, to sink) (overrun, incomplete uint64) {
	log := r.track.Log()
	for head := log.Head(); r.position < head; {
		if r.frames != nil && r.position+2*prefetched < head {
			log.PrefetchPacket(r.position + 2*prefetched)
			log.PrefetchPayload(r.position+prefetched, payload.MaxPacketSize)
		}
		p := log.At(r.position)
		if p == nil {
			next := max(r.position+1, log.Tail())
			overrun += uint64(next - r.position)
			r.position = next
			continue
		}
		r.position++
		if r.frames != nil {
			r.fragment(p, r.track.Arrival(p, now), to)
		} else {
			r.units.add(p)
			r.drain(p.Order, now, to)
		}
		p.Release()
	}
	if r.frames == nil {
		r.drain(r.track.Now(), now, to)
		incomplete, r.units.incomplete = r.units.incomplete, 0
		if incomplete > 0 && r.track.NeedsKey() {
			r.track.WantKeyFrame()
		}
		return overrun, incomplete
	}
	r.given = r.frames.Expire(now, r.given[:0])
	if r.begun {
		incomplete = uint64(len(r.given))
	}
	return overrun, incomplete
}

// fragment takes a packet of payload v1.
func (r *reading) fragment(p *packetlog.Packet, at time.Time, to sink) {
	var d payload.Descriptor
	data, err := d.Unmarshal(p.Payload)
	if err != nil {
		return
	}
	f, err := r.frames.PushShared(&d, data, p, at)
	if err != nil || f == nil {
		return
	}
	r.begun = true
	record := recording.Frame{
		At: f.Last, Publication: r.publication, Tile: r.tile, Quality: r.quality, Number: f.Number,
		Prefixed: f.Prefixed, Codec: f.Prefix.FourCC,
	}
	if f.Prefixed {
		// Prefix.Capture lacks fractions of a nanosecond.
		record.Capture = binary.BigEndian.Uint64(f.RawPrefix()[len(record.Codec):])
	}
	to.frame(&record, f)
	f.Release()
}

// drain takes the complete units at a time since the engine's start.
func (r *reading) drain(at int64, now time.Time, to sink) {
	for packets := r.units.take(at); packets != nil; packets = r.units.take(at) {
		first, last := packets[0], packets[len(packets)-1]
		r.unit = recording.Unit{
			At: r.track.Arrival(last, now), Publication: r.publication, Tile: r.tile, Quality: r.quality,
			Timestamp: first.Facts.Timestamp, Capture: payload.NTP64(first.Facts.Capture),
			Payloads: r.unit.Payloads[:0],
		}
		for _, p := range packets {
			r.unit.Payloads = append(r.unit.Payloads, p.Payload)
		}
		to.unit(&r.unit)
	}
}

// close releases the memory of incomplete frames.
func (r *reading) close() {
	if r.units != nil {
		r.units.close()
	}
	if r.frames != nil {
		r.frames.Reset()
	}
}
