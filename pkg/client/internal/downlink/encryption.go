package downlink

import (
	"errors"

	"github.com/volsfu/volsfu/pkg/e2ee"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// opening decrypts the frames and packets of all streams, and counts those that it refuses.
type opening struct {
	opener   *e2ee.Opener
	refusals e2ee.Refusals
	// reported has the publications and reasons of refusals that were reported.
	reported map[refusalKey]struct{}
}

type refusalKey struct {
	publication volumetric.PublicationRef
	reason      error
}

// maxReported bounds the refusals that are recorded. Beyond that all are reported once more.
const maxReported = 1024

// Refusal is a frame or packet that was not decrypted.
type Refusal struct {
	Track volumetric.TrackRef
	// Err wraps a reason of package e2ee.
	Err error
	// First is set for the first refusal of the publication with this reason.
	First bool
}

func newOpening(keys *e2ee.Keys) *opening {
	return &opening{opener: e2ee.NewOpener(keys), reported: make(map[refusalKey]struct{})}
}

// refuse counts an error.
func (o *opening) refuse(track volumetric.TrackRef, err error) *Refusal {
	o.refusals.Add(err)
	reason := err
	for next := errors.Unwrap(reason); next != nil; next = errors.Unwrap(reason) {
		reason = next
	}
	key := refusalKey{track.PublicationRef, reason}
	_, known := o.reported[key]
	if len(o.reported) >= maxReported {
		clear(o.reported)
	}
	o.reported[key] = struct{}{}
	return &Refusal{Track: track, Err: err, First: !known}
}

// Encryption returns the number of decrypted frames and packets, and the counts of those that were refused.
func (r *Receiver) Encryption() (opened uint64, refused e2ee.Refusals) {
	return r.opening.opener.Opened(), r.opening.refusals
}

// openFrame decrypts a complete frame in its own memory.
func (s *stream) openFrame(f *payload.Frame) error {
	if s.refusal != nil || !s.encrypted {
		return s.refusal
	}
	data, err := s.opening.opener.Open(s.track.Participant, e2ee.Subject{
		Publication: s.track.Publication, Tile: s.track.Tile, Quality: volumetric.Quality(f.Quality), Number: f.Number,
		Prefix: f.RawPrefix(),
	}, f.Data)
	f.Data = data
	return err
}

// openPacket decrypts the payload of a packet in its own memory.
func (s *stream) openPacket(p *Packet) error {
	if s.refusal != nil || !s.encrypted {
		return s.refusal
	}
	data, err := s.opening.opener.Open(s.track.Participant,
		e2ee.Subject{Publication: s.track.Publication, Tile: s.track.Tile}, p.Payload)
	p.Payload = data
	return err
}
