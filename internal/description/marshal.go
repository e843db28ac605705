package description

import (
	"strconv"
	"strings"
)

// Initial capacity of a description: 1,100 bytes for a video line with four codecs, which has about 1,000, and 512
// bytes for the rest.
const (
	sessionSize = 512
	lineSize    = 1100
)

// text is a description that is being written. Writing directly takes a quarter of the time of filling and writing
// Pion's structs.
type text struct{ strings.Builder }

func (t *text) add(parts ...string) {
	for _, part := range parts {
		t.WriteString(part)
	}
}

// maxDigits is the number of decimal digits of the largest number.
const maxDigits = 20

func (t *text) number(n uint64) {
	var digits [maxDigits]byte
	t.Write(strconv.AppendUint(digits[:0], n, 10))
}

// line writes a whole line.
func (t *text) line(parts ...string) {
	t.add(parts...)
	t.add("\r\n")
}

// Marshal returns the description as text. Stream and Streams are written only if the line's direction sends.
func (d *Description) Marshal() string {
	var t text
	t.Grow(sessionSize + lineSize*len(d.Lines))
	tagged := d.tagged()
	t.add("v=0\r\no=- ")
	t.number(d.SessionID)
	t.add(" ")
	t.number(d.Version)
	t.line(" IN IP4 0.0.0.0\r\ns=-\r\nt=0 0")
	if tagged >= 0 {
		t.add("a=group:BUNDLE")
		for i := range d.Lines {
			if !d.Lines[i].Rejected {
				t.add(" ", d.Lines[i].MID)
			}
		}
		t.add("\r\n")
	}
	t.line("a=msid-semantic:WMS *\r\na=extmap-allow-mixed\r\na=ice-options:trickle")
	if d.Transport.Lite {
		t.line("a=ice-lite")
	}
	t.credentials(&d.Transport)
	for i := range d.Lines {
		t.media(&d.Lines[i], &d.Transport, i == tagged)
	}
	// An offer is kept until the answer arrives, without the spare room.
	return strings.Clone(t.String())
}

// credentials writes the attributes that are at session level and in the tagged line.
func (t *text) credentials(transport *Transport) {
	for _, attribute := range []struct{ key, value string }{
		{"ice-ufrag", transport.Ufrag},
		{"ice-pwd", transport.Password},
		{"fingerprint", transport.Fingerprint},
	} {
		if attribute.value != "" {
			t.line("a=", attribute.key, ":", attribute.value)
		}
	}
}

// media writes one media line and its attributes.
func (t *text) media(l *Line, transport *Transport, tagged bool) {
	if l.Rejected {
		t.rejected(l)
		return
	}
	if l.Kind == KindData {
		t.data(l, transport, tagged)
		return
	}
	t.add("m=", string(l.Kind), " 9 UDP/TLS/RTP/SAVPF")
	for i := range l.Codecs {
		t.add(" ")
		t.number(uint64(l.Codecs[i].PayloadType))
		if l.Codecs[i].Retransmission != 0 {
			t.add(" ")
			t.number(uint64(l.Codecs[i].Retransmission))
		}
	}
	if len(l.Codecs) == 0 {
		t.add(" 0")
	}
	t.line("\r\nc=IN IP4 0.0.0.0")
	t.reach(l, transport, tagged)
	t.line("a=", string(l.Direction), "\r\na=rtcp-mux\r\na=rtcp-rsize")
	for _, extension := range l.Extensions {
		t.add("a=extmap:")
		t.number(uint64(extension.ID))
		t.line(" ", extension.URI)
	}
	if l.CongestionFeedback {
		t.line("a=rtcp-fb:* ", congestionFeedback)
	}
	for i := range l.Codecs {
		t.codec(&l.Codecs[i])
	}
	t.layers(l)
	if l.Direction.Sends() {
		t.streams(l)
	}
}

// reach writes a line's mid and its transport attributes.
func (t *text) reach(l *Line, transport *Transport, tagged bool) {
	t.line("a=mid:", l.MID)
	if tagged {
		t.credentials(transport)
		for _, candidate := range transport.Candidates {
			t.line("a=", candidate)
		}
		if transport.EndOfCandidates {
			t.line("a=end-of-candidates")
		}
	}
	if transport.Role != "" {
		t.line("a=setup:", string(transport.Role))
	}
}

// data writes a line with data channels.
func (t *text) data(l *Line, transport *Transport, tagged bool) {
	t.line("m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0")
	t.reach(l, transport, tagged)
	t.add("a=sctp-port:")
	t.number(uint64(l.DataPort))
	t.add("\r\na=max-message-size:")
	t.number(MaxDataMessage)
	t.add("\r\n")
}

// rejected writes a line with port 0. A payload type is required (RFC 8866 section 9); 0 is common.
func (t *text) rejected(l *Line) {
	format := " 0 UDP/TLS/RTP/SAVPF 0"
	if l.Kind == KindData {
		format = " 0 UDP/DTLS/SCTP webrtc-datachannel"
	}
	t.line("m=", string(l.Kind), format, "\r\nc=IN IP4 0.0.0.0")
	if l.MID != "" {
		t.line("a=mid:", l.MID)
	}
	t.line("a=inactive")
}

func (t *text) codec(c *Codec) {
	_, name, _ := strings.Cut(c.MIMEType, "/")
	t.rtpmap(c.PayloadType, name, c.ClockRate)
	if c.Channels != 0 {
		t.add("/")
		t.number(uint64(c.Channels))
	}
	t.add("\r\n")
	if c.Format != "" {
		t.add("a=fmtp:")
		t.number(uint64(c.PayloadType))
		t.line(" ", c.Format)
	}
	for _, feedback := range c.Feedback {
		t.add("a=rtcp-fb:")
		t.number(uint64(c.PayloadType))
		t.line(" ", feedback)
	}
	if c.Retransmission != 0 {
		t.rtpmap(c.Retransmission, "rtx", c.ClockRate)
		t.add("\r\na=fmtp:")
		t.number(uint64(c.Retransmission))
		t.add(" apt=")
		t.number(uint64(c.PayloadType))
		t.add("\r\n")
	}
}

func (t *text) rtpmap(payloadType uint8, name string, clockRate uint32) {
	t.add("a=rtpmap:")
	t.number(uint64(payloadType))
	t.add(" ", name, "/")
	t.number(uint64(clockRate))
}

// streams writes the streams of the describing side. a=msid comes first: Pion assigns the identifiers read so far to
// the sources that follow. The canonical name is that of the media stream, so that receivers do not synchronise lines
// with separate streams.
func (t *text) streams(l *Line) {
	if l.Stream != "" {
		t.line("a=msid:", l.Stream)
	}
	if l.Streams.SSRC == 0 {
		return
	}
	name, _, _ := strings.Cut(l.Stream, " ")
	if name == "" {
		name = "-"
	}
	if l.Streams.Retransmission != 0 {
		t.add("a=ssrc-group:FID ")
		t.number(uint64(l.Streams.SSRC))
		t.add(" ")
		t.number(uint64(l.Streams.Retransmission))
		t.add("\r\n")
	}
	for _, ssrc := range []uint32{l.Streams.SSRC, l.Streams.Retransmission} {
		if ssrc != 0 {
			t.add("a=ssrc:")
			t.number(uint64(ssrc))
			t.line(" cname:", name)
		}
	}
}
