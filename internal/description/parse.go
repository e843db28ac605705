package description

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pion/sdp/v3"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Parse parses an offer or answer of Pion or of a browser. An error has the line and the expected value, and wraps
// ErrDescription. A description without a BUNDLE group counts as bundling all its lines. The attributes of lines of
// other kinds are ignored.
//
// Lines share their codecs and extensions: callers must not change the result in place. All strings in the result are
// copies: the text of an answer has up to 2 MiB, of which a connection keeps some kilobytes for its whole life, and
// Pion's strings are parts of buffers of 4 KiB.
func Parse(text string) (*Description, error) {
	if strings.Count(text, "\r") != strings.Count(text, "\r\n") {
		return nil, fmt.Errorf("%w: carriage return within a line", ErrDescription)
	}
	var parsed sdp.SessionDescription
	if err := parsed.UnmarshalString(text); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDescription, err)
	}
	p := newParser(parsed.Attributes)
	d := &Description{
		SessionID: parsed.Origin.SessionID, Version: parsed.Origin.SessionVersion,
		Lines: make([]Line, len(parsed.MediaDescriptions)),
	}
	for i, media := range parsed.MediaDescriptions {
		if err := p.line(media, &d.Lines[i]); err != nil {
			return nil, fmt.Errorf("%w: line %d (mid %q): %w", ErrDescription, i, d.Lines[i].MID, err)
		}
	}
	if d.tagged() < 0 {
		return d, nil
	}
	if err := p.transport(parsed.MediaDescriptions, &d.Transport); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDescription, err)
	}
	return d, nil
}

// parser has the common state of the lines of one description.
type parser struct {
	session []sdp.Attribute
	// bundled has the mids of the BUNDLE group, and is nil if there is no group; tag is the first of them.
	bundled map[string]bool
	tag     string
	mids    map[string]bool
	// sources maps an SSRC to the mid of its line.
	sources map[uint32]string
	// last has the last line of each kind.
	last map[string]parsedLine
}

func newParser(session []sdp.Attribute) parser {
	p := parser{session: session, mids: make(map[string]bool), sources: make(map[uint32]string),
		last: make(map[string]parsedLine)}
	for _, attribute := range session {
		fields := strings.Fields(attribute.Value)
		if attribute.Key != "group" || len(fields) < 2 || fields[0] != "BUNDLE" {
			continue
		}
		p.bundled, p.tag = make(map[string]bool, len(fields)), fields[1]
		for _, mid := range fields[1:] {
			p.bundled[mid] = true
		}
		break
	}
	return p
}

// inUse reports whether a line is not rejected. In an offer, lines that cannot be used outside their bundle have port
// 0, too (RFC 8843 section 6).
func (p *parser) inUse(media *sdp.MediaDescription) bool {
	mid, _ := media.Attribute("mid")
	_, bundleOnly := media.Attribute("bundle-only")
	return media.MediaName.Port.Value != 0 || bundleOnly && p.bundled[mid]
}

// line parses one media line.
func (p *parser) line(media *sdp.MediaDescription, l *Line) error {
	l.Kind = kindOf(media.MediaName.Media)
	l.Direction = DirectionInactive
	l.DataPort = dataPort(media)
	l.Rejected = !p.inUse(media) || !known(l.Kind) && l.DataPort == 0
	if err := p.mid(media, l); err != nil || l.Rejected {
		l.DataPort = 0
		return err
	}
	if p.bundled != nil && !p.bundled[l.MID] {
		return errors.New("line is outside the bundle, expected one transport for all")
	}
	if l.Kind == KindData {
		l.Direction = DirectionSendRecv
		return nil
	}
	l.Direction = p.direction(media)
	formats, err := p.formats(media)
	if err != nil {
		return err
	}
	l.Codecs, l.Extensions, l.CongestionFeedback = formats.codecs, formats.extensions, formats.congestion
	if l.Layers, err = l.parseLayers(media); err != nil {
		return err
	}
	streams, err := parseStreams(media)
	if err != nil || !l.Direction.Sends() {
		return err
	}
	l.Streams, l.Stream = streams, strings.Clone(parseStream(media))
	for _, ssrc := range []uint32{streams.SSRC, streams.Retransmission} {
		if other, taken := p.sources[ssrc]; taken {
			return fmt.Errorf("ssrc %d is taken by line %q", ssrc, other)
		}
		if ssrc != 0 {
			p.sources[ssrc] = l.MID
		}
	}
	return nil
}

// kindOf returns the kind of a line, as a string of its own.
func kindOf(media string) volumetric.Kind {
	for _, kind := range []volumetric.Kind{volumetric.KindVideo, volumetric.KindAudio, KindData} {
		if media == string(kind) {
			return kind
		}
	}
	return volumetric.Kind(strings.Clone(media))
}

// dataPort returns the SCTP port, or 0 if the line has no data channels over DTLS.
func dataPort(media *sdp.MediaDescription) uint16 {
	text, _ := media.Attribute("sctp-port")
	port, err := strconv.ParseUint(text, 10, 16)
	if media.MediaName.Media != string(KindData) || err != nil ||
		!slices.Equal(media.MediaName.Formats, []string{"webrtc-datachannel"}) {
		return 0
	}
	return uint16(port)
}

// mid parses the mid of a line, which every line in use has.
func (p *parser) mid(media *sdp.MediaDescription, l *Line) error {
	mid, _ := media.Attribute("mid")
	l.MID = strings.Clone(mid)
	switch {
	case l.MID == "" && l.Rejected:
		return nil
	case len(strings.Fields(l.MID)) != 1 || strings.TrimSpace(l.MID) != l.MID:
		return fmt.Errorf("mid is %q, expected one word", l.MID)
	case p.mids[l.MID]:
		return fmt.Errorf("mid %q stands on two lines", l.MID)
	}
	p.mids[l.MID] = true
	return nil
}

var directions = [...]Direction{DirectionSendRecv, DirectionSendOnly, DirectionRecvOnly, DirectionInactive}

// direction returns the direction of the line, or of the session, or else sendrecv (RFC 8866 section 6.7).
func (p *parser) direction(media *sdp.MediaDescription) Direction {
	for _, attributes := range [][]sdp.Attribute{media.Attributes, p.session} {
		for _, attribute := range attributes {
			if i := slices.Index(directions[:], Direction(attribute.Key)); i >= 0 {
				return directions[i]
			}
		}
	}
	return DirectionSendRecv
}
