package description

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pion/sdp/v3"
)

// The URIs of the header extensions that name a packet's line and encoding (RFC 8852, RFC 9143 section 15).
const (
	MIDExtension            = "urn:ietf:params:rtp-hdrext:sdes:mid"
	LayerExtension          = "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id"
	RetransmissionExtension = "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id"
)

const (
	// maxLayers bounds the encodings of one line. Encoders have up to four.
	maxLayers = 8
	// maxLayerID bounds the length of an encoding's id, in bytes. A one-byte header extension carries up to 16.
	maxLayerID = 16
)

// Layer is one encoding of a line with simulcast (RFC 8851, RFC 8853). Limits that are not stated are 0.
type Layer struct {
	// ID is the id in the header extension LayerExtension.
	ID string
	// MaxWidth and MaxHeight are in pixels, MaxBitrate is in bit/s.
	MaxWidth, MaxHeight, MaxBitrate int
}

// restrictions are the names of the limits of an encoding that are read, in the order in which they are written.
var restrictions = [...]string{"max-width", "max-height", "max-br"}

// limits returns the limits of a layer in the order of restrictions.
func (l *Layer) limits() [len(restrictions)]*int {
	return [...]*int{&l.MaxWidth, &l.MaxHeight, &l.MaxBitrate}
}

// way returns the word for the encodings of a line in a=rid and a=simulcast.
func (l *Line) way() string {
	if l.Direction.Sends() {
		return "send"
	}
	return "recv"
}

// parseLayers parses the encodings of a line in the order of a=simulcast: those that the describing side sends, or
// receives if the line's direction does not send. Of alternative encodings the first counts. A line without a=simulcast
// has none.
func (l *Line) parseLayers(media *sdp.MediaDescription) ([]Layer, error) {
	listed, described := "", make(map[string]string)
	for _, attribute := range media.Attributes {
		switch fields := strings.Fields(attribute.Value); {
		case attribute.Key == "simulcast" && listed == "":
			for i := 0; i+1 < len(fields); i += 2 {
				if fields[i] == l.way() {
					listed = fields[i+1]
				}
			}
		case attribute.Key == "rid" && len(fields) >= 2 && fields[1] == l.way():
			if len(described) == maxLayers {
				return nil, fmt.Errorf("more than %d encodings", maxLayers)
			}
			described[fields[0]] = strings.Join(fields[2:], " ")
		}
	}
	if listed == "" {
		return nil, nil
	}
	var layers []Layer
	for alternatives := range strings.SplitSeq(listed, ";") {
		id, _, _ := strings.Cut(alternatives, ",")
		id = strings.TrimPrefix(id, "~")
		text, ok := described[id]
		switch {
		case !ok:
			return nil, fmt.Errorf("simulcast names the encoding %.40q, expected an id of a=rid", id)
		case !isLayerID(id):
			return nil, fmt.Errorf("rid %.40q, expected 1 to %d letters, digits, - and _", id, maxLayerID)
		}
		delete(described, id)
		layer := Layer{ID: strings.Clone(id)}
		layer.restrict(text)
		layers = append(layers, layer)
	}
	return layers, nil
}

func isLayerID(id string) bool {
	return id != "" && len(id) <= maxLayerID && strings.IndexFunc(id, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '_')
	}) < 0
}

// restrict parses the restrictions of a=rid. Values that are no positive numbers count as not stated.
func (l *Layer) restrict(text string) {
	limits := l.limits()
	for field := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		for i, known := range restrictions {
			if n, err := strconv.ParseInt(value, 10, 32); name == known && err == nil && n > 0 {
				*limits[i] = int(n)
			}
		}
	}
}

// layers writes the encodings of a line.
func (t *text) layers(l *Line) {
	if len(l.Layers) == 0 {
		return
	}
	for i := range l.Layers {
		layer := &l.Layers[i]
		t.add("a=rid:", layer.ID, " ", l.way())
		separator := " "
		for j, limit := range layer.limits() {
			if *limit > 0 {
				t.add(separator, restrictions[j], "=")
				t.number(uint64(*limit))
				separator = ";"
			}
		}
		t.add("\r\n")
	}
	t.add("a=simulcast:", l.way())
	separator := " "
	for i := range l.Layers {
		t.add(separator, l.Layers[i].ID)
		separator = ";"
	}
	t.add("\r\n")
}
