package description

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pion/sdp/v3"
)

// maxSourceAttributes bounds a=ssrc and a=ssrc-group of one line: two streams have four attributes each at most, and a
// group.
const maxSourceAttributes = 32

// parseStreams parses the streams of a line (RFC 5576). The first SSRC that is not a retransmission is that of the
// media.
func parseStreams(media *sdp.MediaDescription) (Streams, error) {
	var grouped, single Streams
	named := 0
	for _, attribute := range media.Attributes {
		switch attribute.Key {
		case "ssrc":
			named++
			number, _, _ := strings.Cut(attribute.Value, " ")
			ssrc, err := parseSSRC(number)
			if err != nil {
				return Streams{}, err
			}
			if single.SSRC == 0 {
				single.SSRC = ssrc
			}
		case "ssrc-group":
			named++
			group, err := parseGroup(attribute.Value)
			if err != nil {
				return Streams{}, err
			}
			if grouped.SSRC == 0 {
				grouped = group
			}
		}
	}
	switch {
	case named > maxSourceAttributes:
		return Streams{}, fmt.Errorf("%d attributes of sources, expected at most %d", named, maxSourceAttributes)
	case grouped.SSRC != 0:
		return grouped, nil
	default:
		return single, nil
	}
}

// parseGroup parses a stream and its retransmissions: "FID 11 12". For groups of other semantics the result is zero.
func parseGroup(value string) (Streams, error) {
	fields := strings.Fields(value)
	if len(fields) != 3 || fields[0] != "FID" {
		return Streams{}, nil
	}
	media, err := parseSSRC(fields[1])
	if err != nil {
		return Streams{}, err
	}
	retransmission, err := parseSSRC(fields[2])
	if err != nil {
		return Streams{}, err
	}
	return Streams{SSRC: media, Retransmission: retransmission}, nil
}

// parseSSRC parses an SSRC other than 0, which means none in this package.
func parseSSRC(text string) (uint32, error) {
	ssrc, err := strconv.ParseUint(text, 10, 32)
	if err != nil || ssrc == 0 {
		return 0, fmt.Errorf("ssrc %q, expected a number of 32 bits other than 0", text)
	}
	return uint32(ssrc), nil
}

// parseStream parses the identifiers of the media stream and its track: from a=msid, or from a=ssrc as in "11
// msid:stream track".
func parseStream(media *sdp.MediaDescription) string {
	if stream, ok := media.Attribute("msid"); ok {
		return strings.Join(strings.Fields(stream), " ")
	}
	for _, attribute := range media.Attributes {
		if attribute.Key != "ssrc" {
			continue
		}
		if _, stream, ok := strings.Cut(attribute.Value, " msid:"); ok {
			return strings.Join(strings.Fields(stream), " ")
		}
	}
	return ""
}
