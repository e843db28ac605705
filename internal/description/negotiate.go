package description

import (
	"errors"
	"fmt"
	"slices"
)

// Sending is the stream that an answerer sends on a line.
type Sending struct {
	Streams Streams
	// Stream has the identifiers of the media stream and of its track, as in Line.
	Stream string
}

// CheckAnswer reports if an answer does not fit its offer. The answer must have the same lines in the same order (RFC
// 3264 section 6) and the answerer's credentials and fingerprint, and each line must select from the offer: a
// direction, codecs and header extensions. A rejected line may lack its mid. The error wraps ErrDescription.
func CheckAnswer(offer, answer *Description) error {
	if got, want := len(answer.Lines), len(offer.Lines); got != want {
		return fmt.Errorf("%w: %d lines, expected the %d of the offer", ErrDescription, got, want)
	}
	for i := range answer.Lines {
		if err := checkLine(&offer.Lines[i], &answer.Lines[i]); err != nil {
			return fmt.Errorf("%w: line %d (mid %q): %w", ErrDescription, i, answer.Lines[i].MID, err)
		}
	}
	if err := answer.Transport.check(); err != nil {
		return err
	}
	switch offered, role := offer.Transport.Role, answer.Transport.Role; {
	case offered != RoleActive && role == RoleActive, offered != RolePassive && role == RolePassive:
		return nil
	default:
		return fmt.Errorf("%w: setup is %q in answer to %q", ErrDescription, role, offered)
	}
}

// check reports a missing credential or fingerprint.
func (t *Transport) check() error {
	for _, attribute := range []struct{ key, value string }{
		{"ice-ufrag", t.Ufrag},
		{"ice-pwd", t.Password},
		{"fingerprint", t.Fingerprint},
	} {
		if attribute.value == "" {
			return fmt.Errorf("%w: no a=%s", ErrDescription, attribute.key)
		}
	}
	return nil
}

func checkLine(offered, answered *Line) error {
	switch {
	case answered.MID != offered.MID && !(answered.Rejected && answered.MID == ""):
		return fmt.Errorf("expected mid %q as in the offer", offered.MID)
	case answered.Kind != offered.Kind:
		return fmt.Errorf("kind is %q, expected %q as in the offer", answered.Kind, offered.Kind)
	case answered.Rejected:
		return nil
	case offered.Rejected:
		return errors.New("the line was offered as rejected")
	case offered.Kind == KindData:
		return nil
	case answered.Direction.Sends() && !offered.Direction.Receives(),
		answered.Direction.Receives() && !offered.Direction.Sends():
		return fmt.Errorf("direction is %q in answer to %q", answered.Direction, offered.Direction)
	case len(answered.Codecs) == 0:
		return errors.New("no codec, expected some of the offer")
	case answered.CongestionFeedback && !offered.CongestionFeedback:
		return errors.New("congestion control feedback, which was not offered")
	}
	for i := range answered.Codecs {
		if err := checkCodec(offered.Codecs, &answered.Codecs[i]); err != nil {
			return err
		}
	}
	for _, extension := range answered.Extensions {
		if !slices.Contains(offered.Extensions, extension) {
			return fmt.Errorf("header extension %d is %q, expected one of the offer", extension.ID, extension.URI)
		}
	}
	return nil
}

// checkCodec reports a codec that was not offered under its payload type. The format parameters may differ.
func checkCodec(offered []Codec, answered *Codec) error {
	i := slices.IndexFunc(offered, func(c Codec) bool { return c.PayloadType == answered.PayloadType })
	if i < 0 || !offered[i].same(answered) {
		return fmt.Errorf("payload type %d is %s/%d, expected a codec of the offer", answered.PayloadType,
			answered.MIMEType, answered.ClockRate)
	}
	if answered.Retransmission != 0 && answered.Retransmission != offered[i].Retransmission {
		return fmt.Errorf("payload type %d retransmits %d, expected %d as in the offer",
			answered.Retransmission, answered.PayloadType, offered[i].Retransmission)
	}
	return nil
}

// Answer returns the lines of an answer to an offer, and the role; the caller fills in session, credentials,
// fingerprint and candidates. Offered streams are received if there is a codec for them; sending has, by mid, the
// streams to send on lines on which the offerer receives. Codecs keep the order, the payload types and the formats of
// the offer, header extensions their identifiers. A line without a known codec is rejected. The error, which wraps
// ErrDescription, reports an invalid offer, or a line in sending that the offer does not have.
func Answer(offer *Description, sending map[string]Sending) (*Description, error) {
	return answerBy(offer, sending, (*Line).endpointTerms)
}

// AnswerAsForwarder is Answer for a side that forwards media and does not decode it: of H264 it accepts every profile,
// and it receives simulcast and streams that only the names in their packets identify.
func AnswerAsForwarder(offer *Description, sending map[string]Sending) (*Description, error) {
	return answerBy(offer, sending, (*Line).forwarderTerms)
}

// terms limit what an answerer accepts on a line.
type terms struct {
	codecs []Codec
	// fits reports whether an offered codec fits one of codecs.
	fits func(known, offered *Codec) bool
	// extensions are the URIs of header extensions.
	extensions []string
	// layers is set if simulcast is accepted.
	layers bool
}

// endpointTerms returns the terms of an endpoint that decodes.
func (l *Line) endpointTerms() terms {
	codecs, extensions := Offered(l.Kind)
	t := terms{codecs: codecs, fits: (*Codec).Decodes}
	for _, extension := range extensions {
		t.extensions = append(t.extensions, extension.URI)
	}
	return t
}

// forwarderTerms returns the terms of a side that forwards. A stream with an SSRC in its description needs no names.
func (l *Line) forwarderTerms() terms {
	t := l.endpointTerms()
	t.fits, t.layers = (*Codec).SameFormat, true
	if l.Direction.Sends() && (len(l.Layers) > 0 || l.Streams.SSRC == 0) {
		t.extensions = append(t.extensions, MIDExtension, LayerExtension, RetransmissionExtension)
	}
	return t
}

func answerBy(offer *Description, sending map[string]Sending, termsOf func(*Line) terms) (*Description, error) {
	answer := &Description{Lines: make([]Line, len(offer.Lines))}
	offered := 0
	for i := range offer.Lines {
		o := &offer.Lines[i]
		s, named := sending[o.MID]
		if named {
			offered++
		}
		answer.Lines[i] = answerLine(o, s, termsOf(o))
	}
	if offered != len(sending) {
		return nil, fmt.Errorf("%w: %d lines to send on, and the offer has only %d of them", ErrDescription,
			len(sending), offered)
	}
	if offer.tagged() < 0 {
		return answer, nil
	}
	if err := offer.Transport.check(); err != nil {
		return nil, err
	}
	switch offer.Transport.Role {
	case RoleActpass, RolePassive:
		answer.Transport.Role = RoleActive
	case RoleActive:
		answer.Transport.Role = RolePassive
	default:
		return nil, fmt.Errorf("%w: no a=setup", ErrDescription)
	}
	return answer, nil
}

// answerLine answers one line. A line that does not send has no streams.
func answerLine(offered *Line, sending Sending, accepted terms) Line {
	rejected := Line{MID: offered.MID, Kind: offered.Kind, Direction: DirectionInactive, Rejected: true}
	if offered.Rejected || offered.Kind == KindData {
		return rejected
	}
	l := Line{MID: offered.MID, Kind: offered.Kind,
		Direction: answerDirection(offered.Direction, sending.Streams.SSRC != 0)}
	for i := range offered.Codecs {
		if c, ok := answerCodec(&offered.Codecs[i], &accepted); ok {
			l.Codecs = append(l.Codecs, c)
		}
	}
	if len(l.Codecs) == 0 {
		return rejected
	}
	for _, extension := range offered.Extensions {
		if slices.Contains(accepted.extensions, extension.URI) {
			l.Extensions = append(l.Extensions, extension)
		}
	}
	if accepted.layers && !l.Direction.Sends() && offered.Direction.Sends() {
		l.Layers = offered.Layers
	}
	if l.Direction.Sends() {
		l.Streams, l.Stream = sending.Streams, sending.Stream
	}
	return l
}

// answerDirection reverses the direction, and removes sending if there is nothing to send.
func answerDirection(offered Direction, sends bool) Direction {
	d := offered.Reversed()
	switch {
	case sends || !d.Sends():
		return d
	case d.Receives():
		return DirectionRecvOnly
	default:
		return DirectionInactive
	}
}

// answerCodec accepts an offered codec if a known one fits: as offered, with the feedback that both support.
func answerCodec(offered *Codec, accepted *terms) (Codec, bool) {
	known := accepted.codecs
	i := slices.IndexFunc(known, func(c Codec) bool { return accepted.fits(&c, offered) })
	if i < 0 {
		return Codec{}, false
	}
	answer := *offered
	answer.MIMEType = known[i].MIMEType
	answer.Feedback = nil
	for _, feedback := range offered.Feedback {
		if slices.Contains(known[i].Feedback, feedback) {
			answer.Feedback = append(answer.Feedback, feedback)
		}
	}
	if known[i].Retransmission == 0 {
		answer.Retransmission = 0
	}
	return answer, true
}

// TakeData accepts the lines with data channels in an answer, which Answer rejects. TakeData reports whether there is
// one.
func TakeData(offer, answer *Description) (taken bool) {
	for i := range offer.Lines {
		if o := &offer.Lines[i]; o.Kind == KindData && !o.Rejected {
			answer.Lines[i] = Line{MID: o.MID, Kind: KindData, Direction: DirectionSendRecv, DataPort: DataPort}
			taken = true
		}
	}
	return taken
}
