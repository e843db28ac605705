package hotpath

import (
	"context"
	"fmt"
	"strconv"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/exposition"
)

// subject is a server that is measured.
type subject interface {
	name() string
	// attach brings a client in and returns when it is connected.
	attach(ctx context.Context, part part) (*member, error)
	// begun tells whether the server is ready to have receivers attached, after so many tracks began to be sent.
	begun(ctx context.Context, tracks int) (bool, error)
	// counts reads what the server counts.
	counts(ctx context.Context) (exposition.Series, error)
	// figures reads the names that the server gives its metrics.
	figures() metricNames
	// pid is the server's process, 0 where it is unknown.
	pid() int
	close() error
}

// part is how a client takes part. A client with a number of a publisher publishes where publish is set.
type part struct {
	load             Load
	number           int
	publish, receive bool
	// every is how many packets there are for one whose times are taken, 0 for none.
	every int
}

// identity names a client.
func (p part) identity() string {
	if p.publish {
		return publisherName(p.number)
	}
	return "receiver-" + strconv.Itoa(p.number)
}

func publisherName(number int) string { return "publisher-" + strconv.Itoa(number) }

// member is a client that takes part: as publisher, receiver or both.
type member struct {
	// publisher is nil where the client publishes nothing, receiver where it receives nothing.
	publisher *publisher
	receiver  receiver
	// socket is nil on impaired paths.
	socket *socket
	// trace asks for the times of the frames that it is sent, or no more; nil where it cannot.
	trace func(wanted bool) error
	end   func() error
}

// receiver is how a client counts what it receives.
type receiver interface {
	sum() received
	// time begins or ends to count times; times are those of packets and of whole frames so far.
	time(on bool)
	times() (packet, frame lab.Distribution)
}

// metricNames are how a server calls what is measured. Those that it does not count are empty.
type metricNames struct {
	packets, residence, hold, datagrams, sends, retransmissions, cache string
}

// connect waits until a peer connection is there.
func (p *peer) connect(ctx context.Context) error {
	select {
	case <-p.connected:
		return nil
	case <-p.failed:
		return errConnection
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errConnection, ctx.Err())
	}
}
