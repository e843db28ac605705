package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pion/logging"
	"github.com/pion/stun/v4"
	"github.com/pion/turn/v5"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/test/certificate"
	"github.com/volsfu/volsfu/test/testbed"
)

// expect checks status and result of a finding. A finding that is not OK or skipped needs an advice.
func expect(t *testing.T, f Finding, status Status, result string) {
	t.Helper()
	if f.Status != status || !strings.Contains(f.Result, result) {
		t.Errorf("the finding is %+v, expected %s with %q", f, status, result)
	}
	if f.Advice == "" && (f.Status == Failed || f.Status == Warning) {
		t.Errorf("%+v has no advice", f)
	}
}

func TestPortFinding(t *testing.T) {
	for _, test := range []struct {
		err     error
		running bool
		status  Status
		result  string
	}{
		{nil, false, OK, "is free"},
		{syscall.EADDRINUSE, true, OK, "the running server"},
		{syscall.EADDRINUSE, false, Failed, "another program"},
		{&fs.PathError{Err: syscall.EACCES}, false, Failed, "may not listen"},
		{syscall.EADDRNOTAVAIL, false, Failed, "not an address of this host"},
	} {
		expect(t, portFinding("media", "UDP", "0.0.0.0:7882", test.err, test.running), test.status, test.result)
	}
}

func TestBufferFinding(t *testing.T) {
	expect(t, bufferFinding("receive", "net.core.rmem_max", 0, 8), Skipped, "unknown")
	expect(t, bufferFinding("receive", "net.core.rmem_max", 4, 8), Warning, "4 of 8 bytes")
	expect(t, bufferFinding("receive", "net.core.rmem_max", 8, 8), OK, "8 bytes")
}

func TestView(t *testing.T) {
	private, public := netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("203.0.113.5")
	mapped := func(texts ...string) (all []netip.AddrPort) {
		for _, text := range texts {
			all = append(all, netip.MustParseAddrPort(text))
		}
		return all
	}
	for name, test := range map[string]struct {
		view   view
		status Status
		result string
	}{
		"configured":   {view{own: []netip.Addr{private}, configured: []string{"203.0.113.5"}}, OK, "203.0.113.5"},
		"public":       {view{own: []netip.Addr{private, public}}, OK, "public address 203.0.113.5"},
		"private only": {view{own: []netip.Addr{private}}, Warning, "10.0.0.5"},
		"silent":       {view{servers: 2}, Failed, "no STUN server answers"},
		"symmetric": {view{port: 7882, servers: 2, mapped: mapped("203.0.113.5:4000", "203.0.113.5:4001")}, Failed,
			"symmetric NAT"},
		"another address": {view{port: 7882, servers: 1, configured: []string{"198.51.100.1"},
			mapped: mapped("203.0.113.5:7882")}, Warning, "198.51.100.1"},
		"no NAT": {view{port: 7882, own: []netip.Addr{public}, servers: 1, mapped: mapped("203.0.113.5:7882")}, OK,
			"no NAT"},
		"other port": {view{port: 7882, own: []netip.Addr{private}, servers: 1, mapped: mapped("203.0.113.5:4000")},
			Warning, "replaces port 7882 by 4000"},
		"NAT": {view{port: 7882, own: []netip.Addr{private}, servers: 2,
			mapped: mapped("203.0.113.5:7882", "203.0.113.5:7882")}, OK, "keeps the port"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, test.view.finding(), test.status, test.result) })
	}
}

// answerSTUN answers STUN requests with a mapping to a port, until the connection ends.
func answerSTUN(conn net.PacketConn, port int) {
	buffer := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		request := stun.New()
		if stun.Decode(buffer[:n], request) != nil {
			continue
		}
		answer, err := stun.Build(request, stun.BindingSuccess,
			&stun.XORMappedAddress{IP: net.IPv4(203, 0, 113, 5), Port: port})
		if err == nil {
			_, _ = conn.WriteTo([]byte("no STUN"), from)
			_, _ = conn.WriteTo(answer.Raw, from)
		}
	}
}

// TestMapping asks STUN servers that report different ports, and one that is silent.
func TestMapping(t *testing.T) {
	servers := make([]string, 0, 3)
	for port := range 3 {
		conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		servers = append(servers, "stun:"+conn.LocalAddr().String())
		if port == 0 {
			continue
		}
		go answerSTUN(conn, 4000+port)
	}
	o := options{settings: config.DefaultConfig()}
	o.settings.Media.Port, o.settings.Media.STUNServers = 0, servers
	found := o.addresses(t.Context())
	if len(found) != 2 {
		t.Fatalf("the findings are %+v", found)
	}
	expect(t, found[0], Warning, "does not answer")
	expect(t, found[1], Failed, "symmetric NAT")
}

func TestValidity(t *testing.T) {
	files := certificate.New(t, "127.0.0.1")
	pair, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	end, begin := pair.Leaf.NotAfter, pair.Leaf.NotBefore
	expect(t, validity("certificate", pair.Leaf, "", end.Add(-30*24*time.Hour)), Failed, "valid only from")
	long := *pair.Leaf
	long.NotBefore = end.Add(-90 * 24 * time.Hour)
	expect(t, validity("certificate", &long, "127.0.0.1", end.Add(-15*24*time.Hour)), OK, "127.0.0.1")
	expect(t, validity("certificate", &long, "127.0.0.1", end.Add(-13*24*time.Hour)), Warning, "valid until")
	expect(t, validity("certificate", &long, "sfu.example.org", end.Add(-time.Hour)), Failed, "sfu.example.org")
	expect(t, validity("certificate", pair.Leaf, "", end), Failed, "expired")
	expect(t, chain(pair, begin.Add(time.Minute)), Warning, "no authority of this host")
	expect(t, chain(pair, end.Add(time.Minute)), Failed, "expired")
}

func TestWebsocketFinding(t *testing.T) {
	target := &url.URL{Scheme: "wss", Host: "sfu.example.org", Path: "/v1/signal"}
	invalid := &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
	for _, test := range []struct {
		status int
		err    error
		want   Status
		result string
	}{
		{0, nil, OK, "without a token"},
		{http.StatusUnauthorized, errNoDate, OK, "asks for a token"},
		{0, invalid, Failed, "unknown authority"},
		{0, syscall.ECONNREFUSED, Failed, "connection refused"},
		{http.StatusTooManyRequests, errNoDate, Warning, "too many"},
		{http.StatusBadGateway, errNoDate, Failed, "status 502"},
	} {
		expect(t, websocketFinding("clients' address", target, test.status, test.err), test.want, test.result)
	}
}

func TestClockFinding(t *testing.T) {
	const leeway = 30 * time.Second
	expect(t, clockFinding(-900*time.Millisecond, 0, leeway), OK, "-900ms")
	expect(t, clockFinding(1400*time.Millisecond, 500*time.Millisecond, leeway), OK, "1.4s")
	expect(t, clockFinding(-2*time.Second, 0, leeway), Warning, "-2s")
	expect(t, clockFinding(time.Minute, time.Second, leeway), Failed, "beyond 30s")
}

func TestCompareDate(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
	}))
	defer server.Close()
	offset, uncertainty, err := compareDate(t.Context(), server.URL)
	if err != nil || (offset-time.Hour).Abs() > uncertainty+time.Second {
		t.Errorf("the offset is %v ± %v, %v", offset, uncertainty, err)
	}
}

// TestCompareNTP asks a server whose clock is an hour slow.
func TestCompareNTP(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	go func() {
		buffer := make([]byte, 512)
		n, from, err := conn.ReadFrom(buffer)
		if err == nil && n == ntpBytes {
			_, _ = conn.WriteTo(ntpAnswer(buffer[:n], time.Now().Add(-time.Hour)), from)
		}
	}()
	offset, uncertainty, err := compareNTP(t.Context(), conn.LocalAddr().String())
	if err != nil || (offset-time.Hour).Abs() > uncertainty+time.Millisecond {
		t.Errorf("the offset is %v ± %v, %v", offset, uncertainty, err)
	}
}

// TestFindings runs the command on a host with a running server, and on one whose port is taken.
func TestFindings(t *testing.T) {
	c, err := testbed.NewConference(testbed.ConferenceConfig(), nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	address := strings.TrimPrefix(c.Server.URL(), "ws://")
	run := func(arguments ...string) (map[string]Finding, error) {
		t.Helper()
		var out bytes.Buffer
		cmd := Command()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetOut(&out)
		cmd.SetArgs(append(arguments, "--dev", "--json", "--listen", address, "--media-port", "0"))
		err := cmd.ExecuteContext(context.Background())
		var answer struct{ Findings []Finding }
		if json.Unmarshal(out.Bytes(), &answer) != nil {
			t.Fatalf("the answer is %q", out.String())
		}
		bySubject := make(map[string]Finding)
		for _, f := range answer.Findings {
			bySubject[f.Subject] = f
		}
		return bySubject, err
	}
	found, err := run("--admin-listen", c.Server.AdminAddress(), "--url", "http://"+address)
	if err != nil {
		t.Errorf("the command fails: %v, %+v", err, found)
	}
	if found["configuration"].Status == Failed {
		t.Errorf("the configuration is %+v", found["configuration"])
	}
	expect(t, found["signalling port"], OK, "the running server")
	expect(t, found["clients' address"], OK, "accepts websockets")
	found, err = run("--admin-listen", "127.0.0.1:1")
	if !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "signalling port") {
		t.Errorf("the error is %v", err)
	}
	expect(t, found["signalling port"], Failed, "another program")
	expect(t, found["relay"], Skipped, "no server runs")
}

func TestRunningFindings(t *testing.T) {
	var r running
	const text = `{"addresses":["203.0.113.5:7882 udp"],"turn":{"urls":["turns:a:443"],"error":"no"}}`
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	found := r.findings()
	expect(t, found[0], OK, "203.0.113.5:7882")
	expect(t, found[1], Failed, "no")
	r.TURN.Error = ""
	expect(t, r.findings()[1], OK, "turns:a:443")
	expect(t, running{}.findings()[0], Warning, "none is configured")
}

// TestICEServers checks a STUN and TURN server with a valid and a wrong credential, and a port without a server.
func TestICEServers(t *testing.T) {
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	logs := logging.NewDefaultLoggerFactory()
	logs.DefaultLogLevel = logging.LogLevelDisabled
	server, err := turn.NewServer(turn.ServerConfig{
		Realm: "example.org", LoggerFactory: logs, AuthHandler: turn.LongTermTURNRESTAuthHandler("north", nil),
		PacketConnConfigs: []turn.PacketConnConfig{{
			PacketConn: conn, RelayAddressGenerator: &turn.RelayAddressGeneratorNone{Address: "127.0.0.1"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	address := conn.LocalAddr().String()
	o := options{settings: config.DefaultConfig()}
	o.settings.ICEServers = []string{
		"turn:" + address + " secret=north", "turn:" + address + " secret=south", "stun:" + address, "stuns:" + address,
		"turn:127.0.0.1:1?transport=tcp secret=north",
	}
	found := o.iceServers(t.Context())
	if len(found) != len(o.settings.ICEServers) {
		t.Fatalf("the findings are %+v", found)
	}
	expect(t, found[0], OK, "turn:"+address)
	expect(t, found[1], Failed, "no allocation")
	expect(t, found[2], OK, "stun:"+address)
	expect(t, found[3], Skipped, "not checked")
	expect(t, found[4], Failed, "refused")
	for _, f := range found {
		if strings.Contains(f.Result, "north") || strings.Contains(f.Result, "south") {
			t.Errorf("%+v shows a secret", f)
		}
	}
}

// TestSTUNFamilies asks a STUN server of IPv6 alone, and one with two addresses, one of which is silent.
func TestSTUNFamilies(t *testing.T) {
	conn, err := net.ListenPacket("udp6", "[::1]:0")
	if err != nil {
		t.Skipf("this host has no IPv6: %v", err)
	}
	defer func() { _ = conn.Close() }()
	go answerSTUN(conn, 4000)
	server := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	alone := "stun:" + server.String()
	expect(t, iceServerFinding(alone, useICEServer(t.Context(), alone, signal.ICEServer{})), OK, alone)
	silent, err := net.ListenPacket("udp4", "127.0.0.1:"+strconv.Itoa(int(server.Port())))
	if err != nil {
		t.Skipf("the port is taken in IPv4: %v", err)
	}
	defer func() { _ = silent.Close() }()
	err = askSTUN(t.Context(), []netip.Addr{netip.MustParseAddr("127.0.0.1"), server.Addr()}, server.Port())
	expect(t, iceServerFinding("stun:example.org", err), Warning, "over IPv4")
}

// TestKeys: keys that other users can read are reported.
func TestKeys(t *testing.T) {
	o := options{settings: config.DefaultConfig()}
	expect(t, o.keys(t.Context())[0], Failed, "none")
	file := t.TempDir() + "/keys"
	if err := os.WriteFile(file, []byte("first:0123456789abcdef0123456789abcdef\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	o.settings.Auth.KeyFile = file
	expect(t, o.keys(t.Context())[0], Failed, "every user")
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, o.keys(t.Context())[0], OK, "1, new tokens")
}
