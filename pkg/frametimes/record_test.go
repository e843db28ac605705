package frametimes

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// began is the capture time of the records in tests.
var began = time.Date(2026, 11, 22, 10, 0, 0, 123456789, time.UTC)

// sample returns a record with every stamp, one millisecond apart. Sender and receiver have their
// own clocks.
func sample() Record {
	r := Record{
		Track: volumetric.TrackRef{
			TileRef: volumetric.TileRef{
				PublicationRef: volumetric.PublicationRef{Participant: "ada", Publication: `a "body", <1>`},
				Tile:           3,
			},
			Quality: 2,
		},
		Receiver: "grace", Frame: 1 << 33, Bytes: 41873,
	}
	r.Clocks[Sender] = Clock{
		Source:      SourceEstimated,
		Offset:      50 * time.Millisecond,
		Bound:       400 * time.Microsecond,
		Uncertainty: 20 * time.Microsecond,
	}
	r.Clocks[Server] = Clock{Source: SourceSystem}
	r.Clocks[Receiver] = Clock{
		Source:       SourcePTP,
		Bound:        5 * time.Microsecond,
		Uncertainty:  3 * time.Microsecond,
		Disagreement: -30 * time.Microsecond,
	}
	for s := range Stamp(Stamps) {
		r.Set(s, began.Add(time.Duration(s)*time.Millisecond))
	}
	return r
}

func TestStampsOfHosts(t *testing.T) {
	if got := len(SenderStamps) + len(ServerStamps) + len(ReceiverStamps) + len(RelayStamps); got != Stamps {
		t.Errorf("the hosts take %d stamps, expected %d", got, Stamps)
	}
	names := make(map[string]bool)
	for s := range Stamp(Stamps) {
		if s.String() == "" || names[s.String()] || strings.Contains(s.String(), " ") {
			t.Errorf("stamp %d is called %q", s, s)
		}
		names[s.String()] = true
	}
	if FirstSent.Host() != Sender || ServerFirstOut.Host() != Server || FirstReceivedHardware.Host() != Receiver ||
		Shown.Host() != Receiver || RelayLastIn.Host() != Relay {
		t.Error("a stamp is another host's")
	}
	for l := range Layer(LayerCount) {
		if l.String() == "" || strings.Contains(l.String(), " ") {
			t.Errorf("layer %d is called %q", l, l)
		}
	}
}

// TestLayers checks the paper's equations. Each side is computed from its own stamps.
func TestLayers(t *testing.T) {
	r := sample()
	l := r.Layers()
	get := func(layer Layer) time.Duration {
		t.Helper()
		d, known := l.Get(layer)
		if !known {
			t.Errorf("%v is not known", layer)
		}
		return d
	}
	for _, test := range []struct {
		whole Layer
		parts []Layer
	}{
		{Service, []Layer{AppTx, Frame, AppRx}},
		{AppTx, []Layer{Capture, TilingWait, Tiling, EncoderWait, Encoding, SendWait}},
		{Frame, []Layer{Network, FrameRx}},
		{Frame, []Layer{NetworkUp, ServerHold, NetworkDown, FrameRx}},
		{AppRx, []Layer{Reassembly, DecoderWait, Decoding, RenderWait, Rendering}},
		{Protocol, []Layer{ProtocolNetwork, ProtocolDownRx}},
		{ProtocolUp, []Layer{ProtocolUpNetwork, ProtocolUpRx}},
		{ProtocolDown, []Layer{ProtocolDownNetwork, ProtocolDownRx}},
		{Service, Stages},
		{Service, DirectStages},
	} {
		sum := time.Duration(0)
		for _, part := range test.parts {
			sum += get(part)
		}
		if whole := get(test.whole); whole != sum {
			t.Errorf("%v is %v, its parts %v are %v", test.whole, whole, test.parts, sum)
		}
	}
	if sum, complete := l.Sum(); sum != get(Service) || !complete {
		t.Errorf("the stages add up to %v, complete %v, expected %v", sum, complete, get(Service))
	}
	if got := get(FrameTx); got != time.Duration(LastSent-FirstSegmentSent)*time.Millisecond {
		t.Errorf("Frame(Tx) is %v", got)
	}
	if got, want := l.Bound(NetworkUp), 400*time.Microsecond; got != want {
		t.Errorf("the bound of the way up is %v, expected %v", got, want)
	}
	if got, want := l.Bound(Service), 405*time.Microsecond; got != want {
		t.Errorf("the bound of the service is %v, expected %v", got, want)
	}
	if got, want := l.Uncertainty(NetworkUp), 20*time.Microsecond; got != want {
		t.Errorf("the uncertainty of the way up is %v, expected %v", got, want)
	}
	if got, want := l.Uncertainty(Service), 23*time.Microsecond; got != want {
		t.Errorf("the uncertainty of the service is %v, expected %v", got, want)
	}
	if got := l.Bound(Encoding) + l.Uncertainty(Encoding); got != 0 {
		t.Errorf("encoding is off by %v, expected nothing within one host", got)
	}
}

// TestLayersOfRelays checks the layers of a frame that has passed from server to server. They are
// part of the way up, so that the stages add up without them.
func TestLayersOfRelays(t *testing.T) {
	r := sample()
	in := r.Time(ServerLastIn).Add(-21 * time.Millisecond)
	r.Set(RelayLastIn, in)
	r.Set(RelayLastOut, in.Add(time.Millisecond))
	r.Clocks[Relay] = Clock{Source: SourceEstimated, Offset: time.Hour, Bound: 90 * time.Microsecond,
		Uncertainty: 8 * time.Microsecond}
	l := r.Layers()
	for layer, want := range map[Layer][3]time.Duration{
		RelayHold:    {time.Millisecond, 0, 0},
		RelayNetwork: {20 * time.Millisecond, 90 * time.Microsecond, 8 * time.Microsecond},
	} {
		took, known := l.Get(layer)
		if got := [3]time.Duration{took, l.Bound(layer), l.Uncertainty(layer)}; got != want || !known {
			t.Errorf("%v, its bound and its uncertainty are %v, known %t, expected %v", layer, got, known, want)
		}
	}
	service, _ := l.Get(Service)
	if sum, complete := l.Sum(); sum != service || !complete {
		t.Errorf("the stages add up to %v, complete %v, expected %v", sum, complete, service)
	}
	for _, missing := range RelayStamps {
		part := r
		part.Times[missing] = 0
		layers := part.Layers()
		for _, layer := range []Layer{RelayHold, RelayNetwork} {
			if missing == RelayLastIn && layer == RelayNetwork {
				continue
			}
			if _, known := layers.Get(layer); known {
				t.Errorf("%v is known without the stamp %v", layer, missing)
			}
		}
	}
}

// TestLayersNotShown expects that a record without display ends with the decoded cloud.
func TestLayersNotShown(t *testing.T) {
	r := sample()
	r.Times[RenderBegan], r.Times[Shown] = 0, 0
	l := r.Layers()
	want := r.Time(Decoded).Sub(r.Time(Captured))
	if got, known := l.Get(Service); !known || got != want {
		t.Errorf("the service latency is %v, %v, expected %v", got, known, want)
	}
	if sum, complete := l.Sum(); sum != want || !complete {
		t.Errorf("the stages add up to %v, complete %v, expected %v", sum, complete, want)
	}
	if _, known := l.Get(RenderWait); known {
		t.Error("the wait for a picture is known that was not drawn")
	}
}

// TestLayersDirect expects one hop without a server.
func TestLayersDirect(t *testing.T) {
	r := sample()
	for _, s := range ServerStamps {
		r.Times[s] = 0
	}
	l := r.Layers()
	service, _ := l.Get(Service)
	if sum, complete := l.Sum(); sum != service || !complete {
		t.Errorf("the stages add up to %v, complete %v, expected %v", sum, complete, service)
	}
	if _, known := l.Get(ServerHold); known {
		t.Error("a server that is not there holds packets")
	}
	r.Times[Tiled] = 0
	l = r.Layers()
	if sum, complete := l.Sum(); complete || sum == service {
		t.Errorf("the stages add up to %v, complete %v, though one stamp is missing", sum, complete)
	}
}

func TestLocal(t *testing.T) {
	r := sample()
	if got, want := r.Local(Captured), began.Add(-50*time.Millisecond); !got.Equal(want) {
		t.Errorf("captured at %v by the sender's clock, expected %v", got, want)
	}
	var other Record
	other.Clocks = r.Clocks
	other.SetLocal(Captured, r.Local(Captured))
	other.SetLocal(Tiled, time.Time{})
	if other.Times[Captured] != r.Times[Captured] || other.Has(Tiled) || !other.Local(Tiled).IsZero() ||
		!other.Time(Tiled).IsZero() {
		t.Errorf("got %v, expected %v alone", other.Times, r.Times[Captured])
	}
}

func TestMerge(t *testing.T) {
	whole := sample()
	merged := Record{Track: whole.Track, Frame: whole.Frame}
	for h := range Host(Hosts) {
		part := Record{Bytes: whole.Bytes, Receiver: whole.Receiver}
		part.Clocks[h] = whole.Clocks[h]
		for s := range Stamp(Stamps) {
			if s.Host() == h {
				part.Times[s] = whole.Times[s]
			}
		}
		merged.Merge(&part)
		merged.Merge(
			&Record{
				Bytes:    7,
				Receiver: "nobody",
				Times:    [Stamps]int64{Captured: 1},
				Clocks:   [Hosts]Clock{{Source: SourcePTP}},
			},
		)
	}
	if merged != whole {
		t.Errorf("merged %+v, expected %+v", merged, whole)
	}
}

// files contains the two file formats and their readers.
var files = map[string]struct {
	writer func(io.Writer) Writer
	read   func(io.Reader, func(*Record) error) error
}{
	"JSONL": {func(w io.Writer) Writer { return NewJSONLWriter(w) }, ReadJSONL},
	"CSV":   {func(w io.Writer) Writer { return NewCSVWriter(w) }, ReadCSV},
}

func TestFiles(t *testing.T) {
	partial := sample()
	for s := range Stamp(Stamps / 2) {
		partial.Times[2*s] = 0
	}
	partial.Receiver, partial.Clocks[Server] = "", Clock{}
	want := []Record{sample(), partial, {Track: volumetric.TrackRef{Quality: volumetric.QualityOff}}}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			var written bytes.Buffer
			w := file.writer(&written)
			for i := range want {
				if err := w.Write(&want[i]); err != nil {
					t.Fatal(err)
				}
			}
			var got []Record
			if err := file.read(&written, func(r *Record) error { got = append(got, *r); return nil }); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("read %+v, expected %+v", got, want)
			}
		})
	}
}

func TestFilesEnd(t *testing.T) {
	enough := errors.New("enough")
	for name, file := range files {
		var written bytes.Buffer
		r := sample()
		w := file.writer(&written)
		if err := errors.Join(w.Write(&r), w.Write(&r)); err != nil {
			t.Fatal(err)
		}
		count := 0
		err := file.read(&written, func(*Record) error { count++; return enough })
		if !errors.Is(err, enough) || count != 1 {
			t.Errorf("%s: %v after %d records, expected to end with the first", name, err, count)
		}
		if err := file.read(strings.NewReader(""), nil); err != nil {
			t.Errorf("%s: an empty file gives %v", name, err)
		}
	}
}

func TestMalformed(t *testing.T) {
	row := slices.Repeat([]string{""}, columns)
	line := func(change func(row []string)) string {
		changed := slices.Clone(row)
		change(changed)
		return strings.Join(Columns(), ",") + "\n" + strings.Join(changed, ",") + "\n"
	}
	tests := []struct{ form, text, want string }{
		{"JSONL", "\n{}\n{", "line 3"},
		{"JSONL", `{"stamps_ns":{"born":1}}`, `"born"`},
		{"JSONL", `{"stamps_ns":{"captured":-1}}`, "captured is -1"},
		{"JSONL", `{"stamps_ns":{"captured":1.5}}`, "number 1.5"},
		{"JSONL", `{"clocks":{"moon":{"source":"ptp"}}}`, `"moon"`},
		{"JSONL", `{"clocks":{"server":{"source":"sundial"}}}`, `"sundial"`},
		{"JSONL", `{"clocks":{"server":{"source":"ptp","bound_ns":-1}}}`, "expected 0 or more"},
		{"JSONL", `{"bytes":-5}`, "-5 bytes"},
		{"JSONL", `{"receiver":"` + strings.Repeat("x", maxLine) + `"}`, "longer than"},
		{"CSV", "a,b,c\n", "wrong number of fields"},
		{"CSV", strings.Replace(strings.Join(Columns(), ","), "captured_ns", "captured_us", 1) + "\n", "captured_us"},
		{"CSV", line(func(row []string) { row[stampColumn] = "noon" }), "line 2"},
		{"CSV", line(func(row []string) { row[6] = "-1" }), "-1 bytes"},
		{"CSV", line(func(row []string) { row[clockColumn] = "sundial" }), "sundial"},
		{"CSV", line(func(row []string) { row[2] = `"` }), "line 2"},
	}
	for _, test := range tests {
		err := files[test.form].read(strings.NewReader(test.text), func(*Record) error { return nil })
		if !errors.Is(err, ErrRecord) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %.60q: error is %v, expected ErrRecord with %q", test.form, test.text, err, test.want)
		}
	}
}

func FuzzReadJSONL(f *testing.F) { fuzzFile(f, "JSONL") }
func FuzzReadCSV(f *testing.F)   { fuzzFile(f, "CSV") }

// fuzzFile expects that every record read is unchanged after it is written and read again.
func fuzzFile(f *testing.F, name string) {
	file := files[name]
	var written bytes.Buffer
	w := file.writer(&written)
	r := sample()
	if err := errors.Join(w.Write(&r), w.Write(&Record{})); err != nil {
		f.Fatal(err)
	}
	f.Add(written.Bytes())
	f.Add([]byte(`{"stamps_ns":{"captured":9223372036854775807},"clocks":{"sender":{"source":"","offset_ns":5}}}`))
	f.Add([]byte(`{"tile":-1,"quality":1e3,"frame":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var read []Record
		err := file.read(bytes.NewReader(data), func(r *Record) error { read = append(read, *r); return nil })
		if err != nil && !errors.Is(err, ErrRecord) {
			t.Fatalf("unexpected error %v", err)
		}
		for _, r := range read {
			var once bytes.Buffer
			if err := file.writer(&once).Write(&r); err != nil {
				t.Fatal(err)
			}
			again := 0
			err := file.read(&once, func(other *Record) error {
				again++
				// A clock without a source counts as absent, whatever its other fields contain.
				for i := range r.Clocks {
					if r.Clocks[i].Source == "" {
						r.Clocks[i] = Clock{}
					}
				}
				if other.Times != r.Times || other.Clocks != r.Clocks || other.Frame != r.Frame ||
					other.Bytes != r.Bytes {
					t.Fatalf("%+v is written and read as %+v", r, *other)
				}
				return nil
			})
			if err != nil || again != 1 {
				t.Fatalf("%+v is written, and read as %d records, %v", r, again, err)
			}
		}
	})
}

// TestAppendJSONAllocates expects allocations only for the names quoted by encoding/json, some for
// each of the six. Stamps and layers do not allocate.
func TestAppendJSONAllocates(t *testing.T) {
	r := sample()
	buffer := make([]byte, 0, 1<<14)
	if got := testing.AllocsPerRun(100, func() { buffer = r.AppendJSON(buffer[:0]) }); got > 24 {
		t.Errorf("%v allocations for a record, expected four for each name at most", got)
	}
}
