package failover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
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

// errUnreachable is the error of a server that cannot be reached.
var errUnreachable = errors.New("unreachable")

// to returns the error of a server that sends the client to another server, with the ticket "T".
func to(address string) error {
	return &signalling.MovedError{Moved: &signal.Moved{URL: address, Ticket: "T"}}
}

// scripted are servers that reply with the given errors, each with the next one and at last with the last one. Servers
// accept a join with nil.
type scripted struct {
	replies map[string][]error
	// joins are the joins: the address, the ticket or secret, and "new" for a new connection.
	joins []string
}

// Join implements Joiner.
func (s *scripted) Join(
	_ context.Context, address string, join *signal.Join,
) (*signalling.Conn, *signal.Joined, error) {
	asked := address + " " + join.Ticket
	if resume := join.Resume; resume != nil {
		asked += resume.Secret
		if resume.NewConnection {
			asked += " new"
		}
	}
	s.joins = append(s.joins, asked)
	replies := s.replies[address]
	if len(replies) == 0 {
		return nil, nil, errUnreachable
	}
	if len(replies) > 1 {
		s.replies[address] = replies[1:]
	}
	if replies[0] != nil {
		return nil, nil, replies[0]
	}
	return nil, &signal.Joined{Nodes: addressed("wss://d")}, nil
}

// TestFollow checks on which servers an attempt is made, and with which requests.
func TestFollow(t *testing.T) {
	t.Parallel()
	resume := func() *signal.Join {
		return &signal.Join{Resume: &signal.ResumeRequest{Secret: "S", NewConnection: true}}
	}
	endless := slices.Repeat([]string{"wss://a T"}, maxMoves+1)
	endless[0] = "wss://a "
	for _, test := range []struct {
		name    string
		attempt Attempt
		replies map[string][]error
		joins   []string
		// address is that of the outcome, moved is set if its error is a move.
		address string
		moved   bool
	}{
		{"a join", Attempt{Address: "wss://a", Join: &signal.Join{}},
			map[string][]error{"wss://a": {to("wss://b")}, "wss://b": {nil}},
			[]string{"wss://a ", "wss://b T"}, "wss://b", false},
		{"a resumption on a third server", Attempt{Address: "wss://b", Join: resume(), Present: "wss://a"},
			map[string][]error{"wss://b": {to("wss://c")}, "wss://c": {nil}},
			[]string{"wss://b S new", "wss://c T new"}, "wss://c", false},
		{"a resumption that returns to its connection", Attempt{Address: "wss://b", Join: resume(), Present: "wss://a"},
			map[string][]error{"wss://b": {to("wss://a")}, "wss://a": {nil}},
			[]string{"wss://b S new", "wss://a T"}, "wss://a", false},
		{"a resumption that returns without a connection",
			Attempt{Address: "wss://b", Join: resume(), Present: "wss://a", Unused: true},
			map[string][]error{"wss://b": {to("wss://a")}, "wss://a": {nil}},
			[]string{"wss://b S new", "wss://a T new"}, "wss://a", false},
		{"moves without end", Attempt{Address: "wss://a", Join: &signal.Join{}},
			map[string][]error{"wss://a": {to("wss://a")}}, endless, "wss://a", true},
		{"a server without TLS", Attempt{Address: "wss://a", Join: &signal.Join{}},
			map[string][]error{"wss://a": {to("ws://b")}}, []string{"wss://a "}, "wss://a", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			joiner := &scripted{replies: test.replies}
			got := NewServers("wss://a", joiner).Follow(context.Background(), test.attempt)
			var moved *signalling.MovedError
			if got.Address != test.address || errors.As(got.Err, &moved) != test.moved ||
				(got.Joined == nil) != test.moved {
				t.Errorf("outcome %+v", got)
			}
			if !slices.Equal(joiner.joins, test.joins) {
				t.Errorf("joins %q, expected %q", joiner.joins, test.joins)
			}
		})
	}
}

// TestJoin asks the present server again if the server to which it sends the client cannot be reached. Other errors end
// the join.
func TestJoin(t *testing.T) {
	t.Parallel()
	refused := &signal.Error{Code: signal.CodeForbidden}
	for _, test := range []struct {
		name    string
		replies map[string][]error
		joins   []string
		err     error
	}{
		{"another server", map[string][]error{"wss://a": {to("wss://b"), to("wss://c")}, "wss://c": {nil}},
			[]string{"wss://a ", "wss://b T", "wss://a ", "wss://c T"}, nil},
		{"a refusal", map[string][]error{"wss://a": {to("wss://b")}, "wss://b": {refused}},
			[]string{"wss://a ", "wss://b T"}, refused},
		{"an unreachable server", nil, []string{"wss://a "}, errUnreachable},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			joiner := &scripted{replies: test.replies}
			servers := NewServers("wss://a", joiner)
			_, _, err := servers.Join(context.Background(), &signal.Join{})
			if !errors.Is(err, test.err) {
				t.Errorf("got %v, expected %v", err, test.err)
			}
			if !slices.Equal(joiner.joins, test.joins) {
				t.Errorf("joins %q, expected %q", joiner.joins, test.joins)
			}
			if test.err == nil &&
				(servers.Present() != "wss://c" || !slices.Equal(servers.others, []string{"wss://d"})) {
				t.Errorf("the session is on %s with %q", servers.Present(), servers.others)
			}
		})
	}
}
