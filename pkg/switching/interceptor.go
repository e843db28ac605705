package switching

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
)

// ErrUnknownStream reports that no peer connection sends a stream with the SSRC.
var ErrUnknownStream = errors.New("unknown outgoing stream")

// options are the options of the interceptors of a Factory.
type options struct {
	copyBytes int
	jump      int
	keyWait   time.Duration
	now       func() time.Time
}

// Option sets an option of the interceptors of a Factory.
type Option func(*options)

// WithCopies limits the memory of each stream for copies of its latest packets, in bytes. NACKs are
// answered from these copies. Each packet occupies 1,500 bytes. The default is 2 MiB: 1,398
// packets, or half a second at 30 Mbit/s. With 0 no NACK is answered.
func WithCopies(bytes int) Option { return func(o *options) { o.copyBytes = max(bytes, 0) } }

// WithDiscontinuity sets the step of sequence numbers, forwards or backwards, above which a packet is assumed to come
// from a new track although no swap was announced. The default is 1,024. A late repair is closer (750 packets are 150
// ms at 5,000 packets/s). A track with random numbers is within this step in 3 % of all cases; the timestamps, or the
// quality in payload v1, still distinguish it.
func WithDiscontinuity(packets uint16) Option {
	return func(o *options) { o.jump = int(min(packets, 1<<15-1)) }
}

// WithKeyFrameWait sets the time for which a new track of VP8 or H264 waits for a key frame before
// it begins without one. Request a key frame from its publisher when you swap. The default is one
// second. With 0 tracks begin at any frame, as is necessary for end-to-end encrypted payloads.
func WithKeyFrameWait(d time.Duration) Option { return func(o *options) { o.keyWait = d } }

// Factory makes Pion interceptors that let one track replace another in an RTPSender. Receivers see
// one stream with continuous sequence numbers and timestamps, in which the new track begins at the
// start of a frame. NACKs of receivers are answered with the packets that the numbers stand for. A
// Factory is safe for concurrent use.
//
// Order in the registry: interceptors that number or change packets on the wire (transport-wide
// congestion control, pacers, FlexFEC) precede the Factory. All other interceptors follow, in
// particular NACK responders and sender reports:
//
//	webrtc.ConfigureTWCCHeaderExtensionSender(mediaEngine, registry)
//	registry.Add(factory)
//	webrtc.RegisterDefaultInterceptors(mediaEngine, registry)
//
// Interceptors added after the Factory see the application's numbers; interceptors added before it see the receiver's
// numbers. The Factory makes retransmissions from copies stored under the receiver's numbers. A Factory sends them on
// the RTX stream (RFC 4588) with separate numbers, and never on the SSRC of the media, so that they are correct for any
// order of the other interceptors. A NACK for a stream with RTX is not passed on: for the other interceptors its
// numbers would mean different packets. Do not add a NACK responder before the Factory: it would answer a second time,
// on the same RTX stream with different numbers. Streams without RTX are not repaired.
//
// Sender reports are corrected to the timestamps and counts of the outgoing stream.
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

// Swap lets another track take over the stream with this SSRC, as returned by
// RTPSender.GetParameters. Swap calls replace, which must only replace the track, and returns its
// error:
//
//	err := factory.Swap(ssrc, func() error { return sender.ReplaceTrack(other) })
//
// Packets written during the call, for a few microseconds, are dropped. All later packets are
// assumed to come from the new track. If replace fails, the old track continues at its next frame.
// An application that itself ensures that the tracks do not overlap may pass nil. Without Swap, the
// change is detected by a discontinuity of sequence numbers or timestamps (see WithDiscontinuity).
//
// If two peer connections of one Factory use the same SSRC by chance, the other stream is also
// treated as swapped: it loses the rest of a frame, or waits for a key frame with VP8 and H264.
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
	// The streams must be released even if replace panics.
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

// BindRTCPReader implements interceptor.Interceptor. It answers NACKs.
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
				// Nothing remains to be passed on. The interceptors above treat an empty packet as
				// an error.
				continue
			}
			for key, value := range attributes {
				if _, parsed := value.([]rtcp.Packet); parsed {
					delete(attributes, key) // the packets cached by interceptors below still contain the NACKs
				}
			}
			return left, attributes, nil
		}
	})
}

// BindRTCPWriter implements interceptor.Interceptor. It corrects sender reports.
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
