package transport

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/internal/transport/icemux"
	"github.com/volsfu/volsfu/internal/transport/ratelimit"
	"github.com/volsfu/volsfu/internal/transport/secure"
	"github.com/volsfu/volsfu/internal/udp"
)

// applicationData is the content type of protected records (RFC 6347 section 4.1).
const applicationData = 23

// TestRecordsOfOneAddressAreBounded sends records of two peers from one address.
func TestRecordsOfOneAddressAreBounded(t *testing.T) {
	port, err := udp.Listen(udp.Config{Address: netip.MustParseAddrPort("127.0.0.1:0"), Sockets: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = port.Close() }()
	mux := icemux.New(port, &routes{}, icemux.Config{Unbounded: true, Records: ratelimit.Rate{PerSecond: 1, Burst: 3}})
	record := []byte{applicationData, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 7}
	for n := range 2 {
		p := &Peer{}
		p.records.Store(secure.NewRecords(nil))
		from := netip.AddrPortFrom(netip.MustParseAddr("203.0.113.1"), uint16(1+n))
		for range 2 {
			p.receiveControl(slices.Clone(record), mux, from, start)
		}
	}
	if limited := mux.Counts().Limited; limited != 1 {
		t.Errorf("%d of 4 datagrams with records are refused, expected 1", limited)
	}
}
