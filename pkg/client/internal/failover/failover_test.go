package failover

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

// transcripts are the transcripts that this client shares with the web client. Times are in milliseconds.
type transcripts struct {
	Silence []struct {
		Name  string `json:"name"`
		Steps []struct {
			RTT      int64  `json:"rtt"`
			Returned bool   `json:"returned"`
			At       int64  `json:"at"`
			Received int64  `json:"received"`
			Expected bool   `json:"expected"`
			Several  bool   `json:"several"`
			Verdict  string `json:"verdict"`
		} `json:"steps"`
	} `json:"silence"`
	Rounds []struct {
		Name     string `json:"name"`
		Servers  int    `json:"servers"`
		Attempts []struct {
			Code         signal.Code `json:"code"`
			RetryAfterMS int         `json:"retry_after_ms"`
		} `json:"attempts"`
		Ended bool  `json:"ended"`
		Wait  int64 `json:"wait_ms"`
	} `json:"rounds"`
	Attempts []struct {
		RTT   int64 `json:"rtt_ms"`
		Limit int64 `json:"limit_ms"`
	} `json:"attempts"`
}

func readTranscripts(t *testing.T) (f transcripts) {
	t.Helper()
	text, err := os.ReadFile("../../testdata/failover.json")
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil || len(f.Silence) == 0 || len(f.Rounds) == 0 || len(f.Attempts) == 0 {
		t.Fatalf("transcripts %+v, %v", f, err)
	}
	return f
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func TestSilence(t *testing.T) {
	t.Parallel()
	names := map[Verdict]string{VerdictNone: "none", VerdictAsk: "ask", VerdictLeave: "leave"}
	start := time.Unix(1_795_188_600, 0)
	for _, test := range readTranscripts(t).Silence {
		t.Run(test.Name, func(t *testing.T) {
			t.Parallel()
			var s Silence
			for i, step := range test.Steps {
				switch {
				case step.RTT > 0:
					s.Measured(milliseconds(step.RTT))
					continue
				case step.Returned:
					s.Returned()
					continue
				}
				now, received := start.Add(milliseconds(step.At)), start.Add(milliseconds(step.Received))
				if got := names[s.Step(now, received, step.Expected, step.Several)]; got != step.Verdict {
					t.Errorf("step %d: verdict %s, expected %s", i, got, step.Verdict)
				}
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	f := readTranscripts(t)
	for _, test := range f.Rounds {
		t.Run(test.Name, func(t *testing.T) {
			t.Parallel()
			round, ended := Round{Several: test.Servers > 1}, false
			for _, a := range test.Attempts {
				err := errors.New("unreachable")
				if a.Code != "" {
					err = fmt.Errorf("join: %w", &signal.Error{Code: a.Code, RetryAfterMS: a.RetryAfterMS})
				}
				ended = ended || round.Failed(err)
			}
			if ended = ended || round.Refused(); ended != test.Ended || round.wait != milliseconds(test.Wait) {
				t.Errorf("ended %v, wait %v, expected %v and %d ms", ended, round.wait, test.Ended, test.Wait)
			}
		})
	}
	for _, a := range f.Attempts {
		var s Silence
		s.Measured(milliseconds(a.RTT))
		if got := s.AttemptTime(); got != milliseconds(a.Limit) {
			t.Errorf("round trip of %d ms: limit %v, expected %d ms", a.RTT, got, a.Limit)
		}
	}
}

// TestServers checks the order of attempts, and which servers a token is sent to.
func TestServers(t *testing.T) {
	t.Parallel()
	plain, secure := NewServers("ws://a", nil), NewServers("wss://a", nil)
	nodes := addressed("ws://b", "wss://c", "http://d", "wss://c", "%", "wss://", "wss://a")
	plain.Set(nodes)
	secure.Set(nodes)
	for _, test := range []struct {
		servers *Servers
		silent  bool
		want    []string
	}{
		{plain, false, []string{"ws://a", "ws://b", "wss://c", "wss://a"}},
		{plain, true, []string{"ws://b", "wss://c", "wss://a", "ws://a"}},
		{secure, false, []string{"wss://a", "wss://c"}},
		{secure, true, []string{"wss://c", "wss://a"}},
	} {
		if got := test.servers.Candidates(test.silent); !slices.Equal(got, test.want) {
			t.Errorf("silent %v, TLS %v: %v, expected %v", test.silent, test.servers.secure, got, test.want)
		}
	}
	many := make([]string, 2*maxServers)
	for i := range many {
		many[i] = fmt.Sprint("wss://", i)
	}
	if plain.Set(addressed(many...)); len(plain.others) != maxServers {
		t.Errorf("%d servers are stored, expected %d", len(plain.others), maxServers)
	}
}

// addressed returns the addresses of servers as a list of nodes.
func addressed(addresses ...string) []signal.NodeAddress {
	var nodes []signal.NodeAddress
	for _, address := range addresses {
		nodes = append(nodes, signal.NodeAddress{URL: address})
	}
	return nodes
}
