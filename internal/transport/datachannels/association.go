package datachannels

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/datachannel"
	"github.com/pion/sctp"

	"github.com/volsfu/volsfu/internal/description"
)

const (
	// maxChannels bounds the data channels that a remote peer may open: one for each of its publications, and some to
	// spare.
	maxChannels = 32
	// ReceiveWindow is the number of bytes that a remote peer may send before they are read: two frames of half a
	// megabyte, or 80 ms at 100 Mbit/s.
	ReceiveWindow = 1 << 20
	// longestRepeat is the maximum retransmission timeout of SCTP, in milliseconds. The timeout doubles with each
	// repetition, up to a minute (RFC 9260 section 16): after an outage of 20 s nothing would be sent for 11 s more.
	// Browsers use 0.8 s. Pion's minimum is one second.
	longestRepeat = 1000
	// maxStreams bounds the SCTP streams that a remote peer has used and not reset. SCTP keeps the state of each stream
	// and examines all of them for each chunk.
	maxStreams = 2 * maxChannels
	// maxLabel bounds the label of a data channel, in bytes. The name of a publication, which is the label of its
	// channel, has at most volumetric.MaxNameLength (128).
	maxLabel = 256
)

// errTooManyStreams ends an association whose remote peer uses more than maxStreams streams.
var errTooManyStreams = errors.New("too many SCTP streams")

// Serve reads data channels until the connection ends. client is set on the side that began the handshake.
func (d *Channels) Serve(conn net.Conn, client bool, sink Sink) error {
	association, err := sctp.ClientWithOptions(
		sctp.WithNetConn(newDataConn(conn, sink, d.host.Try, d.chunks)), sctp.WithLoggerFactory(d.logs),
		sctp.WithMinCwnd(leastWindow), sctp.WithRTOMax(longestRepeat),
		sctp.WithMaxReceiveBufferSize(ReceiveWindow), sctp.WithMaxMessageSize(description.MaxDataMessage),
		sctp.WithMaxReassemblyQueueEntries(maxFragments), sctp.WithEnableInterleaving(false),
	)
	if err != nil {
		return err
	}
	d.open(association, client)
	var channels sync.WaitGroup
	defer channels.Wait()
	defer func() { _ = association.Close() }()
	var open, used atomic.Int32
	for {
		stream, err := association.AcceptStream()
		if err != nil {
			return err
		}
		if used.Add(1) > maxStreams {
			return errTooManyStreams
		}
		if open.Add(1) > maxChannels {
			open.Add(-1)
			_ = stream.Close()
			continue
		}
		channels.Go(func() {
			defer open.Add(-1)
			d.host.Try(func() {
				// After a reset by the remote peer, SCTP drops the stream's state.
				if errors.Is(d.readChannel(stream, sink), io.EOF) {
					used.Add(-1)
				}
			})
		})
	}
}

// config returns the configuration of all data channels.
func (d *Channels) config() *datachannel.Config {
	return &datachannel.Config{LoggerFactory: d.logs}
}

// shortMessage is the size in bytes of the buffer that each channel has for short messages. An idle channel holds no
// more memory, however often a remote peer opens and closes channels.
const shortMessage = 2 << 10

// dataMessages are the buffers for longer messages.
var dataMessages = sync.Pool{New: func() any { return new([description.MaxDataMessage]byte) }}

// readChannel is the goroutine of one data channel. The error is io.EOF if the remote peer has reset the stream.
func (d *Channels) readChannel(stream *sctp.Stream, sink Sink) error {
	defer func() { _ = stream.Close() }()
	channel, err := datachannel.Server(stream, d.config())
	if err != nil {
		return err
	}
	label := channel.Config.Label
	if len(label) > maxLabel {
		return fmt.Errorf("%w: a label of %d bytes, the limit is %d", ErrChannel, len(label), maxLabel)
	}
	accepted := &openChannel{stream, channel}
	d.accept(label, accepted)
	defer d.release(label, accepted)
	next := func(buffer []byte) error {
		n, err := channel.Read(buffer)
		if err == nil {
			sink.Data(label, buffer[:n], time.Now())
		}
		return err
	}
	short := make([]byte, shortMessage)
	for {
		err := next(short)
		if errors.Is(err, io.ErrShortBuffer) {
			// The message is still queued and is read again.
			long := dataMessages.Get().(*[description.MaxDataMessage]byte)
			err = next(long[:])
			dataMessages.Put(long)
		}
		if err != nil {
			return err
		}
	}
}
