package switching

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
)

// ErrUnknownStream says that no peer connection sends a stream with the SSRC.
var ErrUnknownStream = errors.New("unknown outgoing stream")

// options tune the interceptors of a Factory.
type options struct {
	copyBytes int
	jump      int
	keyWait   time.Duration
	now       func() time.Time
}

// Option tunes the interceptors of a Factory.
type Option func(*options)

// WithCopies bounds the memory that each stream uses for copies of its latest packets, from which NACKs are answered, in bytes. Each packet takes 1,500.
// The default is 2 MiB: 1,398 packets, or half a second at 30 Mbit/s. With 0 no NACK is answered.
func WithCopies(bytes int) Option { return func(o *options) { o.copyBytes = max(bytes, 0) } }

// WithDiscontinuity sets the step of sequence numbers, forwards or backwards, beyond which packets come from another track although no swap
// was announced. The default is 1,024: a late repair is not further back (750 packets are 150 ms at 5,000 packets/s), and a track with
// random numbers is within it in 3 % of all cases (then its timestamps and the quality in payload v1 still tell it).
func WithDiscontinuity(packets uint16) Option {
	return func(o *options) { o.jump = int(min(packets, 1<<15-1)) }
}

// WithKeyFrameWait sets how long a new track of VP8 or H264 may take to send a key frame before it begins without one. Ask its
// publisher for one when you swap. The default is one second; with 0 tracks begin at any frame, as is right for payloads that are encrypted end to end.
func WithKeyFrameWait(d time.Duration) Option { return func(o *options) { o.keyWait = d } }

// Factory makes interceptors for Pion that let one track take another's place in an RTPSender: receivers see one stream with continuous sequence
// numbers and timestamps, in which the new track begins at the start of a frame, and are answered their NACKs with the packets that the numbers
// stand for. It is safe for concurrent use.
//
// Order in the registry: what numbers or changes packets for the wire comes before (transport-wide congestion control, pacers, FlexFEC), all else
// after, above all NACK responders and sender reports:
//
//	webrtc.ConfigureTWCCHeaderExtensionSender(mediaEngine, registry)
//	registry.Add(factory)
//	webrtc.RegisterDefaultInterceptors(mediaEngine, registry)
//
// Interceptors that are added after see the application's numbers; those added before see the receiver's. Retransmissions are made here, from
// copies kept under the receiver's numbers, on the RTX stream (RFC 4588) with numbers of its own, and never on the SSRC of the media,
// so that they are right wherever the others stand. A NACK for a stream with RTX ends here: above, its numbers would mean other packets. A NACK responder that
// was added before would answer a second time, on the same RTX stream with other numbers: do not do that. Streams without RTX are not repaired.
//
// Sender reports that pass are corrected to the stream's timestamps and counts.
type Factory struct {
	options options

	mu      sync.Mutex
	streams map[uint32][]*stream
}

// NewInterceptor returns a Factory for the interceptor registry of one or more peer connections.
func NewInterceptor(opts ...Option) *Factory {
	f := &Factory{
		options: options{copyBytes: 2 << 20, jump: 1024, keyWait: time.Second, now: time.Now},
		streams: map[uint32][]*stream{},
	}
	for _, opt := range opts {
		opt(&f.options)
	}
	return f
}

// NewInterceptor implements interceptor.Factory. Pion calls it once per peer connection.
func (f *Factory) NewInterceptor(string) (interceptor.Interceptor, error) {
	return &swapper{factory: f, streams: map[uint32]*stream{}}, nil
}

// Swap lets another track take over the stream with this SSRC, which RTPSender.GetParameters tells. It calls replace, which must do no more than replace the track,
// and returns its error:
//
//	err := factory.Swap(ssrc, func() error { return sender.ReplaceTrack(other) })
//
// Packets that are written meanwhile, a few microseconds, are dropped; all later ones are taken to be the new track's. If replace fails the old track goes on
// at its next frame. An application that sees to it that the tracks do not overlap may do so itself, and pass nil. Without a Swap the
// change is noticed by a discontinuity of numbers or timestamps (see WithDiscontinuity).
//
// Should two peer connections of one Factory happen to use the same SSRC, the other one's stream is treated as swapped, too: it loses what is left of a frame, or
// with VP8 and H264 waits for a key frame.
func (f *Factory) Swap(ssrc uint32, replace func() error) error {
	f.mu.Lock()
	streams := append([]*stream(nil), f.streams[ssrc]...)
	f.mu.Unlock()
	if len(streams) == 0 {
		return fmt.Errorf("%w: SSRC %d", ErrUnknownStream, ssrc)
	}
	for _, s := range streams {
		s.gate()
	}
	var err error
	// Also where replace panics, the streams must not stay closed.
	swapped := false
	defer func() {
		for _, s := range streams {
			s.ungate(swapped)
		}
	}()
	if replace != nil {
		err = replace()
	}
	swapped = err == nil
	return err
}

func (f *Factory) add(s *stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.streams[s.ssrc] = append(f.streams[s.ssrc], s)
}

func (f *Factory) remove(s *stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := f.streams[s.ssrc][:0:0]
	for _, other := range f.streams[s.ssrc] {
		if other != s {
			kept = append(kept, other)
		}
	}
	if len(kept) == 0 {
		delete(f.streams, s.ssrc)
		return
	}
	f.streams[s.ssrc] = kept
}

// swapper is the interceptor of one peer connection.
type swapper struct {
	interceptor.NoOp
	factory *Factory

	mu      sync.RWMutex
	streams map[uint32]*stream
}

func (i *swapper) stream(ssrc uint32) *stream {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.streams[ssrc]
}

// BindLocalStream implements interceptor.Interceptor.
func (i *swapper) BindLocalStream(info *interceptor.StreamInfo, writer interceptor.RTPWriter) interceptor.RTPWriter {
	s := newStream(info, writer, i.factory.options)
	i.mu.Lock()
	before := i.streams[info.SSRC]
	i.streams[info.SSRC] = s
	i.mu.Unlock()
	if before != nil {
		i.forget(before)
	}
	i.factory.add(s)
	return s
}

// UnbindLocalStream implements interceptor.Interceptor.
func (i *swapper) UnbindLocalStream(info *interceptor.StreamInfo) {
	i.mu.Lock()
	s := i.streams[info.SSRC]
	delete(i.streams, info.SSRC)
	i.mu.Unlock()
	if s != nil {
		i.forget(s)
	}
}

// Close implements io.Closer.
func (i *swapper) Close() error {
	i.mu.Lock()
	streams := i.streams
	i.streams = map[uint32]*stream{}
	i.mu.Unlock()
	for _, s := range streams {
		i.forget(s)
	}
	return nil
}

func (i *swapper) forget(s *stream) {
	i.factory.remove(s)
	s.close()
}

// BindRTCPReader implements interceptor.Interceptor: it answers NACKs.
func (i *swapper) BindRTCPReader(reader interceptor.RTCPReader) interceptor.RTCPReader {
	return interceptor.RTCPReaderFunc(func(b []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
		for {
			n, attributes, err := reader.Read(b, a)
			if err != nil {
				return n, attributes, err
			}
			left := i.answer(b[:n])
			if left == n {
				return n, attributes, nil
			}
			if left == 0 {
				// Nothing to pass on: those above take an empty packet for an error.
				continue
			}
			for key, value := range attributes {
				if _, parsed := value.([]rtcp.Packet); parsed {
					delete(attributes, key) // what those below have cached still holds the NACKs
				}
			}
			return left, attributes, nil
		}
	})
}

// BindRTCPWriter implements interceptor.Interceptor: it corrects sender reports.
func (i *swapper) BindRTCPWriter(writer interceptor.RTCPWriter) interceptor.RTCPWriter {
	return interceptor.RTCPWriterFunc(func(packets []rtcp.Packet, a interceptor.Attributes) (int, error) {
		corrected, copied := packets, false
		for n, packet := range packets {
			sr, ok := packet.(*rtcp.SenderReport)
			if !ok {
				continue
			}
			s := i.stream(sr.SSRC)
			if s == nil {
				continue
			}
			if !copied {
				corrected, copied = append([]rtcp.Packet(nil), packets...), true
			}
			corrected[n] = s.report(sr)
		}
		return writer.Write(corrected, a)
	})
}
