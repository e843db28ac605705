package paper003

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/topology"
)

// deadline is the time above the delay of the fastest undisturbed path for which a copy is in time: path 2 of table I
// is 10 to 15 ms slower than path 1, and paths 3 and 4 80 to 90 ms.
const deadline = 20 * time.Millisecond

// meeting is the time limit for two edges to find each other.
const meeting = 10 * time.Second

// edges are a pair of volnet edges, on the server's host and on the viewer's.
type edges struct {
	network  *topology.Network
	volnet   string
	folder   string // with configurations, key and sockets; short, because paths of sockets are
	pins     string // the BPF file system; empty before it is mounted
	programs []*lab.Program
}

// pairFiles are the configurations of both edges, by host. An edge copies the packets to the other host's main address.
func pairFiles(n *topology.Network, folder, copies string) map[string]string {
	files := make(map[string]string)
	for _, ends := range [][2]string{{hostServer, hostViewer}, {hostViewer, hostServer}} {
		from, to := ends[0], ends[1]
		var text strings.Builder
		_, _ = fmt.Fprintf(&text, "name: %s\npeer: %s\nkey-file: %s\nstate: %s\npaths:\n", from, to,
			filepath.Join(folder, "key"), folder)
		for i := range tableOne {
			_, _ = fmt.Fprintf(&text, "  - {name: path%d, interface: %s, local: %s, remote: %s}\n", i+1,
				topology.InterfaceName(i), n.AddressOn(from, i), n.AddressOn(to, i))
		}
		_, _ = fmt.Fprintf(&text, "send:\n  rules:\n    - {name: frames, to: %s/32, protocol: tcp, deadline: %v, "+
			"copies: %s}\nreceive:\n  inner: [%s/32]\n", n.Address(to), deadline, copies, n.Address(to))
		files[from] = text.String()
	}
	return files
}

// startEdges starts both edges, and waits until each hears the other.
func startEdges(ctx context.Context, n *topology.Network, s *experiment.Settings, copies string) (_ *edges,
	err error) {
	e := &edges{network: n}
	if e.volnet, err = s.Program("volnet"); err != nil {
		return nil, err
	}
	if e.folder, err = os.MkdirTemp("", "volnet"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.stop())
		}
	}()
	pins := filepath.Join(e.folder, "bpf")
	if err := os.Mkdir(pins, 0o700); err != nil {
		return nil, err
	}
	if err := unix.Mount("bpf", pins, "bpf", 0, ""); err != nil {
		return nil, fmt.Errorf("BPF file system for the edges: %w", err)
	}
	e.pins = pins
	key := strings.Repeat("5a", 32) + "\n"
	if err := os.WriteFile(filepath.Join(e.folder, "key"), []byte(key), 0o600); err != nil {
		return nil, err
	}
	for host, text := range pairFiles(n, e.folder, copies) {
		if err := os.WriteFile(e.file(host), []byte(text), 0o600); err != nil {
			return nil, err
		}
		program, err := lab.StartCommand("volnet edge on "+host, e.command(ctx, host, "edge"), nil)
		if err != nil {
			return nil, err
		}
		e.programs = append(e.programs, program)
	}
	ctx, cancel := context.WithTimeout(ctx, meeting)
	defer cancel()
	for _, host := range []string{hostServer, hostViewer} {
		if err := e.await(ctx, host); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// file returns the name of the configuration of a host's edge.
func (e *edges) file(host string) string { return filepath.Join(e.folder, host+".yaml") }

// command returns a command of volnet on a host. The context does not kill the command, which has to remove what it
// attached.
func (e *edges) command(ctx context.Context, host string, arguments ...string) *exec.Cmd {
	return e.network.Command(context.WithoutCancel(ctx), host, e.volnet, append(arguments, "--config", e.file(host))...)
}

// edgeStatus has the parts of an edge's status that are used here.
type edgeStatus struct {
	PeerAlive bool `json:"peer_alive"`
	Sent      struct {
		Packets uint64 `json:"packets"`
	} `json:"sent"`
	Paths []struct {
		Sent struct {
			Packets uint64 `json:"packets"`
		} `json:"sent"`
	} `json:"paths"`
	Rules []struct {
		Set    []string `json:"set"`
		Reason string   `json:"reason"`
	} `json:"rules"`
}

// copies returns the number of packets on all paths.
func (s *edgeStatus) copies() (packets uint64) {
	for i := range s.Paths {
		packets += s.Paths[i].Sent.Packets
	}
	return packets
}

// status returns the state of a host's edge.
func (e *edges) status(ctx context.Context, host string) (s edgeStatus, err error) {
	text, err := e.command(ctx, host, "status", "--json").Output()
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
}

// await waits until a host's edge hears the other edge.
func (e *edges) await(ctx context.Context, host string) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := e.status(ctx, host)
		if err == nil && s.PeerAlive {
			return nil
		}
		for _, p := range e.programs {
			select {
			case <-p.Ended():
				return errors.New("volnet edge has ended: " + p.LastOutput())
			default:
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the edges of %s and its peer do not meet within %v: %w", host, meeting, err)
		}
	}
}

// stop ends both edges, which remove their programs.
func (e *edges) stop() (err error) {
	for _, p := range e.programs {
		err = errors.Join(err, p.Stop())
	}
	if e.pins != "" {
		err = errors.Join(err, unix.Unmount(e.pins, 0))
	}
	return errors.Join(err, os.RemoveAll(e.folder))
}
