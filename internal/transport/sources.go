package transport

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pion/sdp/v3"
)

// ErrDescription is wrapped with what is wrong in a session description.
var ErrDescription = errors.New("invalid session description")

// Streams are the SSRCs that a remote peer sends on one media line.
type Streams struct {
	SSRC uint32
	// Retransmission is the SSRC of the RTX stream, 0 where there is none.
	Retransmission uint32
}

// streamsByMID reads from a description which streams the remote peer sends on which line (RFC 5576: a=ssrc, a=ssrc-group:FID).
// Lines on which it sends nothing are left out.
func streamsByMID(description string) (map[string]Streams, error) {
	var parsed sdp.SessionDescription
	if err := parsed.UnmarshalString(description); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDescription, err)
	}
	streams := make(map[string]Streams)
	for _, media := range parsed.MediaDescriptions {
		mid, ok := media.Attribute("mid")
		if !ok {
			continue
		}
		s, err := streamsOf(media)
		if err != nil {
			return nil, fmt.Errorf("%w: line %q: %w", ErrDescription, mid, err)
		}
		if s.SSRC != 0 {
			streams[mid] = s
		}
	}
	return streams, nil
}

// streamsOf reads one line. The first SSRC that is not a retransmission is the media's.
func streamsOf(media *sdp.MediaDescription) (Streams, error) {
	var s Streams
	for _, attribute := range media.Attributes {
		if attribute.Key != "ssrc-group" {
			continue
		}
		fields := strings.Fields(attribute.Value)
		if len(fields) != 3 || fields[0] != "FID" {
			continue
		}
		first, err := parseSSRC(fields[1])
		if err != nil {
			return Streams{}, err
		}
		second, err := parseSSRC(fields[2])
		if err != nil {
			return Streams{}, err
		}
		return Streams{SSRC: first, Retransmission: second}, nil
	}
	for _, attribute := range media.Attributes {
		if attribute.Key != "ssrc" {
			continue
		}
		number, _, _ := strings.Cut(attribute.Value, " ")
		ssrc, err := parseSSRC(number)
		if err != nil {
			return Streams{}, err
		}
		s.SSRC = ssrc
		break
	}
	return s, nil
}

func parseSSRC(text string) (uint32, error) {
	ssrc, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("ssrc %q: expected a number of 32 bits", text)
	}
	return uint32(ssrc), nil
}
