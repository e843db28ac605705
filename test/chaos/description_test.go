package chaos

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/test/e2e/puppet"
	"github.com/volsfu/volsfu/test/wait"
)

// spoilt are ways to corrupt an answer.
var spoilt = map[string]func(answer string) string{
	"text":     func(string) string { return "garbage" },
	"no lines": func(string) string { return "v=0\r\no=- 0 0 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n" },
	"cut off":  func(a string) string { return a[:len(a)/2] },
	"twice":    func(a string) string { return a + a },
	"two megabytes": func(a string) string {
		return a +
			strings.Repeat("a=x:"+strings.Repeat("y", 1000)+"\r\n", 1900)
	},
	"no fingerprint":  func(a string) string { return without(a, "a=fingerprint:") },
	"no credentials":  func(a string) string { return without(a, "a=ice-") },
	"no mids":         func(a string) string { return without(a, "a=mid:") },
	"no codecs":       func(a string) string { return without(a, "a=rtpmap:") },
	"one mid for all": func(a string) string { return regexp.MustCompile(`a=mid:\d+`).ReplaceAllString(a, "a=mid:0") },
	"wrong ssrc": func(a string) string {
		return regexp.MustCompile(`a=ssrc:\d+`).ReplaceAllString(a, "a=ssrc:99999999999")
	},
	"one ssrc for all": func(a string) string {
		return regexp.MustCompile(`a=ssrc(-group:FID|:)\S*( \d+)?`).ReplaceAllString(a, "a=ssrc:7")
	},
	"wrong direction": func(a string) string {
		return strings.NewReplacer("a=sendonly", "a=recvonly", "a=recvonly", "a=sendonly").Replace(a)
	},
	"wrong protocol": func(a string) string { return strings.ReplaceAll(a, "UDP/TLS/RTP/SAVPF", "RTP/AVP") },
	"wrong types": func(a string) string {
		return strings.ReplaceAll(a, "a=rtpmap:96 volumetric",
			"a=rtpmap:96 H264")
	},
	"simulcast": func(a string) string {
		return strings.ReplaceAll(a, "a=rtcp-mux", "a=rid:hi send\r\na=simulcast:send hi\r\na=rtcp-mux")
	},
	"data channel": func(a string) string {
		return a + "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\na=mid:data\r\n"
	},
	"many candidates": func(a string) string {
		return a + strings.Repeat("a=candidate:1 1 udp 1 127.0.0.1 9 typ host\r\n", 5000)
	},
	"zero bytes": func(a string) string { return strings.ReplaceAll(a, "a=", "a=\x00") },
	"passive":    func(a string) string { return strings.ReplaceAll(a, "a=setup:active", "a=setup:passive") },
}

// without removes the lines with the given prefix.
func without(answer, prefix string) string {
	lines := strings.SplitAfter(answer, "\r\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, prefix) }), "")
}

// scramble swaps, repeats, drops and damages lines at random.
func scramble(random *rand.Rand, answer string) string {
	lines := strings.SplitAfter(answer, "\r\n")
	for range 1 + random.IntN(5) {
		i, j := random.IntN(len(lines)), random.IntN(len(lines))
		switch random.IntN(4) {
		case 0:
			lines[i], lines[j] = lines[j], lines[i]
		case 1:
			lines = slices.Insert(lines, i, lines[j])
		case 2:
			lines[i] = ""
		default:
			if damaged := []byte(lines[i]); len(damaged) > 0 {
				damaged[random.IntN(len(damaged))] ^= 1 << random.IntN(8)
				lines[i] = strings.ToValidUTF8(string(damaged), "?")
			}
		}
	}
	return strings.Join(lines, "")
}

// sendGarbageDescriptions answers offers wrongly, each on a separate connection. The server may reject an answer or
// apply it; a connection need not be established.
func sendGarbageDescriptions(t *testing.T, r *room) {
	answerWith := func(spoil func(string) string) {
		answered := make(chan struct{}, 1)
		p := r.dial(t, puppet.Config{Answer: func(_ *signal.Offer, answer string) (string, bool) {
			select {
			case answered <- struct{}{}:
			default:
			}
			return spoil(answer), true
		}})
		if _, err := p.Join(greeting("mallory")); err != nil {
			t.Fatal(err)
		}
		<-answered
		// An answer that fails half-way ends the connection, and the websocket with it; all others leave the connection
		// unchanged.
		_, _ = p.Request(&signal.Leave{})
		p.Close()
	}
	for _, spoil := range spoilt {
		answerWith(spoil)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		answerWith(func(answer string) string { return scramble(random, answer) })
	}
	correctLate(t, r)
}

// correctLate answers first with garbage, then correctly.
func correctLate(t *testing.T, r *room) {
	t.Helper()
	right := make(chan *signal.Answer, 1)
	p := r.dial(t, puppet.Config{Answer: func(offer *signal.Offer, answer string) (string, bool) {
		select {
		case right <- &signal.Answer{Offer: offer.Offer, SDP: answer}:
			return "", false
		default:
			return answer, true
		}
	}})
	if _, err := p.Join(greeting("mallory")); err != nil {
		t.Fatal(err)
	}
	answer := <-right
	right <- nil
	for range 20 {
		for _, wrong := range []*signal.Answer{{Offer: answer.Offer, SDP: "garbage"},
			{Offer: answer.Offer + 1, SDP: answer.SDP}} {
			if _, err := p.Request(wrong); err == nil {
				t.Error("a wrong answer was taken")
			}
		}
	}
	if err := p.Send(answer); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the right answer is taken after all", p.Connected)
	if _, err := p.Request(&signal.Leave{}); err != nil {
		t.Error(err)
	}
}
