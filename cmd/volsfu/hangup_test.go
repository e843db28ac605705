//go:build unix

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/certificate"
	"github.com/volsfu/volsfu/test/wait"
)

// asProgram makes the test binary run as volsfu.
const asProgram = "VOLSFUTEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serving is a running volsfu with a certificate, keys in a file, and its log in a file.
type serving struct {
	t                    *testing.T
	command              *exec.Cmd
	ended                chan struct{}
	address              string
	cert, key, keys, log string
	// trusted has all certificates of the test.
	trusted *x509.CertPool
}

const firstKey, secondKey = "first:0123456789abcdef0123456789abcdef", "second:0123456789abcdef0123456789abcdef"

func serve(t *testing.T) *serving {
	t.Helper()
	dir := t.TempDir()
	s := &serving{t: t, ended: make(chan struct{}), trusted: x509.NewCertPool(),
		cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"), keys: filepath.Join(dir, "keys"),
		log: filepath.Join(dir, "log")}
	s.renew()
	s.write(s.keys, firstKey+"\n")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.command = exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "", "--media-address",
		"127.0.0.1", "--media-port", "0", "--tls-cert", s.cert, "--tls-key", s.key, "--auth-key-file", s.keys,
		"--log-file", s.log, "--log-format", "json", "--server-nice", "0",
		// A machine that stalls looks like a congested link, which loses frames.
		"--forward-congestion-min-bps", "100000000", "--forward-congestion-start-bps", "100000000",
		"--forward-queue-budget", signal.MaxDeadline.String())
	s.command.Env = append(os.Environ(), asProgram+"=1")
	s.command.Stderr = os.Stderr
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.command.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = s.command.Process.Kill()
		<-s.ended
		if t.Failed() {
			t.Logf("log:\n%s", s.logged(s.log))
		}
	})
	s.awaitLine("volsfu is ready", 1)
	address := regexp.MustCompile(`"wss://(127\.0\.0\.1:\d+)`).FindStringSubmatch(s.logged(s.log))
	if address == nil {
		t.Fatal("the log has no address of the server")
	}
	s.address = address[1]
	return s
}

func (s *serving) write(path, text string) {
	s.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// renew writes a new certificate and its key, and returns the certificate.
func (s *serving) renew() []byte {
	s.t.Helper()
	files := certificate.New(s.t, "127.0.0.1")
	for to, from := range map[string]string{s.cert: files.Certificate, s.key: files.Key} {
		data, err := os.ReadFile(from)
		if err != nil {
			s.t.Fatal(err)
		}
		s.write(to, string(data))
	}
	data, err := os.ReadFile(s.cert)
	if err != nil || !s.trusted.AppendCertsFromPEM(data) {
		s.t.Fatalf("the certificate cannot be used: %v", err)
	}
	pair, err := tls.LoadX509KeyPair(s.cert, s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	return pair.Certificate[0]
}

// presented returns the certificate of a new connection.
func (s *serving) presented() []byte {
	s.t.Helper()
	conn, err := tls.Dial("tcp", s.address, &tls.Config{RootCAs: s.trusted})
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0].Raw
}

// admits reports whether the server accepts a token of a key.
func (s *serving) admits(key string) bool {
	s.t.Helper()
	url := "https://" + s.address + "/admin/v1/rooms"
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.token(key))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.trusted}, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func (s *serving) token(key string) string {
	s.t.Helper()
	ring, err := auth.NewKeyring(auth.Config{Keys: []string{key}})
	if err != nil {
		s.t.Fatal(err)
	}
	now := time.Now()
	claims := auth.Claims{Publish: true, Subscribe: true, Admin: true, Expires: now.Add(time.Hour)}
	token, err := ring.Mint("", claims, now)
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

func (s *serving) hangUp() {
	s.t.Helper()
	if err := s.command.Process.Signal(syscall.SIGHUP); err != nil {
		s.t.Fatal(err)
	}
}

func (s *serving) logged(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}

func (s *serving) awaitLine(text string, times int) {
	s.t.Helper()
	wait.Until(s.t, fmt.Sprintf("the log has %q %d times", text, times), func() bool {
		select {
		case <-s.ended:
			s.t.Fatalf("the server has ended with %v", s.command.ProcessState)
		default:
		}
		return strings.Count(s.logged(s.log), text) >= times
	})
}

func (s *serving) join(config client.Config) *client.Session {
	s.t.Helper()
	config.URL, config.Room, config.Token = "wss://"+s.address, "lab", s.token(firstKey)
	config.TLS = &tls.Config{RootCAs: s.trusted}
	ctx, cancel := context.WithTimeout(s.t.Context(), wait.Patience)
	defer cancel()
	session, err := client.Join(ctx, config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = session.Close() })
	return session
}

const (
	certificateReloaded = "the TLS certificate has been reloaded"
	keysReloaded        = "the file of token keys has been reloaded"
	certificateKept     = "the TLS certificate could not be reloaded"
	keysKept            = "the file of token keys could not be reloaded"
)

// TestHangup renews the certificate, changes the keys, and moves the log of a server that forwards frames, by SIGHUP.
// Files that cannot be used change nothing. No frame is lost, and no session ends.
func TestHangup(t *testing.T) {
	s := serve(t)
	watcher := s.join(client.Config{Identity: "bob", Receive: true, Deadline: signal.MaxDeadline})
	speaker := s.join(client.Config{Identity: "alice", MinUplink: 1e9, QueueBudget: wait.Patience,
		Publications: []volumetric.Publication{{
			Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, FrameRate: 30,
			Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
			Tiles: make([]volumetric.Tile, 1), Qualities: make([]volumetric.QualityLevel, 1),
		}}})
	flow := newFlow(t, watcher, speaker)
	flow.await(30)

	s.hangUp()
	s.awaitLine(certificateReloaded, 1)
	s.awaitLine(keysReloaded, 1)

	renewed := s.renew()
	s.write(s.keys, secondKey+"\n")
	s.hangUp()
	wait.Until(t, "the new certificate is presented", func() bool { return string(s.presented()) == string(renewed) })
	wait.Until(t, "the new key is accepted", func() bool { return s.admits(secondKey) })
	if s.admits(firstKey) {
		t.Error("the key that was removed is accepted")
	}

	s.write(s.cert, "no certificate")
	s.write(s.keys, "short:secret\n")
	s.hangUp()
	s.awaitLine(certificateKept, 1)
	s.awaitLine(keysKept, 1)
	if string(s.presented()) != string(renewed) || !s.admits(secondKey) {
		t.Error("files that cannot be used have replaced the last ones")
	}
	if text := s.logged(s.log); strings.Contains(text, "short:secret") || strings.Contains(text, secondKey) {
		t.Error("the log has a secret")
	}

	if err := os.Rename(s.log, s.log+".1"); err != nil {
		t.Fatal(err)
	}
	s.hangUp()
	s.awaitLine(certificateKept, 1)

	flow.await(30)
	flow.finish()
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	// A signal during the drain does not end the server either.
	s.awaitLine(`"draining"`, 1)
	s.hangUp()
	_ = watcher.Close()
	_ = speaker.Close()
	<-s.ended
	if code := s.command.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the server has ended with %v", s.command.ProcessState)
	}
}

// TestChangedFilesAreReloaded changes the files of a server without a signal.
func TestChangedFilesAreReloaded(t *testing.T) {
	s := serve(t)
	renewed := s.renew()
	s.write(s.keys, "nonsense\n")
	wait.Until(t, "the new certificate is presented", func() bool { return string(s.presented()) == string(renewed) })
	s.awaitLine(keysKept, 1)
	if !s.admits(firstKey) {
		t.Error("invalid keys have replaced the last ones")
	}
	if err := os.Rename(s.log, s.log+".1"); err != nil {
		t.Fatal(err)
	}
	s.write(s.keys, firstKey+"\n"+secondKey+"\n")
	wait.Until(t, "the new key is accepted", func() bool { return s.admits(secondKey) })
	if !s.admits(firstKey) {
		t.Error("the key that remains in the file is refused")
	}
	s.awaitLine(keysReloaded, 1)
}

// TestHangupOfVR2Gather: the command for VR2Gather has no files, and no signal ends it.
func TestHangupOfVR2Gather(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "vr2gather", "-addr", "127.0.0.1:0")
	command.Env = append(os.Environ(), asProgram+"=1")
	output, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	await := func(text string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("the program ended without %q: %v", text, lines.Err())
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	await("volsfu is ready")
	for _, sent := range []os.Signal{syscall.SIGHUP, syscall.SIGHUP, syscall.SIGTERM} {
		if err := command.Process.Signal(sent); err != nil {
			t.Fatal(err)
		}
	}
	await("stopped")
	if err := command.Wait(); err != nil {
		t.Errorf("the server has ended with %v", err)
	}
}

// flow sends a frame every 33 ms and receives it.
type flow struct {
	t                *testing.T
	watcher, speaker *client.Session
	last             time.Time
	sent             uint32
	arrived          map[int64]bool
	newest           int64
}

func newFlow(t *testing.T, watcher, speaker *client.Session) *flow {
	return &flow{t: t, watcher: watcher, speaker: speaker, arrived: make(map[int64]bool)}
}

// step sends what is due and takes what has arrived.
func (f *flow) step() {
	for {
		select {
		case frame, open := <-f.watcher.Frames():
			if !open {
				f.t.Fatalf("the session has ended: %v", f.watcher.Err())
			}
			f.arrived[frame.Number], f.newest = true, max(f.newest, frame.Number)
			continue
		default:
		}
		break
	}
	if now := time.Now(); now.Sub(f.last) >= 33*time.Millisecond {
		f.last = now
		taken, _ := f.speaker.Publisher("body").WriteFrame(0, 0, client.OutgoingFrame{Number: f.sent, Capture: now,
			Codec: [4]byte{'t', 'e', 's', 't'}, Data: make([]byte, 2000)})
		if taken {
			f.sent++
		}
	}
}

// await sends and receives until so many more frames have arrived.
func (f *flow) await(more int) {
	f.t.Helper()
	until := len(f.arrived) + more
	wait.Until(f.t, "frames arrive", func() bool {
		f.step()
		return len(f.arrived) >= until
	})
}

// finish checks that every frame after the first that arrived has arrived.
func (f *flow) finish() {
	f.t.Helper()
	first := int64(f.sent)
	for number := range f.arrived {
		first = min(first, number)
	}
	end := int64(f.sent)
	wait.Until(f.t, "later frames arrive", func() bool {
		f.step()
		return f.newest >= end+30
	})
	var lost []int64
	for number := first; number < end; number++ {
		if !f.arrived[number] {
			lost = append(lost, number)
		}
	}
	if len(lost) > 0 {
		f.t.Errorf("the frames %v of %d were lost", lost, end)
	}
}
