package carriage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// patience is far longer than any step of these tests.
const patience = time.Minute

// script is a feed whose captures and encodings are released by the test.
type script struct {
	tiles    int
	captured chan struct{} // one for each capture that may be read
	encode   chan struct{} // one for each that may be encoded
	read     int
	encoded  []int
	taken    chan int // capture number being encoded
}

func newScript(tiles int) *script {
	return &script{tiles: tiles, captured: make(chan struct{}), encode: make(chan struct{}), taken: make(chan int, 100)}
}

func (s *script) Publication() volumetric.Publication {
	return volumetric.Publication{Tiles: make([]volumetric.Tile, s.tiles),
		Qualities: make([]volumetric.QualityLevel, 1)}
}

func (s *script) Read(ctx context.Context, c *Capture) error {
	select {
	case <-s.captured:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.read++
	c.index, c.At = s.read, time.Unix(int64(s.read), 0)
	c.Acquired = c.At
	return nil
}

func (s *script) Encode(c *Capture, number uint32, wanted func(Job) bool, done func(*Encoded)) error {
	s.taken <- c.index
	<-s.encode
	s.encoded = append(s.encoded, c.index)
	for tile := range s.tiles {
		if wanted(Job{Tile: tile}) {
			e := &Encoded{Frame: Frame{Tile: tile, Number: number, Capture: c.At, Data: []byte{byte(c.index)}}}
			c.begin(&e.Record, c.At)
			done(e)
		}
	}
	return nil
}

func (s *script) Close() error { return nil }

// shelf is an end that stores the sent frames after it is opened.
type shelf struct {
	open     chan struct{} // closed when frames may leave
	unwanted int           // a tile
	chosen   chan []volumetric.Quality

	mu     sync.Mutex
	frames [][2]int // tile and content
	fail   error
}

func newShelf() *shelf {
	s := &shelf{open: make(chan struct{}), unwanted: -1, chosen: make(chan []volumetric.Quality, 10)}
	close(s.open)
	return s
}

func (s *shelf) Run(ctx context.Context, _ Taker) error { <-ctx.Done(); return nil }
func (s *shelf) Ready(context.Context) error            { return nil }
func (s *shelf) Wanted(tile int, _ volumetric.Quality) bool {
	return tile != s.unwanted
}

func (s *shelf) Send(ctx context.Context, f *Frame) (Departure, error) {
	select {
	case <-s.open:
	case <-ctx.Done():
		return Departure{}, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames = append(s.frames, [2]int{f.Tile, int(f.Data[0])})
	now := time.Now()
	return Departure{First: now, Last: now, Copies: 1}, s.fail
}

func (s *shelf) Choose(_ context.Context, qualities []volumetric.Quality) error {
	s.chosen <- qualities
	return nil
}
func (s *shelf) Traffic() Traffic { return Traffic{} }
func (s *shelf) Close() error     { return nil }

// TestEncoderQueue: while a capture is being encoded, two captures wait. A third capture drops the oldest waiting
// capture, not the capture that is being encoded.
func TestEncoderQueue(t *testing.T) {
	feed, end := newScript(1), newShelf()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan *Published)
	go func() {
		s, err := Publish(ctx, feed, end, DefaultPublish(), "a", nil)
		if err != nil {
			t.Error(err)
		}
		ended <- s
	}()
	feed.captured <- struct{}{}
	if first := <-feed.taken; first != 1 {
		t.Fatalf("capture %d is encoded first", first)
	}
	// When the last capture is being read, the previous three are in the queue, and one of the three has displaced an
	// earlier capture.
	for range 4 {
		feed.captured <- struct{}{}
	}
	for range 3 {
		feed.encode <- struct{}{}
	}
	cancel()
	close(feed.encode)
	s := <-ended
	if len(feed.encoded) < 3 || feed.encoded[0] != 1 || !slices.IsSorted(feed.encoded) {
		t.Errorf("encoded %v", feed.encoded)
	}
	if s.Captures != 5 || s.CapturesDropped+s.CapturesEncoded != 5 || s.CapturesDropped < 1 ||
		s.FramesSent+s.FramesDropped != s.CapturesEncoded {
		t.Errorf("got %+v, want five captures, at least one dropped before the encoder, "+
			"and the others sent or dropped after it", s)
	}
}

// TestSendQueue: a blocked transport blocks its own stream only. The oldest queued frames are dropped.
func TestSendQueue(t *testing.T) {
	feed, end := newScript(2), newShelf()
	end.open, end.unwanted = make(chan struct{}), 1
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan *Published)
	go func() {
		s, err := Publish(ctx, feed, end, DefaultPublish(), "a", nil)
		if err != nil {
			t.Error(err)
		}
		ended <- s
	}()
	for range 6 {
		feed.captured <- struct{}{}
		feed.encode <- struct{}{}
	}
	feed.captured <- struct{}{}
	close(end.open)
	cancel()
	close(feed.encode)
	s := <-ended
	if s.FramesUnwanted != s.CapturesEncoded || s.FramesDropped < 2 || s.FramesSent+s.FramesDropped != s.Frames {
		t.Errorf("got %+v, want one unwanted tile, and at least two of the six frames of the other tile dropped", s)
	}
	for _, f := range end.frames {
		if f[0] != 0 {
			t.Errorf("the unwanted tile %d was sent", f[0])
		}
	}
}

func TestPublishRefuses(t *testing.T) {
	if _, err := Publish(t.Context(), newScript(1), newShelf(), PublishConfig{FPS: 1}, "a", nil); !errors.Is(err,
		ErrQueue) {
		t.Errorf("got %v, want ErrQueue", err)
	}
}

// sealed returns a frame in the form of an arrival.
func sealed(tile int, quality volumetric.Quality, number uint32, fourCC volumetric.FourCC, data []byte,
	at time.Time) *Arrival {
	f := Frame{Tile: tile, Quality: quality, Number: number, Codec: fourCC, Capture: at.Add(-time.Millisecond),
		Data: data}
	f.Seal(nil)
	return &Arrival{Data: f.Bytes, First: at, Last: at, Whole: at}
}

// TestWatcher: complete frames in order are shown; late, damaged, missing and undecodable frames are counted as such.
func TestWatcher(t *testing.T) {
	config := DefaultWatch()
	config.Tiles, config.Idle, config.DecoderQueue = 2, 200*time.Millisecond, 10
	records := filepath.Join(t.TempDir(), "records")
	book, err := CreateRecords(records)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWatcher(newShelf(), config, book)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	none := volumetric.FourCC{}
	for _, a := range []*Arrival{
		sealed(0, 0, 1, none, nil, now), sealed(0, 0, 2, none, nil, now), sealed(0, 0, 4, none, nil, now),
		// Frame 3 is missing.
		sealed(0, 0, 2, none, nil, now),                  // late, and already received
		sealed(1, 0, 7, none, []byte("unknown"), now),    // without codec
		sealed(5, 0, 7, none, nil, now),                  // of a tile that is out of range
		{Data: []byte("damaged"), First: now, Last: now}, // of an unknown tile
	} {
		w.Take(a)
	}
	damaged := sealed(1, 0, 9, none, []byte("hole"), now)
	damaged.Data[EnvelopeSize] = 0
	w.Take(damaged) // 8 is missing, and 9 is damaged
	got, err := w.Run(t.Context(), make(chan struct{}))
	if err != nil {
		t.Fatal(err)
	}
	if got.FramesReceived != 5 || got.FramesShown != 3 || got.FramesLate != 1 || got.FramesUndecodable != 1 ||
		got.FramesDamaged != 2 || got.FramesMissing != 1 {
		t.Errorf("got %+v", got)
	}
	if got.Lost < 42.8 || got.Lost > 42.9 || got.Undecodable == "" {
		t.Errorf("got %g %% lost and %q, want 3 of 7, and the reason for which a frame was rejected", got.Lost,
			got.Undecodable)
	}
	if err := book.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(records)
	if err != nil {
		t.Fatal(err)
	}
	undecoded := 0
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, `"last_received"`) && !strings.Contains(line, `"decoded"`) {
			undecoded++
		}
	}
	if undecoded != 1 {
		t.Errorf("%d frames are recorded as received and not decoded, want the late frame:\n%s", undecoded, text)
	}
}

// TestArrivedFramesCount: frames that have arrived count even if the patience, the context and the other end have ended
// since. Frames that arrived long before the silence are still decoded.
func TestArrivedFramesCount(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	gone := make(chan struct{})
	close(gone)
	config := DefaultWatch()
	config.Patience, config.Idle = time.Nanosecond, time.Nanosecond
	for range 100 {
		w, err := NewWatcher(newShelf(), config, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Run(over, gone); !errors.Is(err, ErrNothing) {
			t.Fatalf("without frames: got %v, want %v", err, ErrNothing)
		}
		w.Take(sealed(0, 0, 1, volumetric.FourCC{}, nil, time.Now()))
		if _, err := w.Run(over, gone); err != nil {
			t.Fatalf("after a frame: got %v", err)
		}
		if w, err = NewWatcher(newShelf(), config, nil); err != nil {
			t.Fatal(err)
		}
		w.Take(sealed(0, 0, 1, volumetric.FourCC{}, nil, time.Now()))
		if got, err := w.Run(t.Context(), make(chan struct{})); err != nil || got.FramesShown != 1 {
			t.Fatalf("got %+v, %v, want the frame shown", got, err)
		}
	}
}

// TestSuperseded: of the waiting frames of a tile, the newest is decoded. The transport bunched the frames, or the
// decoder was slow.
func TestSuperseded(t *testing.T) {
	for name, test := range map[string]struct {
		apart            time.Duration // arrivals; captures are 60 ms apart
		skipped, bunched int64
	}{
		"at once": {0, 0, 2}, "too close": {29 * time.Millisecond, 0, 2}, "as captured": {60 * time.Millisecond, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			config := DefaultWatch()
			config.Idle = 50 * time.Millisecond
			w, err := NewWatcher(newShelf(), config, nil)
			if err != nil {
				t.Fatal(err)
			}
			captured := time.Now()
			for number := range uint32(3) {
				f := Frame{Number: number, Capture: captured.Add(time.Duration(number) * 60 * time.Millisecond)}
				f.Seal(nil)
				at := captured.Add(time.Second + time.Duration(number)*test.apart)
				w.Take(&Arrival{Data: f.Bytes, First: at, Last: at, Whole: at})
			}
			got, err := w.Run(t.Context(), make(chan struct{}))
			if err != nil || got.FramesShown != 1 || got.FramesSkipped != test.skipped ||
				got.FramesBunched != test.bunched {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// TestDisplay: frames wait for the next picture, and the newer of two frames of a tile is shown.
func TestDisplay(t *testing.T) {
	config := DefaultWatch()
	config.Display, config.Idle, config.DecoderQueue = 1000, 100*time.Millisecond, 10
	w, err := NewWatcher(newShelf(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for number := range uint32(3) {
		w.Take(sealed(0, 0, number, volumetric.FourCC{}, nil, now))
	}
	got, err := w.Run(t.Context(), make(chan struct{}))
	if err != nil || got.FramesShown < 1 || got.FramesShown+got.FramesSkipped != 3 {
		t.Errorf("got %+v, %v, want three frames shown or skipped", got, err)
	}
}

// TestDecisionOutcomes: a decision is in force with the first frame of its quality whose arrival began after the
// decision.
func TestDecisionOutcomes(t *testing.T) {
	end := newShelf()
	config := DefaultWatch()
	config.Decisions = []Decision{{0, []volumetric.Quality{0}}, {time.Millisecond, []volumetric.Quality{1}}}
	w, err := NewWatcher(end, config, nil)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	w.Take(sealed(0, 0, 1, volumetric.FourCC{}, nil, begun))
	ended, over := make(chan *Received), make(chan struct{})
	go func() {
		got, err := w.Run(t.Context(), over)
		if err != nil {
			t.Error(err)
		}
		ended <- got
	}()
	if asked := <-end.chosen; !slices.Equal(asked, []volumetric.Quality{1}) {
		t.Errorf("requested %v", asked)
	}
	w.Take(sealed(0, 1, 2, volumetric.FourCC{}, nil, begun)) // began to arrive before
	now := time.Now()
	w.Take(sealed(0, 0, 3, volumetric.FourCC{}, nil, now)) // still the old quality
	w.Take(sealed(0, 1, 4, volumetric.FourCC{}, nil, now))
	close(over)
	got := <-ended
	if len(got.Decisions) != 1 || got.DecisionShown.Count != 1 {
		t.Fatalf("got %+v", got.Decisions)
	}
	if d := got.Decisions[0]; d.Before != 0 || d.Quality != 1 || d.FirstPacket < 0 || d.Decoded < d.FirstPacket ||
		d.Shown < d.Decoded {
		t.Errorf("got %+v", d)
	}
}

// TestNothing: ends that end before a frame arrives are distinguished from ends that deliver a frame.
func TestNothing(t *testing.T) {
	w, err := NewWatcher(newShelf(), DefaultWatch(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	close(ended)
	if _, err := w.Run(t.Context(), ended); !errors.Is(err, ErrNothing) {
		t.Errorf("got %v, want ErrNothing", err)
	}
}

// TestPrepared prepares frames with a codec, and plays them on a clock that does not wait.
func TestPrepared(t *testing.T) {
	p := DefaultPreparation()
	p.Points, p.Tiles, p.Codec, p.Qualities, p.Count = 2000, 2, codec.Raw.Name(), "low,high", 3
	p.Output = filepath.Join(t.TempDir(), "frames")
	report, err := Prepare(t.Context(), p)
	if err != nil || report.Tiles != 2 || len(report.Qualities) != 2 ||
		report.Qualities[0].BytesPerCapture >= report.Qualities[1].BytesPerCapture {
		t.Fatalf("got %+v, %v", report, err)
	}
	clock := &instantClock{now: time.Unix(1000, 0)}
	feed, err := openPrepared(clock, p.Output, 10)
	if err != nil {
		t.Fatal(err)
	}
	if q := feed.Publication().Qualities; q[0].Bitrate <= 0 || q[0].Bitrate >= q[1].Bitrate {
		t.Errorf("got rates %v and %v, want a higher second rate", q[0].Bitrate, q[1].Bitrate)
	}
	var c Capture
	var sizes []int
	for number := range uint32(4) {
		if err := feed.Read(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
		if want := time.Unix(1000, 0).Add(time.Duration(number) * 100 * time.Millisecond); !c.At.Equal(want) ||
			c.Missed != 0 {
			t.Errorf("capture %d has the time %v and %d were missed, want %v and none", number, c.At, c.Missed, want)
		}
		size := 0
		err := feed.Encode(&c, number, func(j Job) bool { return j.Quality == 1 }, func(e *Encoded) {
			size += len(e.Frame.Data)
			if e.Frame.Quality != 1 || e.Frame.Number != number || !e.Record.Has(frametimes.Encoded) {
				t.Errorf("got %+v", e)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, size)
	}
	if sizes[0] == 0 || sizes[3] != sizes[0] {
		t.Errorf("got sizes %v, want the first capture again as the fourth", sizes)
	}
	clock.now = clock.now.Add(time.Second)
	if err := feed.Read(t.Context(), &c); err != nil || c.Missed != 9 {
		t.Errorf("after a second %d were missed, %v, want 9", c.Missed, err)
	}
}

func TestPrepareRandom(t *testing.T) {
	p := DefaultPreparation()
	p.Sizes, p.Count, p.Output = []int{100, 0, 3}, 2, filepath.Join(t.TempDir(), "frames")
	if _, err := Prepare(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	feed, err := OpenPrepared(p.Output, 30)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(feed.Publication().Tiles); got != 3 {
		t.Errorf("got %d tiles, want 3", got)
	}
	for name, change := range map[string]func(*Preparation){
		"exists":    func(*Preparation) {},
		"no file":   func(p *Preparation) { p.Output = "" },
		"no count":  func(p *Preparation) { p.Count = 0 },
		"too large": func(p *Preparation) { p.Sizes, p.Output = []int{MaxFrameBytes}, p.Output+"2" },
		"qualities": func(p *Preparation) { p.Sizes, p.Qualities, p.Output = nil, "v8mm", p.Output+"3" },
		"codec":     func(p *Preparation) { p.Sizes, p.Codec, p.Output = nil, "morse", p.Output+"4" },
	} {
		q := p
		change(&q)
		if _, err := Prepare(t.Context(), q); err == nil {
			t.Errorf("%s: expected an error", name)
		}
	}
}
