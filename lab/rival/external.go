package rival

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/topology"
)

// externalPort is the UDP port of the receiver of an External. The receiver's host runs nothing else.
const externalPort = 30_000

// externalFPS is the frame rate of an External, and externalSpread the time in which it sends a frame: those of the
// media of this laboratory and of paper 000.
const (
	externalFPS    = 30
	externalSpread = 20 * time.Millisecond
)

// Bounds are the rates of a sender, in bit/s.
type Bounds struct{ Min, Start, Max int64 }

// External is a sender with frames and its receiver, both programs of others. They are found in a folder, and are not
// part of this project.
type External struct {
	// Name is the name of the program for reports.
	Name             string
	sender, receiver string // paths
	// arguments of both for a transfer from one address to another.
	senderArguments   func(from, to, port string, b Bounds, length time.Duration) []string
	receiverArguments func(from, to, port string) []string
}

// Scream finds the sender and the receiver of SCReAM (EricssonResearch/scream) in a folder: scream_bw_test_tx and
// scream_bw_test_rx. The error wraps lab.ErrProgram and names the missing program.
func Scream(folder string) (*External, error) {
	kilobits := func(bps int64) string { return strconv.FormatInt(bps/1000, 10) }
	return findExternal(folder, External{
		Name: "SCReAM", sender: "scream_bw_test_tx", receiver: "scream_bw_test_rx",
		senderArguments: func(_, to, port string, b Bounds, length time.Duration) []string {
			return []string{"-ect", "1", "-fps", strconv.Itoa(externalFPS), "-rand", "0", "-initrate",
				kilobits(b.Start),
				"-minrate", kilobits(b.Min), "-maxrate", kilobits(b.Max), "-time", seconds(length), to, port}
		},
		receiverArguments: func(from, _, port string) []string { return []string{from, port} },
	})
}

// UDPPrague finds the sender and the receiver of L4STeam/udp_prague in a folder: udp_prague_sender and
// udp_prague_receiver. They run in their mode with frames, with reports of RFC 8888. The error wraps lab.ErrProgram and
// names the missing program.
func UDPPrague(folder string) (*External, error) {
	return findExternal(folder, External{
		Name: "udp_prague", sender: "udp_prague_sender", receiver: "udp_prague_receiver",
		senderArguments: func(_, to, port string, b Bounds, _ time.Duration) []string {
			return []string{"-c", "-a", to, "-p", port, "-b", strconv.FormatInt(b.Max/1000, 10), "--rtmode", "--fps",
				strconv.Itoa(externalFPS), "--frameduration", strconv.FormatInt(externalSpread.Microseconds(), 10),
				"--rfc8888", "-q"}
		},
		receiverArguments: func(_, to, port string) []string {
			return []string{"-a", to, "-p", port, "--rtmode", "--rfc8888", "-q"}
		},
	})
}

// findExternal completes the paths of the programs.
func findExternal(folder string, e External) (*External, error) {
	var err error
	if e.sender, err = executable(folder, e.sender); err != nil {
		return nil, err
	}
	if e.receiver, err = executable(folder, e.receiver); err != nil {
		return nil, err
	}
	return &e, nil
}

// executable finds a program in a folder, which must be named.
func executable(folder, name string) (string, error) {
	path, err := exec.LookPath(folder + "/" + name)
	if folder == "" || err != nil {
		return "", fmt.Errorf("%w %s: expected an executable file in the folder %q", lab.ErrProgram, name, folder)
	}
	return path, nil
}

func seconds(length time.Duration) string { return strconv.Itoa(max(1, int(length.Seconds()+0.5))) }

// ExternalFlow is a running External.
type ExternalFlow struct{ sender, receiver *lab.Program }

// Start starts the receiver and the sender on hosts of a network, for a time. Stop ends both.
func (e *External) Start(ctx context.Context, n *topology.Network, from, to string, b Bounds,
	length time.Duration) (*ExternalFlow, error) {
	port := strconv.Itoa(externalPort)
	source, destination := n.Address(from).String(), n.Address(to).String()
	f := &ExternalFlow{}
	var err error
	command := n.Command(ctx, to, e.receiver, e.receiverArguments(source, destination, port)...)
	if f.receiver, err = lab.StartCommand(e.Name+" receiver", command, nil); err != nil {
		return nil, err
	}
	command = n.Command(ctx, from, e.sender, e.senderArguments(source, destination, port, b, length)...)
	if f.sender, err = lab.StartCommand(e.Name+" sender", command, nil); err != nil {
		return nil, errors.Join(err, f.receiver.Stop())
	}
	return f, nil
}

// Failure returns an error if one of the programs has ended with a failure. Programs that have ended without one, and
// running ones, have not failed.
func (f *ExternalFlow) Failure() error { return failureOf(f.sender, f.receiver) }

// failureOf returns the failures of the programs that have ended.
func failureOf(programs ...*lab.Program) (err error) {
	ended, end := context.WithCancel(context.Background())
	end()
	for _, p := range programs {
		if failed := p.Wait(ended); failed != nil && !errors.Is(failed, context.Canceled) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// Stop ends both programs. Their exit status after SIGTERM is not a failure.
func (f *ExternalFlow) Stop() {
	_ = f.sender.Stop()
	_ = f.receiver.Stop()
}
