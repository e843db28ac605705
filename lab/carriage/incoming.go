package carriage

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/lab/queue"
	"github.com/volsfu/volsfu/lab/wallclock"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// watchedTile is the state of one tile. The watcher's lock guards its fields, except the fields of the decoder.
type watchedTile struct {
	waiting *queue.Queue[*incoming]
	numbers numbers
	// taken is set when the first frame was passed to the decoder. newest is the number of the latest frame passed to
	// the decoder.
	taken  bool
	newest uint32
	// shown is the number of shown frames. first and last are the times at which the first and the last of these frames
	// were shown.
	shown       int64
	first, last time.Time
	// quality is the requested quality; open is the decision that is not in force yet.
	quality volumetric.Quality
	open    *outcome

	decoders map[volumetric.FourCC]codec.Decoder
	cloud    pointcloud.Cloud
}

// rate returns the number of frames shown per second.
func (t *watchedTile) rate() float64 {
	if span := t.last.Sub(t.first).Seconds(); t.shown > 1 && span > 0 {
		return float64(t.shown-1) / span
	}
	return 0
}

// incoming is a frame on its way to the display.
type incoming struct {
	frame  Frame
	record frametimes.Record
	// decision is the decision whose quality begins with this frame, nil for other frames.
	decision *outcome
}

// Take implements Taker.
func (w *Watcher) Take(a *Arrival) {
	in := &incoming{}
	err := in.frame.Open(a.Data)
	w.mu.Lock()
	defer w.mu.Unlock()
	if in.frame.Tile >= len(w.tiles) {
		return
	}
	if err != nil {
		w.counts.FramesDamaged++
		if in.frame.Bytes != nil {
			// The number is known, so that a gap at the end of a run counts as well.
			w.tiles[in.frame.Tile].numbers.expect(in.frame.Number)
		}
		return
	}
	w.completed(in, a)
	t := w.tiles[in.frame.Tile]
	t.numbers.add(in.frame.Number)
	w.recordFirst(t, in, a)
	if t.taken && int32(in.frame.Number-t.newest) <= 0 {
		w.counts.FramesLate++
		w.records.Write(&in.record)
		return
	}
	t.taken, t.newest = true, in.frame.Number
	if old, dropped := t.waiting.Push(in); dropped {
		if in.bunchedWith(old) {
			w.counts.FramesBunched++
		} else {
			w.counts.FramesSkipped++
		}
		w.records.Write(&old.record)
	}
}

// bunchedWith reports whether the transport delivered this frame much closer to an older frame than the two were
// captured, so that no decoder could have been fast enough.
func (in *incoming) bunchedWith(old *incoming) bool {
	came := in.record.Time(frametimes.Reassembled).Sub(old.record.Time(frametimes.Reassembled))
	return 2*came < in.frame.Capture.Sub(old.frame.Capture)
}

// completed records a complete frame.
func (w *Watcher) completed(in *incoming, a *Arrival) {
	if w.first.IsZero() {
		w.first = a.Whole
		close(w.arrived)
	}
	w.last = a.Whole
	w.counts.FramesReceived++
	w.counts.Bytes += int64(len(in.frame.Data))
	r := &in.record
	r.Track = volumetric.TrackRef{
		TileRef: volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: w.config.Of,
			Publication: publicationName}, Tile: in.frame.Tile}, Quality: in.frame.Quality,
	}
	r.Receiver, r.Frame, r.Bytes = w.config.Name, int64(in.frame.Number), len(in.frame.Data)
	r.Clocks[frametimes.Receiver] = frametimes.Clock{Source: frametimes.SourceSystem}
	r.Set(frametimes.Captured, in.frame.Capture)
	r.Set(frametimes.FirstReceived, a.First)
	r.Set(frametimes.LastReceived, a.Last)
	r.Set(frametimes.Reassembled, a.Whole)
	w.samples.arrived.between(r, frametimes.Captured, frametimes.Reassembled)
	w.samples.receiving.between(r, frametimes.FirstReceived, frametimes.LastReceived)
}

// decode decodes the frames of a tile until the context ends.
func (w *Watcher) decode(ctx context.Context, t *watchedTile) {
	for {
		in, ok := t.waiting.Pop(ctx)
		if !ok || ctx.Err() != nil {
			return
		}
		select {
		case w.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		in.record.Set(frametimes.DecodingBegan, wallclock.Now())
		err := w.content(t, &in.frame)
		in.record.Set(frametimes.Decoded, wallclock.Now())
		<-w.slots
		w.decoded(t, in, err)
	}
}

// content decodes the cloud of a frame.
func (w *Watcher) content(t *watchedTile, f *Frame) error {
	if !w.config.Decode || len(f.Data) == 0 {
		return nil
	}
	d := t.decoders[f.Codec]
	if d == nil {
		c, err := codec.ByFourCC(f.Codec)
		if err != nil {
			return err
		}
		if t.decoders == nil {
			t.decoders = make(map[volumetric.FourCC]codec.Decoder)
		}
		d = c.NewDecoder()
		t.decoders[f.Codec] = d
	}
	return d.Decode(&t.cloud, f.Data)
}

// decoded records a frame that has left the decoder.
func (w *Watcher) decoded(t *watchedTile, in *incoming, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := &in.record
	if err != nil {
		w.counts.FramesUndecodable++
		if w.counts.Undecodable == "" {
			w.counts.Undecodable = err.Error()
		}
		w.records.Write(r)
		return
	}
	w.counts.FramesDecoded++
	w.samples.wait.between(r, frametimes.Reassembled, frametimes.DecodingBegan)
	w.samples.decoding.between(r, frametimes.DecodingBegan, frametimes.Decoded)
	w.samples.decoded.between(r, frametimes.Captured, frametimes.Decoded)
	if in.decision != nil && in.decision.decoded.IsZero() {
		in.decision.decoded = r.Time(frametimes.Decoded)
	}
	if w.config.Display > 0 {
		w.display.hang(w, t, in)
		return
	}
	w.show(t, in, r.Time(frametimes.Decoded))
}

// show records a frame that is shown at an instant.
func (w *Watcher) show(t *watchedTile, in *incoming, at time.Time) {
	r := &in.record
	r.Set(frametimes.RenderBegan, at)
	r.Set(frametimes.Shown, at)
	if t.shown == 0 {
		t.first = at
	}
	t.last = at
	t.shown++
	w.counts.FramesShown++
	w.samples.display.between(r, frametimes.Decoded, frametimes.RenderBegan)
	w.samples.latency.between(r, frametimes.Captured, frametimes.Shown)
	if in.decision != nil && in.decision.shown.IsZero() {
		in.decision.shown = at
	}
	w.records.Write(r)
}

// display holds the newest decoded frame of each tile until the next picture. It is guarded by the watcher's lock.
type display struct {
	hung map[*watchedTile]*incoming
}

// hang replaces the frame of a tile for the next picture.
func (d *display) hang(w *Watcher, t *watchedTile, in *incoming) {
	if d.hung == nil {
		d.hung = make(map[*watchedTile]*incoming)
	}
	if older := d.hung[t]; older != nil {
		w.counts.FramesSkipped++
		w.records.Write(&older.record)
	}
	d.hung[t] = in
}

// refresh shows the held frames, Display times per second, until the context ends.
func (w *Watcher) refresh(ctx context.Context) {
	ticker := time.NewTicker(time.Duration(float64(time.Second) / w.config.Display))
	defer ticker.Stop()
	for {
		select {
		case at := <-ticker.C:
			w.mu.Lock()
			for t, in := range w.display.hung {
				w.show(t, in, at)
			}
			clear(w.display.hung)
			w.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}
