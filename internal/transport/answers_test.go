package transport

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// manySources returns an answer whose last line names more sources than two streams have.
func manySources(answer string) string {
	var b strings.Builder
	b.WriteString(answer)
	for ssrc := range 30000 {
		fmt.Fprintf(&b, "a=ssrc:%d cname:x\r\n", ssrc+1)
	}
	return b.String()
}

// manyLines returns an answer with lines that were not offered.
func manyLines(answer string) string {
	var b strings.Builder
	b.WriteString(answer)
	for i := range 40000 {
		fmt.Fprintf(&b, "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:x%d\r\n", i)
	}
	return b.String()
}

// rearranged returns an answer with the sections of another one in the given order. Section 0 is the session's.
func rearranged(order ...int) func(string) string {
	return func(answer string) string {
		parts := sections(answer)
		var b strings.Builder
		for _, i := range order {
			b.WriteString(parts[i])
		}
		return b.String()
	}
}

func lacking(prefix string) func(string) string {
	return func(answer string) string { return without(answer, prefix) }
}

func replaced(from, to string) func(string) string {
	return func(answer string) string { return strings.ReplaceAll(answer, from, to) }
}

// TestARightAnswerIsTakenAfterBadOnes: every bad answer to one offer is refused, and then the right one is accepted.
func TestARightAnswerIsTakenAfterBadOnes(t *testing.T) {
	bad := []struct {
		name string
		of   func(answer string) string
	}{
		{"what is no description", func(string) string { return "garbage" }},
		{"nothing but the session", rearranged(0)},
		{"a line is missing", rearranged(0, 1, 2, 3)},
		{"the first line is missing", rearranged(0, 2, 3, 4)},
		{"a line too many", rearranged(0, 1, 2, 3, 4, 4)},
		{"swapped lines", rearranged(0, 2, 1, 3, 4)},
		{"a line twice in place of another", rearranged(0, 1, 1, 3, 4)},
		{"no mids", lacking("a=mid")},
		{"a mid that was not offered", replaced("a=mid:1\r\n", "a=mid:x\r\n")},
		{"no ICE user name", lacking("a=ice-ufrag")},
		{"no ICE password", lacking("a=ice-pwd")},
		{"no fingerprint", lacking("a=fingerprint")},
		{"an SSRC that is no number", func(answer string) string { return answer + "a=ssrc:many cname:x\r\n" }},
		{"an SSRC of 33 bits", func(answer string) string { return answer + "a=ssrc-group:FID 4294967296 1\r\n" }},
		{"sources without end", manySources},
		{"lines without end", manyLines},
	}
	p := newLone(t, loopbackConfig())
	answer := answerTo(t, offerLines(t, p))
	for _, test := range bad {
		if _, err := p.Answered(test.of(answer)); !errors.Is(err, ErrDescription) || errors.Is(err, ErrSpent) {
			t.Errorf("%s: got %v, expected ErrDescription", test.name, err)
		}
	}
	streams, err := p.Answered(answer)
	if err != nil {
		t.Fatal(err)
	}
	if len(streams) != 2 || streams["0"].SSRC == 0 || streams["2"].SSRC == 0 {
		t.Errorf("streams are %v, expected those of lines 0 and 2", streams)
	}
}

func TestACandidateBeforeTheAnswerDoesNotSpoilIt(t *testing.T) {
	p := newLone(t, loopbackConfig())
	offer := offerLines(t, p)
	for _, candidate := range []string{"garbage", "candidate:1 1 udp 1 nowhere 1 typ host", hostCandidate(9)} {
		if err := p.AddCandidate(Candidate{Candidate: candidate, MID: "0"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Answered(answerTo(t, offer)); err != nil {
		t.Error(err)
	}
}

// TestARestartBeforeTheConnection: ICE restarts, as after a resume, before it has found the remote peer.
func TestARestartBeforeTheConnection(t *testing.T) {
	p := newPair(t)
	line, err := p.offers.AddReceiving(volumetric.KindVideo)
	if err != nil {
		t.Fatal(err)
	}
	p.negotiate([]*Line{line})
	p.restart = true
	p.negotiate(nil)
	p.negotiate(nil)
	p.connect()
	outlet := p.attachBeforeSend[line.MID()]
	number := uint16(0)
	p.until("a packet", func() bool {
		number++
		send(t, outlet, volumetric.MIMEVolumetric, number)
		return len(p.offersTo.packets(outlet.SSRC())) > 0
	})
}

// FuzzAnswered checks that an answer invalidates an offer only with an error that wraps ErrSpent. Much of the covered
// code runs in goroutines of Pion, whose order differs between runs. Minimising inputs therefore does not end, and is
// best limited by -fuzzminimizetime 10x.
func FuzzAnswered(f *testing.F) {
	seed := newLone(f, loopbackConfig())
	right := answerTo(f, offerLines(f, seed))
	for _, of := range []func(string) string{
		rearranged(0, 1, 2, 3, 4),
		rearranged(0, 4, 3, 2, 1),
		replaced("m=video 9 ", "m=video 0 "),
		replaced("a=recvonly", "a=sendrecv"),
		replaced("a=sendonly", "a=inactive"),
		func(answer string) string {
			parts := sections(answer)
			sources := slices.DeleteFunc(strings.SplitAfter(parts[1], "\r\n"),
				func(l string) bool { return !strings.HasPrefix(l, "a=ssrc") })
			return strings.Join(parts, strings.Join(sources, ""))
		},
	} {
		f.Add(of(right))
	}
	f.Fuzz(func(t *testing.T, answer string) {
		p := newLone(t, loopbackConfig())
		offer := offerLines(t, p)
		_, err := p.Answered(answer)
		switch {
		case err == nil, errors.Is(err, ErrSpent):
		case !errors.Is(err, ErrDescription):
			t.Errorf("got %v, expected an error around ErrDescription or ErrSpent", err)
		default:
			if _, err := p.Answered(answerTo(t, offer)); err != nil {
				t.Errorf("the right answer was refused after a bad one: %v", err)
			}
		}
	})
}
