package topology

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/netem/router"
)

// Summary is the summary of a network's statistics for output.
type Summary struct {
	// Seconds is the time since the network's start or the last Restart.
	Seconds    float64            `json:"seconds"`
	Validity   router.Validity    `json:"validity"`
	Links      []WireSummary      `json:"links"`
	Interfaces []InterfaceSummary `json:"interfaces"`
	// CPU is the processor time of the router's thread as a share of a core.
	CPU float64 `json:"router_cpu"`
	// Unroutable, Malformed and Refused count packets as in router.Statistics.
	Unroutable uint64 `json:"unroutable"`
	Malformed  uint64 `json:"malformed"`
	Refused    uint64 `json:"refused"`
}

// WireSummary is one direction of a link. Counts are of packets.
type WireSummary struct {
	Link         string  `json:"link"`
	Way          string  `json:"way"`
	Sent         uint64  `json:"sent"`
	Delivered    uint64  `json:"delivered"`
	Mbps         float64 `json:"mbps"`        // delivered
	DroppedECN   uint64  `json:"dropped_ecn"` // by the key ecn
	DroppedQueue uint64  `json:"dropped_queue"`
	LostRandom   uint64  `json:"lost_random"`
	LostBurst    uint64  `json:"lost_burst"`
	Marked       uint64  `json:"marked"`
	Duplicated   uint64  `json:"duplicated"`
	Reordered    uint64  `json:"reordered"`
	Waiting      int     `json:"waiting"`
	WaitedP50    float64 `json:"waited_p50_ms"`
	WaitedP95    float64 `json:"waited_p95_ms"`
	// LowLatency and Classic are the two queues of dualpi2. With another queue they are the packets of L4S and the
	// others, with unknown drops, absent if no packet was ECN-capable.
	LowLatency *ClassSummary `json:"low_latency,omitempty"`
	Classic    *ClassSummary `json:"classic,omitempty"`
}

// ClassSummary is one class of packets. Counts are of packets.
type ClassSummary struct {
	Packets   uint64  `json:"packets"`
	Marked    uint64  `json:"marked"`
	Dropped   uint64  `json:"dropped"`
	WaitedP50 float64 `json:"waited_p50_ms"`
	WaitedP99 float64 `json:"waited_p99_ms"`
	WaitedMax float64 `json:"waited_max_ms"`
}

// summariseClass summarises the counters of one class.
func summariseClass(s *netem.ClassStats) *ClassSummary {
	return &ClassSummary{Packets: s.Packets, Marked: s.Marked, Dropped: s.Dropped,
		WaitedP50: milliseconds(s.Waited.Quantile(0.5)), WaitedP99: milliseconds(s.Waited.Quantile(0.99)),
		WaitedMax: milliseconds(s.Waited.Quantile(1))}
}

// InterfaceSummary is one interface of a host.
type InterfaceSummary struct {
	Host          string `json:"host"`
	Interface     string `json:"interface"`
	Sent          uint64 `json:"sent"`
	SentBytes     uint64 `json:"sent_bytes"`
	Received      uint64 `json:"received"`
	ReceivedBytes uint64 `json:"received_bytes"`
	Overrun       uint64 `json:"overrun"`
}

// Summary summarises the counters.
func (s *Statistics) Summary() *Summary {
	seconds := s.Duration.Seconds()
	sum := &Summary{
		Seconds: seconds, Validity: s.Router.Validity(), Links: []WireSummary{}, Interfaces: []InterfaceSummary{},
		Unroutable: s.Router.Unroutable, Malformed: s.Router.Malformed, Refused: s.Router.Refused,
	}
	if seconds > 0 {
		sum.CPU = s.Router.CPU.Seconds() / seconds
	}
	for i := range s.Wires {
		w := &s.Wires[i]
		line := WireSummary{
			Link: w.Link, Way: w.Way.String(), Sent: w.Sent, Delivered: w.Delivered, DroppedECN: w.DroppedECN,
			DroppedQueue: w.DroppedQueue,
			LostRandom:   w.LostRandom, LostBurst: w.LostBurst,
			Marked: w.Marked, Duplicated: w.Duplicated, Reordered: w.Reordered, Waiting: w.QueuePackets,
			WaitedP50: milliseconds(w.Waited.Quantile(0.5)), WaitedP95: milliseconds(w.Waited.Quantile(0.95)),
		}
		if seconds > 0 {
			line.Mbps = float64(w.DeliveredBytes) * 8 / 1e6 / seconds
		}
		if w.Classes != nil {
			line.LowLatency, line.Classic = summariseClass(&w.Classes.L4S), summariseClass(&w.Classes.Classic)
		}
		sum.Links = append(sum.Links, line)
	}
	for i := range s.Router.Interfaces {
		n := &s.Router.Interfaces[i]
		sum.Interfaces = append(sum.Interfaces, InterfaceSummary{
			Host: n.Namespace, Interface: n.Name, Sent: n.Sent, SentBytes: n.SentBytes, Received: n.Received,
			ReceivedBytes: n.ReceivedBytes, Overrun: n.Overrun,
		})
	}
	return sum
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// WriteJSON writes the summary as one JSON object.
func (s *Summary) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(s)
}

// WriteText writes the summary as tables.
func (s *Summary) WriteText(w io.Writer) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table,
		"link\tsent\tdelivered\tMbit/s\tdropped\tlost\tin bursts\tmarked\treordered\twaiting\twaited p50\tp95 [ms]\t")
	for i := range s.Links {
		l := &s.Links[i]
		fmt.Fprintf(table, "%s/%s\t%d\t%d\t%.2f\t%d\t%d\t%d\t%d\t%d\t%d\t%.2f\t%.2f\t\n", l.Link, l.Way, l.Sent,
			l.Delivered, l.Mbps, l.DroppedQueue, l.LostRandom, l.LostBurst,
			l.Marked, l.Reordered, l.Waiting, l.WaitedP50, l.WaitedP95)
	}
	s.writeClasses(table)
	fmt.Fprintln(table, "\nhost\tinterface\tsent\treceived\toverrun\t")
	for i := range s.Interfaces {
		n := &s.Interfaces[i]
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t\n", n.Host, n.Interface, n.Sent, n.Received, n.Overrun)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	verdict := "valid"
	if !s.Validity.Valid {
		verdict = "NOT VALID: " + s.Validity.Reason
	}
	fmt.Fprintf(&text,
		"\n%.1f s, router %.0f %% of a core; packets late by %.2f ms (p50), %.2f (p95), %.2f (p99.9), %.2f (max): %s\n",
		s.Seconds, 100*s.CPU, milliseconds(s.Validity.P50), milliseconds(s.Validity.P95), milliseconds(s.Validity.P999),
		milliseconds(s.Validity.Max), verdict)
	if n := s.Unroutable + s.Malformed + s.Refused; n > 0 {
		fmt.Fprintf(&text, "packets without a route: %d, not IP: %d, refused by the kernel: %d\n", s.Unroutable,
			s.Malformed, s.Refused)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// writeClasses writes a table of the classes of packets, if there are any.
func (s *Summary) writeClasses(table io.Writer) {
	titled := false
	for i := range s.Links {
		l := &s.Links[i]
		if l.LowLatency == nil {
			continue
		}
		if !titled {
			fmt.Fprintln(table, "\nlink\tclass\tpackets\tmarked\tdropped\twaited p50\tp99\tmax [ms]\t")
			titled = true
		}
		for _, c := range []struct {
			name string
			*ClassSummary
		}{{"low-latency", l.LowLatency}, {"classic", l.Classic}} {
			fmt.Fprintf(table, "%s/%s\t%s\t%d\t%d\t%d\t%.2f\t%.2f\t%.2f\t\n", l.Link, l.Way, c.name, c.Packets,
				c.Marked, c.Dropped, c.WaitedP50, c.WaitedP99, c.WaitedMax)
		}
	}
}
