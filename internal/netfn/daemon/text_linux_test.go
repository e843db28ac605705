package daemon

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/control"
	"github.com/volsfu/volsfu/internal/netfn/edge"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// example is the state of an edge with two paths, of which one has no report yet.
func example() Status {
	return Status{
		Status: edge.Status{
			Name: "studio", Peer: "office", Started: noon.Add(-90 * time.Second), Readopted: true,
			Format: edge.FormatEncapsulated, Epoch: 7, PeerAlive: true,
			Paths: []edge.PathStatus{{
				Name: "fibre", Interface: "eth0", Local: netip.MustParseAddr("192.0.2.1"), State: edge.PathUp,
				Sent: edge.PathSent{Packets: 1000}, Received: edge.PathReceived{Packets: 900, First: 850, Repeated: 50},
				Report: &edge.PathReport{Loss: 0.005, InTime: 0.99, DelaySeconds: 0.0015},
			}, {Name: "mobile", Interface: "wwan0", State: edge.PathNoAddress}},
			Rules: []edge.RuleStatus{
				{Name: "conference", Copies: edge.Copies{Mode: edge.CopiesAuto}, Set: []string{"fibre", "mobile"},
					Triggered: true, Reason: "packets were lost or late"},
				{Name: "signalling", Copies: edge.Copies{Mode: edge.CopiesOff}, Set: []string{"fibre"}},
			},
			Sent: edge.SentTotals{Packets: 800, CostFactor: 1.25},
		},
		Version:    "v1",
		Controller: &control.LinkState{URL: "https://controller:8443", Error: "no answer: connection refused"},
	}
}

// TestText compares the tables with a file.
func TestText(t *testing.T) {
	document, err := json.Marshal(example())
	if err != nil {
		t.Fatal(err)
	}
	edges := []control.EdgeState{{
		Name: "studio", Connected: true, LastPoll: noon.Add(-2 * time.Second), Status: document,
		Orders: []control.OrderState{
			{Order: control.Order{Rule: "conference", Copies: "all"}, Expires: noon, State: control.Applied},
			{Order: control.Order{Trigger: control.Start}, State: control.Refused, Error: "unknown rule"},
		},
	}}
	var got strings.Builder
	if err := WriteEdges(&got, edges, noon); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "edges.txt")
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the tables are\n%s\nexpected\n%s", got.String(), want)
	}
	got.Reset()
	if err := WriteEdges(&got, append(edges, control.EdgeState{Name: "office"}), noon); err != nil ||
		!strings.HasSuffix(got.String(), "\noffice  absent     -          0\n") {
		t.Errorf("two edges are\n%s", got.String())
	}
	if err := WriteStatus(&got, json.RawMessage(`[]`), false, noon); err == nil {
		t.Error("a document of something else is written as tables")
	}
	got.Reset()
	if err := WriteStatus(&got, document, true, noon); err != nil || got.String() != string(document)+"\n" {
		t.Errorf("as JSON: %s, %v", got.String(), err)
	}
}

func TestOrdersOfTheConfiguration(t *testing.T) {
	auto, off := edge.Copies{Mode: edge.CopiesAuto}, edge.Copies{Mode: edge.CopiesOff}
	c := &edge.Config{Send: &edge.Send{Rules: []edge.Rule{{Name: "a", Copies: auto}, {Name: "b", Copies: off}}}}
	for _, test := range []struct {
		order control.Order
		want  string
	}{
		{control.Order{Copies: "all"}, `[{"copies":"all"}]`},
		{control.Order{Rule: "a", Copies: "fibre,mobile"}, `[{"rule":"a","copies":"fibre,mobile"}]`},
		{control.Order{Rule: "b", Trigger: control.Stop}, `[{"rule":"b","trigger":"stop"}]`},
		{control.Order{Rule: "b", Copies: control.Configured}, `[{"rule":"b","copies":"off"}]`},
		{control.Order{Copies: control.Configured}, `[{"rule":"a","copies":"auto"},{"rule":"b","copies":"off"}]`},
		{control.Order{Rule: "c", Copies: control.Configured}, `[{"rule":"c","copies":"auto"}]`},
	} {
		orders, err := ordersOf(c, test.order)
		if err != nil {
			t.Errorf("%+v: %v", test.order, err)
			continue
		}
		if got, err := json.Marshal(orders); err != nil || string(got) != test.want {
			t.Errorf("%+v is %s, %v, expected %s", test.order, got, err, test.want)
		}
	}
	if _, err := ordersOf(c, control.Order{Copies: "fibre,fibre"}); err == nil {
		t.Error("a path that is named twice passes")
	}
}
