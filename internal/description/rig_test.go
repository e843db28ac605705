package description

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// plausible is the transport of an offerer.
func plausible() Transport {
	return Transport{
		Ufrag: "QOhhJarxWaTTuEgU", Password: "wtIDpYxHiZwzKbSYZIbIKUBGyBHKTLnF",
		Fingerprint: "sha-256 " + strings.TrimSuffix(strings.Repeat("5A:C3:", 16), ":"),
		Role:        RoleActpass,
		Candidates: []string{
			"candidate:1 1 udp 2130706431 127.0.0.1 7882 typ host",
			"candidate:2 1 tcp 1671430143 127.0.0.1 7882 typ host tcptype passive",
		},
	}
}

// offered returns an offered line, with streams if it sends.
func offered(index int, kind volumetric.Kind, direction Direction) Line {
	codecs, extensions := Offered(kind)
	l := Line{MID: strconv.Itoa(index), Kind: kind, Direction: direction, Codecs: codecs, Extensions: extensions}
	if direction.Sends() {
		l.Stream = fmt.Sprintf("slot-%d slot-%d", index, index)
		l.Streams.SSRC = 1_000_000_000 + uint32(2*index)
		if kind == volumetric.KindVideo {
			l.Streams.Retransmission = l.Streams.SSRC + 1
		}
	}
	return l
}

// offerOfFour has a receiving and a sending line of each kind, with the mids 0 to 3.
func offerOfFour() *Description {
	return &Description{SessionID: 4711, Version: 2, Transport: plausible(), Lines: []Line{
		offered(0, volumetric.KindVideo, DirectionRecvOnly), offered(1, volumetric.KindVideo, DirectionSendOnly),
		offered(2, volumetric.KindAudio, DirectionRecvOnly), offered(3, volumetric.KindAudio, DirectionSendOnly),
	}}
}

// offerOfHundreds is the offer to a receiver of 150 tracks that publishes as many.
func offerOfHundreds() *Description {
	d := &Description{SessionID: 4711, Version: 2, Transport: plausible()}
	for i := range 300 {
		d.Lines = append(d.Lines, offered(i, volumetric.KindVideo,
			[]Direction{DirectionRecvOnly, DirectionSendOnly}[i%2]))
	}
	return d
}

// answerOfFour is a valid answer to offerOfFour.
func answerOfFour(t testing.TB) *Description {
	t.Helper()
	answer, err := Answer(offerOfFour(), map[string]Sending{
		"0": {Streams: Streams{SSRC: 21, Retransmission: 22}, Stream: "publish-0 publish-0"},
		"2": {Streams: Streams{SSRC: 23}, Stream: "publish-2 publish-2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	role := answer.Transport.Role
	answer.Transport = plausible()
	answer.Transport.Role = role
	return answer
}

func parsed(t testing.TB, text string) *Description {
	t.Helper()
	d, err := Parse(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return d
}

// sections divides a description into the session part and one part for each media line.
func sections(description string) []string {
	parts := strings.Split(description, "\r\nm=")
	for i := range parts {
		if i > 0 {
			parts[i] = "m=" + parts[i]
		}
		parts[i] = strings.TrimSuffix(parts[i], "\r\n") + "\r\n"
	}
	return parts
}

// rearranged returns a description with the given sections of another; 0 is the session part.
func rearranged(order ...int) func(string) string {
	return func(description string) string {
		parts := sections(description)
		var b strings.Builder
		for _, i := range order {
			b.WriteString(parts[i])
		}
		return b.String()
	}
}

// lacking removes the lines of a description that begin with the prefix.
func lacking(prefix string) func(string) string {
	return func(description string) string {
		lines := strings.Split(description, "\r\n")
		return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, prefix) }),
			"\r\n")
	}
}

func replaced(from, to string) func(string) string {
	return func(description string) string { return strings.ReplaceAll(description, from, to) }
}

func appended(lines ...string) func(string) string {
	return func(description string) string { return description + strings.Join(lines, "\r\n") + "\r\n" }
}
