package description

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pion/sdp/v3"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	payloadTypes = 1 << 7
	// maxFeedback bounds the feedback of one payload type: browsers have up to seven. One wildcard counts for each of
	// up to 128 payload types.
	maxFeedback = 16
	// maxExtensionID is the highest identifier of two-byte header extensions (RFC 8285 section 4.3).
	maxExtensionID = 255
)

// formats has the attributes of one line about its payload types.
type formats struct {
	maps       [payloadTypes]string
	parameters [payloadTypes]string
	feedback   [payloadTypes][]string
	wildcard   []string
	// congestion is set if congestion control feedback is present for any payload type. It applies to all (RFC 8888
	// section 6).
	congestion bool
}

// parsedLine is a media line with its parsed codecs and header extensions.
type parsedLine struct {
	media      *sdp.MediaDescription
	codecs     []Codec
	extensions []Extension
	congestion bool
}

// formats parses the codecs and header extensions of a line. Hundreds of lines have the same: a line with the same
// attributes as the previous one of its kind shares the result, which saves most of the time and memory.
func (p *parser) formats(media *sdp.MediaDescription) (parsedLine, error) {
	kind := media.MediaName.Media
	if last, ok := p.last[kind]; ok && sameFormats(last.media, media) {
		return last, nil
	}
	codecs, congestion, err := parseCodecs(media)
	if err != nil {
		return parsedLine{}, err
	}
	extensions, err := parseExtensions(media)
	if err != nil {
		return parsedLine{}, err
	}
	detach(codecs, extensions)
	s := parsedLine{media: media, codecs: codecs, extensions: extensions, congestion: congestion}
	p.last[kind] = s
	return s, nil
}

// detach replaces the strings of codecs and extensions by copies that share no memory with the input.
func detach(codecs []Codec, extensions []Extension) {
	for i := range codecs {
		c := &codecs[i]
		c.MIMEType, c.Format = strings.Clone(c.MIMEType), strings.Clone(c.Format)
		for j, feedback := range c.Feedback {
			c.Feedback[j] = strings.Clone(feedback)
		}
	}
	for i := range extensions {
		extensions[i].URI = strings.Clone(extensions[i].URI)
	}
}

// sameFormats reports whether two lines have the same payload types, and the same attributes about formats in the same
// order.
func sameFormats(a, b *sdp.MediaDescription) bool {
	if !slices.Equal(a.MediaName.Formats, b.MediaName.Formats) {
		return false
	}
	rest := b.Attributes
	for _, attribute := range a.Attributes {
		if !aboutFormats(attribute) {
			continue
		}
		i := slices.IndexFunc(rest, aboutFormats)
		if i < 0 || rest[i] != attribute {
			return false
		}
		rest = rest[i+1:]
	}
	return !slices.ContainsFunc(rest, aboutFormats)
}

func aboutFormats(attribute sdp.Attribute) bool {
	switch attribute.Key {
	case "rtpmap", "fmtp", "rtcp-fb", "extmap":
		return true
	default:
		return false
	}
}

// parseCodecs parses the codecs of a line in the order of its payload types. Those without a=rtpmap (the static ones of
// RFC 3551) are ignored, and retransmissions are assigned to the original codec. congestion is set if congestion
// control feedback is present.
func parseCodecs(media *sdp.MediaDescription) (codecs []Codec, congestion bool, err error) {
	var f formats
	if err := f.read(media.Attributes); err != nil {
		return nil, false, err
	}
	var seen [payloadTypes]bool
	var retransmissions [payloadTypes]uint8
	for _, format := range media.MediaName.Formats {
		payloadType, ok := parsePayloadType(format)
		if !ok {
			return nil, false, fmt.Errorf("payload type %q, expected 0 to %d", format, payloadTypes-1)
		}
		if seen[payloadType] || f.maps[payloadType] == "" {
			continue
		}
		seen[payloadType] = true
		name, rest, _ := strings.Cut(f.maps[payloadType], "/")
		if strings.EqualFold(name, "rtx") {
			if repeated, ok := associated(f.parameters[payloadType]); ok && retransmissions[repeated] == 0 {
				retransmissions[repeated] = payloadType
			}
			continue
		}
		codec, err := f.codec(payloadType, mimeType(media.MediaName.Media, name), rest)
		if err != nil {
			return nil, false, err
		}
		codecs = append(codecs, codec)
	}
	for i := range codecs {
		codecs[i].Retransmission = retransmissions[codecs[i].PayloadType]
	}
	return codecs, f.congestion, nil
}

// mimeType returns the media type of a format on a line of the kind. Opaque has the same type on lines of every kind.
func mimeType(kind, name string) string {
	if strings.EqualFold("video/"+name, volumetric.MIMEOpaque) {
		return volumetric.MIMEOpaque
	}
	return kind + "/" + name
}

// read collects a=rtpmap, a=fmtp and a=rtcp-fb. Of the first two, the first for a payload type counts.
func (f *formats) read(attributes []sdp.Attribute) error {
	for _, attribute := range attributes {
		switch attribute.Key {
		case "rtpmap", "fmtp", "rtcp-fb":
		default:
			continue
		}
		format, value, _ := strings.Cut(attribute.Value, " ")
		value = strings.TrimSpace(value)
		if attribute.Key == "rtcp-fb" && value == congestionFeedback {
			f.congestion = true
			continue
		}
		if format == "*" && attribute.Key == "rtcp-fb" {
			if err := addFeedback(&f.wildcard, value); err != nil {
				return err
			}
			continue
		}
		payloadType, ok := parsePayloadType(format)
		if !ok {
			return fmt.Errorf("%s %q, expected a payload type of 0 to %d", attribute.Key, attribute.Value,
				payloadTypes-1)
		}
		switch attribute.Key {
		case "rtpmap":
			setFirst(&f.maps[payloadType], value)
		case "fmtp":
			setFirst(&f.parameters[payloadType], value)
		case "rtcp-fb":
			if err := addFeedback(&f.feedback[payloadType], value); err != nil {
				return err
			}
		}
	}
	return nil
}

func setFirst(s *string, value string) {
	if *s == "" {
		*s = value
	}
}

// addFeedback adds a value that is not present yet.
func addFeedback(feedback *[]string, value string) error {
	switch {
	case value == "" || slices.Contains(*feedback, value):
		return nil
	case len(*feedback) == maxFeedback:
		return fmt.Errorf("more than %d kinds of feedback for one payload type", maxFeedback)
	}
	*feedback = append(*feedback, value)
	return nil
}

// codec parses the part after the name in a=rtpmap, as in "48000/2", and adds the other attributes.
func (f *formats) codec(payloadType uint8, mimeType, encoding string) (Codec, error) {
	c := Codec{MIMEType: mimeType, Format: f.parameters[payloadType], Feedback: f.feedback[payloadType],
		PayloadType: payloadType}
	rate, channels, hasChannels := strings.Cut(encoding, "/")
	clockRate, err := strconv.ParseUint(rate, 10, 32)
	if err != nil || clockRate == 0 || strings.HasSuffix(mimeType, "/") {
		return Codec{}, fmt.Errorf("payload type %d is %q, expected NAME/RATE", payloadType, f.maps[payloadType])
	}
	c.ClockRate = uint32(clockRate)
	if hasChannels {
		number, err := strconv.ParseUint(channels, 10, 16)
		if err != nil || number == 0 {
			return Codec{}, fmt.Errorf("payload type %d has %q channels, expected a number", payloadType, channels)
		}
		c.Channels = uint16(number)
	}
	for _, value := range f.wildcard {
		if err := addFeedback(&c.Feedback, value); err != nil {
			return Codec{}, err
		}
	}
	return c, nil
}

// parseExtensions parses a=extmap (RFC 8285 section 5), as in "1 URI" or "1/recvonly URI attributes". Of two with one
// identifier the first counts.
func parseExtensions(media *sdp.MediaDescription) ([]Extension, error) {
	var seen [maxExtensionID + 1]bool
	var found []Extension
	for _, attribute := range media.Attributes {
		if attribute.Key != "extmap" {
			continue
		}
		first, uri, _ := strings.Cut(attribute.Value, " ")
		uri, _, _ = strings.Cut(strings.TrimSpace(uri), " ")
		if uri == "" {
			return nil, fmt.Errorf("extmap %q, expected an identifier and a URI", attribute.Value)
		}
		number, direction, _ := strings.Cut(first, "/")
		id, err := strconv.ParseUint(number, 10, 8)
		if err != nil || id == 0 {
			return nil, fmt.Errorf("extmap %q, expected an identifier of 1 to %d", attribute.Value, maxExtensionID)
		}
		if !seen[id] && Direction(direction) != DirectionInactive {
			seen[id] = true
			found = append(found, Extension{ID: int(id), URI: uri})
		}
	}
	return found, nil
}
