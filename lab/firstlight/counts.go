package firstlight

import (
	"context"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
)

type tileRef = volumetric.TileRef

func tileOf(participant, publication string, tile int) tileRef {
	return tileRef{PublicationRef: volumetric.PublicationRef{Participant: participant, Publication: publication},
		Tile: tile}
}

// tilesOf returns all tiles of a publication.
func tilesOf(participant, publication string, tiles int) []tileRef {
	var refs []tileRef
	for i := range tiles {
		refs = append(refs, tileOf(participant, publication, i))
	}
	return refs
}

// awaitFrames waits until a peer has received the given number of frames of each tile.
func awaitFrames(ctx context.Context, p *testbed.Peer, tiles []tileRef, frames int) error {
	for _, ref := range tiles {
		what := fmt.Sprintf("%s has %d frames of %v", p.Session.Identity(), frames, ref)
		if err := testbed.Await(ctx, what, func() bool {
			return p.Tile(ref).Frames >= frames ||
				p.Session.Err() != nil
		}); err != nil {
			return err
		}
		if err := p.Session.Err(); err != nil {
			return err
		}
	}
	return nil
}

// awaitFlow is awaitFrames limited to connectPatience, for frames that arrive immediately unless the server fails.
func awaitFlow(ctx context.Context, p *testbed.Peer, tiles []tileRef, frames int) error {
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	return awaitFrames(ctx, p, tiles, frames)
}

// statsOf returns a client's counters of one tile.
func statsOf(p *testbed.Peer, ref tileRef) client.TileStats {
	for _, s := range p.Session.Stats() {
		if s.Track.TileRef == ref {
			return s
		}
	}
	return client.TileStats{}
}

// plus adds counts of frames.
func plus(a, b client.FrameCounts) client.FrameCounts {
	a.Expected += b.Expected
	a.Complete += b.Complete
	a.Undecodable += b.Undecodable
	a.Missing += b.Missing
	a.Overflowed += b.Overflowed
	a.DroppedByServer += b.DroppedByServer
	a.Refused += b.Refused
	return a
}

// minus subtracts an earlier reading from a later one.
func minus(now, before client.FrameCounts) client.FrameCounts {
	now.Expected -= before.Expected
	now.Complete -= before.Complete
	now.Undecodable -= before.Undecodable
	now.Missing -= before.Missing
	now.Overflowed -= before.Overflowed
	now.DroppedByServer -= before.DroppedByServer
	now.Refused -= before.Refused
	return now
}

// lost counts the frames that a program did not receive completely.
func lost(c client.FrameCounts) int64 {
	return c.Undecodable + c.Missing + c.DroppedByServer + c.Overflowed + c.Refused
}

// difference returns the counts since an earlier reading.
func difference(now, before client.TileStats) client.TileStats {
	now.FrameCounts = minus(now.FrameCounts, before.FrameCounts)
	now.Packets -= before.Packets
	now.Bytes -= before.Bytes
	now.Lost -= before.Lost
	now.Recovered -= before.Recovered
	now.Gaps -= before.Gaps
	now.Repeats -= before.Repeats
	now.Requests -= before.Requests
	return now
}

// latencies returns the times from capture to completion of frames.
func latencies(arrivals []testbed.Arrival) lab.Distribution {
	var d lab.Distribution
	for _, a := range arrivals {
		d.Add(a.Latency())
	}
	return d
}

// serverDifference returns a server's counts since an earlier reading; only the fields used by the checks.
func serverDifference(now, before counters.Stats) counters.Stats {
	now.Requested -= before.Requested
	now.Recovered -= before.Recovered
	now.Lost -= before.Lost
	now.NACKed.Answered -= before.NACKed.Answered
	now.NACKed.Owed -= before.NACKed.Owed
	now.NACKed.Unknown -= before.NACKed.Unknown
	now.NACKed.Expired -= before.NACKed.Expired
	now.NACKed.Suppressed -= before.NACKed.Suppressed
	now.NACKed.Limited -= before.NACKed.Limited
	now.NACKed.Refused -= before.NACKed.Refused
	now.Sent.Retransmission.Packets -= before.Sent.Retransmission.Packets
	now.Sent.Media.Packets -= before.Sent.Media.Packets
	return now
}

// connectPatience is the time limit for joining and connecting if these are not under measurement.
const connectPatience = 30 * time.Second
