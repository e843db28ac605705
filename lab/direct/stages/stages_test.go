package stages

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// frame returns the records of a frame that was captured ms milliseconds after the beginning. Each stage takes 1 ms.
func frame(number uint32, ms int64) (Sent, Received) {
	at := func(stage int64) Instant { return Instant((ms + stage) * 1000) }
	return Sent{
			Frame: number, Capture: at(1), Captured: at(2), Taken: at(3), Sampled: at(4), Encoded: at(5),
			FirstSent: at(6), LastSent: at(7),
			SourcePoints: 1000, Points: 100, Bytes: 400, Wire: 500, Target: 510, Packets: 1, Bound: "rate",
			Hash: uint64(number),
		}, Received{
			Frame: number, FirstReceived: at(7), LastReceived: at(8), Reassembled: at(9), DecodeBegun: at(10),
			Decoded: at(11), Shown: at(12),
			ReceivedBytes: 400, DecodedPoints: 100, ReceivedHash: uint64(number),
		}
}

func TestLedger(t *testing.T) {
	l := NewLedger()
	var all []Record
	take := func(records []Record) { all = append(all, records...) }
	for number := range uint32(7) {
		s, r := frame(number, int64(number)*33)
		switch number {
		case 1: // the consumer reports first
			take(l.Received(&r))
			take(l.Received(&r))
			take(l.Sent(&s))
		case 2:
			r.ReceivedHash++
			r.Undecodable, r.Decoded, r.Shown = true, 0, 0
			take(l.Sent(&s))
			take(l.Received(&r))
		case 3:
			take(l.Sent(&s)) // and the frame never arrived
		case 4:
			s.Dropped = true
			take(l.Sent(&s))
		case 5:
			take(l.Received(&r)) // and the producer did not report it
		case 6:
			r.Superseded, r.DecodeBegun, r.Decoded, r.Shown = true, 0, 0, 0
			s.Wire = 600
			take(l.Sent(&s))
			take(l.Received(&r))
		default:
			take(l.Sent(&s))
			take(l.Received(&r))
		}
	}
	if len(all) != 5 {
		t.Errorf("%d records before the end, expected 5", len(all))
	}
	s, _ := frame(7, 7*33)
	take(l.Sent(&s))
	if !l.Waiting() {
		t.Error("expected that frames 3 and 7 may still arrive")
	}
	// Frame 7 is still in flight.
	take(l.End(Instant(700 * 1000)))
	if l.Waiting() {
		t.Error("expected that no frame arrives after the end")
	}
	outcomes := make(map[uint32]Outcome)
	for i := range all {
		outcomes[all[i].Sent.Frame] = all[i].Outcome
	}
	want := map[uint32]Outcome{0: Intact, 1: Intact, 2: Corrupt, 3: Lost, 4: Unsent, 5: Unmatched, 6: Intact}
	for number, outcome := range want {
		if outcomes[number] != outcome {
			t.Errorf("frame %d: got %s, expected %s", number, outcomes[number], outcome)
		}
	}
	r := l.Report()
	if r.Sent != 5 || r.Decoded != 3 || r.Superseded != 1 || r.Undecodable != 1 || r.Targeted != 5 ||
		r.WithinTarget != 4 {
		t.Errorf("got %+v", r.Totals)
	}
	if r.Reliability == nil || *r.Reliability != 0.6 {
		t.Errorf("expected three of five frames to be intact, got %v", *r.Reliability)
	}
	for _, stage := range table {
		p := r.Stages[stage.name]
		want := 1.0
		switch stage.name {
		case "capture_to_decoded":
			want = 10
		case "capture_to_shown":
			want = 11
		}
		if p.P50 == nil || math.Abs(*p.P50-want) > 0.005*want {
			t.Errorf("%s took %+v, expected %g ms", stage.name, p, want)
		}
	}
	if off := r.OffTarget; off.P50 == nil || *off.P50 < 1.9 || *off.P50 > 2 || *off.Max < 17 || *off.Max > 18 {
		t.Errorf("deviations from the target of %v and at most %v per cent, expected 2 and 17.6", *off.P50, *off.Max)
	}
}

// TestOpenFrames: entries without further records are closed at last, and memory is bounded.
func TestOpenFrames(t *testing.T) {
	l := NewLedger()
	done := 0
	for number := range uint32(4 * maxOpen) {
		s, r := frame(number-maxOpen, 0)
		done += len(l.Sent(&s))
		if number%2 == 0 {
			done += len(l.Received(&r))
		}
		if len(l.open) > maxOpen || len(l.order) > maxOpen {
			t.Fatalf("%d frames are open", len(l.open))
		}
	}
	done += len(l.End(1 << 40))
	if r := l.Report(); done != 4*maxOpen || r.Lost != 2*maxOpen || r.Intact != 2*maxOpen {
		t.Errorf("%d records, %+v", done, r.Totals)
	}
	if r := NewLedger().Report(); r.Reliability != nil {
		t.Errorf("reliability %v without sent frames", *r.Reliability)
	}
}

func TestLog(t *testing.T) {
	s, r := frame(7, 33)
	record := Record{Sent: s, Received: r, Outcome: Intact}
	for _, name := range []string{"frames.jsonl", "frames.csv"} {
		path := filepath.Join(t.TempDir(), name)
		l, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		l.Write(&record)
		l.Write(&record)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if name == "frames.jsonl" {
			var got Record
			decoder := json.NewDecoder(strings.NewReader(string(text)))
			for range 2 {
				if err := decoder.Decode(&got); err != nil || got.Hash != 7 || got.Decoded != record.Decoded ||
					got.Outcome != Intact {
					t.Errorf("got %+v, %v", got, err)
				}
			}
			continue
		}
		rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
		if err != nil || len(rows) != 3 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		got := make(map[string]string)
		for i, column := range rows[0] {
			got[column] = rows[1][i]
		}
		if got["frame"] != "7" || got["capture_us"] != "34000" || got["decoded_us"] != "44000" ||
			got["outcome"] != "intact" || got["dropped"] != "false" || got["bound"] != "rate" {
			t.Errorf("got %v", got)
		}
	}
	if _, err := Create("frames.txt"); !errors.Is(err, ErrFormat) {
		t.Errorf("got %v", err)
	}
	if _, err := Create("/dev/null/frames.csv"); err == nil {
		t.Error("expected an error for a file that cannot be created")
	}
}

func TestInstants(t *testing.T) {
	now := time.UnixMicro(1234567)
	if At(now) != 1234567 || At(time.Time{}) != 0 {
		t.Error("instants are microseconds since 1970")
	}
	if took, known := At(now).Since(1234000); took != 567*time.Microsecond || !known {
		t.Errorf("got %v, %v", took, known)
	}
	if _, known := At(now).Since(0); known {
		t.Error("expected no duration from an unknown instant")
	}
}

// TestHash compares the hash with the reference of XXH64, so that logs of other programs can be compared.
func TestHash(t *testing.T) {
	for text, want := range map[string]uint64{"": 0xef46db3751d8e999, "abc": 0x44bc2cf5ad770999} {
		if got := Hash([]byte(text)); got != want {
			t.Errorf("%q: got %x, expected %x", text, got, want)
		}
	}
}
