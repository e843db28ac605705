package export

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/codecs"
	"github.com/volsfu/volsfu/internal/peer/render"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/e2ee"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/recording"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// errEncrypted is the reason for which a publication is left out.
var errEncrypted = errors.New("expected the secrets of the recorded room: --e2ee-key-file or " +
	peer.PassphraseVariable)

// capture is a capture of a publication with all its recorded tiles, decoded.
type capture struct {
	object *object
	number uint32
	// tiles has the clouds of each tile by quality.
	tiles map[int]map[volumetric.Quality]*pointcloud.Cloud
	// size is the number of frames.
	size int
}

// clouds returns the clouds to show: the best quality of each tile, or all descriptions.
func (c *capture) clouds() []*pointcloud.Cloud {
	var clouds []*pointcloud.Cloud
	for _, tile := range slices.Sorted(maps.Keys(c.tiles)) {
		qualities := slices.Sorted(maps.Keys(c.tiles[tile]))
		if c.object.Description.Mode == volumetric.ModeAlternatives {
			qualities = qualities[len(qualities)-1:]
		}
		for _, q := range qualities {
			clouds = append(clouds, c.tiles[tile][q])
		}
	}
	return clouds
}

// object is a publication of clouds.
type object struct {
	*recording.Publication
	// pending are captures that may get further tiles, oldest first. newest is the latest number that is complete.
	pending []*capture
	newest  uint32
	begun   bool
	// shown is the capture that is shown, nil before the first, at the place.
	shown []*pointcloud.Cloud
	place render.Place
}

// pendingCaptures is the number of captures of which tiles may arrive: tiles of one capture arrive within 100 ms.
const pendingCaptures = 4

// scene is the state of a recorded room: objects, their places and their latest captures. A scene is owned by one
// goroutine.
type scene struct {
	// complete takes each capture with all its tiles.
	complete func(*capture) error
	log      *slog.Logger

	// keys returns the keys of a recorded room, nil without keys. opener is nil before begin.
	keys   func(room string) (*e2ee.Keys, error)
	opener *e2ee.Opener

	// sounds is the folder for sound, empty without sound.
	sounds   string
	objects  map[uint32]*object
	voices   map[uint32]*voice
	decoders map[codec.FourCC]codec.Decoder
	warned   map[string]bool
	counts   Counts
}

func newScene(log *slog.Logger, complete func(*capture) error, keys func(room string) (*e2ee.Keys, error)) *scene {
	return &scene{
		complete: complete, log: log, keys: keys, objects: make(map[uint32]*object), voices: make(map[uint32]*voice),
		decoders: make(map[codec.FourCC]codec.Decoder), warned: make(map[string]bool),
	}
}

// take takes the next record.
func (s *scene) take(r recording.Record) error {
	switch r := r.(type) {
	case *recording.Publication:
		s.published(r)
	case *recording.Lost:
		s.counts.Lost = *r
	case *recording.Message:
		return s.message(r)
	case *recording.Frame:
		if o := s.objects[r.Publication]; o != nil {
			return s.frame(o, r)
		}
	}
	return nil
}

// begin takes the head of a segment. The first head has the name of the room, which a passphrase needs.
func (s *scene) begin(head *recording.Head) error {
	if s.opener != nil {
		return nil
	}
	keys, err := s.keys(head.Room)
	s.opener = e2ee.NewOpener(keys)
	return err
}

// published takes a publication. Publications repeat at the beginning of each segment.
func (s *scene) published(p *recording.Publication) {
	sound := s.sounds != "" && p.Description.Codec.Is(volumetric.MIMEOpus)
	if s.objects[p.ID] != nil || s.voices[p.ID] != nil || !sound && !p.Description.Codec.Is(volumetric.MIMEVolumetric) {
		return
	}
	if _, err := s.opener.CheckPublication(&p.Description); err != nil {
		if p.Description.Encryption != "" && !s.opener.Expects() {
			err = errEncrypted
		}
		s.warn(p.Ref().String(), "the publication is left out", err)
		return
	}
	if sound {
		s.voices[p.ID] = newVoice(s.sounds, p)
		return
	}
	s.objects[p.ID] = &object{Publication: p}
}

// message takes a message.
func (s *scene) message(r *recording.Message) error {
	m, err := signal.DecodeFromServer(r.Text)
	if err != nil {
		return nil // of a later version
	}
	switch m := m.(type) {
	case *signal.Pose:
		ref := volumetric.PublicationRef{Participant: m.Participant, Publication: m.Publication}
		for _, o := range s.objects {
			if o.Ref() == ref {
				o.place = render.Place{Position: m.Position, Orientation: m.Orientation, Scale: m.Scale}
			}
		}
	case *signal.Unpublished:
		for id, o := range s.objects {
			if o.Ref() == m.PublicationRef {
				if err := s.flush(o, 0); err != nil {
					return err
				}
				delete(s.objects, id)
			}
		}
	}
	return nil
}

// frame decodes a frame.
func (s *scene) frame(o *object, f *recording.Frame) error {
	if o.begun && int32(f.Number-o.newest) <= 0 {
		s.counts.Late++
		return nil
	}
	cloud, err := s.decode(o, f)
	if err != nil {
		s.counts.Undecodable++
		s.warn(o.Ref().String(), "frames cannot be decoded and are left out", err)
		return nil
	}
	s.counts.Frames++
	at, found := slices.BinarySearchFunc(o.pending, f.Number,
		func(c *capture, number uint32) int { return int(int32(c.number - number)) })
	if !found {
		c := &capture{object: o, number: f.Number, tiles: make(map[int]map[volumetric.Quality]*pointcloud.Cloud)}
		o.pending = slices.Insert(o.pending, at, c)
	}
	c := o.pending[at]
	if c.tiles[f.Tile] == nil {
		c.tiles[f.Tile] = make(map[volumetric.Quality]*pointcloud.Cloud)
	}
	c.tiles[f.Tile][f.Quality] = cloud
	if c.size++; c.size == o.Description.TrackCount() {
		return s.flush(o, len(o.pending)-at-1)
	}
	return s.flush(o, pendingCaptures)
}

// decode decodes a frame into a new cloud.
func (s *scene) decode(o *object, f *recording.Frame) (*pointcloud.Cloud, error) {
	data, fourCC := f.Data, f.Codec
	if o.Description.Encryption != "" {
		var err error
		if data, err = s.open(o.Publication, f.Tile, f.Quality, f.Number, prefixOf(f), data); err != nil {
			return nil, err
		}
	}
	if o.Description.VR2Gather {
		var h vr2gather.FrameHeader
		var err error
		if data, err = h.Parse(f.Data); err != nil {
			return nil, err
		}
		fourCC = h.FourCC
	}
	cloud := new(pointcloud.Cloud)
	if len(data) == 0 {
		return cloud, nil
	}
	decoder := s.decoders[fourCC]
	if decoder == nil {
		c, err := codec.ByFourCC(fourCC)
		if err != nil {
			return nil, codecs.Explain(fourCC, err)
		}
		decoder = c.NewDecoder()
		s.decoders[fourCC] = decoder
	}
	if err := decoder.Decode(cloud, data); err != nil {
		return nil, fmt.Errorf("tile %d frame %d: %w", f.Tile, f.Number, err)
	}
	return cloud, nil
}

// prefixOf returns the prefix of a frame as it was sent.
func prefixOf(f *recording.Frame) []byte {
	return payload.Prefix{FourCC: f.Codec, Stamp: f.Capture}.AppendTo(nil)
}

// open decrypts data in its own memory.
func (s *scene) open(p *recording.Publication, tile int, q volumetric.Quality, number uint32, prefix, data []byte,
) ([]byte, error) {
	return s.opener.Open(p.Participant, e2ee.Subject{
		Publication: p.Description.Name, Tile: tile, Quality: q, Number: number, Prefix: prefix,
	}, data)
}

// warn logs a warning once for each object.
func (s *scene) warn(object, text string, err error) {
	if !s.warned[object] {
		s.warned[object] = true
		s.log.Warn(text, "publication", object, "error", err)
	}
}

// flush completes the oldest captures until no more than keep are pending.
func (s *scene) flush(o *object, keep int) error {
	for len(o.pending) > keep {
		c := o.pending[0]
		o.pending = slices.Delete(o.pending, 0, 1)
		o.newest, o.begun, o.shown = c.number, true, c.clouds()
		s.counts.Captures++
		if err := s.complete(c); err != nil {
			return err
		}
	}
	return nil
}

// end completes all captures.
func (s *scene) end() error {
	for _, id := range slices.Sorted(maps.Keys(s.objects)) {
		if err := s.flush(s.objects[id], 0); err != nil {
			return err
		}
	}
	return nil
}

// layers returns the clouds that are shown.
func (s *scene) layers() (layers []render.Layer) {
	for _, id := range slices.Sorted(maps.Keys(s.objects)) {
		for _, cloud := range s.objects[id].shown {
			layers = append(layers, render.Layer{Cloud: cloud, Place: s.objects[id].place})
		}
	}
	return layers
}

// box returns the box of all objects that are published, for a view of everything.
func (s *scene) box() (box volumetric.BoundingBox) {
	first := true
	for _, o := range s.objects {
		for _, tile := range o.Description.Tiles {
			around := o.place.Around(tile.Box)
			if first {
				box, first = around, false
				continue
			}
			for axis := range 3 {
				box.Min[axis] = min(box.Min[axis], around.Min[axis])
				box.Max[axis] = max(box.Max[axis], around.Max[axis])
			}
		}
	}
	return box
}

// Counts are the results of an export.
type Counts struct {
	Seconds float64 `json:"seconds"`
	// Frames counts decoded frames, Captures captures with all their tiles, and Late frames that were recorded after
	// their capture had been written.
	Frames      int64 `json:"frames"`
	Captures    int64 `json:"captures"`
	Late        int64 `json:"frames_late"`
	Undecodable int64 `json:"frames_undecodable"`
	// Files counts PLY files, Pictures pictures of the film, and Sounds packets of sound.
	Files    int64            `json:"files"`
	Pictures int64            `json:"pictures"`
	Sounds   int64            `json:"sound_packets"`
	Lost     recording.Lost   `json:"recording_lost"`
	Damage   recording.Damage `json:"damage"`
}

// interval returns the time between two pictures.
func interval(rate float64) time.Duration { return time.Duration(float64(time.Second) / rate) }
