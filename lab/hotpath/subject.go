package hotpath

import (
	"context"
	"strconv"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/hotpath/mediasocket"
	"github.com/volsfu/volsfu/test/exposition"
)

// subject is a server under measurement.
type subject interface {
	name() string
	// attach adds a client and returns when the client is connected.
	attach(ctx context.Context, part part) (*member, error)
	// begun reports whether receivers can be attached to the server, given the number of tracks that are being sent.
	begun(ctx context.Context, tracks int) (bool, error)
	// counts reads the server's counters.
	counts(ctx context.Context) (exposition.Series, error)
	// figures returns the names of the server's metrics.
	figures() metricNames
	// pid returns the server's process, 0 if unknown.
	pid() int
	close() error
}

// part describes a client. If publishes is set, number is the number of the publisher.
type part struct {
	load                Load
	number              int
	publishes, receives bool
	// every is the interval in packets between packets whose times are measured, 0 for none.
	every int
	// reports are those that the client makes about the packets that it receives.
	reports reports
}

// identity returns the client's identity.
func (p part) identity() string {
	if p.publishes {
		return publisherName(p.number)
	}
	return "receiver-" + strconv.Itoa(p.number)
}

func publisherName(number int) string { return "publisher-" + strconv.Itoa(number) }

// member is a connected client: a publisher, a receiver or both.
type member struct {
	// publisher is nil if the client publishes nothing, receiver is nil if the client receives nothing.
	publisher *publisher
	receiver  receiver
	// socket is nil on impaired paths.
	socket *mediasocket.Socket
	// trace starts or stops requesting the times of the frames sent to the client; nil if the client cannot.
	trace func(wanted bool) error
	end   func() error
}

// receiver counts the packets that a client receives.
type receiver interface {
	sum() received
	// time starts or stops the recording of times; times returns the times of packets and of complete frames so far.
	time(on bool)
	times() (packet, frame lab.Distribution)
}

// metricNames has a server's names of the measured metrics; a name is empty if the server does not count the metric.
type metricNames struct {
	packets, residence, hold, datagrams, sends, retransmissions, cache string
}
