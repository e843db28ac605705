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
	// Every line may repeat the candidates.
	candidates := make(map[string]struct{})
	for _, media := range parsed.MediaDescriptions {
		for _, attribute := range media.Attributes {
			if attribute.Key == "candidate" {
				candidates[attribute.Value] = struct{}{}
			}
		}
		if len(candidates) > maxCandidates {
			return nil, fmt.Errorf("%w: more than %d candidates", ErrDescription, maxCandidates)
		}
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

// maxSourceAttributes bounds a=ssrc and a=ssrc-group of one line: two streams have four attributes each at most, and Pion compares each
// attribute of a line with every other.
const maxSourceAttributes = 32

// streamsOf reads one line. The first SSRC that is not a retransmission is the media's.
func streamsOf(media *sdp.MediaDescription) (Streams, error) {
	var s Streams
	named := 0
	for _, attribute := range media.Attributes {
		if attribute.Key == "ssrc" || attribute.Key == "ssrc-group" {
			named++
		}
	}
	if named > maxSourceAttributes {
		return Streams{}, fmt.Errorf("%d attributes of sources, expected at most %d", named, maxSourceAttributes)
	}
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

// checkAnswer reports where an answer does not fit its offer: it has the same lines in the same order (RFC 3264 section 6), and says how to
// reach and to know the remote peer. Pion takes an answer before it finds that out, and then takes no other.
func checkAnswer(offer, answer string) error {
	var offered, answered sdp.SessionDescription
	if err := offered.UnmarshalString(offer); err != nil {
		return fmt.Errorf("%w: own offer: %w", ErrDescription, err)
	}
	if err := answered.UnmarshalString(answer); err != nil {
		return fmt.Errorf("%w: %w", ErrDescription, err)
	}
	if got, want := len(answered.MediaDescriptions), len(offered.MediaDescriptions); got != want {
		return fmt.Errorf("%w: %d lines, expected the %d of the offer", ErrDescription, got, want)
	}
	for i, media := range answered.MediaDescriptions {
		got, _ := media.Attribute("mid")
		want, _ := offered.MediaDescriptions[i].Attribute("mid")
		if got != want {
			return fmt.Errorf("%w: line %d has mid %q, expected %q as in the offer", ErrDescription, i, got, want)
		}
	}
	for _, key := range []string{"ice-ufrag", "ice-pwd", "fingerprint"} {
		if !hasAttribute(&answered, key) {
			return fmt.Errorf("%w: no a=%s", ErrDescription, key)
		}
	}
	return nil
}

// hasAttribute tells whether the session or a line has the attribute.
func hasAttribute(description *sdp.SessionDescription, key string) bool {
	if _, ok := description.Attribute(key); ok {
		return true
	}
	for _, media := range description.MediaDescriptions {
		if _, ok := media.Attribute(key); ok {
			return true
		}
	}
	return false
}
