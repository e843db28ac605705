package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/volsfu/volsfu/internal/admin"
	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/transport"
)

// keys checks that there are keys for tokens, and that other users cannot read them.
func (o *options) keys(context.Context) []Finding {
	const subject = "token keys"
	c := o.settings
	if c.Server.Dev {
		return []Finding{{subject, Warning, "with --dev no token is needed, and the server listens on loopback only",
			"Leave --dev out on a server for others."}}
	}
	ring, err := auth.NewKeyring(c.Auth)
	if err != nil {
		return []Finding{{subject, Failed, err.Error(),
			`Create a key file: (umask 077; printf 'first:%s\n' "$(openssl rand -hex 32)" >keys), and pass ` +
				"--auth-key-file keys."}}
	}
	result := fmt.Sprintf("%d, new tokens are signed with %q", len(ring.KeyIDs()), ring.KeyIDs()[0])
	if info, err := os.Stat(c.Auth.KeyFile); err == nil && info.Mode().Perm()&0o007 != 0 {
		return []Finding{{subject, Failed, fmt.Sprintf("every user of this host can read %s (%v)", c.Auth.KeyFile,
			info.Mode().Perm()), "chmod o= " + c.Auth.KeyFile}}
	}
	return []Finding{{subject, OK, result, ""}}
}

// ports checks that the server can listen, or that it does already.
func (o *options) ports(ctx context.Context) []Finding {
	c := o.settings
	running := answers(ctx, c.Admin.Listen)
	media := net.JoinHostPort(c.Media.Address, strconv.Itoa(c.Media.Port))
	found := []Finding{
		portFinding("signalling", "TCP", c.Server.Listen, tryTCP(c.Server.Listen), running),
		portFinding("media", "UDP", media, tryUDP(media), running),
	}
	if c.Media.TCP {
		found = append(found, portFinding("media", "TCP", media, tryTCP(media), running))
	}
	if c.Admin.Listen != "" {
		found = append(found, portFinding("operators", "TCP", c.Admin.Listen, tryTCP(c.Admin.Listen), running))
	}
	return found
}

// answers reports whether a server of this configuration runs, by its operators' listener.
func answers(ctx context.Context, listen string) bool {
	body, err := ask(ctx, listen, "/healthz")
	return err == nil && strings.TrimSpace(string(body)) == "ok"
}

// maxAnswer bounds an answer of the operators' listener, in bytes.
const maxAnswer = 1 << 20

// errStatus is wrapped with the status of an answer.
var errStatus = errors.New("unexpected status")

// ask sends a request to the operators' listener of the host.
func ask(ctx context.Context, listen, path string) ([]byte, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+path, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w %s", errStatus, response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, maxAnswer))
}

// running is the part of the running server's state (GET /admin/v1/server) that concerns reachability.
type running struct {
	// Addresses are those that clients are told.
	Addresses []string
	// TURN is the relay, nil if there is none. Error is the result of its self-test.
	TURN *struct {
		URLs  []string
		Error string
	}
}

// relay reports the addresses that clients are told, and the self-test of the relay, of the running server.
func (o *options) relay(ctx context.Context) []Finding {
	var state running
	body, err := ask(ctx, o.settings.Admin.Listen, admin.APIPath+"server")
	if err != nil || json.Unmarshal(body, &state) != nil {
		return []Finding{{"relay", Skipped, "no server runs here, or its operators' listener is off",
			"Repeat the check while the server runs: the server tests its relay when it starts."}}
	}
	return state.findings()
}

func (r running) findings() []Finding {
	var found []Finding
	if len(r.Addresses) > 0 {
		found = append(found, Finding{"media addresses", OK, "clients are told " + strings.Join(r.Addresses, ", "), ""})
	}
	switch {
	case r.TURN == nil:
		return append(found, Finding{"relay", Warning, "none is configured: clients in networks that admit only TLS on " +
			"port 443 do not reach media", "Enable the embedded TURN server, or name an external one (docs/operations.md)."})
	case r.TURN.Error != "":
		return append(found, Finding{"relay", Failed, r.TURN.Error,
			"Check the ports of the relay in the firewall, and its name and certificate."})
	}
	return append(found, Finding{"relay", OK, "relays at " + strings.Join(r.TURN.URLs, ", "), ""})
}

func tryTCP(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return listener.Close()
}

func tryUDP(address string) error {
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// portFinding judges an attempt to listen. running is set if a server of this configuration answers.
func portFinding(of, protocol, address string, err error, running bool) Finding {
	f := Finding{Subject: of + " port", Status: OK, Result: fmt.Sprintf("%s %s is free", protocol, address)}
	_, port, _ := net.SplitHostPort(address)
	switch {
	case err == nil:
	case errors.Is(err, syscall.EADDRINUSE) && running:
		f.Result = fmt.Sprintf("%s %s is in use by the running server", protocol, address)
	case errors.Is(err, syscall.EADDRINUSE):
		f.Status, f.Result = Failed, fmt.Sprintf("%s %s is in use by another program", protocol, address)
		f.Advice = fmt.Sprintf("Find the program with: ss -lntup 'sport = :%s', or choose another port.", port)
	case errors.Is(err, fs.ErrPermission):
		f.Status, f.Result = Failed, fmt.Sprintf("this user may not listen on %s %s", protocol, address)
		f.Advice = "Ports below 1024 need CAP_NET_BIND_SERVICE; deploy/systemd/volsfu.service has the lines."
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		f.Status, f.Result = Failed, fmt.Sprintf("%s is not an address of this host", address)
		f.Advice = "Listen on an address of an interface. The address of a NAT belongs to --public-ip."
	default:
		f.Status, f.Result = Failed, err.Error()
	}
	return f
}

// buffers checks the limits of socket buffers.
func (o *options) buffers(context.Context) []Finding {
	c := o.settings.Media
	c.Address, c.Port, c.TCP, c.Sockets, c.STUNServers, c.Interfaces = "127.0.0.1", 0, false, 1, nil, nil
	endpoint, err := transport.Listen(c)
	if err != nil {
		return []Finding{{"socket buffers", Failed, err.Error(), ""}}
	}
	defer func() { _ = endpoint.Close() }()
	return []Finding{
		bufferFinding("receive", "net.core.rmem_max", endpoint.ReceiveBuffer(), c.ReceiveBuffer),
		bufferFinding("send", "net.core.wmem_max", endpoint.SendBuffer(), c.SendBuffer),
	}
}

// bufferFinding judges a buffer. Sizes are in bytes, granted is 0 if it is unknown.
func bufferFinding(name, limit string, granted, wanted int) Finding {
	f := Finding{Subject: name + " buffer", Status: OK, Result: fmt.Sprintf("%d bytes", granted)}
	switch {
	case granted == 0:
		f.Status, f.Result = Skipped, "the size is unknown on this system"
	case granted < wanted:
		f.Status = Warning
		f.Result = fmt.Sprintf("%d of %d bytes: bursts of frames do not fit and lose packets", granted, wanted)
		f.Advice = fmt.Sprintf("sysctl -w %s=%d (permanently: deploy/systemd/90-volsfu.conf)", limit, wanted)
	}
	return f
}
