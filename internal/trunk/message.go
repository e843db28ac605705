package trunk

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrMessage is wrapped with the reason why a control message was refused.
var ErrMessage = errors.New("invalid trunk message")

// The versions of the protocol that this node speaks. Two nodes use the highest version that both speak. Nodes pass
// publications on from relayVersion.
const (
	minVersion   = 1
	maxVersion   = 2
	relayVersion = 2
)

const (
	// MaxPayload is the maximum size in bytes of a payload of Host.Send.
	MaxPayload = 64 << 10
	// maxMessage is the maximum size of a control message: the rates of maxTracks tracks of 13 digits and a comma each
	// take 229 kB, a payload in base64 87 kB.
	maxMessage = 256 << 10
	// maxTracks bounds the tracks of a publication.
	maxTracks = volumetric.MaxTiles * volumetric.MaxQualities
	// maxPart bounds the streams of one part of an offer, which have up to 65 bytes each.
	maxPart = 2000
	// maxName bounds names of rooms, participants and publications, in bytes.
	maxName = 256
	// maxPath bounds the nodes of a path.
	maxPath = 16
	// maxParity is the maximum share of parity.
	maxParity = 0.25
	// maxRate is the maximum rate of a track in bit/s.
	maxRate = 1e12
)

// message is a control message. It has one content. Each content about a publication is the whole state. Unknown keys
// are ignored.
type message struct {
	// Number is one more than that of the message before.
	Number uint64    `json:"n"`
	Hello  *hello    `json:"hello,omitempty"`
	Take   *take     `json:"take,omitempty"`
	Offer  *offer    `json:"offer,omitempty"`
	Bound  *bound    `json:"bound,omitempty"`
	Rates  *rates    `json:"rates,omitempty"`
	Masks  *tileSets `json:"masks,omitempty"`
	GaveUp *tileSets `json:"gave_up,omitempty"`
	Parent *parent   `json:"parent,omitempty"`
	// Payload is the payload of Host.Send.
	Payload []byte `json:"payload,omitempty"`
}

// hello is the first message of both sides.
type hello struct {
	Versions    [2]int `json:"versions"`
	Node        string `json:"node"`
	Incarnation uint64 `json:"incarnation"`
	Lanes       int    `json:"lanes"`
	Region      string `json:"region,omitempty"`
}

// publication names a publication. ID is a number that its home node has not used for another publication. Home is the
// name of the home node if the sender of the offer passes the publication on, and empty if the sender is the home.
type publication struct {
	Room        string `json:"room"`
	Participant string `json:"participant"`
	Publication string `json:"publication"`
	ID          uint64 `json:"id"`
	Home        string `json:"home,omitempty"`
}

// take is the demand of a node for a publication: for each tile its qualities, and whether the tile is wanted soon.
type take struct {
	publication
	Tiles  [][]int `json:"tiles"`
	Near   []bool  `json:"near,omitempty"`
	Parity float64 `json:"parity,omitempty"`
	// Fresh is set if the node has no offer for the publication. The origin then repeats its offer.
	Fresh bool `json:"fresh,omitempty"`
	// Path are the nodes from the home to the parent from which the node takes the publication. At the home, a take
	// with a path has no demand.
	Path []string `json:"path,omitempty"`
	// Refused is a parent that has failed.
	Refused string `json:"refused,omitempty"`
	// Trace is set if the node wants the hops of the frames. Nodes of earlier versions send none.
	Trace bool `json:"trace,omitempty"`
}

// parent assigns the node from which another node takes a publication. Path are the nodes from the home to the parent,
// both included. A node that passes publications on sends an empty path if it does not pass a publication on.
type parent struct {
	publication
	Path []string `json:"path"`
}

// offer has the streams that carry the tracks of a publication. The receiver of the offer replies with bound. More is
// set if the next message has further streams of the offer.
type offer struct {
	publication
	Offer   uint64   `json:"offer"`
	Streams []stream `json:"streams"`
	More    bool     `json:"more,omitempty"`
}

// parts splits an offer into messages.
func (o *offer) parts() (parts []*offer) {
	streams := o.Streams
	for {
		part := &offer{publication: o.publication, Offer: o.Offer, Streams: streams, More: len(streams) > maxPart}
		parts = append(parts, part)
		if !part.More {
			return parts
		}
		part.Streams, streams = streams[:maxPart], streams[maxPart:]
	}
}

// stream is an RTP stream on a lane. Track is the index of its track, tile × qualities + quality. Retransmission is 0
// for audio.
type stream struct {
	Track          int    `json:"track"`
	SSRC           uint32 `json:"ssrc"`
	Retransmission uint32 `json:"rtx,omitempty"`
	Lane           int    `json:"lane"`
}

// bound confirms that the streams of an offer are bound. Packets that leave afterwards are not lost.
type bound struct {
	publication
	Offer uint64 `json:"offer"`
}

// rates are the rates of the tracks of a publication in bit/s, 0 if unknown.
type rates struct {
	publication
	Rates []volumetric.Bitrate `json:"rates"`
}

// tileSets are sets of qualities of the tiles of a publication.
type tileSets struct {
	publication
	Tiles [][]int `json:"tiles"`
	// Own is set in masks if some are those of the trunk of the sender, who is not the home.
	Own bool `json:"own,omitempty"`
}

// probe is a message of the second stream, which is neither ordered nor repeated. Times are in nanoseconds since 1970:
// T0 and T3 by the clock of the node that asks, T1 and T2 by the clock of the other. A message with hops has no times.
type probe struct {
	T0   int64 `json:"t0"`
	T1   int64 `json:"t1,omitempty"`
	T2   int64 `json:"t2,omitempty"`
	Hops *hops `json:"hops,omitempty"`
}

// decode reads and checks a control message.
func decode(data []byte) (*message, error) {
	if len(data) > maxMessage {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", ErrMessage, len(data), maxMessage)
	}
	m := new(message)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	if n := m.contents(); n > 1 {
		return nil, fmt.Errorf("%w: %d contents, expected one", ErrMessage, n)
	}
	var err error
	switch {
	case m.Hello != nil:
		err = m.Hello.check()
	case m.Take != nil:
		if err = m.Take.check(m.Take.Tiles); err == nil && len(m.Take.Near) > len(m.Take.Tiles) {
			err = fmt.Errorf("%w: near has %d tiles, tiles has %d", ErrMessage, len(m.Take.Near), len(m.Take.Tiles))
		}
		if err == nil {
			err = checkPath(m.Take.Path)
		}
		if err == nil && len(m.Take.Refused) > maxName {
			err = fmt.Errorf("%w: a node name of %d bytes, expected at most %d", ErrMessage, len(m.Take.Refused),
				maxName)
		}
		m.Take.Parity = min(max(m.Take.Parity, 0), maxParity)
	case m.Parent != nil:
		if err = m.Parent.check(nil); err == nil {
			err = checkPath(m.Parent.Path)
		}
	case m.Offer != nil:
		err = m.Offer.check()
	case m.Bound != nil:
		err = m.Bound.check(nil)
	case m.Rates != nil:
		err = m.Rates.check()
	case m.Masks != nil:
		err = m.Masks.check(m.Masks.Tiles)
	case m.GaveUp != nil:
		err = m.GaveUp.check(m.GaveUp.Tiles)
	case len(m.Payload) > MaxPayload:
		err = fmt.Errorf("%w: a payload of %d bytes, the limit is %d", ErrMessage, len(m.Payload), MaxPayload)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// contents returns the number of contents. It is 0 for a content that only later versions know.
func (m *message) contents() (n int) {
	for _, present := range []bool{
		m.Hello != nil, m.Take != nil, m.Offer != nil, m.Bound != nil, m.Rates != nil, m.Masks != nil, m.GaveUp != nil,
		m.Parent != nil, m.Payload != nil,
	} {
		if present {
			n++
		}
	}
	return n
}

func (h *hello) check() error {
	switch {
	case h.Node == "" || len(h.Node) > maxName:
		return fmt.Errorf("%w: a node name of %d bytes, expected 1 to %d", ErrMessage, len(h.Node), maxName)
	case h.Versions[0] > maxVersion || h.Versions[1] < minVersion || h.Versions[0] > h.Versions[1]:
		return fmt.Errorf("%w: node %s speaks versions %d to %d, this node %d to %d", ErrMessage, h.Node, h.Versions[0],
			h.Versions[1], minVersion, maxVersion)
	}
	if len(h.Region) > maxName {
		return fmt.Errorf("%w: a region of %d bytes, expected at most %d", ErrMessage, len(h.Region), maxName)
	}
	h.Lanes = min(max(h.Lanes, 1), transport.MaxLanes)
	return nil
}

// checkPath checks the names of nodes.
func checkPath(path []string) error {
	if len(path) > maxPath {
		return fmt.Errorf("%w: a path of %d nodes, the limit is %d", ErrMessage, len(path), maxPath)
	}
	for i, node := range path {
		if node == "" || len(node) > maxName {
			return fmt.Errorf("%w: a node name of %d bytes, expected 1 to %d", ErrMessage, len(node), maxName)
		}
		if slices.Contains(path[:i], node) {
			return fmt.Errorf("%w: a path with node %s twice", ErrMessage, node)
		}
	}
	return nil
}

// check checks the names, and the qualities of tiles.
func (p *publication) check(tiles [][]int) error {
	if len(p.Home) > maxName {
		return fmt.Errorf("%w: a node name of %d bytes, expected at most %d", ErrMessage, len(p.Home), maxName)
	}
	for _, name := range []string{p.Room, p.Participant, p.Publication} {
		if name == "" || len(name) > maxName {
			return fmt.Errorf("%w: a name of %d bytes, expected 1 to %d", ErrMessage, len(name), maxName)
		}
	}
	if len(tiles) > volumetric.MaxTiles {
		return fmt.Errorf("%w: %d tiles, the limit is %d", ErrMessage, len(tiles), volumetric.MaxTiles)
	}
	for _, qualities := range tiles {
		if len(qualities) > volumetric.MaxQualities {
			return fmt.Errorf("%w: %d qualities of a tile, the limit is %d", ErrMessage, len(qualities),
				volumetric.MaxQualities)
		}
		for _, q := range qualities {
			if q < 0 || q >= volumetric.MaxQualities {
				return fmt.Errorf("%w: quality %d, expected 0 to %d", ErrMessage, q, volumetric.MaxQualities-1)
			}
		}
	}
	return nil
}

func (o *offer) check() error {
	if err := o.publication.check(nil); err != nil {
		return err
	}
	if len(o.Streams) > maxTracks {
		return fmt.Errorf("%w: an offer of %d streams, the limit is %d", ErrMessage, len(o.Streams), maxTracks)
	}
	for i := range o.Streams {
		s := &o.Streams[i]
		if s.Track < 0 || s.Track >= maxTracks || s.SSRC == 0 || s.SSRC == s.Retransmission || s.Lane < 0 ||
			s.Lane >= transport.MaxLanes {
			return fmt.Errorf("%w: a stream for track %d with SSRC %d on lane %d", ErrMessage, s.Track, s.SSRC, s.Lane)
		}
	}
	return nil
}

func (r *rates) check() error {
	if err := r.publication.check(nil); err != nil {
		return err
	}
	if len(r.Rates) > maxTracks {
		return fmt.Errorf("%w: rates of %d tracks, the limit is %d", ErrMessage, len(r.Rates), maxTracks)
	}
	for _, rate := range r.Rates {
		if rate < 0 || rate > maxRate {
			return fmt.Errorf("%w: a rate of %d bit/s, expected 0 to %d", ErrMessage, rate, int64(maxRate))
		}
	}
	return nil
}

// lists returns the qualities of each set.
func lists(sets []allocate.QualitySet) [][]int {
	tiles := make([][]int, len(sets))
	for i, set := range sets {
		tiles[i] = []int{}
		for q := range volumetric.Quality(volumetric.MaxQualities) {
			if set.Has(q) {
				tiles[i] = append(tiles[i], int(q))
			}
		}
	}
	return tiles
}

// sets returns the sets of checked qualities.
func sets(tiles [][]int) []allocate.QualitySet {
	result := make([]allocate.QualitySet, len(tiles))
	for i, qualities := range tiles {
		for _, q := range qualities {
			result[i] |= allocate.Qualities(volumetric.Quality(q))
		}
	}
	return result
}

// ref returns the name of the publication within its room.
func (p publication) ref() volumetric.PublicationRef {
	return volumetric.PublicationRef{Participant: p.Participant, Publication: p.Publication}
}

// empty reports whether no quality is in the sets.
func empty(tiles []allocate.QualitySet) bool {
	return !slices.ContainsFunc(tiles, func(s allocate.QualitySet) bool { return s != 0 })
}
